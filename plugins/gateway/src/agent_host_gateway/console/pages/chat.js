// A conversation: what was said, what is being said, what waits for consent, and what to say next.

import { ask, follow } from "./api.js";
import { announce, make, notice } from "./dom.js";
import { copyButton, render } from "./markdown.js";
import { openForm } from "./settings.js";

const REMEMBERED = "agent-host-model";
const LARGEST_FILE = 20_000_000;
const DRAW_MS = 60;

export async function openChat(main, me, [session]) {
  const chat = new Chat(main, me);
  if (session) await chat.load(session);
  else chat.greet();
  return () => chat.leave();
}

class Chat {
  constructor(main, me) {
    this.me = me;
    this.session = null;
    this.run = null;
    this.settings = {};
    this.files = [];
    this.following = new AbortController();
    this.log = make("div", { class: "log", role: "log", "aria-label": "Conversation", "aria-live": "off", tabindex: 0 });
    this.head = make("h1", { class: "unseen" }, "Chat");
    this.live = null;
    main.append(make("section", { class: "chat" }, this.head, this.log, this.makeComposer()));
    this.text.focus();
  }

  leave() {
    this.following.abort();
  }

  greet() {
    if (!this.me.stores) {
      this.log.append(notice('Conversations need a store. Put store = "sqlite:" into the config and start the gateway again.', "problem"));
      return;
    }
    this.log.append(
      make("div", { class: "empty" }, make("h2", {}, "What shall we do?"), make("p", {}, "Choose an agent or a model below, and write. Calls of tools that need your consent wait for it here.")),
    );
  }

  // --- what to say next --------------------------------------------------------------------------

