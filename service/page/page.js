// Asks the sidecar every second or two and puts what it says in place. No figure is made up here:
// rates are differences between two answers.

import { count, drawEdges, drawNodes, element, fill, sparkline } from "./graph.js";

const EVERY_MS = 1500;
const END_MS = 2 ** 62;
const queries = new Map();  // by name: what is drawn, and the last totals
let planText = "";

async function ask(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
}

async function refresh() {
  try {
    const [status, plan, state, marks] = await Promise.all(["status", "plan", "state", "watermarks"].map(ask));
    showJob(status);
    if (JSON.stringify(plan.map((p) => [p.name, p.nodes])) !== planText) draw(plan);
    for (const query of status.status?.queries ?? [])
      if (queries.has(query.name)) showQuery(query, state, marks, status.status);
  } catch (error) {
    badge("no answer", "bad-text");
    document.getElementById("summary").textContent = `The sidecar does not answer: ${error.message}`;
  }
  setTimeout(refresh, EVERY_MS);
}

function badge(text, kind) {
  const shown = document.getElementById("badge");
  if (shown.textContent !== text) shown.textContent = text;  // a live region: speak only of news
  shown.className = `badge ${kind}`;
}

function showJob({ status, age_seconds: age, problem, unready }) {
  const isReady = unready.length === 0;
  badge(isReady ? "ready" : (status?.state === "running" ? "not ready" : status?.state ?? "no driver"),
    isReady ? "ok" : (status?.state === "failed" ? "bad-text" : "warn"));
  if (status) {
    document.getElementById("job").textContent = status.job;
    document.title = `${status.job}: ${isReady ? "ready" : "not ready"}`;
    document.getElementById("summary").textContent =
      `rejoin ${status.build.version}, up ${span(Date.now() - Date.parse(status.started_at))}, told ${span(age * 1000)} ago`;
  } else document.getElementById("summary").textContent = problem?.message ?? "";
  document.getElementById("reasons").replaceChildren(
    ...unready.map((r) => element("li", { class: "warn" }, `${r.code}: ${r.message}`)));
}

function draw(plan) {
  planText = JSON.stringify(plan.map((p) => [p.name, p.nodes]));
  queries.clear();
  const main = document.getElementById("queries");
  main.replaceChildren();
  for (const query of plan) {
    const section = document.getElementById("query").content.cloneNode(true).firstElementChild;
    section.querySelector("h2").textContent = `Query ${query.name}`;
    section.setAttribute("aria-label", `Query ${query.name}`);
    main.append(section);
    const boxes = drawNodes(section.querySelector(".columns"), query);
    queries.set(query.name, { plan: query, section, boxes, rates: new Map(), totals: new Map(), rateOf: () => null });
  }
}

function showQuery(query, state, marks, job) {
  const shown = queries.get(query.name);
  const { plan, section, boxes } = shown;
  const mark = marks.find((m) => m.query === query.name);
  const totals = totalsOf(query, job.updated_at);
  for (const [name, rate] of ratesBetween(shown.totals, totals)) shown.rates.set(name, rate);
  shown.totals = totals;
  section.querySelector(".figures").textContent =
    `epoch ${query.epoch ?? "-"} in ${(query.trigger_ms / 1000).toFixed(1)} s, lag ${count(lagOf(query))} records, ` +
    `watermark ${moment(query.watermark_ms)}`;
  for (const node of plan.nodes) fill(boxes.get(node.id), facts(node, query, state, mark, shown.rates));
  for (const node of plan.nodes)
    boxes.get(node.id).classList.toggle("holds",
      Boolean(mark?.held_back_by.some((h) => node.kind === "source" && h.partition.table === node.table)));
  showHeld(section, mark);
  showBad(section, query);
  showTrouble(section, plan, query, job);
  showRows(section, query);
  shown.rateOf = (edge) => rateOf(edge, plan, shown.rates);
  drawEdges(section.querySelector(".graph"), plan, boxes, shown.rateOf);
}

/** Records read per table and rows written, with the time at which the driver said so. */
function totalsOf(query, at) {
  const found = new Map([["at", Date.parse(at)], ["sink", query.output_rows_total]]);
  for (const source of query.sources)
    found.set(source.table, (found.get(source.table) ?? 0) + source.partitions.reduce((n, p) => n + p.offset, 0));
  return found;
}

function ratesBetween(before, now) {
  const seconds = (now.get("at") - (before.get("at") ?? now.get("at"))) / 1000;
  if (seconds <= 0) return [];
  return [...now].filter(([name]) => name !== "at" && before.has(name))
    .map(([name, total]) => [name, Math.max(total - before.get(name), 0) / seconds]);
}

function rateOf(edge, plan, rates) {
  const source = plan.nodes.find((n) => n.id === edge.source);
  if (source.kind === "source") return rates.get(source.table) ?? null;
  return edge.target === "sink" && plan.edges.filter((e) => e.target === "sink").length === 1
    ? rates.get("sink") ?? null : null;
}

