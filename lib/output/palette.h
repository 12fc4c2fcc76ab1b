/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The colours of all drawings, by light and by dark. The page's style sheet
 * (controller/webui/web/page.css) has the same values under the same names;
 * tests/lint/palette compares them. Contrast on `card` is at least 4.5 for all that
 * text is written in, and c0 .. c7 are told apart by pattern or dash as well,
 * so that nothing is lost in grey.
 */
#ifndef WEFT_LIB_OUTPUT_PALETTE_H
#define WEFT_LIB_OUTPUT_PALETTE_H

#define SVG_COLOURS 8		/* c0 .. c7, for jobs, sources, steps */

#define SVG_CARD_LIGHT "#ffffff"
#define SVG_CARD_DARK "#181c1f"

/* name, on light ground, on dark ground */
#define SVG_PALETTE(colour) \
	colour("ground", "#f7f7f5", "#111416")	\
	colour("card", SVG_CARD_LIGHT, SVG_CARD_DARK)	\
	colour("edge", "#e1e1dc", "#2b3136")	\
	colour("faint", "#eeeeea", "#21262a")	\
	colour("ink", "#1d2226", "#e4e8eb")	\
	colour("soft", "#5c656d", "#9aa5ae")	\
	colour("accent", "#0b7285", "#4cc3d9")	\
	colour("good", "#2b7a3d", "#6fcf85")	\
	colour("warn", "#9a5b00", "#f0b252")	\
	colour("bad", "#b3261e", "#ff8a80")	\
	colour("c0", "#0b7285", "#4cc3d9")	\
	colour("c1", "#b4540a", "#f2995a")	\
	colour("c2", "#6741b8", "#b197fc")	\
	colour("c3", "#2b7a3d", "#6fcf85")	\
	colour("c4", "#b0246b", "#f783ac")	\
	colour("c5", "#3b5bdb", "#91a7ff")	\
	colour("c6", "#7a6400", "#e0c341")	\
	colour("c7", "#5c656d", "#9aa5ae")

#endif
