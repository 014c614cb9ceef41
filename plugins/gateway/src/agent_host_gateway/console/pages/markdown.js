// Markdown as elements. What it does not know stays as it was written, and HTML in it is text.
// Pictures from elsewhere are links: to load one would tell its server who reads this.

import { make } from "./dom.js";

const INLINE = [
  [/^(`+)([\s\S]*?[^`])\1(?!`)/, (m) => make("code", {}, m[2].trim())],
  [/^!?\[([^\]]*)\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/, (m) => link(m[2], m[1])],
  [/^\*\*(?=\S)([\s\S]*?\S)\*\*/, (m) => make("strong", {}, inline(m[1]))],
  [/^__(?=\S)([\s\S]*?\S)__(?!\w)/, (m) => make("strong", {}, inline(m[1]))],
  [/^~~(?=\S)([\s\S]*?\S)~~/, (m) => make("s", {}, inline(m[1]))],
  [/^\*(?=\S)([^*]*?[^\s*])\*(?!\*)/, (m) => make("em", {}, inline(m[1]))],
  [/^_(?=\S)([^_]*?[^\s_])_(?!\w)/, (m) => make("em", {}, inline(m[1]))],
  [/^<?(https?:\/\/[^\s<>"']+[^\s<>"'.,;:!?)])>?/, (m) => link(m[1], m[1])],
  [/^\\([\\`*_{}[\]()#+\-.!~|>])/, (m) => m[1]],
];
// Where an inline form may begin; all other characters are taken in one go.
const PLAIN = /^[^`*_~![\\<h]+|^[\s\S]/;

function link(address, label) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return `${label} (${address})`;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return `${label} (${address})`;
  const shown = make("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, label);
  // A label may say another address than the one it leads to.
  return label === address ? shown : make("span", {}, shown, make("small", {}, ` ${url.host}`));
}

export function inline(text) {
  const found = [];
  let plain = "";
  let before = "";
  while (text) {
    let taken = null;
    // An underscore within a word is a part of the word.
    const isInWord = text[0] === "_" && /\w/.test(before);
    for (const [pattern, build] of isInWord ? [] : INLINE) {
      const match = pattern.exec(text);
      if (match) {
        if (plain) found.push(plain);
        plain = "";
        found.push(build(match));
        taken = match[0];
        break;
      }
    }
    if (taken === null) {
      taken = PLAIN.exec(text)[0];
      plain += taken;
    }
    before = taken.at(-1);
    text = text.slice(taken.length);
  }
  if (plain) found.push(plain);
  return found;
}

export function render(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(...blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0));
  return fragment;
}

const FENCE = /^ {0,3}(```+|~~~+)\s*([^\s`]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const ROW = /^\s*\|?(.*\|.*?)\|?\s*$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines, depth) {
  const found = [];
  let place = 0;
  while (place < lines.length) {
    const line = lines[place];
    if (!line.trim()) {
      place += 1;
      continue;
    }
    const [element, next] = block(lines, place, depth);
    found.push(element);
    place = next;
  }
  return found;
}

function block(lines, place, depth) {
  const line = lines[place];
  const fence = FENCE.exec(line);
  if (fence) return code(lines, place, fence);
  const heading = HEADING.exec(line);
  // The page has its own first two levels.
  if (heading) return [make(`h${Math.min(6, heading[1].length + 2)}`, {}, inline(heading[2])), place + 1];
  if (RULE.test(line)) return [make("hr"), place + 1];
  if (/^ {0,3}>/.test(line) && depth < 8) return quote(lines, place, depth);
  if (ITEM.test(line) && depth < 8) return list(lines, place, depth);
  if (ROW.test(line) && DIVIDER.test(lines[place + 1] ?? "")) return table(lines, place);
  return paragraph(lines, place);
}

function code(lines, place, fence) {
  const body = [];
  let next = place + 1;
  while (next < lines.length && !lines[next].trimStart().startsWith(fence[1])) body.push(lines[next++]);
  const shown = make("pre", { tabindex: 0 }, make("code", {}, body.join("\n")));
  const label = make("figcaption", {}, fence[2] || "text", copyButton(body.join("\n")));
  return [make("figure", { class: "code" }, label, shown), next + 1];
}

export function copyButton(text) {
  const button = make("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed here";
    }
  });
  return button;
}

function quote(lines, place, depth) {
  const body = [];
  while (place < lines.length && /^ {0,3}>/.test(lines[place])) body.push(lines[place++].replace(/^ {0,3}> ?/, ""));
  return [make("blockquote", {}, blocks(body, depth + 1)), place];
}

function list(lines, place, depth) {
  const [, indent, marker] = ITEM.exec(lines[place]);
  const isOrdered = /\d/.test(marker);
  const items = [];
  while (place < lines.length) {
    const match = ITEM.exec(lines[place]);
    if (!match || match[1].length > indent.length + 1 || /\d/.test(match[2]) !== isOrdered) break;
    if (match[1].length < indent.length) break;
    const body = [match[3]];
    place += 1;
    while (place < lines.length) {
      const next = lines[place];
      const isDeeper = next.startsWith(`${indent}  `);
      if (!next.trim()) {
        if (!(lines[place + 1] ?? "").startsWith(`${indent}  `)) break;
      } else if (!isDeeper && (ITEM.test(next) || lines[place - 1].trim() === "" || FENCE.test(next))) break;
      body.push(isDeeper ? next.slice(indent.length + 2) : next);
      place += 1;
    }
    items.push(make("li", {}, tight(blocks(body, depth + 1))));
    while (place < lines.length && !lines[place].trim() && ITEM.test(lines[place + 1] ?? "")) place += 1;
  }
  const start = isOrdered ? parseInt(marker, 10) : null;
  return [make(isOrdered ? "ol" : "ul", { start: start === 1 ? null : start }, items), place];
}

// An item of one paragraph is its text.
function tight(found) {
  return found.length && found[0].tagName === "P" ? [...found[0].childNodes, ...found.slice(1)] : found;
}

function table(lines, place) {
  const cells = (line) => ROW.exec(line)[1].split(/(?<!\\)\|/).map((cell) => cell.trim());
  const head = cells(lines[place]);
  const rows = [];
  place += 2;
  while (place < lines.length && ROW.test(lines[place])) rows.push(cells(lines[place++]));
  const shown = make(
    "table",
    {},
    make("thead", {}, make("tr", {}, head.map((cell) => make("th", { scope: "col" }, inline(cell))))),
    make("tbody", {}, rows.map((row) => make("tr", {}, head.map((_, at) => make("td", {}, inline(row[at] ?? "")))))),
  );
  return [make("div", { class: "wide", tabindex: 0 }, shown), place];
}

function paragraph(lines, place) {
  const body = [];
  while (
    place < lines.length &&
    lines[place].trim() &&
    !(body.length && (FENCE.test(lines[place]) || HEADING.test(lines[place]) || ITEM.test(lines[place]) || /^ {0,3}>/.test(lines[place])))
  ) {
    body.push(lines[place++]);
  }
  const parts = body.flatMap((line, at) => [
    ...(at ? [/ {2}$|\\$/.test(body[at - 1]) ? make("br") : "\n"] : []),
    ...inline(line.trim().replace(/\\$/, "")),
  ]);
  return [make("p", {}, parts), place];
}
