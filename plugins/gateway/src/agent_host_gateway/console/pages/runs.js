// Stored runs: how they stand, what they have used, and what they wait for. Seen anew every few seconds.

import { ask } from "./api.js";
import { amount, make, modelName, money, notice, when } from "./dom.js";

const AGAIN_MS = 5000;
const STATES = ["", "running", "waiting", "succeeded", "failed", "cancelled"];
const BADGES = { succeeded: "good", failed: "bad", waiting: "warn", running: "busy" };

export async function openRuns(main) {
  const state = make("select", { id: "state" }, STATES.map((each) => make("option", { value: each }, each || "all")));
  const place = make("div");
  main.append(make("h1", {}, "Runs"), make("div", { class: "tools" }, make("label", { for: "state" }, "State"), state), place);
  let isOpen = true;
  const look = async () => {
    try {
      const { runs, more } = await ask("GET", `runs?state=${state.value}`);
      // Whoever has opened one or is in it with the keyboard is not disturbed.
      if (isOpen && !place.contains(document.activeElement)) place.replaceChildren(drawTable(runs, look), more ? notice("Older ones are left out; agent-host runs list has them.") : "");
    } catch (error) {
      if (isOpen) place.replaceChildren(notice(error.message, "problem"));
    }
  };
  state.addEventListener("change", look);
  await look();
  const timer = setInterval(() => { if (!document.hidden) look(); }, AGAIN_MS);
  return () => {
    isOpen = false;
    clearInterval(timer);
  };
}

function drawTable(runs, look) {
  if (!runs.length) return notice("There are no such runs.");
  return make("div", { class: "wide", tabindex: 0 }, make("table", {},
    make("thead", {}, make("tr", {}, ["Begun", "Asked", "State", "Tokens", "Cost", "Stop it"].map((name) => make("th", { scope: "col", class: ["Tokens", "Cost"].includes(name) ? "number" : null }, name)))),
    make("tbody", {}, runs.map((run) => drawRow(run, look)))));
}

function drawRow(run, look) {
  const said = run.error?.message ?? (run.state === "waiting" ? `${run.questions.length} to decide` : run.reason ?? "");
  const isOver = ["succeeded", "failed", "cancelled"].includes(run.state);
  const cancel = async (event) => {
    event.target.disabled = true;
    await ask("POST", `runs/${encodeURIComponent(run.id)}/cancel`, {}).catch(() => {});
    event.target.blur();
    look();
  };
  return make("tr", {},
    make("th", { scope: "row" }, make("a", { href: `#chat/${encodeURIComponent(run.session)}` }, when(run.created))),
    make("td", {}, modelName(run)),
    make("td", {}, make("span", { class: `badge ${BADGES[run.state] ?? ""}` }, run.state), " ", make("span", { class: "note" }, said)),
    make("td", { class: "number" }, `${amount(run.usage.input)} → ${amount(run.usage.output)}`),
    make("td", { class: "number" }, money(run.cost)),
    make("td", {}, isOver ? null : make("button", { type: "button", class: "small", onclick: cancel }, "Cancel")));
}
