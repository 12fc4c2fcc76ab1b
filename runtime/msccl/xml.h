/* What the writer and the reader of MSCCL XML share. */
#ifndef WEFT_RUNTIME_MSCCL_XML_H
#define WEFT_RUNTIME_MSCCL_XML_H

#include "runtime/msccl/msccl.h"

#define MSCCL_OLD_MAX_BYTES (1 << 27)	/* the default of microsoft/msccl */

/* How a dialect spells a collective. */
const char *msccl_kind_name(enum coll_kind kind, enum lower_dialect dialect);

#endif