function facts(node, query, state, mark, rates) {
  if (node.kind === "sink") return [["topic", node.topics.join(", ")], ["written", flow(query.output_rows_total, rates.get("sink"))]];
  if (node.kind === "source") return sourceFacts(node, query, mark, rates);
  const kept = state.find((s) => s.operator === node.operator);
  if (!kept) return [];
  const rows = kept.sides.map((s) => `${s.side} ${count(s.rows)}`).join(", ");
  const found = [["rows", rows], ["state", bytes(kept.state_bytes)], ["kept", kept.retention]];
  if (kept.rows_per_minute !== null) found.push(["growth", `${count(kept.rows_per_minute)} rows/min`]);
  if (kept.late_rows) found.push(["late", count(kept.late_rows)]);
  if (kept.bootstrap && !kept.bootstrap.complete)
    found.push(["loading", `${kept.bootstrap.partitions_loaded} of ${kept.bootstrap.partitions_total} partitions`]);
  if (kept.series.length > 1) found.push(["history", sparkline(kept.series, `rows in state, ${rows} now`)]);
  return found;
}

function flow(total, rate) {
  return `${count(total)}${rate === undefined ? "" : `, ${count(rate)}/s`}`;
}

function sourceFacts(node, query, mark, rates) {
  const sources = query.sources.filter((s) => s.table === node.table);
  const parts = (mark?.partitions ?? []).filter((p) => p.table === node.table);
  const idle = parts.filter((p) => p.idle).length;
  const found = [["topic", node.topics.join(", ")],
    ["read", rates.has(node.table) ? `${count(rates.get(node.table))}/s` : "..."],
    ["lag", count(sources.reduce((n, s) => n + s.lag_records, 0))]];
  if (node.tells_time) {
    const known = parts.filter((p) => !p.idle).map((p) => p.watermark_ms);
    found.push(["watermark", known.some((ms) => ms === null) ? "not yet" : moment(known.length ? Math.min(...known) : null)]);
    found.push(["partitions", `${parts.length}${idle ? `, ${idle} idle` : ""}`]);
  }
  return found;
}

function showHeld(section, mark) {
  const body = section.querySelector(".held .body");
  if (!mark?.partitions.some((p) => p.counts)) return body.replaceChildren("No operator waits for event time.");
  const held = mark.held_back_by.map((h) => element("li", {},
    element("strong", {}, "Held back by "), `${h.reason}. `, element("span", { class: "soft" }, `${h.advice[0].toUpperCase()}${h.advice.slice(1)}.`)));
  const rows = mark.partitions.filter((p) => p.counts).map((p) => element("tr", {},
    element("td", {}, `${p.table} ${p.partition}`), element("td", {}, p.idle ? "idle" : moment(p.watermark_ms)),
    element("td", { class: "number" }, count(p.lag_records))));
  body.replaceChildren(element("ul", {}, ...held),
    element("table", {}, element("thead", {}, element("tr", {}, element("th", {}, "partition"),
      element("th", {}, "watermark"), element("th", { class: "number" }, "lag"))), element("tbody", {}, ...rows)));
}

function showBad(section, query) {
  const reasons = Object.entries(query.rejects);
  const lost = query.lost_records_total ? [["lost before they were read", query.lost_records_total]] : [];
  const rows = [["late rows", query.late_rows_total], ...lost, ...reasons].map(([name, n]) =>
    element("tr", {}, element("td", {}, name), element("td", { class: "number" }, count(n))));
  section.querySelector(".bad .body").replaceChildren(element("table", {}, element("tbody", {}, ...rows)));
}

function showTrouble(section, plan, query, job) {
  const told = [...(job.error ? [["", job.error]] : []),
    ...(query.last_failure ? [[`restarted ${query.restarts_total} times, last after `, query.last_failure]] : [])];
  const errors = told.map(([before, e]) => element("li", { class: "bad-text" }, `${before}${e.code}: ${e.message}`,
    e.hint ? element("div", { class: "soft" }, e.hint) : ""));
  const warnings = plan.warnings.map((w) => element("li", {}, w));
  section.querySelector(".trouble .body").replaceChildren(
    errors.length + warnings.length ? element("ul", {}, ...errors, ...warnings) : "None.");
}

async function showRows(section, query) {
  const panel = section.querySelector(".rows");
  const answer = await ask(`rows?query=${encodeURIComponent(query.name)}`).catch(() => null);
  panel.hidden = !answer?.enabled;
  if (panel.hidden) return;
  const rows = answer.rows.map((r) => element("tr", {}, element("td", {}, moment(r.timestamp_ms)),
    element("td", {}, element("code", {}, r.key ?? "")),
    element("td", {}, element("code", {}, r.value ?? "tombstone"))));
  panel.querySelector(".body").replaceChildren(answer.problem ? answer.problem.message :
    element("table", {}, element("tbody", {}, ...rows)));
}

function lagOf(query) {
  return query.sources.reduce((n, s) => n + s.lag_records, 0);
}

function moment(ms) {
  if (ms === null || ms === undefined) return "none yet";
  return ms >= END_MS ? "end" : new Date(ms).toISOString().replace("T", " ").slice(0, 19);
}

function span(ms) {
  const s = Math.max(Math.round(ms / 1000), 0);
  return s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
}

function bytes(n) {
  const unit = n >= 2 ** 30 ? [2 ** 30, "GiB"] : n >= 2 ** 20 ? [2 ** 20, "MiB"] : [1024, "KiB"];
  return `${(n / unit[0]).toFixed(1)} ${unit[1]}`;
}

function redraw() {
  for (const { plan, section, boxes, rateOf } of queries.values())
    drawEdges(section.querySelector(".graph"), plan, boxes, rateOf);
}

addEventListener("resize", redraw);
addEventListener("resized", redraw);
refresh();