  makeComposer() {
    const known = [...this.me.agents, ...this.me.models];
    let chosen = null;
    try {
      chosen = localStorage.getItem(REMEMBERED);
    } catch {
      // Who forbids that the page remembers anything chooses again.
    }
    this.model = make("select", { id: "model", "aria-label": "Agent or model" },
      group("Agents", this.me.agents), group("Models", this.me.models));
    if (known.includes(chosen)) this.model.value = chosen;
    this.model.addEventListener("change", () => {
      try {
        localStorage.setItem(REMEMBERED, this.model.value);
      } catch {
        // As above.
      }
      this.settings = {};
      if (!this.form.hidden) this.showForm();
    });
    this.text = make("textarea", { id: "text", rows: 2, placeholder: "Write a message", "aria-label": "Message" });
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.send();
      }
    });
    this.text.addEventListener("paste", (event) => this.attach(event.clipboardData.files));
    this.picker = make("input", { type: "file", multiple: true, class: "unseen", id: "files", tabindex: -1, "aria-hidden": "true" });
    this.picker.addEventListener("change", () => this.attach(this.picker.files));
    this.attached = make("ul", { class: "files", "aria-label": "Attached files" });
    this.sending = make("button", { class: "main", type: "submit" }, "Send");
    this.stopping = make("button", { type: "button", hidden: true, onclick: () => this.stop() }, "Stop");
    this.form = make("div", { id: "form", hidden: true });
    const toggle = make("button", { type: "button", class: "quiet", "aria-expanded": "false", "aria-controls": "form" }, "Settings");
    toggle.addEventListener("click", () => {
      this.form.hidden = !this.form.hidden;
      toggle.setAttribute("aria-expanded", String(!this.form.hidden));
      if (!this.form.hidden) this.showForm();
    });
    const attach = make("button", { type: "button", class: "quiet", onclick: () => this.picker.click() }, "Attach");
    const fresh = make("button", { type: "button", class: "quiet", onclick: () => this.beginAnew() }, "New chat");
    const composer = make("form", { class: "composer" }, this.form, this.attached, this.text,
      make("div", { class: "tools" }, this.model, attach, this.picker, toggle, fresh, make("span", { class: "grow" }), this.stopping, this.sending));
    composer.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    return composer;
  }

  beginAnew() {
    if (location.hash === "#chat") window.dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = "#chat";
  }

  async showForm() {
    await openForm(this.form, this.model.value, this.settings);
  }

  async attach(files) {
    for (const file of files) {
      if (file.size > LARGEST_FILE) {
        this.say(notice(`${file.name} has more than ${LARGEST_FILE / 1e6} MB and is not attached.`, "problem"));
        continue;
      }
      this.files.push({ name: file.name, type: file.type, data: await readBase64(file) });
    }
    this.picker.value = "";
    this.drawFiles();
  }

  drawFiles() {
    this.attached.replaceChildren(
      ...this.files.map((file, at) =>
        make("li", {}, file.name || file.type, make("button", { type: "button", class: "small", "aria-label": `Remove ${file.name}`, onclick: () => { this.files.splice(at, 1); this.drawFiles(); } }, "×")),
      ),
    );
  }

  async send() {
    const prompt = this.text.value;
    if (this.run || (!prompt.trim() && !this.files.length)) return;
    const files = this.files;
    this.log.querySelector(".empty")?.remove();
    this.say(drawMessage({ role: "user", content: prompt, files }));
    this.text.value = "";
    this.files = [];
    this.drawFiles();
    try {
      const begun = await ask("POST", "runs", {
        prompt,
        files: files.map((file) => file.data),
        model: this.model.value,
        session: this.session,
        settings: this.settings,
      });
      this.enter(begun.session);
      await this.follow(begun.run);
    } catch (error) {
      this.fail(error);
      // What was not taken is not lost.
      if (error.status && !this.run) {
        this.text.value ||= prompt;
        this.files = files;
        this.drawFiles();
      }
    } finally {
      this.rest();
    }
  }

  enter(session) {
    this.session = session;
    history.replaceState(null, "", `#chat/${encodeURIComponent(session)}`);
  }

  async stop() {
    if (!this.run) return;
    this.stopping.disabled = true;
    try {
      await ask("POST", `runs/${encodeURIComponent(this.run)}/cancel`, {});
    } catch (error) {
      this.fail(error);
    }
  }

  rest() {
    this.run = null;
    this.live = null;
    this.sending.hidden = false;
    this.stopping.hidden = true;
    this.log.setAttribute("aria-busy", "false");
  }

  fail(error) {
    if (error.name === "AbortError") return;
    this.say(notice(error.message, "problem"));
  }

  // --- what was said -----------------------------------------------------------------------------

  say(element) {
    const isAtEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80;
    this.log.append(element);
    if (isAtEnd) this.log.scrollTop = this.log.scrollHeight;
    return element;
  }

  async load(session) {
    const found = await ask("GET", `sessions/${encodeURIComponent(session)}`);
    this.session = found.id;
    this.head.textContent = found.name || found.title || "Chat";
    if (found.first) this.say(notice(`${found.first} earlier messages are not shown.`));
    found.messages.forEach((message, at) => {
      const shown = drawMessage(message);
      if (shown && message.role === "assistant") shown.append(this.branchButton(found.first + at + 1));
      if (shown) this.say(shown);
    });
    this.log.scrollTop = this.log.scrollHeight;
    // Not awaited: the room is open while the run goes on.
    if (found.running) this.resumeFollowing(found.running.id);
    else if (found.waiting) this.showQuestions(found.waiting);
  }

  async resumeFollowing(run) {
    try {
      await this.follow(run);
    } catch (error) {
      this.fail(error);
    } finally {
      this.rest();
    }
  }

  branchButton(count) {
    const button = make("button", { type: "button", class: "small" }, "Branch from here");
    button.addEventListener("click", async () => {
      try {
        const branch = await ask("POST", `sessions/${encodeURIComponent(this.session)}/branch`, { count });
        location.hash = `#chat/${encodeURIComponent(branch.id)}`;
      } catch (error) {
        this.fail(error);
      }
    });
    return make("div", { class: "actions" }, button);
  }

  // --- what is being said ------------------------------------------------------------------------

  async follow(run, after = 0) {
    this.run = run;
    this.sending.hidden = true;
    this.stopping.hidden = false;
    this.stopping.disabled = false;
    this.log.setAttribute("aria-busy", "true");
    this.live = new LiveAnswer(this);
    const end = await follow(run, after, (event) => this.live.take(event), this.following.signal);
    this.live.finish();
    if (end.state === "waiting") this.showQuestions(await ask("GET", `runs/${encodeURIComponent(run)}`));
    else if (end.state === "cancelled") this.say(notice("Stopped."));
    else announce("The answer is complete");
  }

  // --- consent -----------------------------------------------------------------------------------

  showQuestions(run) {
    announce(`${run.questions.length} calls wait for your consent`);
    const answers = {};
    const cards = run.questions.map((question) =>
      drawQuestion(question, async (answer) => {
        answers[question.id] = answer;
        if (Object.keys(answers).length < run.questions.length) return;
        this.rest();
        try {
          const begun = await ask("POST", `runs/${encodeURIComponent(run.id)}/decisions`, { decisions: answers });
          await this.follow(begun.run, begun.after);
        } catch (error) {
          this.fail(error);
        } finally {
          this.rest();
        }
      }),
    );
    cards.forEach((card) => this.say(card));
    cards[0]?.querySelector("h3")?.focus();
    this.log.scrollTop = this.log.scrollHeight;
  }
}

