// Tabs, themes, and the first panel.
const DOC = JSON.parse(document.getElementById("document").textContent);
const root = document.documentElement;

function overviewPanel(panel) {
  const { overview } = DOC;
  const rows = (pairs) =>
    el(
      "table",
      {},
      el(
        "tbody",
        {},
        pairs.map(([name, text]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "mono" }, text))),
      ),
    );
  const stages = Object.entries(overview.timings).filter(([name]) => !name.includes("/"));
  const most = Math.max(...stages.map(([, seconds]) => seconds), 1e-9);
  const timing = ([name, seconds]) =>
    el(
      "tr",
      {},
      el("td", {}, name),
      el("td", { class: "number" }, `${(seconds * 1e3).toFixed(1)} ms`),
      el("td", {}, el("div", { class: "share" }, el("i", { style: `width: ${((seconds / most) * 100).toFixed(1)}%` }))),
    );
  const passes = Object.entries(overview.timings)
    .filter(([name]) => name.includes("/"))
    .sort((a, b) => b[1] - a[1]);
  panel.append(
    el(
      "div",
      { class: "columns" },
      el(
        "section",
        {},
        el("h2", {}, "Program"),
        rows([
          ["target", overview.target],
          ...overview.rows,
          ...DOC.symbols.map((s) => ["size", s.bounds]),
          [
            "missing facts",
            el("button", { type: "button", class: "link", onclick: () => open("facts") }, count(DOC.missing.length)),
          ],
        ]),
      ),
      el(
        "section",
        {},
        el("h2", {}, "Stages"),
        el("table", { class: "bars" }, el("tbody", {}, stages.map(timing))),
        el(
          "details",
          {},
          el("summary", {}, "Passes, the longest first"),
          el("table", { class: "bars" }, el("tbody", {}, passes.map(timing))),
        ),
      ),
      el(
        "section",
        {},
        el("h2", {}, `Arguments (${overview.arguments.length})`),
        some(overview.arguments, 50, (text) => el("div", { class: "mono" }, text)),
      ),
      el(
        "section",
        {},
        el("h2", {}, `Results (${overview.results.length})`),
        some(overview.results, 50, (text) => el("div", { class: "mono" }, text)),
      ),
    ),
  );
}

function theme(name) {
  root.dataset.theme = name;
  try {
    localStorage.setItem("shlo_disc.theme", name);
  } catch {
    /* a page from a file may not store anything */
  }
  graph?.draw();
}

let graph = null;
const byGraph = (node) => {
  if (node < 0) return;
  open("graph");
  graph.choose(node, true);
};
const changed = [];
let call = 0;
// A choice of sizes that all panels share; `show` shows a call.
function calls(show) {
  const label = chooser("sizes", DOC.calls.map(sizesText), call, (number) => {
    call = number;
    for (const [select, other] of changed) {
      select.value = number;
      other(number);
    }
  });
  changed.push([label.querySelector("select"), show]);
  show(call);
  return label;
}

const PANELS = {
  overview: ["Overview", overviewPanel],
  stages: ["Stages", stagesPanel, true],
  graph: [
    "Graph",
    (panel) => {
      graph = new Graph(panel);
    },
    true,
  ],
  facts: ["Facts", (panel) => factsPanel(panel, byGraph)],
  arena: ["Arena", (panel) => arenaPanel(panel, calls, byGraph)],
  kernels: ["Kernels", (panel) => kernelsPanel(panel, calls, byGraph)],
};
const made = new Set();

function make(name) {
  if (made.has(name)) return;
  made.add(name);
  const panel = document.getElementById(`panel-${name}`);
  Promise.resolve(PANELS[name][1](panel)).catch((error) => panel.append(el("p", { role: "alert" }, String(error))));
}

function open(name) {
  for (const key of Object.keys(PANELS)) {
    const tab = document.getElementById(`tab-${key}`);
    tab.setAttribute("aria-selected", key === name);
    tab.tabIndex = key === name ? 0 : -1;
    document.getElementById(`panel-${key}`).hidden = key !== name;
  }
  make(name);
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
}

function start() {
  let stored = null;
  try {
    stored = localStorage.getItem("shlo_disc.theme");
  } catch {
    /* see above */
  }
  root.dataset.theme = stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document
    .getElementById("theme")
    .addEventListener("click", () => theme(root.dataset.theme === "dark" ? "light" : "dark"));
  document.getElementById("title").textContent = DOC.overview.name;
  document.getElementById("subtitle").textContent = `for ${DOC.overview.target}; ${DOC.overview.rows
    .slice(0, 2)
    .map((row) => row.join(" "))
    .join(", ")}`;
  const names = Object.keys(PANELS);
  for (const name of names) {
    const [title, , isFixed] = PANELS[name];
    document.getElementById("tabs").append(
      el(
        "button",
        {
          id: `tab-${name}`,
          type: "button",
          role: "tab",
          "aria-controls": `panel-${name}`,
          onclick: () => open(name),
        },
        title,
      ),
    );
    document.getElementById("panels").append(
      el("section", {
        id: `panel-${name}`,
        class: isFixed ? "panel fixed" : "panel",
        role: "tabpanel",
        "aria-labelledby": `tab-${name}`,
        hidden: true,
      }),
    );
  }
  document.getElementById("tabs").addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const at = names.findIndex(
      (name) => document.getElementById(`tab-${name}`).getAttribute("aria-selected") === "true",
    );
    const next = names[(at + step + names.length) % names.length];
    open(next);
    document.getElementById(`tab-${next}`).focus();
  });
  let shown = root.dataset.theme;
  addEventListener("beforeprint", () => {
    names.forEach(make);
    shown = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = shown;
  });
  addEventListener("hashchange", () => PANELS[location.hash.slice(1)] && open(location.hash.slice(1)));
  open(PANELS[location.hash.slice(1)] ? location.hash.slice(1) : "overview");
}

start();
