// Search, filters and the copy button. The pages are whole without it: what it needs stands in the
// attributes of the cards, and it makes no markup of any text.
"use strict";

function foldText(text) {
  return text.normalize("NFKC").toLowerCase();
}

function startSearch(form) {
  const cards = [...document.querySelectorAll("#cards > .card")].map((node) => ({
    node,
    text: foldText(node.dataset.search),
    roles: node.dataset.roles.split(" "),
    tags: JSON.parse(node.dataset.tags),
    tier: ["", "bronze", "silver", "gold"].indexOf(node.dataset.tier),
  }));
  const count = document.getElementById("count");
  const nothing = document.getElementById("nothing");
  const reset = document.getElementById("reset");
  const names = ["q", "role", "tag", "tier"];

  function readAddress() {
    const asked = new URLSearchParams(location.search);
    for (const name of names) {
      form.elements[name].value = asked.get(name) || "";
    }
    // A value that nobody offers would leave nothing chosen.
    for (const name of ["tag", "tier"]) {
      if (form.elements[name].selectedIndex < 0) form.elements[name].value = "";
    }
    if (!form.querySelector("input[name=role]:checked")) form.elements.role.value = "";
  }

  function writeAddress() {
    const asked = new URLSearchParams();
    for (const name of names) {
      if (form.elements[name].value) asked.set(name, form.elements[name].value);
    }
    const query = asked.toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
  }

  function filterCards() {
    const words = foldText(form.elements.q.value).split(/\s+/).filter(Boolean);
    const { value: role } = form.elements.role;
    const { value: tag } = form.elements.tag;
    const tier = ["", "bronze", "silver", "gold"].indexOf(form.elements.tier.value);
    let shown = 0;
    for (const card of cards) {
      const fits =
        words.every((word) => card.text.includes(word)) &&
        (!role || card.roles.includes(role)) &&
        (!tag || card.tags.includes(tag)) &&
        card.tier >= tier;
      card.node.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${cards.length} shown`;
    nothing.hidden = shown > 0;
    reset.hidden = shown === cards.length;
  }

  form.addEventListener("input", () => {
    filterCards();
    writeAddress();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const name of names) form.elements[name].value = "";
    filterCards();
    writeAddress();
    form.elements.q.focus();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      form.elements.q.focus();
    }
  });
  window.addEventListener("popstate", () => {
    readAddress();
    filterCards();
  });
  form.hidden = false;
  readAddress();
  filterCards();
}

function startCopying(button) {
  const command = document.getElementById("command");
  const copied = document.getElementById("copied");
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      copied.textContent = "Copied";
      button.textContent = "Copied";
    } catch {
      copied.textContent = "Select the command and copy it yourself";
    }
    setTimeout(() => {
      button.textContent = "Copy";
      copied.textContent = "";
    }, 2000);
  });
}

function openNamedPart() {
  const part = location.hash && document.getElementById(location.hash.slice(1));
  if (part && part.tagName === "DETAILS") part.open = true;
}

const form = document.getElementById("search");
if (form) startSearch(form);
const button = document.getElementById("copy");
if (button) startCopying(button);
openNamedPart();
window.addEventListener("hashchange", openNamedPart);
