// What both views say in words and numbers.

/** Cards of all tasks and, once the hand rests, a sentence for readers of the screen. */
function showReadout(root, data, size, told) {
  root.querySelector(".cards").replaceChildren(
    ...data.tasks.map((task, index) => card(data, task.name, told[index])));
  root.querySelector(".extrapolated").textContent = extrapolation(data, size, told);
  clearTimeout(showReadout.pending);
  showReadout.pending = setTimeout(() => {
    root.querySelector(".sentence").textContent = sentence(data, size, told);
  }, 350);
}

function card(data, name, own) {
  const facts = own ? [
    ["weight p", formatShare(own.weight)],
    [`predicted ${data.metric}`, formatValue(own.value), "large"],
    ["95% interval", formatInterval(own.interval)],
    ["effective fraction f(p)", `${own.fraction.toPrecision(3)} (${formatInterval(own.fractionInterval, (value) => value.toPrecision(3))})`],
    ["effective parameters", formatSize(own.effective)],
    ["trained alone it would be", formatValue(own.alone)],
  ] : [["weight p", "0: no law for tasks left out of training"]];
  const list = htmlElement("dl");
  for (const [term, text, kind] of facts) {
    list.append(htmlElement("div", kind ? { class: kind } : {}, htmlElement("dt", {}, term), htmlElement("dd", {}, text)));
  }
  return htmlElement("div", { class: "card" }, htmlElement("h3", {}, name), list);
}

/** What lies beyond what was trained; empty where nothing does. */
function extrapolation(data, size, told) {
  const beyond = [];
  const largest = Math.max(...data.sizes), smallest = Math.min(...data.sizes);
  if (size > largest * 1.0001) beyond.push(`N is ${Number((size / largest).toPrecision(2))} times the largest model trained`);
  if (size < smallest * 0.9999) beyond.push("N is below the smallest model trained");
  told.forEach((own, index) => {
    const [low, high] = data.tasks[index].weights;
    if (own && (own.weight < low - 1e-9 || own.weight > high + 1e-9)) {
      beyond.push(`${data.tasks[index].name} was trained at weights from ${low} to ${high}`);
    }
  });
  return beyond.length ? `Extrapolated: ${beyond.join("; ")}.` : "";
}

function sentence(data, size, told) {
  const parts = told.map((own, index) => own
    ? `${data.tasks[index].name} at ${formatShare(own.weight)} reaches ${formatValue(own.value)} ${data.unit}` +
      (own.interval ? ` (95%: ${formatInterval(own.interval)})` : "")
    : `${data.tasks[index].name} is left out`);
  return `A model of ${formatSize(size)} parameters: ${parts.join("; ")}.`;
}
