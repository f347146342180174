// Two tasks: their trade-off at a size, to read off and to choose from.

const CURVE_POINTS = 97;
const OBSERVED_LINES = 8;

function exploreFrontier(root, data, size) {
  const state = { weight: 0.5, preference: 0.5, follows: "preference" };
  const view = { root, data, svg: root.querySelector("svg"), tip: root.querySelector(".tip") };
  const weight = root.querySelector("[name=weight]"), preference = root.querySelector("[name=preference]");
  const choose = (share) => {
    Object.assign(state, { weight: Math.min(Math.max(share, LEAST_WEIGHT), 1 - LEAST_WEIGHT), follows: "weight" });
    show();
  };
  const show = () => {
    settle(state, data, size.value);
    const told = tell(data, size.value, state.weight);
    showControls(root, data, state, weight, preference);
    drawFrontier(view, size.value, state, told);
    showReadout(root, data, size.value, told);
  };
  weight.addEventListener("input", () => choose(Number(weight.value)));
  preference.addEventListener("input", () => {
    Object.assign(state, { preference: Number(preference.value), follows: "preference" });
    show();
  });
  followPointer(view, choose);
  new ResizeObserver(show).observe(view.svg.parentElement);
  return show;
}

/** The weight follows from the preference, or the preference from the weight: whichever was set last. */
function settle(state, data, size) {
  if (state.follows === "preference") {
    state.weight = recommend(data.tasks, size, state.preference, data.rising);
  } else {
    state.preference = impliedPreference(data.tasks, size, state.weight, data.rising);
  }
}

function tell(data, size, weight) {
  return [weight, 1 - weight].map((share, index) => describe(data.tasks[index], size, share, data.rising));
}

function showControls(root, data, state, weight, preference) {
  const [first, second] = data.tasks.map((task) => task.name);
  weight.value = state.weight;
  preference.value = state.preference;
  const shares = `${formatShare(state.weight)} ${first}, ${formatShare(1 - state.weight)} ${second}`;
  const matters = `${formatShare(state.preference)} ${first}, ${formatShare(1 - state.preference)} ${second}`;
  weight.setAttribute("aria-valuetext", shares);
  preference.setAttribute("aria-valuetext", matters);
  root.querySelector("output[for=explorer-weight]").textContent = shares;
  const implied = state.follows === "weight" ? "under which this weight is best: " : "";
  root.querySelector("output[for=explorer-preference]").textContent = implied + matters;
}

/** Values of both tasks at weights of the first. */
function frontierPoints(data, size, [low, high], laws = data.tasks.map((task) => task.law)) {
  return Array.from({ length: CURVE_POINTS }, (_, index) => {
    const weight = low + ((high - low) * index) / (CURVE_POINTS - 1);
    const values = [weight, 1 - weight].map((share, task) => predict(laws[task], size, share, data.rising));
    return [...values, weight];
  });
}

function drawFrontier(view, size, state, told) {
  const { data, svg } = view;
  const narrow = svg.parentElement.clientWidth < 560;
  const width = Math.max(svg.parentElement.clientWidth, 260), height = Math.round(Math.min(width * 0.8, 520));
  const box = { left: narrow ? 52 : 60, right: width - 14, top: 12, bottom: height - 50 };
  const curve = frontierPoints(data, size, data.range);
  const seen = [...domain(data), ...curve, told.map((own) => own.value)];
  const scales = {
    x: scale(spanOf(seen.map((point) => point[0])), [box.left, box.right]),
    y: scale(spanOf(seen.map((point) => point[1])), [box.bottom, box.top]),
  };
  const place = ([x, y]) => [scales.x.place(x), scales.y.place(y)];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  const axes = svgElement("g"), drawn = svgElement("g", { "clip-path": "url(#explorer-box)" });
  drawAxes(axes, box, scales, data.tasks.map((task) => `${task.name} ${data.metric} (${data.unit})`), narrow);
  drawn.append(...observedLines(data, place), ...bandOf(data, size, curve, place));
  drawn.append(svgElement("path", { class: "beyond", d: pathThrough(frontierPoints(data, size, [0.01, 0.99]).map(place)) }));
  drawn.append(svgElement("path", { class: "curve", d: pathThrough(curve.map(place)) }));
  drawn.append(...data.models.map((model) => modelMark(model, place, size)));
  const [x, y] = place(told.map((own) => own.value));
  drawn.append(svgElement("circle", { class: "chosen", cx: x, cy: y, r: 8 }));
  svg.replaceChildren(clipTo(box), axes, drawn, ...sizeLabels(data, place, box));
  view.curve = frontierPoints(data, size, [LEAST_WEIGHT, 1 - LEAST_WEIGHT]).map((point) => [...place(point), point]);
}

/** Points that the axes always hold, so that they stand still while the size changes. */
function domain(data) {
  const sizes = [Math.min(...data.sizes), 10 * Math.max(...data.sizes)];
  return [...sizes.flatMap((size) => frontierPoints(data, size, data.range)), ...data.models.map((model) => model.values)];
}

