// Histograms and buckets: the number of sentences in each, and their quality; a click filters.
const facets = document.querySelector(".facets");
const BARS = 10;
// Divide all values into equal bins with round bounds.
function bins(values) {
  const [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const raw = Math.max(high - low, 10 ** -data.decimals) / BARS;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  const start = Math.floor(low / step);
  const count = Math.max(1, Math.ceil(high / step - 1e-9) - start);
  const place = (value) => Math.min(Math.max(Math.floor(value / step + 1e-9) - start, 0), count - 1);
  const bound = (i) => String(Number(((start + i) * step).toPrecision(6)));
  return { count, place, bound };
}

// All systems of a text share their bins, so that choosing another system moves no bound.
const scoreBins = ({ text }) =>
  bins(text.systems.flatMap((system) => system.sentence_scores).filter((score) => score !== null));
const leadBins = ({ leads }) => bins([0, ...leads.filter((lead) => lead !== null)]);

// For each filter that is set, a function of a row: whether it passes.
function tests(chosen) {
  const { text, system, scores, leads } = chosen;
  const inBin = (made, values, bound) => (row) => {
    const value = at(values, text, row);
    return value !== null && made.bound(made.place(value)) === bound;
  };
  return Object.entries(filters).filter(([, value]) => value != null).map(([name, value]) => {
    if (name === "score") return inBin(scoreBins(chosen), scores, value);
    if (name === "lead") return leads ? inBin(leadBins(chosen), leads, value) : () => true;
    if (name === "symptom") return (row) => system.symptoms[row].includes(value);
    const { buckets, members } = text.buckets[name];
    const place = buckets.findIndex((bucket) => bucket.name === value);
    return (row) => members[row] === place;
  });
}

function toggle(name, value, label, className = "") {
  const button = element("button", className);
  button.type = "button";
  button.dataset.filter = name;
  button.dataset.value = value;
  button.setAttribute("aria-pressed", String(filters[name] === value));
  if (label) button.setAttribute("aria-label", label);
  return button;
}

function facet(title, content, keys = []) {
  const part = element("details", "facet");
  const summary = element("summary", "", title);
  for (const { label, className } of keys) if (label) summary.append(element("span", `key ${className}`, label));
  part.append(summary, content);
  return part;
}

function histogram(name, title, made, series) {
  const counts = series.map(({ values }) => {
    const of = new Array(made.count).fill(0);
    for (const value of values) if (value !== null) of[made.place(value)] += 1;
    return of;
  });
  const most = Math.max(1, ...counts.flat());
  const bars = element("div", "bars");
  for (let i = 0; i < made.count; i += 1) {
    const told = series.map(({ label }, k) => `${label} ${counts[k][i]} sentence${counts[k][i] === 1 ? "" : "s"}`);
    const button = toggle(name, made.bound(i), `${made.bound(i)} to ${made.bound(i + 1)}: ${told.join(", ")}`, "bar");
    button.title = button.getAttribute("aria-label");
    const pair = element("span", "pair");
    series.forEach(({ className }, k) => {
      const bar = element("span", className);
      bar.style.height = `${(100 * counts[k][i]) / most}%`;
      pair.append(bar);
    });
    button.append(pair, element("span", "bound", made.bound(i)));
    bars.append(button);
  }
  return facet(title, bars, series);
}

// A table: in each row a button, a count if there is a unit, and a value for each of the two systems.
function bucketTable(name, unit, systems, rows) {
  const table = element("table", "buckets");
  const head = element("tr");
  const heads = [["", ""], ...(unit ? [["unit", unit]] : []), ...systems.map((each) => ["", each.name])];
  for (const [className, label] of heads) head.append(Object.assign(element("th", className, label), { scope: "col" }));
  table.append(element("thead"), element("tbody"));
  table.tHead.append(head);
  for (const { label, cells } of rows) {
    const row = element("tr");
    const cell = Object.assign(element("th"), { scope: "row" });
    const button = toggle(name, label);
    button.textContent = label;
    cell.append(button);
    row.append(cell, ...cells.map((text) => element("td", "", text)));
    table.tBodies[0].append(row);
  }
  return table;
}

function bucketFacet(name, { text, system, other }) {
  const { title, buckets } = text.buckets[name];
  const pair = [system, ...(other ? [other] : [])];
  const rows = buckets.filter((bucket) => bucket.count).map((bucket) => ({
    label: bucket.name,
    cells: [
      bucket.count.toLocaleString("en"),
      ...pair.map((each) => bucket.values[text.systems.indexOf(each)].toFixed(data.decimals)),
    ],
  }));
  return facet(`${title} (${data.metric})`, bucketTable(name, "sentences", pair, rows));
}

function symptomFacet({ system, other }) {
  const pair = [system, ...(other ? [other] : [])];
  const rows = data.symptoms.map((symptom) => ({
    label: symptom,
    cells: pair.map((each) => (each.symptom_counts[symptom] ?? 0).toLocaleString("en")),
  }));
  return facet("Symptoms (sentences)", bucketTable("symptom", "", pair, rows));
}

function drawFacets(chosen) {
  const { system, other, scores, others, leads } = chosen;
  const focus = document.activeElement?.dataset?.filter && { ...document.activeElement.dataset };
  const closed = new Set([...facets.children].filter((part) => !part.open).map((part) => part.dataset.name));
  const both = [{ label: system.name, className: "mine", values: scores }];
  if (other) both.push({ label: other.name, className: "other", values: others });
  const parts = { score: histogram("score", `${data.metric} of sentences`, scoreBins(chosen), both) };
  if (other) {
    const lead = [{ label: "", className: "mine", values: leads }];
    parts.lead = histogram("lead", `${data.metric} less that of ${other.name}`, leadBins(chosen), lead);
  }
  for (const name of BUCKETS) parts[name] = bucketFacet(name, chosen);
  parts.symptom = symptomFacet(chosen);
  for (const [name, part] of Object.entries(parts)) {
    part.dataset.name = name;
    part.open = !closed.has(name);
  }
  facets.replaceChildren(...Object.values(parts));
  if (focus) facets.querySelector(`[data-filter="${focus.filter}"][data-value="${CSS.escape(focus.value)}"]`)?.focus();
}
