// The dialog that shows the rows of state under a join key. The driver reads them, at a request with
// the admin token, which stays in a variable of this tab: it is neither stored nor put in an address.

import { count, element } from "./graph.js";

const WAIT_S = 20;  // the sidecar holds a request for an answer that long
const WAITS = 7;  // the driver gives up after two minutes
const MOST_CHARS = 200;
const WORDS = new Map([["time", "event time"], ["written", "last write"], ["waiting", "waits as"],
  ["matched", "has been joined"], ["matches", "rows that it matches"], ["shown", "row in the sink"],
  ["row_number", "place"], ["joined", "joined with"], ["equal", "equal rows"], ["log", "place in the log"]]);
const dialog = document.getElementById("state");
const [form, outcome, found] = ["form", ".outcome", ".found"].map((at) => dialog.querySelector(at));
const { key, token: tokenField } = form.elements;
let token = "";
let asked = { lookups: [], titles: new Map(), why: () => "" };
let request = 0;  // an answer to an earlier one is not shown

/** A button in a result row, nothing if the row shows no operator's key. */
export function stateButton({ state }) {
  return state.length ? [element("button", { type: "button", class: "link", "data-lookups": JSON.stringify(state) }, "state")] : [];
}

/** Opens the dialog for a button that has lookups, or an operator whose key has to be typed.
 *  `titles` names operators; `why()` says why the driver cannot answer, or nothing. */
export function openState(button, titles, why) {
  const { lookups, operator } = button.dataset;
  asked = { lookups: lookups ? JSON.parse(lookups) : [{ operator }], titles, why };
  dialog.querySelector(".what").textContent = lookups ? asked.lookups.map(named).join("; ") : titles.get(operator);
  key.parentElement.hidden = key.disabled = Boolean(lookups);
  key.value = "";
  askToken();
  outcome.textContent = "";
  found.replaceChildren();
  dialog.showModal();
  if (lookups && token) send();
}

function named({ title, columns, key: values }) {
  return `${title}: ${columns.join(", ")} = ${JSON.parse(values).join(", ")}`;
}

function askToken() {
  tokenField.parentElement.hidden = tokenField.disabled = token !== "";
}

async function send() {
  const number = ++request;
  const say = (text) => { if (number === request) outcome.textContent = text; };
  found.replaceChildren();
  say(asked.why() || "The driver reads the state; this takes some seconds ...");
  if (asked.why()) return;
  try {
    const answer = await answered(() => number === request);
    if (number !== request) return;
    say(answer.done ? `${answer.message[0].toUpperCase()}${answer.message.slice(1)}.` : answer.message);
    found.replaceChildren(...answer.state.flatMap(operatorRows));
  } catch (error) {
    say(error.message);
  }
}

async function answered(isWanted) {
  const lookups = asked.lookups.map((l) => ({ operator: l.operator, key: l.key ?? key.value }));
  const sent = await ask("admin/state-get", { method: "POST", body: JSON.stringify({ lookups }) });
  if (!sent.ok) throw new Error(await refusal(sent));
  const { id } = await sent.json();
  for (let i = 0; i < WAITS && isWanted(); i++) {
    const answer = await ask(`admin/commands/${id}?wait=${WAIT_S}`);
    if (answer.ok) return answer.json();
    if (answer.status !== 404) throw new Error(await refusal(answer));
  }
  throw new Error(`No answer within ${WAIT_S * WAITS} s: the driver did not take the request.`);
}

async function ask(address, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  try {
    return await fetch(address, { ...options, headers, cache: "no-store" });
  } catch {
    throw new Error("The sidecar does not answer.");
  }
}

async function refusal(answer) {
  const { detail } = await answer.json().catch(() => ({}));
  if (answer.status === 401) {
    token = "";
    askToken();
    tokenField.focus();
    return "Wrong token.";
  }
  if (answer.status === 404) return "Admin requests are off: start the sidecar with --token-file.";
  if (answer.status === 429) return `Too many requests: ${detail}. Try again in ${answer.headers.get("Retry-After")} s.`;
  return typeof detail === "string" ? detail : `The sidecar refuses the request: ${answer.status}.`;
}

function operatorRows({ query, operator, kind, key: keys, epoch, sides }) {
  const head = element("h4", {}, asked.titles.get(`${query}/${operator}`) ?? kind);
  const keyText = Object.entries(keys).map(([name, value]) => `${name} = ${cell(value)}`).join(", ");
  const facts = element("p", { class: "soft" }, `${operator}, key ${keyText}, as of epoch ${epoch}`);
  return [head, facts, ...sides.flatMap(sideRows)];
}

function sideRows({ side, rows, kept, left_out: left }) {
  const title = element("p", { class: "side" }, element("strong", {}, side), `: ${rows ? rowsText(rows) : "no rows under this key"}`);
  const more = left ? [element("p", { class: "soft" }, left === 1 ? "1 more row is not shown" : `${count(left)} more rows are not shown`)] : [];
  return [title, ...(kept.length ? [rowsTable(kept)] : []), ...more];
}

function rowsText(n) {
  return n === 1 ? "1 row" : `${count(n)} rows`;
}

/** The columns of the rows, then in soft type what else the operator keeps with each. */
function rowsTable(kept) {
  const columns = [...new Set(kept.flatMap((r) => Object.keys(r.row ?? {})))];
  const facts = [...new Set(kept.flatMap((r) => Object.keys(r).filter((name) => name !== "row")))];
  const head = [...columns.map((c) => element("th", {}, c)),
    ...facts.map((f) => element("th", { class: "soft" }, WORDS.get(f) ?? f))];
  const body = kept.map((r) => element("tr", {},
    ...columns.map((c) => element("td", {}, r.row ? cell(r.row[c]) : "-")),
    ...facts.map((f) => element("td", { class: "soft" }, f in r ? cell(r[f]) : "-"))));
  return element("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "rows" },
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)));
}

function cell(value) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const shown = text.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.000(?:000)?)?/, "$1 $2");
  return shown.length <= MOST_CHARS ? shown : `${shown.slice(0, MOST_CHARS)}…`;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  token ||= tokenField.value.trim();
  tokenField.value = "";
  askToken();
  send();
});
dialog.addEventListener("close", () => { request++; });
dialog.querySelector(".close").addEventListener("click", () => dialog.close());
