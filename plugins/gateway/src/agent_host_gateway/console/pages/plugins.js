// Plugins: what is installed, why each takes part in a request or does not, and what is wrong.

import { ask } from "./api.js";
import { make, notice } from "./dom.js";

export async function openPlugins(main, me) {
  const known = [...me.agents, ...me.models];
  const model = make("select", { id: "of" }, known.map((name) => make("option", { value: name }, name)));
  const why = make("section", { class: "panel", "aria-live": "polite" });
  const health = make("section", { class: "panel", "aria-live": "polite" });
  const list = make("section", { class: "panel" }, notice("One moment…"));
  main.append(
    make("h1", {}, "Plugins"),
    make("div", { class: "tools" }, make("label", { for: "of" }, "Who takes part with"), model,
      make("button", { type: "button", onclick: () => explain(why, model.value) }, "Explain"),
      make("button", { type: "button", onclick: () => examine(health) }, "Examine all")),
    why, health, list,
  );
  why.hidden = health.hidden = true;
  try {
    const { plugins } = await ask("GET", "plugins");
    list.replaceChildren(...drawList(plugins));
  } catch (error) {
    list.replaceChildren(notice(error.message, "problem"));
  }
}

function drawList(plugins) {
  const filter = make("input", { type: "search", id: "filter", placeholder: "Name, role or distribution" });
  const body = make("tbody");
  const redraw = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    const found = plugins.filter((each) => words.every((word) => `${each.name} ${each.role} ${each.label} ${each.distribution} ${each.state}`.toLowerCase().includes(word)));
    body.replaceChildren(...found.map((each) => make("tr", {},
      make("th", { scope: "row" }, make("code", {}, each.name), each.label && each.label !== each.name ? ` ${each.label}` : ""),
      make("td", {}, make("span", { class: `badge role-${each.role}` }, each.role)),
      make("td", {}, `${each.distribution ?? each.source} ${each.version ?? ""}`),
      make("td", {}, each.reason || (each.missing?.length ? `needs ${each.missing.join(", ")}` : each.state)))));
  };
  filter.addEventListener("input", redraw);
  redraw();
  return [make("h2", {}, `${plugins.length} plugins`), make("label", { for: "filter", class: "unseen" }, "Filter"), filter,
    make("div", { class: "wide", tabindex: 0 }, make("table", {}, make("thead", {}, make("tr", {}, ["Plugin", "Role", "From", "State"].map((name) => make("th", { scope: "col" }, name)))), body))];
}

async function explain(place, model) {
  place.hidden = false;
  place.replaceChildren(notice("One moment…"));
  try {
    const { told, picture } = await ask("GET", `plugins/explain?model=${encodeURIComponent(model)}`);
    place.replaceChildren(...drawExplanation(told, picture));
  } catch (error) {
    place.replaceChildren(notice(error.message, "problem"));
  }
}

function drawExplanation(told, picture) {
  const rounds = (told.rounds ?? []).map((round, at) => make("li", {}, make("strong", {}, `Round ${at + 1}: `), describeRound(round)));
  const rejected = Object.entries(told.rejected ?? {}).map(([name, reason]) => [make("dt", {}, make("code", {}, name)), make("dd", {}, String(reason))]);
  const hooks = Object.entries(told.hooks ?? told.order ?? {}).map(([hook, order]) => [make("dt", {}, make("code", {}, hook)), make("dd", {}, Array.isArray(order) ? order.map((each) => each.plugin ?? each).join(" → ") : JSON.stringify(order))]);
  const shown = make("img", { class: "graph", src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture)}`, alt: "Who lets whom in: tags and plugins by round. The lists below say the same." });
  return [
    make("h2", {}, `${told.provider} · ${told.model}`),
    make("p", {}, told.why || ""),
    make("div", { class: "wide", tabindex: 0 }, shown),
    make("h3", {}, "Rounds"), make("ol", { class: "plain" }, rounds),
    fold("Tags", make("p", {}, (told.tags ?? []).map((tag) => [make("code", { class: "tag" }, tag), " "]))),
    fold(`Left out (${rejected.length})`, make("dl", {}, rejected)),
    fold(`Order of hooks (${hooks.length})`, make("dl", {}, hooks)),
  ];
}

function describeRound(round) {
  const parts = [["joined", round.joined], ["left", round.left], ["tags gained", round.gained], ["tags lost", round.lost]];
  return parts.filter(([, names]) => names?.length).map(([what, names]) => `${what} ${names.join(", ")}`).join("; ") || "nothing changed";
}

function fold(label, ...content) {
  return make("details", {}, make("summary", {}, label), content);
}

async function examine(place) {
  place.hidden = false;
  place.replaceChildren(notice("Every plugin is imported and examined; that takes a few seconds."));
  try {
    const told = await ask("GET", "plugins/doctor");
    const found = [...told.problems.map((each) => ["problem", each]), ...told.warnings.map((each) => ["note", each])];
    place.replaceChildren(make("h2", {}, `${told.examined} plugins examined`),
      ...(found.length ? found.map(([kind, each]) => make("p", { class: kind }, describeFinding(each))) : [notice("Nothing is wrong.")]));
  } catch (error) {
    place.replaceChildren(notice(error.message, "problem"));
  }
}

function describeFinding(finding) {
  if (typeof finding === "string") return finding;
  return [finding.plugin, finding.message ?? finding.problem ?? JSON.stringify(finding), finding.hint].filter(Boolean).join(" – ");
}
