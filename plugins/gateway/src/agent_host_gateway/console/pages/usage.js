// What was used: bars by day, and sums by model and by key. What is not known is not drawn as nothing.

import { ask } from "./api.js";
import { amount, draw, make, money, notice } from "./dom.js";

const WIDTH = 720;
const HEIGHT = 220;
const EDGE = 56;
const MEASURES = { tokens: "Tokens", requests: "Requests", cost: "Cost in US dollars" };

export async function openUsage(main) {
  const days = make("select", { id: "days" }, [7, 30, 90].map((count) => make("option", { value: count }, `${count} days`)));
  days.value = "30";
  const measure = make("select", { id: "measure" }, Object.entries(MEASURES).map(([value, label]) => make("option", { value }, label)));
  const place = make("div", { "aria-live": "polite" });
  main.append(make("h1", {}, "Usage"), make("div", { class: "tools" }, make("label", { for: "measure" }, "Show"), measure, make("label", { for: "days" }, "of the last"), days), place);
  const look = async () => {
    try {
      const told = await ask("GET", `usage?days=${days.value}`);
      place.replaceChildren(...drawUsage(told, measure.value));
    } catch (error) {
      place.replaceChildren(notice(error.message, "problem"));
    }
  };
  days.addEventListener("change", look);
  measure.addEventListener("change", look);
  await look();
}

function valueOf(row, measure) {
  if (measure === "tokens") return row.input + row.output;
  return row[measure];
}

function drawUsage({ rows, days, cut }, measure) {
  if (!rows.length) return [notice("Nothing was used in these days.")];
  // What a key has used through this page is told by its runs too.
  const used = rows.filter((row) => !(row.key && row.is_run));
  const unknown = measure === "cost" && rows.some((row) => row.cost === null);
  return [
    drawBars(used, days, measure),
    unknown ? notice("The cost of some runs is not known; they are left out of the bars.") : "",
    cut ? notice("Only the latest runs are counted.") : "",
    drawSums("By model", "Model", used, "model"),
    drawSums("By key", "Key", rows.filter((row) => row.key), "key"),
  ];
}

function drawBars(rows, days, measure) {
  const sums = new Map();
  for (let back = days - 1; back >= 0; back -= 1) {
    sums.set(new Date(Date.now() - back * 864e5).toISOString().slice(0, 10), 0);
  }
  for (const row of rows) {
    const value = valueOf(row, measure);
    if (value !== null && sums.has(row.day)) sums.set(row.day, sums.get(row.day) + value);
  }
  const most = Math.max(...sums.values(), 1e-9);
  const step = (WIDTH - EDGE) / sums.size;
  const bars = [...sums].map(([day, value], at) => {
    const height = (value / most) * (HEIGHT - 50);
    const label = `${day}: ${measure === "cost" ? money(value) : amount(value)}`;
    const bar = draw("rect", { x: EDGE + at * step + step * 0.1, y: HEIGHT - 25 - height, width: step * 0.8, height, rx: 2, class: "bar-day" }, draw("title", {}));
    bar.firstChild.textContent = label;
    return bar;
  });
  const texts = [[EDGE - 6, 30, "end", measure === "cost" ? money(most) : amount(Math.round(most))], [EDGE - 6, HEIGHT - 25, "end", "0"],
    [EDGE, HEIGHT - 8, "start", [...sums.keys()][0]], [WIDTH, HEIGHT - 8, "end", [...sums.keys()].at(-1)]].map(([x, y, anchor, text]) => {
    const shown = draw("text", { x, y, "text-anchor": anchor });
    shown.textContent = text;
    return shown;
  });
  const total = [...sums.values()].reduce((one, two) => one + two, 0);
  const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "bars", "aria-label": `${MEASURES[measure]} by day, ${measure === "cost" ? money(total) : amount(total)} in all; the tables below have the numbers` },
    draw("line", { x1: EDGE, x2: WIDTH, y1: HEIGHT - 25, y2: HEIGHT - 25, class: "axis" }), ...bars, ...texts);
  return make("figure", { class: "panel" }, make("figcaption", {}, `${MEASURES[measure]} by day`), picture);
}

function drawSums(title, label, rows, key) {
  if (!rows.length) return "";
  const sums = new Map();
  for (const row of rows) {
    const sum = sums.get(row[key]) ?? { requests: 0, input: 0, output: 0, cost: 0 };
    sum.requests += row.requests;
    sum.input += row.input;
    sum.output += row.output;
    sum.cost = sum.cost === null || row.cost === null ? null : sum.cost + row.cost;
    sums.set(row[key], sum);
  }
  const body = [...sums].sort((one, two) => two[1].input + two[1].output - one[1].input - one[1].output).map(([name, sum]) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...[sum.requests, sum.input, sum.output].map((value) => make("td", { class: "number" }, amount(value))), make("td", { class: "number" }, money(sum.cost))));
  return make("section", { class: "panel" }, make("h2", {}, title), make("div", { class: "wide", tabindex: 0 }, make("table", {},
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, label), ["Requests", "Tokens in", "Tokens out", "Cost"].map((name) => make("th", { scope: "col", class: "number" }, name)))), make("tbody", {}, body))));
}
