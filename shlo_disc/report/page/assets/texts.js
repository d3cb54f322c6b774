// Texts: inflating them, painting their tokens, and showing as many lines of them as fit.
const inflated = new Map();

// The lines of a text of the document.
function linesOf(name) {
  if (!inflated.has(name))
    inflated.set(
      name,
      inflate(DOC.texts[name]).then((text) => text.split("\n")),
    );
  return inflated.get(name);
}

async function inflate(packed) {
  if (!globalThis.DecompressionStream) throw new Error("this browser cannot inflate texts: use one of 2023 or later");
  const raw = atob(packed);
  const bytes = Uint8Array.from(raw, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

const TOKENS =
  /("(?:[^"\\]|\\.)*")|((?:\/\/|^\s*[#;])(?!disc).*$)|(%[\w$.#-]+)|([@^][\w$.]+|@"[^"]*")|(\b(?:[a-z_]\w*\.)+\w+\b)/g;
const CLASSES = ["t-string", "t-comment", "t-value", "t-name", "t-op"];
const MOST_PAINTED = 4000;

// A line as nodes; the columns from `first` to `end` are marked.
function painted(line, first = 0, end = 0) {
  const shown = line.length > MOST_PAINTED ? line.slice(0, MOST_PAINTED) + " ..." : line;
  const parts = [];
  const push = (text, from, kind) => {
    for (const [a, b, marked] of [
      [0, first, false],
      [first, end, true],
      [end, Infinity, false],
    ]) {
      const piece = text.slice(Math.max(0, a - from), Math.max(0, b - from));
      if (!piece) continue;
      const node = kind ? el("span", { class: kind }, piece) : document.createTextNode(piece);
      parts.push(marked ? el("mark", {}, node) : node);
    }
  };
  let at = 0;
  for (const match of shown.matchAll(TOKENS)) {
    push(shown.slice(at, match.index), at, "");
    push(match[0], match.index, CLASSES[match.slice(1).findIndex((group) => group !== undefined)]);
    at = match.index + match[0].length;
  }
  push(shown.slice(at), at, "");
  return parts;
}

// Rows of one height, of which only those in sight are in the page. rows: {left, right, ...}; see `fillRow`.
class LineView {
  constructor(label) {
    this.rows = [];
    this.space = el("div", { class: "space" });
    this.box = el(
      "div",
      { class: "lines", tabindex: 0, role: "region", "aria-label": label, onscroll: () => this.draw() },
      this.space,
    );
    this.wide = el("div");
    this.sideways = el(
      "div",
      {
        class: "sideways",
        tabindex: -1,
        onscroll: (e) => this.space.style.setProperty("--shift", e.target.scrollLeft),
      },
      this.wide,
    );
    this.whole = el("pre", { class: "whole", "aria-live": "polite" });
    this.box.addEventListener(
      "wheel",
      (e) => {
        this.sideways.scrollLeft += e.deltaX;
      },
      { passive: true },
    );
    this.box.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -40, ArrowRight: 40 }[e.key];
      if (step) this.sideways.scrollLeft += step;
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.parts = [this.box, this.sideways, this.whole];
    this.found = -1;
    this.drawn = new Map();
  }

  show(rows, unfold) {
    this.rows = rows;
    this.unfold = unfold;
    this.found = -1;
    this.drawn.clear();
    this.whole.textContent = "";
    this.space.style.height = `${rows.length * 18}px`;
    let longest = 0;
    for (const row of rows) longest = Math.max(longest, (row.left || "").length, (row.right || "").length);
    this.wide.style.width = `${Math.min(longest, MOST_PAINTED) * 7.4 + 140}px`;
    this.box.scrollTop = 0;
    this.sideways.scrollLeft = 0;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / 18) - 8);
    const end = Math.min(this.rows.length, first + Math.ceil(this.box.clientHeight / 18) + 16);
    const drawn = new Map();
    for (let i = first; i < end; i++) drawn.set(i, this.drawn.get(i) || this.row(this.rows[i], i));
    this.drawn = drawn;
    this.space.replaceChildren(...drawn.values());
  }

  row(row, i) {
    const style = `top: ${i * 18}px`;
    if (row.fold) {
      return el(
        "div",
        { class: "line fold", style, role: "button", onclick: () => this.unfold(i) },
        `${row.fold} equal lines`,
      );
    }
    if (row.head) return el("div", { class: "line head", style }, row.head);
    const cells = (at, text, kind, marks) => [
      el("span", { class: "at" }, text == null ? "" : String(at + 1)),
      el(
        "span",
        { class: `text ${text == null ? "" : kind}` },
        el("span", {}, text == null ? "" : painted(text, ...marks)),
      ),
    ];
    const two = row.right !== undefined;
    const marks =
      row.changed && row.left != null && row.right != null
        ? differing(row.left, row.right)
        : [
            [0, 0],
            [0, 0],
          ];
    const told = [row.left, row.right === row.left ? null : row.right].filter((text) => text != null).join("\n\n");
    return el(
      "div",
      {
        class: `line ${two ? "two" : "one"} ${i === this.found ? "found" : ""}`,
        style,
        onclick: () => {
          this.whole.textContent = told;
        },
      },
      cells(row.leftAt, row.left, row.changed ? "removed" : "", marks[0]),
      two && cells(row.rightAt, row.right, row.changed ? "added" : "", marks[1]),
    );
  }

  // Go to the next line that contains a text; how many do.
  find(text, back) {
    const has = (row) => [row.left, row.right].some((line) => line && line.includes(text));
    const hits = text ? this.rows.flatMap((row, i) => (has(row) ? [i] : [])) : [];
    if (!hits.length) return "none";
    const next = back
      ? (hits.findLast((i) => i < this.found) ?? hits.at(-1))
      : (hits.find((i) => i > this.found) ?? hits[0]);
    this.found = next;
    this.drawn.clear();
    this.box.scrollTop = next * 18 - this.box.clientHeight / 2;
    this.draw();
    return `${hits.indexOf(next) + 1} of ${hits.length}`;
  }
}

// What of two lines is not the same at their beginning and end, as columns of each.
function differing(a, b) {
  let first = 0,
    last = 0;
  while (first < a.length && first < b.length && a[first] === b[first]) first++;
  while (last < a.length - first && last < b.length - first && a[a.length - 1 - last] === b[b.length - 1 - last])
    last++;
  return [
    [first, a.length - last],
    [first, b.length - last],
  ];
}

function finder(view) {
  const told = el("span", { class: "soft", "aria-live": "polite" });
  const input = el("input", {
    type: "search",
    placeholder: "find in the text",
    "aria-label": "Find in the text",
    onkeydown: (e) => {
      if (e.key === "Enter") told.textContent = view.find(input.value, e.shiftKey);
    },
  });
  return [input, told];
}
