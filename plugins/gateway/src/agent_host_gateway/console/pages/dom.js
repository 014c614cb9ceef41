// Elements of the page. Text is always a text node: nothing here reads HTML.

export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function draw(name, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

export function announce(text) {
  document.getElementById("status").textContent = text;
}

export function notice(text, kind = "note") {
  return make("p", { class: kind, role: kind === "problem" ? "alert" : null }, text);
}

export function when(seconds) {
  if (!seconds) return "";
  const moment = new Date(seconds * 1000);
  const isToday = moment.toDateString() === new Date().toDateString();
  const time = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return isToday ? time : `${moment.toLocaleDateString()} ${time}`;
}

export function amount(number) {
  return new Intl.NumberFormat().format(number ?? 0);
}

export function money(cost) {
  if (cost === null || cost === undefined) return "not known";
  return `$${Number(cost).toFixed(Number(cost) < 1 ? 4 : 2)}`;
}

export function modelName(row) {
  if (row.agent) return `agent/${row.agent}`;
  return [row.provider, row.model].filter(Boolean).join("/");
}
