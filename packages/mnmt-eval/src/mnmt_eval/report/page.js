// Sentences to read: a card each, filtered and sorted.
const list = document.querySelector(".cards");
const count = document.querySelector(".count [role=status]");
const clear = document.querySelector(".clear");
const more = document.querySelector(".more");
const PAGE = 40;
const sign = data.higher_is_better ? 1 : -1;
let shown = PAGE;

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
  if (score !== undefined) term.append(element("span", "score", score === null ? "–" : score.toFixed(data.decimals)));
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

function card(row, { text, system, other, scores, others }) {
  const [source, target = ""] = text.task.split("-");
  const item = element("li", "card");
  const head = element("p", "head");
  head.append(element("span", "", `sentence ${text.numbers[row]}`));
  // The line itself says that it is empty.
  for (const symptom of system.symptoms[row].filter((name) => name !== "empty")) {
    head.append(element("span", "symptom", symptom));
  }
  const beside = other ? other.translations[row] : text.references[0]?.[row] ?? system.translations[row];
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
    language: target, words: words[0], marks: marks[0], score: at(scores, text, row),
  });
  if (other) {
    appendLine(terms, other.name, beside, {
      className: "other", language: target, words: words[1], marks: marks[1], score: at(others, text, row),
    });
  }
  item.append(head, terms);
  return item;
}

// Empty outputs differ most and leave nothing to read, and lines of few words differ by all or nothing: they come last.
const isEmpty = (row, { system, other }) => [system, other].some((each) => each?.symptoms[row].includes("empty"));

function tellLast({ system, other }) {
  const counts = [system, other].map((each) => [each?.symptom_counts.empty ?? 0, each?.name]).filter(([n]) => n);
  if (fields.order.value !== "disagreement") return "";
  const short = ` · lines of fewer than ${data.few_words} words come last`;
  if (filters.symptom === "empty" || !counts.length) return short;
  return `${short}, then empty outputs: ${counts.map(([n, name]) => `${n.toLocaleString("en")} of ${name}`).join(", ")}`;
}

// The sort key of a row; rows with lower keys come first.
function rank({ text, system, other, scores, leads }) {
  const value = (row) => (at(scores, text, row) === null ? Infinity : sign * at(scores, text, row));
  const lead = (row) => (leads ? sign * (at(leads, text, row) ?? 0) : 0);
  return {
    disagreement: (row) => {
      if (isEmpty(row, { system, other })) return Infinity;
      return text.is_short[row] ? Number.MAX_VALUE : -Math.abs(lead(row));
    },
    behind: lead,
    ahead: (row) => -lead(row),
    worst: value,
    best: (row) => (value(row) === Infinity ? Infinity : -value(row)),
    text: () => 0,
  }[fields.order.value];
}

function rows(chosen) {
  const { text, system, other } = chosen;
  const wanted = fields.contains.value.trim().toLowerCase();
  const contains = (row) =>
    [text.sources[row] ?? "", ...text.references.map((lines) => lines[row]), system.translations[row], other?.translations[row] ?? ""]
      .some((line) => line.toLowerCase().includes(wanted));
  const passes = [...tests(chosen), ...(wanted ? [contains] : [])];
  const ranked = rank(chosen);
  const compare = (a, b) => (ranked(a) === ranked(b) ? a - b : ranked(a) - ranked(b));
  return text.numbers
    .map((_, row) => row)
    .filter((row) => passes.every((test) => test(row)))
    .sort(compare);
}

function drawCards(chosen) {
  const found = rows(chosen);
  list.replaceChildren(...found.slice(0, shown).map((row) => card(row, chosen)));
  const { total, numbers } = chosen.text;
  const few = `the ${numbers.length.toLocaleString("en")} of ${total.toLocaleString("en")} that systems disagree on most or did worst`;
  const part = numbers.length < total ? ` of ${few}` : "";
  count.textContent = `${found.length.toLocaleString("en")} sentence${found.length === 1 ? "" : "s"}${part}${tellLast(chosen)}`;
  more.hidden = found.length <= shown;
  clear.hidden = !fields.contains.value && FILTERS.every((name) => filters[name] == null);
}

function draw() {
  const chosen = choices();
  drawFacets(chosen);
  drawCards(chosen);
}

// Another text has other bins and buckets, and another pair other leads.
function dropFilters(changed) {
  const stale = { text: FILTERS, system: ["lead"], against: ["lead"] }[changed] ?? [];
  for (const name of stale) filters[name] = null;
}

function change(options) {
  shown = PAGE;
  writeAddress(options);
  draw();
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", ({ target }) => {
  dropFilters(target.name);
  fillSystems();
  change({ replace: target.name === "contains" });
});
facets.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-filter]");
  if (!button) return;
  const { filter, value } = button.dataset;
  filters[filter] = filters[filter] === value ? null : value;
  change();
});
clear.addEventListener("click", () => {
  for (const name of FILTERS) filters[name] = null;
  fields.contains.value = "";
  change();
});
more.addEventListener("click", () => {
  shown += PAGE;
  drawCards(choices());
});
window.addEventListener("popstate", () => {
  shown = PAGE;
  readAddress();
  draw();
});
for (const link of document.querySelectorAll(".groups a")) {
  link.addEventListener("click", () => document.getElementById("read").scrollIntoView());
}
readAddress();
form.hidden = facets.hidden = false;
draw();
document.documentElement.dataset.ready = "";
