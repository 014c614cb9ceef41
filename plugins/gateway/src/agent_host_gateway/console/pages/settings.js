// A form for the settings that the plugins of a model suggest, for the messages to come.

import { ask } from "./api.js";
import { make, notice } from "./dom.js";

export async function openForm(place, model, settings) {
  place.replaceChildren(notice("One moment…"));
  try {
    const { fields } = await ask("GET", `settings?model=${encodeURIComponent(model)}`);
    place.replaceChildren(drawForm(fields.filter((field) => field.key !== "model"), settings));
  } catch (error) {
    place.replaceChildren(notice(error.message, "problem"));
  }
}

function drawForm(fields, settings) {
  if (!fields.length) return notice("No plugin of this model suggests a setting.");
  return make("fieldset", { class: "form" }, make("legend", {}, "Settings of your next messages"), fields.map((field, at) => drawField(field, at, settings)));
}

function drawField(field, at, settings) {
  const id = `setting-${at}`;
  const about = `${id}-about`;
  const input = drawInput(field, id, settings);
  if (field.description) input.setAttribute("aria-describedby", about);
  if (field.locked) {
    input.disabled = true;
    input.placeholder = "set on the server";
  }
  input.addEventListener("change", () => {
    const value = readValue(field, input);
    if (value === undefined) delete settings[field.key];
    else settings[field.key] = value;
  });
  const label = make("label", { for: id }, field.label);
  const help = field.description ? make("p", { class: "note", id: about }, field.description) : null;
  return make("div", { class: field.type === "checkbox" ? "field check" : "field" }, label, input, help);
}

function drawInput(field, id, settings) {
  const value = settings[field.key] ?? field.value;
  if (field.type === "select" && field.options.length) {
    const select = make("select", { id }, make("option", { value: "" }, "as configured"),
      field.options.map((option, at) => make("option", { value: at }, option.label)));
    const chosen = field.options.findIndex((option) => option.value === value);
    if (chosen >= 0) select.value = String(chosen);
    return select;
  }
  if (field.type === "checkbox") {
    const box = make("input", { id, type: "checkbox" });
    box.checked = value === true;
    return box;
  }
  if (field.type === "number") {
    return make("input", { id, type: "number", step: field.schema.type === "integer" ? 1 : "any", min: field.schema.minimum, max: field.schema.maximum, value: value ?? null });
  }
  // A type that is not known is a line of text.
  const isSecret = field.type === "password" || field.locked;
  return make("input", { id, type: isSecret ? "password" : "text", value: isSecret ? null : value ?? null, autocomplete: "off" });
}

function readValue(field, input) {
  if (field.type === "checkbox") return input.checked;
  if (input.value === "") return undefined;
  if (field.type === "select" && field.options.length) return field.options[Number(input.value)].value;
  if (field.type === "number") return Number(input.value);
  return input.value;
}
