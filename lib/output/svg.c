/* SVG elements; see svg.h. */
#include "lib/output/svg.h"

void svg_begin(struct buf *b, int64_t width, int64_t height, int font_size)
{
	buf_printf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
		      "width=\"%lld\" height=\"%lld\" "
		      "font-family=\"sans-serif\" font-size=\"%d\">\n"
		      "<rect width=\"100%%\" height=\"100%%\" "
		      "fill=\"white\"/>\n",
		   (long long)width, (long long)height, font_size);
}

void svg_end(struct buf *b)
{
	buf_str(b, "</svg>\n");
}

void svg_text(struct buf *b, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '<':
			buf_str(b, "&lt;");
			break;
		case '>':
			buf_str(b, "&gt;");
			break;
		case '&':
			buf_str(b, "&amp;");
			break;
		default:
			buf_char(b, (unsigned char)*s < ' ' ? ' ' : *s);
		}
	}
}

void svg_label(struct buf *b, double x, double y, char anchor,
	       const char *text)
{
	buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y,
		   anchor == 'e'   ? " text-anchor=\"end\""
		   : anchor == 'm' ? " text-anchor=\"middle\""
				   : "");
	svg_text(b, text);
	buf_str(b, "</text>\n");
}

void svg_colour(struct buf *b, int64_t k)
{
	buf_printf(b, "hsl(%d,%d%%,%d%%)", (int)(k * 137508 / 1000 % 360),
		   (int)(55 + k % 3 * 15), (int)(45 + k % 2 * 15));
}