function group(label, names) {
  return names.length ? make("optgroup", { label }, names.map((name) => make("option", { value: name }, name))) : null;
}

function readBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

// The answer of a run as it comes: text, thoughts, calls and their results.
class LiveAnswer {
  constructor(chat) {
    this.chat = chat;
    this.calls = new Map();
    this.begin();
  }

  begin() {
    this.text = "";
    this.thoughts = "";
    this.body = null;
    this.thinking = null;
    this.timer = null;
  }

  take(event) {
    switch (event.type) {
      case "partial":
        if (event.message?.content) {
          this.text += event.message.content;
          this.plan();
        }
        break;
      case "reasoning":
        this.thoughts += event.text;
        this.plan();
        break;
      case "final":
        this.settle(event.messages);
        break;
      case "tool_started":
        this.card(event.id, event.name, event.payload);
        break;
      case "tool_update":
        this.card(event.id, event.name).note(event.update);
        break;
      case "tool_result":
        this.card(event.id, event.name).end(event.message);
        break;
      case "child":
        if (event.event.type === "tool_started") this.card(event.id, event.name).note(`${event.agent}: ${event.event.name}`);
        break;
      case "warning":
        this.chat.say(notice(event.message, "note"));
        break;
      case "error":
        this.chat.say(notice([event.error.message, event.error.hint].filter(Boolean).join(" – "), "problem"));
        break;
      default:
    }
  }

  plan() {
    this.timer ??= setTimeout(() => this.draw(), DRAW_MS);
  }

  draw() {
    this.timer = null;
    if (!this.body) {
      this.thinking = make("details", { class: "thoughts", hidden: true }, make("summary", {}, "Thoughts"), make("div"));
      this.body = make("div", { class: "text" });
      this.shown = this.chat.say(make("article", { class: "message assistant" }, make("h2", { class: "unseen" }, "Answer"), this.thinking, this.body));
    }
    this.thinking.hidden = !this.thoughts;
    this.thinking.lastChild.textContent = this.thoughts;
    const log = this.chat.log;
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 120;
    this.body.replaceChildren(render(this.text));
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }

  settle(messages) {
    clearTimeout(this.timer);
    this.shown?.remove();
    for (const message of messages) {
      const shown = drawMessage(message);
      if (shown) this.chat.say(shown);
    }
    this.begin();
    this.shown = null;
  }

  card(id, name, payload) {
    if (!this.calls.has(id)) this.calls.set(id, new CallCard(this.chat, name, payload));
    return this.calls.get(id);
  }

  finish() {
    clearTimeout(this.timer);
    if (this.text && this.timer !== null) this.draw();
  }
}

class CallCard {
  constructor(chat, name, payload) {
    this.state = make("span", { class: "badge" }, "runs");
    this.body = make("div", { class: "inside" });
    if (payload !== undefined) this.body.append(drawData("Arguments", payload));
    this.notes = make("p", { class: "note", hidden: true });
    this.body.append(this.notes);
    chat.say(make("details", { class: "call" }, make("summary", {}, make("code", {}, name), " ", this.state), this.body));
  }

  note(update) {
    this.notes.hidden = false;
    this.notes.textContent = typeof update === "string" ? update : update?.text ?? JSON.stringify(update);
  }

  end(message) {
    const failed = Boolean(message.metadata?.is_error);
    this.state.textContent = failed ? "failed" : "done";
    this.state.classList.add(failed ? "bad" : "good");
    this.body.append(...drawResult(message));
  }
}

