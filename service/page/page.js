// Polls the sidecar and updates the page. Rates are differences between answers that are ten
// seconds apart, because an epoch can take several seconds.

import { drawCharts, figure, span } from "./charts.js";
import { count, drawEdges, drawNodes, element, fill, sparkline } from "./graph.js";
import { openState, stateButton } from "./state.js";

const EVERY_MS = 1500;
const WINDOW_MS = 10_000;
const BEHIND_MS = 5_000;  // a partition that is less behind than this counts as on time
const END_MS = 2 ** 62;  // watermark of inputs that have ended
const SINK = "";  // key of the sink among the totals by table; no table has this name
const queries = new Map();  // by name: plan, elements, and the totals of the last seconds
const CHARTS_EVERY = 3;  // refreshes; the sidecar takes a sample every five seconds
let planText = "";
let refreshes = 0;
let job = null;  // the last answer of /status

async function fetchJson(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
}

async function refresh() {
  try {
    const [status, plan, state, marks, summaries] = await Promise.all(
      ["status", "plan", "state", "watermarks", "queries"].map(fetchJson));
    showJob(job = status);
    if (JSON.stringify(plan.map((p) => [p.name, p.nodes])) !== planText) draw(plan);
    for (const query of status.status?.queries ?? [])
      if (queries.has(query.name))
        showQuery(query, state, marks, status.status, summaries.find((s) => s.name === query.name));
    if (refreshes++ % CHARTS_EVERY === 0) await showCharts();
  } catch (error) {
    badge("no answer", "bad-text");
    document.getElementById("summary").textContent = `The sidecar does not answer: ${error.message}`;
  }
  setTimeout(refresh, EVERY_MS);
}

async function showCharts() {
  for (const { query, charts } of await fetchJson("trends"))
    if (queries.has(query)) drawCharts(queries.get(query).section.querySelector(".charts"), charts);
}

function badge(text, kind) {
  const shown = document.getElementById("badge");
  if (shown.textContent !== text) shown.textContent = text;  // a live region: screen readers read every change
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
      `rejoin ${status.build.version}, up ${span((Date.now() - Date.parse(status.started_at)) / 1000)}, status ${span(age)} old`;
  } else document.getElementById("summary").textContent = problem?.message ?? "";
  document.getElementById("reasons").replaceChildren(
    ...unready.map((r) => element("li", { class: "warn" }, `${r.code}: ${r.message}`)));
}

function draw(plan) {
  planText = JSON.stringify(plan.map((p) => [p.name, p.nodes]));
  refreshes = 0;
  queries.clear();
  const main = document.getElementById("queries");
  main.replaceChildren();
  for (const query of plan) {
    const section = document.getElementById("query").content.cloneNode(true).firstElementChild;
    section.querySelector("h2").textContent = `Query ${query.name}`;
    section.setAttribute("aria-label", `Query ${query.name}`);
    drawAdvice(section.querySelector(".trouble"), query);
    main.append(section);
    const boxes = drawNodes(section.querySelector(".columns"), query);
    queries.set(query.name, { plan: query, section, boxes, seen: [], rateOf: () => null });
  }
}

/** Drawn once per plan, because redrawing would close what the reader has opened. */
function drawAdvice(panel, { warnings, advice }) {
  const item = ({ text, add }) => element("li", {}, text, ...add.map((line) => element("code", { class: "line" }, line)));
  const shown = warnings.map((text) => advice.find((a) => a.text === text) ?? { text, add: [] });
  const better = advice.filter((a) => !a.is_warning);
  panel.querySelector(".warnings").replaceChildren(...shown.map(item));
  const details = panel.querySelector(".advice");
  details.hidden = better.length === 0;
  details.querySelector("summary").textContent = `Advice (${better.length})`;
  details.querySelector("ul").replaceChildren(...better.map(item));
}

function showQuery(query, state, marks, job, summary) {
  const shown = queries.get(query.name);
  const { plan, section, boxes } = shown;
  const mark = marks.find((m) => m.query === query.name);
  const rates = ratesOf(shown.seen, moved(query, job.updated_at));
  const held = mark ? holding(mark, shown.seen) : [];
  section.querySelector(".figures").replaceChildren(...unbroken([
    `epoch ${query.epoch ?? "-"} took ${(query.trigger_ms / 1000).toFixed(1)} s`, `lag ${count(lagOf(query))} records`,
    `watermark ${moment(query.watermark_ms)}`, `latency ${latency(summary)}`]));
  for (const node of plan.nodes) fill(boxes.get(node.id), facts(node, query, state, mark, rates));
  for (const node of plan.nodes)
    boxes.get(node.id).classList.toggle("holds",
      held.some((h) => node.kind === "source" && h.partition.table === node.table));
  showSilence(section, summary?.silence);
  showHeld(section, mark, held);
  showBad(section, query);
  showTrouble(section, plan, query, job);
  showRows(section, query);
  shown.rateOf = (edge) => rateOf(edge, plan, rates);
  drawEdges(section.querySelector(".graph"), plan, boxes, shown.rateOf);
}

