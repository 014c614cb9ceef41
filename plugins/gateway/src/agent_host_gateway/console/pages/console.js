// The page: who is logged in, and which room is shown. Each room draws itself into `main`.

import { ask } from "./api.js";
import { announce, make, notice } from "./dom.js";
import { openChat } from "./chat.js";
import { openPlugins } from "./plugins.js";
import { openRuns } from "./runs.js";
import { openSessions } from "./sessions.js";
import { openUsage } from "./usage.js";

const ROOMS = {
  chat: ["Chat", openChat],
  sessions: ["Sessions", openSessions],
  runs: ["Runs", openRuns],
  plugins: ["Plugins", openPlugins],
  usage: ["Usage", openUsage],
};

const main = document.getElementById("main");
let me = null;
let leave = () => {};

function drawRooms(current) {
  const links = Object.entries(ROOMS).map(([name, [label]]) =>
    make("li", {}, make("a", { href: `#${name}`, "aria-current": name === current ? "page" : null }, label)),
  );
  document.getElementById("rooms").replaceChildren(make("ul", {}, links));
}

function drawWho() {
  const who = document.getElementById("who");
  if (!me?.has_key) return who.replaceChildren();
  const button = make("button", { type: "button", class: "small", onclick: logOut }, "Log out");
  who.replaceChildren(make("span", {}, me.name), button);
}

async function logOut() {
  await ask("DELETE", "login");
  me = null;
  drawWho();
  showLogin();
}

function showLogin() {
  leave();
  leave = () => {};
  document.title = "Log in · Agent Host";
  document.getElementById("rooms").replaceChildren();
  const key = make("input", { id: "key", type: "password", autocomplete: "current-password", required: true });
  const problem = make("div");
  const form = make(
    "form",
    { class: "panel login" },
    make("h1", {}, "Log in"),
    make("p", { class: "note" }, "With a key of this gateway that opens the console. Its owner makes one: ", make("code", {}, "agent-host serve keys add NAME --console")),
    make("label", { for: "key" }, "Gateway key"),
    key,
    problem,
    make("button", { class: "main" }, "Log in"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await ask("POST", "login", { key: key.value.trim() });
      await begin();
    } catch (error) {
      problem.replaceChildren(notice(error.message, "problem"));
      key.focus();
    }
  });
  main.replaceChildren(form);
  key.focus();
}

async function showRoom() {
  if (!me) return;
  const [name, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const room = Object.hasOwn(ROOMS, name) ? name : "chat";
  const [label, open] = ROOMS[room];
  leave();
  leave = () => {};
  drawRooms(room);
  document.title = `${label} · Agent Host`;
  main.replaceChildren();
  try {
    leave = (await open(main, me, rest)) ?? (() => {});
  } catch (error) {
    main.append(notice(error.message, "problem"));
  }
  announce(`${label} is shown`);
}

async function begin() {
  try {
    me = await ask("GET", "me");
  } catch (error) {
    if (error.status === 401 || error.status === 403) return showLogin();
    return main.replaceChildren(notice(error.message, "problem"));
  }
  drawWho();
  await showRoom();
}

window.addEventListener("hashchange", showRoom);
window.addEventListener("locked", () => {
  if (me?.has_key) {
    me = null;
    drawWho();
    showLogin();
  }
});
begin();
