// Drawing on an SVG: elements, scales, axes.

function svgElement(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function htmlElement(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A map from values to pixels; logarithmic where positive values span more than a factor of three. */
function scale([low, high], [start, end]) {
  const log = low > 0 && high / low > 3;
  const bend = log ? Math.log : (value) => value;
  const share = (value) => (bend(value) - bend(low)) / (bend(high) - bend(low));
  const place = (value) => start + share(value) * (end - start);
  return { place, ticks: (count) => (log ? logTicks(low, high, count) : linearTicks(low, high, count)) };
}

function linearTicks(low, high, count) {
  const raw = (high - low) / count, decade = 10 ** Math.floor(Math.log10(raw));
  const step = decade * [1, 2, 5, 10].find((multiple) => multiple * decade >= raw);
  const ticks = [];
  for (let index = Math.ceil(low / step); index * step <= high; index += 1) ticks.push(tidy(index * step));
  return ticks;
}

function logTicks(low, high, count) {
  const found = (multiples) => {
    const ticks = [];
    for (let decade = 10 ** Math.floor(Math.log10(low)); decade <= high; decade *= 10) {
      for (const multiple of multiples) {
        const tick = tidy(multiple * decade);
        if (tick >= low && tick <= high) ticks.push(tick);
      }
    }
    return ticks;
  };
  const finest = [[1, 1.5, 2, 3, 4, 5, 7], [1, 2, 3, 5, 7], [1, 2, 5], [1]].map(found);
  return finest.find((ticks) => ticks.length <= count) ?? finest[3];
}

function tidy(value) {
  return Number(value.toPrecision(10));
}

/** The least and greatest of some numbers, with a margin on either side. */
function spanOf(values) {
  const low = Math.min(...values), high = Math.max(...values);
  const log = low > 0 && high / low > 3;
  const margin = log ? (high / low) ** 0.04 : 0.04 * (high - low || Math.abs(high) || 1);
  return log ? [low / margin, high * margin] : [low - margin, high + margin];
}

/** `M x y L x y …` through points in pixels. */
function pathThrough(points) {
  return points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
}

/** Grid lines, tick labels and titles of both axes. */
function drawAxes(group, box, scales, titles, narrow) {
  for (const x of scales.x.ticks(narrow ? 5 : 8)) {
    const at = scales.x.place(x);
    group.append(svgElement("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom }));
    group.append(svgElement("text", { class: "tick", x: at, y: box.bottom + 18, "text-anchor": "middle" }, x));
  }
  for (const y of scales.y.ticks(narrow ? 6 : 8)) {
    const at = scales.y.place(y);
    group.append(svgElement("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }));
    group.append(svgElement("text", { class: "tick", x: box.left - 8, y: at + 4, "text-anchor": "end" }, y));
  }
  const middle = (box.top + box.bottom) / 2;
  const turned = { x: -middle, y: 14, transform: "rotate(-90)", "text-anchor": "middle", class: "title" };
  const below = { x: (box.left + box.right) / 2, y: box.bottom + 40, "text-anchor": "middle", class: "title" };
  group.append(svgElement("text", below, titles[0]), svgElement("text", turned, titles[1]));
}
