// Sizes, what was decided by them, and what was not.
function factsPanel(panel, choose) {
  const table = (heads, rows) =>
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((head) => el("th", { scope: "col" }, head)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) =>
          el(
            "tr",
            {},
            row.map((cell, i) => el("td", { class: i ? "" : "mono" }, cell)),
          ),
        ),
      ),
    );
  fill(panel, {}, [
    el(
      "div",
      { class: "columns" },
      el(
        "section",
        {},
        el("h2", {}, "Sizes"),
        DOC.symbols.length
          ? table(
              ["size", "more"],
              DOC.symbols.map((s) => [s.bounds, s.more]),
            )
          : el("p", { class: "soft" }, "All sizes are constant."),
      ),
      el(
        "section",
        {},
        el("h2", {}, "What every call has to satisfy"),
        DOC.constraints.length
          ? table(["relation", "from"], DOC.constraints)
          : el("p", { class: "soft" }, "Nothing beyond the shapes."),
      ),
    ),
    el("h2", {}, `Missing facts (${DOC.missing.length})`),
    el(
      "p",
      { class: "soft" },
      "Relations that could not be proved. Where every call of yours satisfies one, add it and compile again.",
    ),
    DOC.missing.length ? null : el("p", {}, "None: every choice was made when compiling."),
    some(DOC.missing, 12, (m) => missingCard(m, choose)),
    el("h2", {}, "Decisions"),
    el(
      "p",
      { class: "soft" },
      "Patterns of rewrites in the stages fuse and plan: how often each was taken, ",
      "and which of its conditions refused it how often.",
    ),
    DOC.rules.map(ruleDetails),
  ]);
}

// The first few of many, and a button for the others.
function some(items, most, make) {
  const shown = items.slice(0, most).map(make);
  if (items.length > most) {
    const button = el(
      "button",
      { type: "button", onclick: () => button.replaceWith(...items.slice(most).map(make)) },
      `${items.length - most} more`,
    );
    shown.push(button);
  }
  return shown;
}

function missingCard(missing, choose) {
  const places = missing.where.slice(0, 12).map((place) => {
    const node = DOC.nodes.findIndex((n) => n.name === place);
    return node < 0 ? el("span", { class: "mono" }, place) : nodeButton(node, choose);
  });
  return el(
    "div",
    { class: "card" },
    el("div", {}, el("strong", { class: "mono" }, missing.relation)),
    el(
      "ul",
      {},
      missing.decides.map((text) => el("li", {}, text)),
    ),
    el("div", { class: "spaced" }, places, missing.where.length > 12 ? ` and ${missing.where.length - 12} more` : ""),
    missing.constraint
      ? el(
          "div",
          { class: "bar" },
          el("span", {}, "constraint: "),
          el("code", {}, JSON.stringify(missing.constraint)),
          copyButton(JSON.stringify(missing.constraint)),
        )
      : el(
          "div",
          { class: "soft" },
          "No constraint can promise it: it contradicts what is known, or is about sizes read from data.",
        ),
  );
}

function ruleDetails(rule) {
  const refusals = rule.conditions.reduce((sum, [, times]) => sum + times, 0);
  const facts = (relations) =>
    relations.map((relation) => el("code", {}, relation)).flatMap((node, i) => (i ? [", ", node] : [node]));
  return el(
    "details",
    {},
    el(
      "summary",
      {},
      el("strong", { class: "mono" }, rule.name),
      ` ${rule.text} `,
      el("span", { class: "soft" }, `taken ${count(rule.taken)} times, refused ${count(refusals)} times`),
    ),
    el(
      "div",
      { class: "card" },
      rule.conditions.length > 0 && [
        el("h3", {}, "Conditions"),
        el(
          "ul",
          {},
          rule.conditions.map(([text, times]) =>
            el("li", {}, text, times > 0 && el("span", { class: "soft" }, ` (refused ${count(times)} times)`)),
          ),
        ),
      ],
      rule.made.length > 0 && [
        el("h3", {}, "Taken at"),
        el(
          "ul",
          {},
          some(rule.made, 15, ([place, proved]) =>
            el("li", {}, el("span", { class: "mono" }, place), proved.length > 0 && [" by ", facts(proved)]),
          ),
        ),
      ],
      rule.refused.length > 0 && [
        el("h3", {}, "Refused at"),
        el(
          "ul",
          {},
          some(rule.refused, 15, ([condition, place, lacking]) =>
            el(
              "li",
              {},
              el("span", { class: "mono" }, place),
              `: not that ${condition}`,
              lacking.length > 0 && ["; missing ", facts(lacking)],
            ),
          ),
        ),
      ],
    ),
  );
}
