// The join graph of one query: boxes in columns from the tables to the sink, arrows between them.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element; text stays text and is never parsed as HTML. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Draws the plan's nodes once; returns their boxes by node id. */
export function drawNodes(columns, plan) {
  columns.replaceChildren();
  const depth = depths(plan);
  const boxes = new Map();
  for (let d = 0; d <= Math.max(...depth.values()); d++) {
    const column = element("div", { class: "column" });
    for (const node of plan.nodes.filter((n) => depth.get(n.id) === d)) {
      const box = nodeBox(node);
      boxes.set(node.id, box);
      column.append(box);
    }
    columns.append(column);
  }
  return boxes;
}

/** The column of each node: its longest distance from a table. */
function depths(plan) {
  const found = new Map(plan.nodes.map((n) => [n.id, 0]));
  for (const node of plan.nodes)  // nodes come in topological order
    for (const edge of plan.edges.filter((e) => e.source === node.id))
      found.set(edge.target, Math.max(found.get(edge.target), found.get(node.id) + 1));
  return found;
}

function nodeBox(node) {
  const details = element("details", {}, element("summary", {}, "details"),
    element("ul", {}, ...node.details.map((line) => element("li", {}, line))));
  const box = element("article", { class: `node ${node.kind}`, "data-node": node.id },
    element("span", { class: "kind" }, node.kind === "operator" ? "operator" : node.kind === "sink" ? "sink" : "table"),
    element("h4", {}, node.title), element("dl"), details);
  if (node.kind === "operator" && node.operator)
    box.append(element("button", { type: "button", class: "link", "data-operator": node.operator }, "state under a key"));
  details.addEventListener("toggle", () => box.dispatchEvent(new CustomEvent("resized", { bubbles: true })));
  return box;
}

/** Puts names and values into a box; a value may be an element. */
export function fill(box, facts) {
  const list = box.querySelector("dl");
  list.replaceChildren(...facts.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)]));
}

/** A small line chart of a series, scaled to its largest value. */
export function sparkline(points, label) {
  const chart = document.createElementNS(SVG, "svg");
  chart.setAttribute("class", "spark");
  chart.setAttribute("viewBox", "0 0 100 20");
  chart.setAttribute("preserveAspectRatio", "none");
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", label);
  const oldest = Math.max(...points.map(([ago]) => ago), 1);
  const top = Math.max(...points.map(([, value]) => value), 1);
  const line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", points.map(([ago, value]) =>
    `${(100 * (1 - ago / oldest)).toFixed(1)},${(19 - 18 * value / top).toFixed(1)}`).join(" "));
  chart.append(line);
  return chart;
}

/** Redraws the arrows; `rateOf(edge)` is rows per second or null. */
export function drawEdges(graph, plan, boxes, rateOf) {
  const svg = graph.querySelector(".edges");
  const frame = graph.getBoundingClientRect();
  svg.replaceChildren();
  const slowestFirst = [...plan.edges].sort((e, f) => rateOf(e) - rateOf(f));  // later arrows are drawn on top
  for (const edge of slowestFirst) {
    const from = boxes.get(edge.source).getBoundingClientRect();
    const to = boxes.get(edge.target).getBoundingClientRect();
    const rate = rateOf(edge);
    const across = to.left >= from.right;
    const [a, c] = [from.right - frame.left, (across ? to.left : to.right) - frame.left];
    const [b, d] = [middle(from.top, from.bottom) - frame.top, middle(to.top, to.bottom) - frame.top];
    const path = document.createElementNS(SVG, "path");
    // boxes in one column are connected at their right edge, so that no arrow crosses a box
    const [out, into] = [b + 10, d - 10];
    path.setAttribute("d", across ? `M ${a} ${b} C ${middle(a, c)} ${b} ${middle(a, c)} ${d} ${c} ${d}`
      : `M ${a} ${out} H ${frame.width - 2} V ${into} H ${c}`);
    if (rate) path.setAttribute("class", "flows");
    const head = document.createElementNS(SVG, "path");
    head.setAttribute("class", "head");
    head.setAttribute("d", across ? `M ${c - 9} ${d - 5} L ${c} ${d} L ${c - 9} ${d + 5} z` : `M ${c + 9} ${into - 5} L ${c} ${into} L ${c + 9} ${into + 5} z`);
    const text = document.createElementNS(SVG, "text");
    text.setAttribute("x", middle(a, c));
    text.setAttribute("y", middle(b, d) - 4);
    text.textContent = [edge.side, rate === null ? "" : `${count(rate)}/s`].filter(Boolean).join(" ");
    svg.append(path, head, text);
  }
}

function middle(a, b) {
  return (a + b) / 2;
}

/** 1234567 as 1.23 M. */
export function count(n) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]])
    if (Math.abs(n) >= size) return `${(n / (unit === "k" ? 1e3 : size)).toPrecision(3)} ${unit}`;
  return n >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString("en") : n.toFixed(1);
}
