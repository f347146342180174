// What the reader has chosen: the form's fields and the filters, kept in the address.
const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("view");
const fields = form.elements;
const REFERENCE = data.texts[0].references.length ? "the reference" : "nothing";
const BUCKETS = ["length", "group"].filter((name) => name in data.texts[0].buckets);
const FILTERS = ["score", "lead", ...BUCKETS, "symptom"];
const filters = {};

const element = (name, className = "", text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

const chosenText = () => data.texts.find(({ testset, task }) => `${testset}.${task}` === fields.text.value);

// The chosen text; the system, and the one beside it, null if that is the reference; and for every sentence of
// the text, whether or not it is on the page, the score of each system and the lead of the first.
function choices() {
  const text = chosenText();
  const named = (name) => text.systems.find((system) => system.name === name) ?? null;
  const [system, other] = [named(fields.system.value), named(fields.against.value)];
  const [scores, others] = [system.sentence_scores, other?.sentence_scores];
  const leads = others && scores.map((score, i) => (score === null || others[i] === null ? null : score - others[i]));
  return { text, system, other, scores, others, leads };
}

// The entry for a row of the page in a list over all sentences.
const at = (values, { numbers }, row) => values[numbers[row] - 1];

function fill(select, values, chosen) {
  select.replaceChildren(...values.map((value) => {
    const option = element("option", "", value);
    option.value = value;
    return option;
  }));
  select.value = values.includes(chosen) ? chosen : values[0];
}

// Offer the systems to choose from; a system is not compared with itself.
function fillSystems(system = fields.system.value, against = fields.against.value) {
  const names = chosenText().systems.map(({ name }) => name);
  fill(fields.system, names, system);
  const others = names.filter((name) => name !== fields.system.value);
  fill(fields.against, [...others, REFERENCE], against);
  for (const option of fields.order.options) {
    option.disabled = fields.against.value === REFERENCE && ["disagreement", "behind", "ahead"].includes(option.value);
    if (option.disabled && option.selected) fields.order.value = "worst";
  }
}

function readAddress() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const texts = [...fields.text.options].map(({ value }) => value);
  fields.text.value = texts.includes(kept.get("text")) ? kept.get("text") : texts[0];
  const orders = [...fields.order.options].map(({ value }) => value);
  fields.order.value = orders.includes(kept.get("order")) ? kept.get("order") : orders[0];
  fields.contains.value = kept.get("contains") ?? "";
  fillSystems(kept.get("system") ?? data.best, kept.get("against") ?? data.baseline ?? REFERENCE);
  for (const name of FILTERS) filters[name] = kept.get(name);
}

// Typing replaces the last entry of the history; everything else adds one, so that Back undoes it.
function writeAddress({ replace = false } = {}) {
  const kept = new URLSearchParams();
  for (const name of ["text", "system", "against", "order", "contains"]) {
    if (fields[name].value) kept.set(name, fields[name].value);
  }
  for (const name of FILTERS) if (filters[name] != null) kept.set(name, filters[name]);
  history[replace ? "replaceState" : "pushState"](null, "", `#${kept}`);
}
