// The graph of kernels: a canvas to pan and zoom, a list to search, and what is known of the chosen node.
const BOX = { width: 200, height: 46 };
const READABLE = 0.5; // the scale from which the names in boxes can be read
const LEAST = 0.4; // the least that a graph opens at, to show all of its width
const MOST = 0.8;
const BAR = 46; // the height of the buttons above the graph

class Graph {
  constructor(panel) {
    this.scale = 1;
    this.origin = [0, 0];
    this.chosen = -1;
    this.canvas = el("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label":
        "Graph of kernels. Arrows pan, plus and minus zoom, 0 fits, n and p choose the next and previous node.",
    });
    this.search = el("input", {
      type: "search",
      placeholder: "name, op, kernel or source line",
      "aria-label": "Search the graph",
      oninput: () => this.list(),
    });
    this.told = el("span", { class: "soft", "aria-live": "polite" });
    this.hits = el("ul", { "aria-label": "Nodes found" });
    this.detail = el("div", { class: "detail" });
    const button = (text, label, action) =>
      el("button", { type: "button", "aria-label": label, onclick: action }, text);
    const used = [...new Set(DOC.nodes.map((node) => node.kind))];
    this.box = el("div", { class: "graph" });
    panel.append(
      el(
        "div",
        { class: "bar" },
        used.map((kind) => el("span", {}, swatch(kind), kind)),
      ),
      this.box,
    );
    this.box.append(
      el("div", { class: "found" }, this.search, this.told, this.hits),
      el(
        "div",
        { class: "canvas" },
        this.canvas,
        el(
          "div",
          { class: "bar" },
          button("+", "Zoom in", () => this.zoom(1.4)),
          button("-", "Zoom out", () => this.zoom(1 / 1.4)),
          button("fit", "Show the whole graph", () => this.fit()),
        ),
        el("div", { class: "hint" }, "drag, wheel, arrows; click a box for its ops, kernels and source lines"),
      ),
      this.detail,
    );
    this.view = new LineView("Text of the node");
    this.edges = DOC.edges.map((edge) => {
      const ends = [DOC.nodes[edge.source], DOC.nodes[edge.target]];
      const points = [
        [ends[0].x, ends[0].y + BOX.height / 2],
        ...ends[0].trunk.slice(0, edge.bends),
        [ends[1].x, ends[1].y - BOX.height / 2],
      ];
      const xs = points.map((p) => p[0]),
        ys = points.map((p) => p[1]);
      return { ...edge, points, low: [Math.min(...xs), Math.min(...ys)], high: [Math.max(...xs), Math.max(...ys)] };
    });
    this.listen();
    this.list();
    this.describe();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  listen() {
    let from = null,
      moved = false;
    this.canvas.addEventListener("pointerdown", (e) => {
      from = [e.clientX, e.clientY];
      moved = false;
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (!from) return;
      const [dx, dy] = [e.clientX - from[0], e.clientY - from[1]];
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      from = [e.clientX, e.clientY];
      this.pan(dx, dy);
    });
    this.canvas.addEventListener("pointerup", (e) => {
      if (from && !moved) this.choose(this.hit(e.offsetX, e.offsetY));
      from = null;
    });
    this.canvas.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        this.zoom(Math.exp(-e.deltaY / 400), e.offsetX, e.offsetY);
      },
      { passive: false },
    );
    const keys = {
      ArrowLeft: () => this.pan(60, 0),
      ArrowRight: () => this.pan(-60, 0),
      ArrowUp: () => this.pan(0, 60),
      ArrowDown: () => this.pan(0, -60),
      "+": () => this.zoom(1.4),
      "-": () => this.zoom(1 / 1.4),
      0: () => this.fit(),
      n: () => this.choose((this.chosen + 1) % DOC.nodes.length, true),
      p: () => this.choose((this.chosen + DOC.nodes.length - 1) % DOC.nodes.length, true),
    };
    this.canvas.addEventListener("keydown", (e) => {
      if (keys[e.key]) {
        e.preventDefault();
        keys[e.key]();
      }
    });
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    const isFirst = !this.size;
    this.size = [box.width, box.height];
    this.canvas.width = box.width * devicePixelRatio;
    this.canvas.height = box.height * devicePixelRatio;
    if (this.chosen >= 0) this.centre(this.chosen);
    else if (isFirst) this.begin();
    this.draw();
  }

  // Show all of the graph.
  fit() {
    if (!this.size || !DOC.nodes.length) return;
    const [low, high] = reach(DOC.nodes);
    this.scale = Math.min(this.size[0] / (high[0] - low[0]), (this.size[1] - BAR) / (high[1] - low[1]), 1.2);
    this.origin = [0, BAR].map((above, i) => (above + this.size[i] - (low[i] + high[i]) * this.scale) / 2);
    this.draw();
  }

  // Show all of the graph, or, where that would be unreadable, its beginning, as large as its width allows.
  begin() {
    this.fit();
    if (!this.size || !DOC.nodes.length || this.scale >= READABLE) return;
    const top = reach(DOC.nodes)[0][1];
    let low, high;
    for (this.scale = MOST; ; this.scale /= 1.1) {
      [low, high] = reach(DOC.nodes.filter((n) => n.y - BOX.height < top + this.size[1] / this.scale));
      if (this.scale <= LEAST || (high[0] - low[0]) * this.scale <= this.size[0]) break;
    }
    this.origin = [(this.size[0] - (low[0] + high[0]) * this.scale) / 2, BAR - top * this.scale];
    this.draw();
  }

  pan(dx, dy) {
    this.origin = [this.origin[0] + dx, this.origin[1] + dy];
    this.draw();
  }

  zoom(factor, x = this.size[0] / 2, y = this.size[1] / 2) {
    const next = Math.min(4, Math.max(0.0005, this.scale * factor)),
      by = next / this.scale;
    this.origin = [x - (x - this.origin[0]) * by, y - (y - this.origin[1]) * by];
    this.scale = next;
    this.draw();
  }

  centre(i) {
    const node = DOC.nodes[i];
    if (!this.size) return;
    this.scale = Math.max(this.scale, 0.7);
    this.origin = [this.size[0] / 2 - node.x * this.scale, this.size[1] / 2 - node.y * this.scale];
  }

  hit(x, y) {
    const [gx, gy] = [(x - this.origin[0]) / this.scale, (y - this.origin[1]) / this.scale];
    const reach = Math.max(1, 4 / this.scale);
    return DOC.nodes.findIndex(
      (n) => Math.abs(n.x - gx) <= BOX.width / 2 + reach && Math.abs(n.y - gy) <= BOX.height / 2 + reach,
    );
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  paint() {
    if (!this.size) return;
    const g = this.canvas.getContext("2d"),
      style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const k = devicePixelRatio * this.scale;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, this.canvas.width, this.canvas.height);
    g.setTransform(k, 0, 0, k, this.origin[0] * devicePixelRatio, this.origin[1] * devicePixelRatio);
    const low = this.origin.map((o) => -o / this.scale),
      high = [0, 1].map((i) => (this.size[i] - this.origin[i]) / this.scale);
    const [plain, strong] = [new Path2D(), new Path2D()];
    for (const edge of this.edges) {
      if (edge.high[0] < low[0] || edge.low[0] > high[0] || edge.high[1] < low[1] || edge.low[1] > high[1]) continue;
      trace(edge.source === this.chosen || edge.target === this.chosen ? strong : plain, edge.points);
    }
    g.lineWidth = Math.max(1, 0.6 / this.scale);
    g.strokeStyle = colour("--edge");
    g.stroke(plain);
    g.lineWidth *= 2;
    g.strokeStyle = colour("--accent");
    g.stroke(strong);
    const fills = Object.fromEntries(
      DOC.nodes.map((n) => [n.kind, ""]).map(([kind]) => [kind, colour(kindColour(kind))]),
    );
    const [text, soft, line] = [colour("--text"), colour("--soft"), colour("--edge")];
    DOC.nodes.forEach((node, i) => {
      const [x, y] = [node.x - BOX.width / 2, node.y - BOX.height / 2];
      if (x > high[0] || x + BOX.width < low[0] || y > high[1] || y + BOX.height < low[1]) return;
      g.fillStyle = fills[node.kind];
      if (this.scale < 0.12) {
        g.fillRect(x, y, Math.max(BOX.width, 3 / this.scale), Math.max(BOX.height, 1 / this.scale));
        return;
      }
      g.beginPath();
      g.roundRect(x, y, BOX.width, BOX.height, 8);
      g.fill();
      g.strokeStyle = i === this.chosen ? colour("--accent") : this.matches && this.matches.has(i) ? text : line;
      g.lineWidth = i === this.chosen ? 3 : this.matches && this.matches.has(i) ? 2 : 1;
      g.stroke();
      if (this.scale < 0.3) return;
      g.save();
      g.clip();
      g.fillStyle = text;
      g.font = "600 13px system-ui, sans-serif";
      g.fillText(shortened(g, node.name), x + 10, node.y - 4);
      g.fillStyle = soft;
      g.font = "11px system-ui, sans-serif";
      g.fillText(shortened(g, node.ops || node.outputs[0] || node.inputs[0] || node.kind), x + 10, node.y + 13);
      g.restore();
    });
  }

  // The nodes that the search finds, as buttons.
  list() {
    const wanted = this.search.value.trim().toLowerCase();
    const text = (n) => [n.name, n.kind, n.ops, ...n.kernels, ...n.sources.flat()].join("\n").toLowerCase();
    this.texts ||= DOC.nodes.map(text);
    const found = DOC.nodes.flatMap((node, i) => (this.texts[i].includes(wanted) ? [i] : []));
    this.matches = wanted ? new Set(found) : null;
    this.told.textContent = `${count(found.length)} of ${count(DOC.nodes.length)} nodes`;
    this.buttons = new Map(
      found
        .slice(0, 400)
        .map((i) => [
          i,
          el(
            "button",
            { type: "button", title: DOC.nodes[i].ops, onclick: () => this.choose(i, true) },
            swatch(DOC.nodes[i].kind),
            DOC.nodes[i].name,
          ),
        ]),
    );
    this.hits.replaceChildren(...[...this.buttons.values()].map((button) => el("li", {}, button)));
    this.draw();
  }

  choose(i, move) {
    this.chosen = i;
    if (i >= 0 && move) this.centre(i);
    for (const [k, button] of this.buttons) button.setAttribute("aria-current", k === i);
    this.describe();
    this.draw();
  }

  describe() {
    const node = DOC.nodes[this.chosen];
    this.box.classList.toggle("alone", !node);
    if (!node) {
      this.detail.replaceChildren();
      return;
    }
    const entry = (title, values) =>
      values.length > 0 && [
        el("dt", {}, title),
        el(
          "dd",
          {},
          values.map((value) => el("div", { class: "mono" }, value)),
        ),
      ];
    const sources = node.sources
      .map(([place, code]) => [place, code && el("span", { class: "soft" }, `  ${code}`)])
      .map((parts) => el("span", {}, parts));
    const about = el(
      "dl",
      {},
      entry("computes", node.ops ? [node.ops] : []),
      entry("kernels", node.kernels),
      entry("chooses", node.guards),
      entry("reads", node.inputs),
      entry("makes", node.outputs),
      entry("source", sources),
    );
    const titles = { ops: "ops", kernel: "kernel", code: "machine code" };
    const names = Object.keys(node.excerpts || {}).filter((name) => node.excerpts[name].length);
    const chips = names.map((name) =>
      el("button", { type: "button", class: "chip", onclick: () => this.text(node, name, names, chips) }, titles[name]),
    );
    this.detail.replaceChildren(
      el(
        "div",
        { class: "about" },
        el("h3", {}, swatch(node.kind), `${node.name} `, el("span", { class: "soft" }, node.kind)),
        about,
      ),
      ...(names.length
        ? [el("div", { class: "bar" }, chips, el("span", { class: "gap" }), finder(this.view)), ...this.view.parts]
        : []),
    );
    if (names.length) this.text(node, names[0], names, chips);
  }

  async text(node, name, names, chips) {
    chips.forEach((chip, i) => chip.setAttribute("aria-pressed", names[i] === name));
    const rows = [];
    for (const { text, first, end } of node.excerpts[name]) {
      const lines = await linesOf(text);
      rows.push({ head: `${text}, line ${first + 1}` });
      for (let at = first; at < end; at++) rows.push({ left: lines[at], leftAt: at });
    }
    if (DOC.nodes[this.chosen] === node) this.view.show(rows);
  }
}

// The corners of what some nodes cover, with a margin.
function reach(nodes) {
  const [xs, ys] = [nodes.map((n) => n.x), nodes.map((n) => n.y)];
  const [dx, dy] = [BOX.width / 2 + 30, BOX.height / 2 + 27];
  return [
    [Math.min(...xs) - dx, Math.min(...ys) - dy],
    [Math.max(...xs) + dx, Math.max(...ys) + dy],
  ];
}

// A text that ends with an ellipsis where a box has no room for all of it.
const shorter = new Map();
function shortened(g, text) {
  const key = `${g.font} ${text}`;
  if (!shorter.has(key)) {
    const fits = (t) => g.measureText(t).width <= BOX.width - 20;
    let cut = text;
    while (cut && !fits(cut === text ? cut : `${cut}…`)) cut = cut.slice(0, -1);
    shorter.set(key, cut === text ? text : `${cut.trimEnd()}…`);
  }
  return shorter.get(key);
}

function trace(path, points) {
  path.moveTo(...points[0]);
  for (let i = 1; i < points.length; i++) {
    const [[x, y], [u, v]] = [points[i - 1], points[i]];
    const middle = (y + v) / 2;
    path.bezierCurveTo(x, middle, u, middle, u, v);
  }
}
