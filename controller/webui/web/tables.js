// SPDX-License-Identifier: Apache-2.0
// Tables that stay usable with thousands of rows: only those in sight exist.
import { el } from "/dom.js";

const ALL = 40;	// rows that are simply all there
const ROW = 30;		// px, as in page.css
const VISIBLE = 14;

// columns: [{ name, text(row) or node(row), number, wide }]
function cells(columns, row) {
	return columns.map((c) => el("td", { role: "cell", class: c.number && "number",
		"data-label": c.name }, el("span", {}, c.cell(row))));
}

function head(columns) {
	return el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
		columns.map((c) => el("th", { role: "columnheader", scope: "col",
			class: c.number && "number" }, c.name))));
}

function whole(columns, rows, caption) {
	return el("table", { role: "table", class: "stacks" },
		el("caption", { class: "hidden" }, caption), head(columns),
		el("tbody", { role: "rowgroup" }, rows.map((row) =>
			el("tr", { role: "row" }, cells(columns, row)))));
}

function spacer(columns, height) {
	const filler = el("td", { colspan: columns.length });

	filler.style.height = `${height}px`;
	filler.style.padding = "0";
	return el("tr", { "aria-hidden": "true" }, filler);
}

function windowed(columns, rows, caption) {
	const body = el("tbody", { role: "rowgroup" });
	const box = el("div", { class: "scroll window", tabindex: "0", role: "region",
		"aria-label": `${caption}, ${rows.length} rows`, "data-key": caption },
		el("table", { role: "table", "aria-rowcount": rows.length + 1 },
			el("caption", { class: "hidden" }, caption), head(columns), body));
	let shown = -1;
	const draw = () => {
		const first = Math.max(0, Math.floor(box.scrollTop / ROW) - VISIBLE);
		const end = Math.min(rows.length, first + 4 * VISIBLE);

		if (first === shown) {
			return;
		}
		shown = first;
		body.replaceChildren(spacer(columns, first * ROW),
			...rows.slice(first, end).map((row, i) => el("tr",
				{ role: "row", "aria-rowindex": first + i + 2 },
				cells(columns, row))),
			spacer(columns, (rows.length - end) * ROW));
	};

	box.addEventListener("scroll", () => requestAnimationFrame(draw));
	draw();
	return box;
}

export function table(columns, rows, caption, nothing) {
	if (rows.length === 0) {
		return el("p", { class: "nothing" }, nothing);
	}
	return rows.length <= ALL ? whole(columns, rows, caption)
		: windowed(columns, rows, caption);
}

// A table with a field that filters it; text(row) is what is searched.
export function filtered(columns, rows, caption, nothing, text) {
	const place = el("div", {}, table(columns, rows, caption, nothing));
	const input = el("input", { type: "search", "data-key": `filter ${caption}`,
		"aria-label": `Filter: ${caption}`, placeholder: "Filter",
		oninput: () => {
			const word = input.value.toLowerCase();

			place.replaceChildren(table(columns,
				rows.filter((r) => text(r).toLowerCase().includes(word)),
				caption, "Nothing matches."));
		} });

	return rows.length > 12 ? [input, place] : [place];
}

// The alternative to a picture, made when it is opened.
export function asTable(key, open, make) {
	const details = el("details", { class: "as-table" },
		el("summary", { "data-key": `table ${key}` }, "As a table"));
	const draw = () => {
		if (details.open && details.childElementCount === 1) {
			details.append(el("div", { class: "scroll tall", tabindex: "0", role: "region",
				"aria-label": `${key}, as a table`, "data-key": `rows ${key}` }, make()));
		}
		open[details.open ? "add" : "delete"](key);
	};

	details.open = open.has(key);
	details.addEventListener("toggle", draw);
	draw();
	return details;
}
