// SPDX-License-Identifier: Apache-2.0
// What is looked at, as the address says: "#device/ocs0" and "#job/train" are
// views of their own, "#jobs" is a section of the overview.
import { el } from "/dom.js";

const KINDS = ["device", "job", "host"];

export function current() {
	const [kind, ...rest] = location.hash.slice(1).split("/");

	if (!KINDS.includes(kind) || !rest.length) {
		return { kind: "overview", section: kind };
	}
	try {
		return { kind, name: decodeURIComponent(rest.join("/")) };
	} catch {
		return { kind: "overview", section: "" };
	}
}

export function address(kind, name) {
	return `#${kind}/${encodeURIComponent(name)}`;
}

export function linkTo(kind, name, ...content) {
	return el("a", { href: address(kind, name), [`data-${kind}`]: name,
		"data-key": `${kind} ${name}` }, content.length ? content : name);
}
