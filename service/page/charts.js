// Small line charts of the last minutes, as inline SVG with one scale for the lines of a chart.

import { count, element } from "./graph.js";

const SVG = "http://www.w3.org/2000/svg";
const LEAST_S = 60;  // of the time axis
const LEAST_TOP = { s: .1, records: 10 };  // of the value axis; 1 in other units: less is noise
const WIDTH = 300;
const HEIGHT = 60;

/** Draws the charts of one query; a chart without any value is left out. */
export function drawCharts(panel, charts) {
  const known = charts.filter((lines) => lines.some(({ points }) => points.some(([, value]) => value !== null)));
  panel.hidden = known.length === 0;
  panel.querySelector(".body").replaceChildren(...known.map(chart));
}

function chart(lines) {
  const points = lines.flatMap((line) => line.points);
  const oldest = Math.max(...points.map(([ago]) => ago), LEAST_S);
  const unit = lines[0].unit;
  const most = Math.max(...points.map(([, value]) => value ?? 0));
  const top = Math.max(most, LEAST_TOP[unit] ?? 1);
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${lines.map(inWords).join("; ")}; at most ${figure(most, unit)}`);
  drawing.append(...lines.map((line, i) => path(line.points, oldest, top, i)));
  const names = lines.map((line, i) => element("span", { class: `line-${i}` }, line.name, " ",
    element("strong", {}, figure(line.points.at(-1)?.[1] ?? null, line.unit))));
  const axis = element("div", { class: "axis" }, element("span", {}, `${span(oldest)} ago`),
    element("span", {}, `top ${figure(top, unit)}`), element("span", {}, "now"));
  return element("figure", { class: "chart" }, element("figcaption", {}, ...names), drawing, axis);
}

/** One stroke per stretch of known values. */
function path(points, oldest, top, number) {
  let pen = "M";
  const steps = points.map(([ago, value]) => {
    if (value === null) {
      pen = "M";
      return "";
    }
    const step = `${pen} ${(WIDTH * (1 - ago / oldest)).toFixed(1)} ${(HEIGHT - 2 - (HEIGHT - 4) * value / top).toFixed(1)}`;
    pen = "L";
    return step;
  });
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("class", `line-${number}`);
  line.setAttribute("d", steps.join(" "));
  return line;
}

function inWords({ name, unit, points }) {
  return `${name} now ${figure(points.at(-1)?.[1] ?? null, unit)}`;
}

export function figure(value, unit) {
  if (value === null) return "-";
  if (unit !== "s") return unit.startsWith("/") ? `${count(value)}${unit}` : `${count(value)} ${unit}`;
  return value < 1 ? `${Math.round(value * 1000)} ms` : value < 120 ? `${value.toFixed(1)} s` : span(value);
}

export function span(seconds) {
  const s = Math.max(Math.round(seconds), 0);
  return s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
}
