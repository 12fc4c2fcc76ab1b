/* Every driver that is built in; the table in registry.c lists them by name. */
#ifndef WEFT_DRIVERS_CORE_DRIVERS_H
#define WEFT_DRIVERS_CORE_DRIVERS_H

#include "drivers/core/driver.h"

extern const struct drv_class drv_calient_tl1;
extern const struct drv_class drv_glimmerglass_tl1;
extern const struct drv_class drv_linux_ring;
extern const struct drv_class drv_linux_tc;
extern const struct drv_class drv_mrr_reg;
extern const struct drv_class drv_polatis_scpi;
extern const struct drv_class drv_polatis_tl1;
extern const struct drv_class drv_rome_cli;
extern const struct drv_class drv_sim;
extern const struct drv_class drv_sim_ring;
extern const struct drv_class drv_sonic_ocs;
extern const struct drv_class drv_telescent_cli;

#endif
