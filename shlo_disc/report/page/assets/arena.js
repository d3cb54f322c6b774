// The arena over time: each value a rectangle of program order and bytes.
function arenaPanel(panel, calls, choose) {
  const body = el("div", { class: "arena" });
  if (!DOC.calls.length) {
    panel.append(el("h2", {}, "Arena"), noCalls());
    return;
  }
  const show = (number) => body.replaceChildren(...arenaOf(DOC.calls[number], choose));
  panel.append(el("div", { class: "bar" }, calls(show)), body);
}

const noCalls = () =>
  el(
    "p",
    { class: "soft" },
    'No sizes were given. With some, e.g. report(path, dims=[{"b": 2, "s": 16}]) or --dims b=2,s=16, the arena is ',
    "drawn here and the kernels are measured.",
  );
const sizesText = (call) =>
  Object.entries(call.dims)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ") || "its one shape";

function arenaOf(call, choose) {
  const segments = call.arenas.map((bytes, segment) => ({
    bytes,
    segment,
    values: call.rectangles.filter((r) => r.segment === segment),
  }));
  const total = call.arenas.every((bytes) => bytes != null) ? call.arenas.reduce((a, b) => a + b, 0) : null;
  const parts = [
    el(
      "h2",
      {},
      `Arena at ${sizesText(call)}: ${bytesText(total)}`,
      el("span", { class: "soft" }, ` and ${bytesText(call.result_bytes)} of results`),
    ),
  ];
  const told = el(
    "p",
    { class: "told mono", "aria-live": "polite" },
    "Across: the commands in program order. Up: bytes of the arena. Point at a rectangle.",
  );
  for (const part of segments) {
    if (segments.length > 1) parts.push(el("h3", {}, `Segment ${part.segment}: ${bytesText(part.bytes)}`));
    if (part.bytes) parts.push(...picture(part, call.commands, told, choose));
    else
      parts.push(el("p", { class: "soft" }, part.bytes === 0 ? "Nothing lies here." : "Its sizes are read from data."));
  }
  parts.push(told, largest(call, choose));
  return parts;
}

function picture({ bytes, values }, commands, told, choose) {
  const [width, height, left, bottom, top] = [1200, 420, 70, 24, 70];
  const steps = Math.max(1, commands.length),
    x = (t) => left + ((t - 1) / (steps - 1 || 1)) * (width - left - 10),
    y = (b) => top + (1 - b / bytes) * height;
  const kinds = new Map(DOC.nodes.map((n) => [n.name, n.kind]));
  const nodes = [];
  for (let i = 0; i <= 4; i++) {
    const at = (bytes * i) / 4;
    nodes.push(
      svg("line", { class: "grid", x1: left, x2: width - 10, y1: y(at), y2: y(at) }),
      svg("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, bytesText(Math.round(at))),
    );
  }
  const every = Math.max(1, Math.ceil(steps / 24));
  for (let t = 1; t < steps; t += every) nodes.push(svg("text", { x: x(t) + 2, y: top + height + 15 }, String(t)));
  nodes.push(
    svg("text", { x: left - 6, y: 24, "text-anchor": "end" }, "in use"),
    inUse(values, steps, bytes, x, top - 14),
  );
  for (const value of values) {
    const [w, h] = [x(value.end) - x(value.begin), y(0) - y(value.bytes)];
    const ends = [value.begin, value.end - 1].map((t) => `${t} (${commands[t] || "the end"})`);
    const where = `${count(value.bytes)} bytes at ${count(value.offset)}`;
    const say = `${value.name}: ${where}, from command ${ends.join(" until ")}`;
    nodes.push(
      svg(
        "rect",
        {
          class: w < 4 || h < 3 ? "value thin" : "value",
          x: x(value.begin),
          y: y(value.offset + value.bytes),
          width: Math.max(1, w),
          height: Math.max(1, h),
          fill: `var(${kindColour(kinds.get(value.node))})`,
          onpointerenter: () => {
            told.textContent = say;
          },
          onclick: () => choose(DOC.nodes.findIndex((n) => n.name === value.node)),
        },
        svg("title", {}, say),
      ),
    );
    if (w > value.name.length * 6.4 && h > 13)
      nodes.push(
        svg("text", { class: "inside", x: x(value.begin) + 4, y: y(value.offset + value.bytes) + 12 }, value.name),
      );
  }
  return [
    svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${top + height + bottom}`,
        role: "img",
        "aria-label": `${values.length} values in ${bytesText(bytes)}; the largest are in the table below`,
      },
      nodes,
    ),
  ];
}

// How many bytes are in use at each command, above the picture.
function inUse(values, steps, bytes, x, height) {
  const change = new Float64Array(steps + 2);
  for (const value of values) {
    change[value.begin] += value.bytes;
    change[value.end] -= value.bytes;
  }
  let now = 0,
    path = `M${x(1)} ${height}`;
  for (let t = 1; t < steps; t++) {
    now += change[t];
    const h = height - (now / bytes) * (height - 8);
    path += `L${x(t)} ${h}L${x(t + 1)} ${h}`;
  }
  return svg("path", { class: "use", d: `${path}L${x(steps)} ${height}Z` });
}

function largest(call, choose) {
  const rows = [...call.rectangles].sort((a, b) => b.bytes - a.bytes).slice(0, 20);
  return el(
    "details",
    {},
    el("summary", {}, "The largest values"),
    sortedTable(
      [
        {
          name: "value",
          key: (r) => r.name,
          cell: (r) =>
            nodeButton(
              DOC.nodes.findIndex((n) => n.name === r.node),
              choose,
              r.name,
            ),
        },
        { name: "bytes", number: true, key: (r) => r.bytes, cell: (r) => count(r.bytes) },
        { name: "offset", number: true, key: (r) => r.offset, cell: (r) => count(r.offset) },
        { name: "from", number: true, key: (r) => r.begin, cell: (r) => String(r.begin) },
        { name: "until", number: true, key: (r) => r.end, cell: (r) => String(r.end - 1) },
      ],
      rows,
    ),
  );
}
