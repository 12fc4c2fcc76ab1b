// SPDX-License-Identifier: Apache-2.0
// What the page consists of, as lines of text: headings, facts, tables, links,
// fields, drawings with the number of their parts. What differs from run to run
// (times, addresses, users) is replaced. Returns a string. Run by webui_client.py.
const PARTS = ["place", "line", "carries", "idle", "failed", "missing", "dark", "unexpected",
	"band", "segment", "fault", "run", "cut", "head", "rule"];

function plain(text) {
	return text.replace(/\s+/g, " ").trim()
		.replace(/\d\d:\d\d:\d\d/g, "TIME").replace(/\d+ (s|min|h) ago/g, "AGO")
		.replace(/127\.0\.0\.1:\d+/g, "ADDRESS").replace(/user \d+, process \d+/g, "USER")
		.replace(/\b(root|uid \d+)\b/g, "USER").replace(/weftd [\d.]+/g, "weftd VERSION");
}

function drawing(svg) {
	const parts = PARTS.map((c) => [c, svg.querySelectorAll(`.${c}`).length])
		.filter(([, n]) => n).map(([c, n]) => `${n} ${c}`);
	const names = [...svg.querySelectorAll("text.name")].map((t) => t.textContent);

	return `drawing (${svg.getAttribute("role")}) ${plain(svg.getAttribute("aria-label") ?? "")}${
		parts.length ? `: ${parts.join(", ")}` : ""}${names.length ? `; names ${
		names.join(" ")}` : ""}`;
}

function rows(table) {
	const all = [...table.querySelectorAll("tbody tr[role=row]")].map((tr) =>
		[...tr.cells].map((td) => plain(td.textContent)).join(" | "));

	// What devices report of their own accord is no one's to foresee.
	if (table.caption?.textContent.startsWith("Events")) {
		return ["table of events"];
	}
	return [`table ${plain(table.caption?.textContent ?? "")}: ${[...table.tHead.rows[0].cells]
		.map((th) => th.textContent).join(" | ")}; ${all.length} rows`,
	...all.slice(0, 8).map((r) => `  ${r}`)];
}

// The lines of one element, or null: those of what is in it.
function own(e) {
	const tag = e.tagName.toLowerCase();
	const label = e.getAttribute("aria-label");

	return /^h\d$/.test(tag) ? [`heading ${tag[1]}: ${plain(e.textContent)}`]
		: tag === "svg" ? e.getAttribute("aria-hidden") ? [] : [drawing(e)]
		: tag === "table" ? rows(e)
		: tag === "input" ? [`field (${e.getAttribute("role") ?? e.type}) ${
			label ?? plain(e.parentElement.textContent)}${e.checked ? " checked" : ""}`]
		: e.matches(".lines") ? ["list: steps of the change"]
		: tag === "button" ? [`button ${label ?? plain(e.textContent)}`]
		: tag === "summary" ? [`opens: ${plain(e.textContent)}`]
		: tag === "progress" ? [`progress ${label} ${e.value} of ${e.max}`]
		: e.matches("dl > div") && e.firstChild.textContent === "switching" ? ["fact switching"]
		: e.matches("dl > div") ? [`fact ${[...e.children].map((c) => plain(c.textContent)).join(": ")}`]
		: e.matches(".lane:not(.axis)") ? [`lane ${plain(e.textContent)}: ${
			e.querySelectorAll(".cut").length} cut`]
		: ["a", "p", "li", "figcaption"].includes(tag) && !e.querySelector("svg, table, input")
			? [`${tag}: ${plain(e.textContent)}`] : null;
}

function outline(e, depth, out) {
	if (!e.checkVisibility() || e.matches("footer, noscript, .skip")) {
		return out;
	}
	const lines = own(e);
	const named = e.matches("section, nav, article, fieldset") || e.getAttribute("role") === "search";

	if (lines) {
		out.push(...lines.map((l) => "  ".repeat(depth) + l));
		return out;
	}
	if (named) {
		const title = document.getElementById(e.getAttribute("aria-labelledby"))?.textContent;

		out.push(`${"  ".repeat(depth)}${e.getAttribute("role") ?? e.tagName.toLowerCase()} ${
			plain(e.getAttribute("aria-label") ?? title ?? "")}`.trimEnd());
	}
	for (const c of e.children) {
		outline(c, depth + (named ? 1 : 0), out);
	}
	return out;
}

return outline(document.body, 0, []).join("\n") + "\n";
