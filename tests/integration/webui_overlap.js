// SPDX-License-Identifier: Apache-2.0
// Pairs of visible texts that lie over each other, by the corners of their boxes
// (of turned text, of the turned box), and texts that their drawing cuts off.
// Returns how many texts there are, and the pairs. Run by webui_scenes.py.
function corners(box, matrix) {
	const { x, y, width: w, height: h } = box;

	return [[x, y], [x + w, y], [x + w, y + h], [x, y + h]].map(([a, b]) => (matrix
		? [a * matrix.a + b * matrix.c + matrix.e, a * matrix.b + b * matrix.d + matrix.f] : [a, b]));
}

function ofDrawings() {
	return [...document.querySelectorAll("svg text")].filter((t) => t.checkVisibility() &&
		t.textContent.trim()).map((t) => [t.textContent, corners(t.getBBox(), t.getScreenCTM())]);
}

function isCutOff(text) {
	const of = text.ownerSVGElement.getBoundingClientRect();

	return corners(text.getBBox(), text.getScreenCTM()).some(([x, y]) => x < of.left - 1 ||
		x > of.right + 1 || y < of.top - 1 || y > of.bottom + 1);
}

// What a box that scrolls does not show is not seen.
function shown(node, box) {
	for (let e = node.parentElement; e; e = e.parentElement) {
		const style = getComputedStyle(e);

		if (style.overflow !== "visible" && e !== document.documentElement) {
			const of = e.getBoundingClientRect();

			if (box.top < of.top - 1 || box.bottom > of.bottom + 1 || box.left < of.left - 1 ||
				box.right > of.right + 1) {
				return false;
			}
		}
	}
	return true;
}

function ofPage() {
	const out = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);

	while (walk.nextNode()) {
		const node = walk.currentNode;
		const parent = node.parentElement;

		if (!node.textContent.trim() || !parent.checkVisibility() || parent.closest("svg, .hidden, .skip, .top")) {
			continue;
		}
		const range = document.createRange();

		range.selectNodeContents(node);
		for (const box of range.getClientRects()) {
			if (shown(node, box)) {
				out.push([node.textContent, corners(box)]);
			}
		}
	}
	return out;
}

// Apart along the normal of some edge, by half a pixel at least overlapping.
function apart(a, b) {
	return [a, b].some((q) => q.some((p, i) => {
		const next = q[(i + 1) % 4];
		const normal = [next[1] - p[1], p[0] - next[0]];
		const size = Math.hypot(...normal) || 1;
		const on = (v) => (v[0] * normal[0] + v[1] * normal[1]) / size;
		const [x, y] = [a.map(on), b.map(on)];

		return Math.max(...x) <= Math.min(...y) + 1 || Math.max(...y) <= Math.min(...x) + 1;
	}));
}

const texts = [...ofDrawings(), ...ofPage()].map(([text, q]) => [text, q,
	Math.min(...q.map((p) => p[1])), Math.max(...q.map((p) => p[1]))])
	.sort((a, b) => a[2] - b[2]);
const found = [];

texts.forEach(([text, q, , low], i) => {
	for (let k = i + 1; k < texts.length && texts[k][2] < low; k++) {
		if (!apart(q, texts[k][1])) {
			found.push([text.trim(), texts[k][0].trim()]);
		}
	}
});
for (const text of document.querySelectorAll("svg text")) {
	if (text.checkVisibility() && text.textContent && isCutOff(text)) {
		found.push([text.textContent, "cut off"]);
	}
}
return [texts.length, found.slice(0, 20)];