/** A list of texts in one line, which breaks between them alone: no unit is parted from its number. */
function unbroken(texts) {
  return texts.flatMap((text, i) => [i ? ", " : "", element("span", { class: "unbroken" }, text)]);
}

/** Of the last minute: from the newest record behind a result to its commit. */
function latency(summary) {
  const [p50, p99] = [summary?.latency_p50_seconds ?? null, summary?.latency_p99_seconds ?? null];
  return p50 === null ? "-" : `p50 ${figure(p50, "s")}, p99 ${figure(p99, "s")}`;
}

function showSilence(section, silence) {
  const panel = section.querySelector(".silence");
  panel.hidden = !silence;
  if (panel.hidden) return;
  panel.querySelector("h3").textContent = `No result for ${span(silence.seconds)}`;
  panel.querySelector("ul").replaceChildren(...silence.reasons.map((r) =>
    element("li", { "data-code": r.code }, `${r.message[0].toUpperCase()}${r.message.slice(1)}.`)));
}

/** Records read per table and rows written, with the time of the status. */
function moved(query, at) {
  const totals = new Map([[SINK, query.output_rows_total]]);
  for (const source of query.sources)
    totals.set(source.table, (totals.get(source.table) ?? 0) + source.partitions.reduce((n, p) => n + p.offset, 0));
  return { at: Date.parse(at), watermark: query.watermark_ms, totals };
}

/** Rates per second by name over the window `seen`; adds `now` to the window. */
function ratesOf(seen, now) {
  if (seen.at(-1)?.at !== now.at) seen.push(now);
  while (seen.length > 2 && seen[1].at <= now.at - WINDOW_MS) seen.shift();
  const [{ at, totals }] = seen;
  const seconds = (now.at - at) / 1000;
  return new Map(seconds <= 0 ? [] : [...now.totals].filter(([name]) => totals.has(name))
    .map(([name, total]) => [name, Math.max(total - totals.get(name), 0) / seconds]));
}

/** One partition is always the slowest; it is shown if it is far behind or event time has stopped. */
function holding(mark, seen) {
  const stands = seen.at(-1).at - seen[0].at >= WINDOW_MS && seen.every((s) => s.watermark === mark.watermark_ms);
  const newest = Math.max(...mark.partitions.filter((p) => p.counts && !p.idle).map((p) => p.watermark_ms ?? -END_MS));
  return mark.held_back_by.filter(({ partition: p }) =>
    stands || p.idle || p.watermark_ms === null || newest - p.watermark_ms >= BEHIND_MS);
}

function rateOf(edge, plan, rates) {
  const source = plan.nodes.find((n) => n.id === edge.source);
  if (source.kind === "source") return rates.get(source.table) ?? null;
  return edge.target === "sink" && plan.edges.filter((e) => e.target === "sink").length === 1
    ? rates.get(SINK) ?? null : null;
}

function facts(node, query, state, mark, rates) {
  if (node.kind === "sink") return [["topic", node.topics.join(", ")], ["written", flow(query.output_rows_total, rates.get(SINK))]];
  if (node.kind === "source") return sourceFacts(node, query, mark, rates);
  const kept = state.find((s) => s.operator === node.operator);
  if (!kept) return [];
  const rows = kept.sides.map((s) => `${s.side} ${count(s.rows)}`).join(", ");
  const found = [["rows", rows], ["state", bytes(kept.state_bytes)], ["keeps", kept.retention]];
  if (kept.rows_per_minute !== null) found.push(["growth", `${count(kept.rows_per_minute)} rows/min`]);
  if (kept.late_rows) found.push(["late", count(kept.late_rows)]);
  if (kept.bootstrap && !kept.bootstrap.complete)
    found.push(["loading", `${kept.bootstrap.partitions_loaded} of ${kept.bootstrap.partitions_total} partitions, ` +
      `${count(kept.bootstrap.waiting_rows)} rows wait`]);
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
  const loads = sources.map((s) => s.load).filter((load) => load && load.read < load.total);
  if (loads.length) found.push(["loading", loading(node.table, loads)]);
  if (node.tells_time) {
    const known = parts.filter((p) => !p.idle).map((p) => p.watermark_ms);
    found.push(["watermark", known.some((ms) => ms === null) ? "none yet" : moment(known.length ? Math.min(...known) : null)]);
    found.push(["partitions", `${parts.length}${idle ? `, ${idle} idle` : ""}`]);
  }
  return found;
}

/** Progress of a table whose initial content is loaded before rows are joined with it. */
function loading(table, loads) {
  const [read, total] = ["read", "total"].map((name) => loads.reduce((n, load) => n + load[name], 0));
  const bar = element("progress", { value: read, max: total, "aria-label": `initial content of ${table}` });
  return element("span", {}, bar, `${Math.floor(100 * read / total)} %, rows wait for it`);
}

