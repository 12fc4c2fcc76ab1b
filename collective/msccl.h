/* What the writer and the reader of MSCCL XML share. */
#ifndef WEFT_COLLECTIVE_MSCCL_H
#define WEFT_COLLECTIVE_MSCCL_H

#include "collective/lower.h"

#define MSCCL_OLD_MAX_BYTES (1 << 27)	/* the default of microsoft/msccl */

/* How a dialect spells a collective. */
const char *msccl_kind_name(enum coll_kind kind, enum lower_dialect dialect);

#endif