export function drawMessage(message) {
  const metadata = message.metadata ?? {};
  if (message.role === "tool") {
    return make("details", { class: "call" },
      make("summary", {}, make("code", {}, metadata.tool_name ?? "tool"), " ", make("span", { class: "badge" }, "result")),
      make("div", { class: "inside" }, drawResult(message)));
  }
  if (message.role === "system") {
    return make("details", { class: "thoughts" }, make("summary", {}, "System prompt"), make("div", {}, message.content));
  }
  const isUser = message.role === "user";
  const parts = [...(message.multipartContent ?? []), ...(message.files ?? []).map(asPart)].map(drawPart);
  if (!message.content && !parts.length && !metadata.reasoning && !metadata.tool_calls?.length) return null;
  const shown = make("article", { class: `message ${message.role}` }, make("h2", { class: "unseen" }, isUser ? "You" : "Answer"));
  if (metadata.reasoning) {
    shown.append(make("details", { class: "thoughts" }, make("summary", {}, "Thoughts"), make("div", {}, String(metadata.reasoning))));
  }
  if (message.content) {
    // What a person wrote is shown as it was written.
    shown.append(make("div", { class: "text" }, isUser ? make("p", { class: "written" }, message.content) : render(message.content)));
  }
  shown.append(...parts);
  for (const call of metadata.tool_calls ?? []) {
    const named = call.function ?? call;
    shown.append(make("p", { class: "note" }, "Calls ", make("code", {}, named.name ?? "a tool")));
  }
  if (!isUser && message.content) shown.append(make("div", { class: "actions" }, copyButton(message.content)));
  return shown;
}

function asPart(file) {
  const kind = file.type.startsWith("image/") ? "image" : "file";
  return { type: kind, content: { url: `data:${file.type};base64,${file.data}`, name: file.name }, metadata: {} };
}

function drawPart(part) {
  const content = part.content ?? {};
  const url = String(content.url ?? "");
  if (part.type === "text") return make("p", { class: "written" }, content.text ?? "");
  // Only what is here already: a picture elsewhere would tell its server who reads this.
  if (part.type === "image" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(url)) {
    return make("img", { class: "picture", src: url, alt: content.name ?? "Picture" });
  }
  return make("p", { class: "note" }, `${part.type}: ${content.name ?? (url.startsWith("data:") ? url.slice(5, url.indexOf(";")) : url)}`);
}

function drawResult(message) {
  const parts = (message.toolResult?.content ?? []).filter((part) => part && part.type !== "text").map(drawPart);
  return [make("pre", { tabindex: 0 }, message.content), ...parts];
}

function drawData(label, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return make("div", {}, make("h4", {}, label), make("pre", { tabindex: 0 }, showHidden(text)));
}

// Characters that nobody sees, or that turn text around, by their numbers: a call must not hide what it does.
function showHidden(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]/g,
    (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

function drawQuestion(question, decide) {
  const { shown } = question;
  const isApproval = question.kind === "approval";
  const card = make("section", { class: "panel consent", "aria-label": "Consent is needed" });
  card.append(
    make("h3", { tabindex: -1 }, isApproval ? "May this run?" : "A tool asks"),
    make("p", {}, make("code", {}, showHidden(shown.name)), " ", make("span", { class: `badge effect-${shown.effect}` }, shown.effect), " ", make("span", { class: "note" }, `of ${shown.owner}`)),
  );
  for (const change of shown.changes ?? []) card.append(drawChange(change));
  if (shown.no_preview) card.append(notice(`What it would change is not known: ${shown.no_preview}`));
  card.append(drawData("Arguments", shown.payload));
  if (!isApproval) card.append(make("p", { class: "written" }, showHidden(shown.question)));
  const settle = (answer, words) => {
    card.querySelectorAll("button, input, select").forEach((each) => { each.disabled = true; });
    card.append(make("p", { class: "note" }, words));
    decide(answer);
  };
  if (isApproval) {
    card.append(make("div", { class: "tools" },
      make("button", { type: "button", class: "main", onclick: () => settle("once", "Allowed, this once.") }, "Allow once"),
      make("button", { type: "button", onclick: () => settle("deny", "Denied.") }, "Deny")));
  } else if (shown.choices?.length) {
    card.append(make("div", { class: "tools" }, shown.choices.map((choice) => make("button", { type: "button", onclick: () => settle(choice, `Answered: ${choice}`) }, choice))));
  } else {
    const input = make("input", { type: "text", "aria-label": "Your answer" });
    const form = make("form", { class: "tools" }, input, make("button", { class: "main" }, "Answer"));
    form.addEventListener("submit", (event) => { event.preventDefault(); settle(input.value, `Answered: ${input.value}`); });
    card.append(form);
  }
  return card;
}

function drawChange(change) {
  const lines = String(change.diff ?? "").split("\n").map((line) => {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
    return make("span", { class: `line ${kind}` }, showHidden(line) || " ");
  });
  return make("figure", { class: "code" },
    make("figcaption", {}, `${change.change ?? "change"} ${showHidden(String(change.path ?? ""))}`),
    make("pre", { class: "diff", tabindex: 0 }, lines));
}
