const data = JSON.parse(document.getElementById("data").textContent);
const form = document.querySelector(".controls");
const list = document.querySelector(".cards");
const count = document.querySelector(".count");
const more = document.querySelector(".more");
const PAGE = 40;
const REFERENCE = "reference";
const sign = data.higher_is_better ? 1 : -1;
let shown = PAGE;

const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

// One line of text, with the words marked that the line beside it does not have.
function appendWords(cell, words, marks) {
  for (let i = 0; i < words.length; ) {
    let j = i;
    while (j < words.length && marks[j] === marks[i]) j += 1;
    const run = words.slice(i, j).join("");
    cell.append(marks[i] && run.trim() ? element("mark", "", run) : run);
    i = j;
  }
}

function appendLine(terms, label, line, { className = "", language = "", words, marks, score } = {}) {
  const term = element("dt", "", label);
  if (score !== undefined) term.append(element("span", "score", score === null ? "–" : score.toFixed(data.decimals[data.worst_by])));
  const cell = element("dd", className);
  cell.dir = "auto";
  if (language) cell.lang = language.replaceAll("_", "-");
  if (!line.trim()) {
    cell.classList.add("empty");
    cell.textContent = "(empty)";
  } else if (words) appendWords(cell, words, marks);
  else cell.textContent = line;
  terms.append(term, cell);
}

function choices() {
  const text = data.texts[form.elements.text.value];
  const system = text.systems[form.elements.system.value];
  const against = form.elements.against.value;
  return { text, system, other: against === REFERENCE ? null : text.systems[against] };
}

function card(row, { text, system, other }) {
  const [source, target] = text.task.split("-");
  const item = element("li", "card");
  const head = element("p", "head");
  head.append(element("span", "", `sentence ${text.numbers[row]}`));
  for (const symptom of system.symptoms[row]) head.append(element("span", "symptom", symptom));
  const beside = other ? other.translations[row] : text.references[0][row];
  const words = [system.translations[row], beside].map(splitWords);
  const marks = differingWords(...words);
  const terms = element("dl");
  if (text.sources.length) appendLine(terms, "source", text.sources[row], { className: "source", language: source });
  text.references.forEach((lines, i) => {
    const marked = !other && i === 0 ? { words: words[1], marks: marks[1], className: "other" } : {};
    const label = text.references.length > 1 ? `reference ${i + 1}` : "reference";
    appendLine(terms, label, lines[row], { ...marked, language: target });
  });
  appendLine(terms, system.name, system.translations[row], {
    language: target, words: words[0], marks: marks[0], score: system.sentence_scores[row],
  });
  if (other) {
    appendLine(terms, other.name, beside, {
      className: "other", language: target, words: words[1], marks: marks[1], score: other.sentence_scores[row],
    });
  }
  item.append(head, terms);
  return item;
}

// How well a row was translated: the higher, the later it comes.
function rank({ system, other }) {
  const of = (one, row) => (one.sentence_scores[row] === null ? Infinity : sign * one.sentence_scores[row]);
  const value = (row) => of(system, row);
  const lead = (row) => (other && value(row) !== of(other, row) ? value(row) - of(other, row) : 0);
  const best = (row) => (value(row) === Infinity ? Infinity : -value(row));
  return { worst: value, best, behind: lead, ahead: (row) => -lead(row), text: () => 0 }[
    form.elements.order.value
  ];
}

function rows({ text, system, other }) {
  const symptom = form.elements.symptom.value;
  const wanted = form.elements.contains.value.trim().toLowerCase();
  const contains = (row) =>
    [text.sources[row] ?? "", ...text.references.map((lines) => lines[row]), system.translations[row], other?.translations[row] ?? ""]
      .some((line) => line.toLowerCase().includes(wanted));
  const ranked = rank({ system, other });
  const compare = (a, b) => (ranked(a) === ranked(b) ? a - b : ranked(a) - ranked(b));
  return text.numbers
    .map((_, row) => row)
    .filter((row) => (!symptom || system.symptoms[row].includes(symptom)) && (!wanted || contains(row)))
    .sort(compare);
}

function draw() {
  const chosen = choices();
  const found = rows(chosen);
  list.replaceChildren(...found.slice(0, shown).map((row) => card(row, chosen)));
  const { total, numbers } = chosen.text;
  const part = numbers.length < total ? ` (the worst ${numbers.length} of ${total.toLocaleString("en")} are here)` : "";
  count.textContent = `${found.length} sentence${found.length === 1 ? "" : "s"}${part}`;
  more.hidden = found.length <= shown;
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, label]) => {
    const option = element("option", "", label);
    option.value = value;
    return option;
  }));
  select.value = options.some(([value]) => String(value) === chosen) ? chosen : String(options[0][0]);
}

// Systems that are to be chosen from; one is not set against itself.
function fillSystems() {
  const { systems } = data.texts[form.elements.text.value];
  const named = systems.map((system, i) => [i, system.name]);
  fill(form.elements.system, named, form.elements.system.value || String(systems.length - 1));
  const others = named.filter(([i]) => String(i) !== form.elements.system.value);
  const against = form.elements.against.value || (others.length ? String(others[0][0]) : REFERENCE);
  fill(form.elements.against, [...others, [REFERENCE, "the reference"]], against);
  const alone = form.elements.against.value === REFERENCE;
  for (const option of form.elements.order.options) {
    option.disabled = alone && ["behind", "ahead"].includes(option.value);
    if (option.disabled && option.selected) form.elements.order.value = "worst";
  }
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  fillSystems();
  shown = PAGE;
  draw();
});
more.addEventListener("click", () => {
  shown += PAGE;
  draw();
});
fillSystems();
form.hidden = count.hidden = false;
draw();
