// More than two tasks: a slider a task, weights normalised to 1, predicted values as bars.

function exploreMixture(root, data, size) {
  const rows = data.tasks.map((task) => mixtureRow(root.querySelector(".mixture"), task));
  const shares = () => {
    const raw = rows.map((row) => Number(row.slider.value));
    const total = raw.reduce((sum, value) => sum + value, 0);
    return raw.map((value) => (total > 0 ? value / total : 1 / raw.length));
  };
  const show = () => {
    const mixture = shares();
    const told = mixture.map((share, index) =>
      share > 0 ? describe(beside(data, index, mixture), size.value, share, data.rising) : null);
    const most = Math.max(...told.flatMap((own) => (own ? [own.value, own.alone, own.interval?.[1] ?? 0] : [0])));
    rows.forEach((row, index) => fillRow(row, told[index], most, data.unit));
    showReadout(root, data, size.value, told);
  };
  rows.forEach((row) => row.slider.addEventListener("input", show));
  return show;
}

/** A task whose gains from partners, if its law tells them apart, are averaged by the partners' weights. */
function beside(data, index, mixture) {
  const task = data.tasks[index], rest = 1 - mixture[index];
  const share = new Map(data.tasks.map((other, place) => [other.name, mixture[place] / rest]));
  const settled = (law) => {
    if (typeof law.c1 === "number") return law;
    const gains = Object.entries(law.c1).map(([name, gain]) => (rest > 0 ? gain * (share.get(name) ?? 0) : 0));
    return { ...law, c1: gains.reduce((sum, gain) => sum + gain, 0) };
  };
  return { ...task, law: settled(task.law), draws: task.draws.map(settled) };
}

function mixtureRow(list, task) {
  const slider = htmlElement("input", { type: "range", min: 0, max: 100, step: 1, value: 50 });
  const share = htmlElement("output"), bar = htmlElement("span", { class: "bar" });
  const whisker = htmlElement("span", { class: "whisker" }), alone = htmlElement("span", { class: "alone" });
  const label = htmlElement("label", {}, htmlElement("span", {}, task.name), slider);
  const track = htmlElement("div", { class: "track", "aria-hidden": "true" }, bar, whisker, alone);
  list.append(htmlElement("div", { class: "row" }, label, share, track));
  return { slider, share, bar, whisker, alone };
}

function fillRow(row, own, most, unit) {
  const percent = (value) => `${(100 * Math.max(value, 0)) / most}%`;
  row.share.textContent = own ? `p = ${formatShare(own.weight)}` : "p = 0: the law does not speak of it";
  row.slider.setAttribute("aria-valuetext", own ? `${formatShare(own.weight)}, ${formatValue(own.value)} ${unit}` : "0%");
  for (const part of [row.bar, row.whisker, row.alone]) part.hidden = !own;
  if (!own) return;
  row.bar.style.width = percent(own.value);
  row.alone.style.left = percent(own.alone);
  row.whisker.hidden = !own.interval;
  if (!own.interval) return;
  row.whisker.style.left = percent(own.interval[0]);
  row.whisker.style.width = percent(own.interval[1] - own.interval[0]);
}
