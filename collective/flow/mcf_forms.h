/*
 * The all-to-all flow as linear programs, in the forms of the paper
 * (all-to-all-mcf, section 3.1), to compare with the flow solver and for
 * fabrics small enough: one flow a pair (link MCF, eqs 1-5), one a source
 * (the grouped master, eqs 6-9), and paths that are priced instead of listed
 * (pMCF, eqs 21-24). All minimise the congestion U = 1 / F; symmetry is used
 * as mcf_new found it.
 */
#ifndef WEFT_COLLECTIVE_FLOW_MCF_FORMS_H
#define WEFT_COLLECTIVE_FLOW_MCF_FORMS_H

#include "collective/flow/mcf.h"

enum mcf_form {
	MCF_FORM_FLOW,		/* none of these: mcf_run */
	MCF_FORM_LINK, MCF_FORM_GROUPED, MCF_FORM_PATHS,
};

#define MCF_FORMS 4

/* Larger programs are refused: lp_solve would not end. */
#define MCF_FORM_MAX_COLS 60000

/* "mcf", "link-mcf", "grouped", "pmcf". */
const char *mcf_form_name(enum mcf_form form);
/* The form of a name; false when there is none. */
bool mcf_form_parse(const char *name, enum mcf_form *form);

/*
 * Solves p in this form and leaves the flow in p, from where paths are cut
 * and mcf_run goes on. res: certified as by mcf_run, from the program's flow
 * and duals; passes are rounds of pricing. A time limit or cancel leaves the
 * best that is certified by then. WEFT_ELIMIT when the program is too large,
 * WEFT_EINTERNAL when the linear solver breaks down.
 */
int mcf_solve_form(struct mcf *p, enum mcf_form form,
		   const struct mcf_options *opt, struct mcf_result *res,
		   struct err *err);

#endif
