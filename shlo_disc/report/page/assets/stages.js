// The text of each stage, beside that of the stage before.
const CONTEXT = 3;

function stagesPanel(panel) {
  const names = Object.keys(DOC.texts);
  const view = new LineView("Text of the stage");
  let chosen = DOC.diffs.length ? DOC.diffs[0].right : names[0],
    beside = innerWidth > 640,
    whole = false;
  const told = el("span", { class: "soft" });
  const chips = names.map((name) =>
    el("button", { type: "button", class: "chip", onclick: () => show({ chosen: name }) }, name),
  );
  const besideBox = el("input", {
    type: "checkbox",
    checked: beside,
    onchange: (e) => show({ beside: e.target.checked }),
  });
  const wholeBox = el("input", { type: "checkbox", onchange: (e) => show({ whole: e.target.checked }) });
  panel.append(
    el("div", { class: "bar", role: "group", "aria-label": "Stage" }, chips),
    el(
      "div",
      { class: "bar" },
      el("label", {}, besideBox, " beside the stage before"),
      el("label", {}, wholeBox, " equal lines as well"),
      told,
      el("span", { class: "gap" }),
      finder(view),
    ),
    ...view.parts,
  );

  async function show(change) {
    ({ chosen = chosen, beside = beside, whole = whole } = change);
    chips.forEach((chip, i) => chip.setAttribute("aria-pressed", names[i] === chosen));
    const diff = DOC.diffs.find((d) => d.right === chosen);
    besideBox.disabled = !diff;
    wholeBox.disabled = !diff || !beside;
    if (!diff || !beside) {
      const lines = await linesOf(chosen);
      told.textContent = `${count(lines.length)} lines`;
      view.show(lines.map((left, leftAt) => ({ left, leftAt })));
      return;
    }
    const [left, right] = await Promise.all([linesOf(diff.left), linesOf(diff.right)]);
    const lines = { changed: 0, gone: 0, added: 0 };
    for (const [first, end, otherFirst, otherEnd] of diff.changes) {
      if (end > first && otherEnd > otherFirst) lines.changed += end - first;
      else lines[end > first ? "gone" : "added"] += end - first + otherEnd - otherFirst;
    }
    told.textContent = `${diff.left} to ${diff.right}: ${Object.entries(lines)
      .map(([what, n]) => `${count(n)} ${what}`)
      .join(", ")}`;
    const folds = whole ? null : new Set();
    const render = () =>
      view.show(diffRows(diff, left, right, folds), (i) => {
        folds.add(view.rows[i].leftAt);
        const top = view.box.scrollTop;
        render();
        view.box.scrollTop = top;
        view.draw();
      });
    render();
  }
  return show({});
}

// The rows of a diff. open: the first lines of runs of equal lines that are shown in full; null shows them all.
function diffRows(diff, left, right, open) {
  const rows = [];
  const equal = (a, b, n) => {
    for (let k = 0; k < n; k++) rows.push({ left: left[a + k], right: right[b + k], leftAt: a + k, rightAt: b + k });
  };
  const run = (a, b, n, isFirst, isLast) => {
    const before = isFirst ? 0 : CONTEXT,
      after = isLast ? 0 : CONTEXT;
    const hidden = n - before - after;
    if (!open || hidden < 2 || open.has(a + before)) return equal(a, b, n);
    equal(a, b, before);
    rows.push({ fold: hidden, leftAt: a + before });
    equal(a + n - after, b + n - after, after);
  };
  let a = 0,
    b = 0;
  for (const [first, end, otherFirst, otherEnd] of diff.changes) {
    run(a, b, first - a, a === 0, false);
    for (let k = 0; k < Math.max(end - first, otherEnd - otherFirst); k++) {
      rows.push({
        changed: true,
        leftAt: first + k,
        rightAt: otherFirst + k,
        left: first + k < end ? left[first + k] : null,
        right: otherFirst + k < otherEnd ? right[otherFirst + k] : null,
      });
    }
    a = end;
    b = otherEnd;
  }
  run(a, b, left.length - a, a === 0, true);
  return rows;
}