function clipTo(box) {
  const clip = svgElement("clipPath", { id: "explorer-box" });
  const { left, right, top, bottom } = box;
  clip.append(svgElement("rect", { x: left - 8, y: top - 8, width: right - left + 16, height: bottom - top + 16 }));
  return clip;
}

/** The sizes whose frontiers are shown thinly: all, or some of many. */
function shownSizes(data) {
  const step = Math.ceil(data.sizes.length / OBSERVED_LINES);
  return data.sizes.filter((_, index) => (data.sizes.length - 1 - index) % step === 0);
}

function observedLines(data, place) {
  return shownSizes(data).map((size) =>
    svgElement("path", { class: "observed", d: pathThrough(frontierPoints(data, size, data.range).map(place)) }));
}

/** The size of each thin line, where its end leaves room. */
function sizeLabels(data, place, box) {
  let last = Infinity;
  const labels = [];
  for (const size of shownSizes(data)) {
    const [x, y] = place(frontierPoints(data, size, data.range)[0]);
    if (Math.abs(y - last) < 13 && Math.abs(x - last) < 40) continue;
    const roomy = x + 40 < box.right;
    const at = roomy ? { x: x + 7, y: y - 2 } : { x, y: y + 16, "text-anchor": "end" };
    labels.push(svgElement("text", { class: "size", ...at }, formatSize(size)));
    last = y;
  }
  return labels;
}

/** The band that holds 95% of the refits, measured across the curve. */
function bandOf(data, size, curve, place) {
  if (!data.tasks.every((task) => task.draws.length > 1)) return [];
  const centre = curve.map(place);
  const count = Math.min(...data.tasks.map((task) => task.draws.length));
  const refits = Array.from({ length: count }, (_, draw) =>
    frontierPoints(data, size, data.range, data.tasks.map((task) => task.draws[draw])).map(place));
  const edges = centre.map(([x, y], index) => {
    const [before, after] = [centre[Math.max(index - 1, 0)], centre[Math.min(index + 1, centre.length - 1)]];
    const length = Math.hypot(after[0] - before[0], after[1] - before[1]) || 1;
    const normal = [(before[1] - after[1]) / length, (after[0] - before[0]) / length];
    const reach = interval(refits.map((refit) => (refit[index][0] - x) * normal[0] + (refit[index][1] - y) * normal[1]));
    return reach.map((distance) => [x + distance * normal[0], y + distance * normal[1]]);
  });
  const outline = [...edges.map((edge) => edge[0]), ...edges.map((edge) => edge[1]).reverse()];
  return [svgElement("path", { class: "band", d: `${pathThrough(outline)}Z` })];
}

/** A trained model; hollow where held out, a diamond within a ring where corrected for convergence. */
function modelMark(model, place, size) {
  const [x, y] = place(model.values);
  const near = Math.abs(Math.log(model.size / size)) < 0.03 ? " near" : "";
  const held = model.role === "held-out" ? " hollow" : "";
  const group = svgElement("g", { class: `model${near}${held}`, transform: `translate(${x} ${y})` });
  group.append(svgElement("title", {}, model.label));
  if (model.corrected) group.append(svgElement("path", { d: "M0 -4L4 0L0 4L-4 0Z" }), svgElement("circle", { class: "ring", r: 6.5 }));
  else group.append(svgElement("circle", { r: 4 }));
  return group;
}

/** Hovering over the curve tells, pressing and dragging chooses. */
function followPointer(view, choose) {
  const { svg, tip } = view;
  const nearest = (event) => {
    const edge = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - edge.left, event.clientY - edge.top];
    const distance = (point) => Math.hypot(point[0] - x, point[1] - y);
    const found = view.curve.reduce((best, point) => (distance(point) < distance(best) ? point : best));
    return { found, away: distance(found) };
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    choose(nearest(event).found[2][2]);
  });
  svg.addEventListener("pointermove", (event) => {
    const { found, away } = nearest(event);
    if (svg.hasPointerCapture(event.pointerId)) choose(found[2][2]);
    showTip(view, event, found, away);
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function showTip({ svg, tip, data }, event, found, away) {
  const model = event.target.closest?.(".model");
  tip.hidden = !model && away > 22;
  if (tip.hidden) return;
  const [first, second, weight] = found[2];
  const [one, two] = data.tasks.map((task) => task.name);
  tip.textContent = model ? model.querySelector("title").textContent
    : `p = ${formatShare(weight)} ${one}: ${one} ${formatValue(first)}, ${two} ${formatValue(second)}`;
  const edge = svg.getBoundingClientRect();
  const left = Math.min(event.clientX - edge.left + 12, edge.width - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(left, 0)}px`;
  tip.style.top = `${Math.max(event.clientY - edge.top - tip.offsetHeight - 12, 0)}px`;
}
