// Elements, numbers and tables.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

// Texts are always text nodes: nothing of a program is ever read as HTML.
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const count = (n) => (n == null ? "-" : n.toLocaleString("en-US"));
const scaled = (value, factor, digits) => (value == null ? "-" : (value * factor).toFixed(digits));
function bytesText(n) {
  if (n == null) return "unknown";
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; n >= 999.5 && unit < units.length - 1; unit++) n /= 1000;
  return `${+n.toPrecision(3)} ${units[unit]}`;
}

const KINDS = {
  loop: "loop",
  epilogue: "loop",
  row_reduce: "row",
  reduce: "row",
  dot: "gemm",
  gemm: "gemm",
  convolution: "gemm",
  attention: "attention",
  control: "control",
  recurrence: "control",
  argument: "edge",
  result: "edge",
};
const kindColour = (kind) => `--k-${KINDS[kind] || "other"}`;
const swatch = (kind) => el("span", { class: "swatch", style: `background: var(${kindColour(kind)})` });

function chooser(label, names, chosen, change) {
  const options = names.map((name, i) => el("option", { value: i, selected: i === chosen }, name));
  return el("label", {}, `${label} `, el("select", { onchange: (e) => change(+e.target.value) }, options));
}

// A link to a node of the graph.
const nodeButton = (number, choose, text = DOC.nodes[number].name) =>
  el("button", { type: "button", class: "link", onclick: () => choose(number) }, text);

function copyButton(text) {
  const button = el("button", { type: "button", onclick: copy }, "copy");
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = el("textarea", {}, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
  }
  return button;
}

// A table whose headings sort. columns: {name, number, key(row), cell(row)}; a long one is shown in part at first.
function sortedTable(columns, rows, chosen) {
  const MOST = 300;
  let at = -1,
    down = false,
    all = rows.length <= MOST;
  const body = el("tbody");
  const heads = columns.map((column, i) =>
    el(
      "th",
      { class: column.number && "number", scope: "col", "aria-sort": "none" },
      el("button", { type: "button", onclick: () => sort(i) }, column.name),
    ),
  );
  const more = el(
    "button",
    {
      type: "button",
      onclick: () => {
        all = true;
        show();
      },
    },
    `show all ${rows.length} rows`,
  );
  const key = (row) => columns[at].key(row) ?? (columns[at].number ? -Infinity : "");
  function sort(i) {
    down = at === i ? !down : !!columns[i].number;
    at = i;
    heads.forEach((h, k) => h.setAttribute("aria-sort", k !== at ? "none" : down ? "descending" : "ascending"));
    show();
  }
  function show() {
    const ordered =
      at < 0 ? rows : [...rows].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (down ? -1 : 1));
    body.replaceChildren(
      ...(all ? ordered : ordered.slice(0, MOST)).map((row) =>
        el(
          "tr",
          { onclick: chosen && (() => chosen(row)) },
          columns.map((column) =>
            el("td", { class: column.number ? "number" : column.wide && "wide", "data-name": column.name }, column.cell(row)),
          ),
        ),
      ),
    );
    more.hidden = all;
  }
  show();
  return el("div", {}, el("table", { class: "cards" }, el("thead", {}, el("tr", {}, heads)), body), more);
}