function showHeld(section, mark, holders) {
  const body = section.querySelector(".held .body");
  if (!mark?.partitions.some((p) => p.counts)) return body.replaceChildren("No operator uses event time.");
  const advised = [...new Set(holders.map((h) => h.advice))];  // the same advice once, for all its partitions
  const held = advised.map((advice) => element("li", {}, element("strong", {}, "Held back: "),
    `${firstOf(holders.filter((h) => h.advice === advice).map((h) => h.reason))}. `,
    element("span", { class: "soft" }, `${advice[0].toUpperCase()}${advice.slice(1)}.`)));
  const rows = mark.partitions.filter((p) => p.counts).map((p) => element("tr", {},
    element("td", {}, `${p.table} ${p.partition}`),
    element("td", { class: "unbroken" }, p.idle ? "idle" : moment(p.watermark_ms)),
    element("td", { class: "number" }, count(p.lag_records))));
  body.replaceChildren(held.length ? element("ul", {}, ...held) : element("p", {}, "No partition holds the watermark back."),
    element("table", {}, element("thead", {}, element("tr", {}, element("th", {}, "partition"),
      element("th", {}, "watermark"), element("th", { class: "number" }, "lag"))), element("tbody", {}, ...rows)));
}

function firstOf(reasons) {
  const more = reasons.length - 3;
  return `${reasons.slice(0, 3).join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

function showBad(section, query) {
  const reasons = Object.entries(query.rejects);
  const lost = query.lost_records_total ? [["records lost before they were read", query.lost_records_total]] : [];
  const rows = [["late rows", query.late_rows_total], ...lost, ...reasons].map(([name, n]) =>
    element("tr", {}, element("td", {}, name), element("td", { class: "number" }, count(n))));
  section.querySelector(".bad .body").replaceChildren(element("table", {}, element("tbody", {}, ...rows)));
}

function showTrouble(section, plan, query, job) {
  const failures = [...(job.error ? [["", job.error]] : []),
    ...(query.last_failure ? [[`restarted ${query.restarts_total} times, last after `, query.last_failure]] : [])];
  const errors = failures.map(([before, e]) => element("li", { class: "bad-text" }, `${before}${e.code}: ${e.message}`,
    e.hint ? element("div", { class: "soft" }, e.hint) : ""));
  section.querySelector(".trouble .body").replaceChildren(
    errors.length ? element("ul", {}, ...errors) : plan.warnings.length ? "" : "None.");
}

async function showRows(section, query) {
  const panel = section.querySelector(".rows");
  const answer = await fetchJson(`rows?query=${encodeURIComponent(query.name)}`).catch(() => null);
  panel.hidden = !answer?.enabled;
  if (panel.hidden) return;
  const rows = answer.rows.map((r) => element("tr", {}, element("td", { class: "unbroken" }, moment(r.timestamp_ms)),
    element("td", { class: `unbroken ${r.change === "written" ? "ok" : "warn"}` }, r.change),
    element("td", {}, ...(r.key === null ? [] : [element("code", {}, r.key)])), element("td", {}, ...values(r)),
    element("td", {}, ...stateButton(r))));
  if (panel.querySelector("button:is(:hover, :focus)")) return;  // it must not move under the pointer
  panel.querySelector(".body").replaceChildren(answer.problem ? answer.problem.message :
    element("table", {}, element("tbody", {}, ...rows)));
}

/** What was taken back, struck out, and the row that is there now. */
function values({ before, value }) {
  const gone = before === null ? [] : [element("del", {}, element("code", {}, before))];
  return value === null ? gone.length ? gone : ["tombstone"] : [...gone, element("code", {}, value)];
}

function lagOf(query) {
  return query.sources.reduce((n, s) => n + s.lag_records, 0);
}

function moment(ms) {
  if (ms === null || ms === undefined) return "none yet";
  return ms >= END_MS ? "end" : new Date(ms).toISOString().replace("T", " ").slice(0, 19);
}

function bytes(n) {
  const unit = n >= 2 ** 30 ? [2 ** 30, "GiB"] : n >= 2 ** 20 ? [2 ** 20, "MiB"] : [1024, "KiB"];
  return `${(n / unit[0]).toFixed(1)} ${unit[1]}`;
}

function redraw() {
  for (const { plan, section, boxes, rateOf } of queries.values())
    drawEdges(section.querySelector(".graph"), plan, boxes, rateOf);
}

/** Why the driver cannot read its state now; nothing if it can. */
function whyNot() {
  if (!job?.status) return "The driver does not run.";
  if (job.problem) return `The driver does not run: its status is ${job.problem.message}.`;
  return job.status.state === "running" ? "" : `The driver does not run: the job is ${job.status.state}.`;
}

document.getElementById("queries").addEventListener("click", ({ target }) => {
  const button = target.closest("[data-lookups], [data-operator]");
  const nodes = [...queries.values()].flatMap(({ plan }) => plan.nodes);
  if (button) openState(button, new Map(nodes.map((n) => [n.operator, n.title])), whyNot);
});
addEventListener("resize", redraw);
addEventListener("resized", redraw);
refresh();
