// Each command of a call: its time beside the least that the machine allows.
function kernelsPanel(panel, calls, choose) {
  if (!DOC.calls.length) {
    panel.append(el("h2", {}, "Kernels"), noCalls());
    return;
  }
  const body = el("div");
  const show = (number) => body.replaceChildren(...kernelsOf(DOC.calls[number], choose));
  panel.append(el("div", { class: "bar" }, calls(show)), body);
}

function kernelsOf(call, choose) {
  const times = (r) => r.runs ?? 1; // a row is of all runs of a command, such as the trips of a loop
  const total = call.kernels.reduce((sum, k) => sum + (k.report.seconds || 0) * times(k.report), 0);
  const rows = call.kernels.map((kernel, number) => ({
    number,
    node: kernel.node,
    guards: kernel.guards,
    ...kernel.report,
  }));
  const bar = (part) =>
    el("div", { class: "share" }, el("i", { style: `width: ${Math.min(100, part * 100).toFixed(1)}%` }));
  const moved = (r) => (r.bytes_read == null || r.bytes_written == null ? null : r.bytes_read + r.bytes_written);
  // What the machine was estimated to allow is shown where the kernel has not shown it to be wrong.
  const estimated = (r, text) =>
    r.is_below_estimate
      ? el("span", { title: "faster than was estimated, as where data stays in caches between calls" }, "-")
      : text;
  const list = (texts) => texts.map((text) => el("div", {}, text));
  const index = new Map(DOC.nodes.map((n, i) => [n.name, i]));
  const columns = [
    { name: "#", number: true, key: (r) => r.number, cell: (r) => String(r.number) },
    {
      name: "kernel",
      key: (r) => r.name,
      cell: (r) => [el("div", { class: "mono" }, r.name), el("div", { class: "soft" }, r.ops)],
    },
    {
      name: "computes",
      key: (r) => r.node,
      cell: (r) => [
        el("div", { class: "tight" }, swatch(r.kind), index.has(r.node) ? nodeButton(index.get(r.node), choose) : "-"),
        el("div", { class: "soft" }, r.kind),
      ],
    },
    {
      name: "µs",
      number: true,
      key: (r) => r.seconds * times(r),
      cell: (r) =>
        r.runs === 0
          ? "not run"
          : [scaled(r.seconds, 1e6 * times(r), 1), total > 0 && bar(((r.seconds || 0) * times(r)) / total)],
    },
    {
      name: "least µs",
      number: true,
      key: (r) => r.estimated_seconds * times(r),
      cell: (r) => estimated(r, scaled(r.estimated_seconds, 1e6 * times(r), 1)),
    },
    { name: "reached %", number: true, key: (r) => r.share, cell: (r) => estimated(r, scaled(r.share, 100, 0)) },
    { name: "runs", number: true, key: (r) => r.runs, cell: (r) => (r.runs == null ? "-" : String(r.runs)) },
    { name: "MB", number: true, key: (r) => moved(r) * times(r), cell: (r) => scaled(moved(r), 1e-6 * times(r), 3) },
    {
      name: "MFLOP",
      number: true,
      key: (r) => r.flops * times(r),
      cell: (r) => scaled(r.flops, 1e-6 * times(r), 3),
    },
    {
      name: "variant",
      key: (r) => r.variant,
      wide: true,
      cell: (r) => [el("div", {}, r.variant || "-"), el("div", { class: "soft" }, list(r.guards))],
    },
    {
      name: "missing facts",
      key: (r) => r.missing.join(),
      cell: (r) => el("span", { class: "mono tight" }, list(r.missing)),
    },
    {
      name: "source",
      key: (r) => r.source,
      cell: (r) => el("span", { class: "mono tight" }, r.source.split("/").at(-1)),
    },
  ];
  const commands = rows.length === 1 ? "1 command" : `${count(rows.length)} commands`;
  const title = call.problem || `${(total * 1e6).toFixed(0)} µs in ${commands}, on ${call.machine}`;
  return [
    el("h2", {}, `Kernels at ${sizesText(call)}: `, el("span", { class: call.problem ? "" : "soft" }, title)),
    sortedTable(columns, rows),
  ];
}
