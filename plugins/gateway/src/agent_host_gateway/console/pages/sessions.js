// Stored sessions: the latest first, found by their words, opened, branched, renamed and removed.

import { ask } from "./api.js";
import { amount, make, notice, when } from "./dom.js";

export async function openSessions(main) {
  const query = make("input", { type: "search", id: "query", placeholder: "Words that were said" });
  const form = make("form", { class: "tools", role: "search" }, make("label", { for: "query", class: "unseen" }, "Search in sessions"), query, make("button", {}, "Search"));
  const place = make("div", { "aria-live": "polite" });
  main.append(make("h1", {}, "Sessions"), form, place);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await attempt(place, () => (query.value.trim() ? showFound(place, query.value) : showList(place)));
  });
  await attempt(place, () => showList(place));
}

async function attempt(place, work) {
  try {
    await work();
  } catch (error) {
    place.replaceChildren(notice(error.message, "problem"));
  }
}

async function showList(place, skip = 0) {
  const { sessions, more } = await ask("GET", `sessions?skip=${skip}`);
  if (!sessions.length) return place.replaceChildren(notice("Nothing is stored yet."));
  const rows = sessions.map((session) => drawRow(session, () => attempt(place, () => showList(place, skip)), (error) => place.prepend(notice(error.message, "problem"))));
  const next = make("button", { type: "button", onclick: () => attempt(place, () => showList(place, skip + sessions.length)) }, "Older ones");
  const table = make("table", {},
    make("thead", {}, make("tr", {}, ["Session", "Messages", "Changed", "What to do"].map((name) => make("th", { scope: "col", class: name === "Messages" ? "number" : null }, name)))),
    make("tbody", {}, rows));
  place.replaceChildren(make("div", { class: "wide", tabindex: 0 }, table), more ? next : "");
}

function drawRow(session, redraw, fail) {
  const title = session.name || session.title || session.id;
  const act = (label, work) => make("button", { type: "button", class: "small", "aria-label": `${label} ${title}`, onclick: () => work().catch(fail) }, label);
  const path = `sessions/${encodeURIComponent(session.id)}`;
  return make("tr", {},
    make("th", { scope: "row" }, make("a", { href: `#chat/${encodeURIComponent(session.id)}` }, title)),
    make("td", { class: "number" }, amount(session.count)),
    make("td", {}, when(session.updated)),
    make("td", { class: "tools" },
      act("Branch", async () => { const branch = await ask("POST", `${path}/branch`, {}); location.hash = `#chat/${encodeURIComponent(branch.id)}`; }),
      act("Rename", async () => {
        const name = window.prompt("A name for the session", session.name ?? "");
        if (name !== null) { await ask("POST", `${path}/name`, { name }); redraw(); }
      }),
      act("Remove", async () => {
        if (window.confirm(`Remove "${title}" and all that was said in it?`)) { await ask("DELETE", path); redraw(); }
      })));
}

async function showFound(place, words) {
  const { found } = await ask("GET", `search?q=${encodeURIComponent(words)}`);
  if (!found.length) return place.replaceChildren(notice("No message has all of these words."));
  place.replaceChildren(make("ul", { class: "found" }, found.map((each) =>
    make("li", { class: "panel" }, make("a", { href: `#chat/${encodeURIComponent(each.session)}` }, `Message ${each.place + 1}, ${each.role}`), make("p", { class: "written" }, each.excerpt)))));
}
