// The explorer: what the forecast says of the size, length and mixture that its controls choose.

const STEPS = 400;
const WIDTH = 3; // numbers of a prediction: its mean, then the ends of the interval of a new model

/** A mixture's numbers at a place: cubic in logarithms, through the four nearest points of every axis. */
function interpolate(axes, { log, numbers }, mixture, place) {
  let terms = [[mixture, 1]];
  for (const { name, low, high, count } of axes) {
    const here = Math.min(Math.max(place[name], low), high);
    const at = (Math.log(here / low) / Math.log(high / low)) * (count - 1);
    const first = Math.min(Math.max(Math.floor(at) - 1, 0), count - 4), near = [0, 1, 2, 3];
    const share = (i) => near.reduce((product, j) => (i === j ? product : (product * (at - first - j)) / (i - j)), 1);
    terms = terms.flatMap(([index, factor]) => near.map((i) => [index * count + first + i, factor * share(i)]));
  }
  const sum = (k) => terms.reduce((total, [index, factor]) => total + factor * numbers[index * WIDTH + k], 0);
  return Array.from({ length: WIDTH }, (_, k) => (log ? Math.exp(sum(k)) : sum(k)));
}

/** The number of the mixture that is nearest to some weights, among those with predictions. */
function nearest(mixtures, weights) {
  const distance = (mixture) => mixture.reduce((sum, weight, k) => sum + (weight - weights[k]) ** 2, 0);
  return mixtures.reduce((best, mixture, k) => (distance(mixture) < distance(mixtures[best]) ? k : best), 0);
}

/** What the forecast says of every task of a mixture, which is the nearest to the weights. */
function predictions(data, { weights, ...place }) {
  const mixture = nearest(data.mixtures, weights), chosen = data.mixtures[mixture];
  return data.tasks.map((task, index) => {
    const [value, low, high] = interpolate(data.axes, data.grids[task], mixture, place);
    return { task, weight: chosen[index], first: chosen[0], value, low, high };
  });
}

/** `1e9`, `2.5B`, `300k` or `1,000,000` as a number; NaN where it cannot be read. */
function parseCount(text) {
  const parts = /^\s*([0-9.,_ ]*[0-9](?:e[+-]?[0-9]+)?)\s*([kmbgt]?)\s*$/i.exec(text);
  const unit = parts && { "": 1, k: 1e3, m: 1e6, b: 1e9, g: 1e9, t: 1e12 }[parts[2].toLowerCase()];
  return parts ? Number(parts[1].replace(/[_ ]|,(?=[0-9]{3}(?![0-9]))/g, "")) * unit : NaN;
}

function formatCount(count) {
  const [limit, unit] = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"], [0, ""]].find(([least]) => count >= least);
  return `${Number((count / (limit || 1)).toPrecision(3))}${unit}`;
}

const formatValue = (value) => (Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(4));
const formatInterval = (low, high) => (Number.isFinite(low) ? `${formatValue(low)} to ${formatValue(high)}` : "unknown");
const formatShare = (share) => `${(100 * share).toFixed(1)}%`;

/** The mixture as a study's `[sweep.fit]` has it; weights of three digits that sum to 1. */
function mixtureToml(data, { size, tokens, weights }) {
  const rounded = weights.map((weight) => Math.round(1000 * weight));
  rounded[weights.indexOf(Math.max(...weights))] += 1000 - rounded.reduce((sum, share) => sum + share, 0);
  const entries = data.tasks.map((task, index) => [/^[\w-]+$/.test(task) ? task : JSON.stringify(task), rounded[index] / 1000]);
  const text = entries.filter(([, share]) => share > 0).map(([task, share]) => `${task} = ${share}`).join(", ");
  return `# ${formatCount(size)} parameters${tokens ? `, ${formatCount(tokens)} tokens` : ""}\n[sweep.fit]\nmixtures = [{ ${text} }]\n`;
}

function startExplorer(data, views) {
  const find = (selector) => document.querySelector(selector);
  const sliders = [...document.querySelectorAll("[data-weight]")];
  const spans = Object.fromEntries(["size", "tokens"].filter((name) => data[name])
    .map((name) => [name, [Math.log(data[name][0]), Math.log(data.reach * data[name][1])]]));
  const state = { tokens: data.tokens?.[1], importance: data.importance, ...data.start };
  const snapped = (shares) => {
    const total = shares.reduce((sum, other) => sum + other, 0) || 1;
    return data.mixtures[nearest(data.mixtures, shares.map((share) => share / total))];
  };

  const show = () => {
    for (const [name, [low, high]] of Object.entries(spans)) {
      find(`[data-axis=${name}]`).value = (STEPS * (Math.log(state[name]) - low)) / (high - low);
      find(`[data-typed=${name}]`).value = formatCount(state[name]);
    }
    sliders.forEach((slider, index) => { if (slider !== document.activeElement || sliders.length < 2) slider.value = state.weights[index]; });
    const rows = predictions(data, state);
    find("#readout").replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      const cells = Number.isFinite(row.value) ? [formatValue(row.value), formatInterval(row.low, row.high)] : ["no forecast without training on it", ""];
      for (const text of [row.task, formatShare(row.weight), ...cells]) line.insertCell().textContent = text;
      return line;
    }));
    if (find("#cost")) find("#cost").textContent = costSentence(data, state, rows);
    find("#extrapolated").textContent = extrapolation(data, state);
    if (find("#mixture-toml")) find("#mixture-toml").textContent = mixtureToml(data, state);
    draw(data, views, state, rows);
  };
  const keep = () => {
    const length = data.tokens ? `&tokens=${Number(state.tokens.toPrecision(6))}` : "";
    location.hash = `size=${Number(state.size.toPrecision(6))}${length}&weights=${state.weights.map((share) => Number(share.toFixed(4))).join(",")}`;
  };
  const first = { ...state };
  const restore = () => {
    const stored = new URLSearchParams(location.hash.slice(1));
    if (!location.hash) Object.assign(state, first);
    for (const [name, [low, high]] of Object.entries(spans)) {
      if (Number(stored.get(name)) > 0) state[name] = Math.exp(Math.min(Math.max(Math.log(Number(stored.get(name))), low), high));
    }
    const weights = (stored.get("weights") ?? "").split(",").map(Number), total = weights.reduce((sum, share) => sum + share, 0);
    const fits = weights.length === data.tasks.length && weights.every((share) => share >= 0) && Math.abs(total - 1) < 0.01;
    if (stored.has("weights") && fits) state.weights = snapped(weights);
    show();
  };
  const listen = (element, choose) => {
    element.addEventListener("input", () => { choose(); show(); });
    element.addEventListener("change", keep);
  };
  for (const [name, [low, high]] of Object.entries(spans)) {
    const slider = find(`[data-axis=${name}]`), typed = find(`[data-typed=${name}]`);
    listen(slider, () => { state[name] = Number(Math.exp(low + (slider.value / STEPS) * (high - low)).toPrecision(3)); });
    typed.addEventListener("change", () => {
      const count = parseCount(typed.value), fits = count >= 0.999 * Math.exp(low) && count <= 1.001 * Math.exp(high);
      typed.setCustomValidity(fits ? "" : `Give a number from ${formatCount(Math.exp(low))} to ${formatCount(Math.exp(high))}, such as ${formatCount(state[name])}.`);
      if (typed.reportValidity()) { state[name] = count; show(); keep(); }
    });
  }
  for (const slider of sliders) listen(slider, () => {
    const shares = sliders.map((other) => Number(other.value));
    state.weights = snapped(sliders.length === 1 ? [shares[0], 1 - shares[0]] : shares);
  });
  const preference = find("#preference");
  if (preference) preference.value = data.importance[0];
  if (preference) listen(preference, () => {
    state.importance = [Number(preference.value), 1 - Number(preference.value)];
    state.weights = bestWeights(data, state);
  });
  addEventListener("hashchange", restore);
  restore();
}

/** The mean cost of predictions: what is lost of every task, by its importance. */
function costOf(data, state, rows) {
  return (data.rising ? -1 : 1) * rows.reduce((sum, row, k) => sum + state.importance[k] * row.value, 0);
}

/** The weights of least cost. */
function bestWeights(data, state) {
  const costs = data.mixtures.map((weights) => costOf(data, state, predictions(data, { ...state, weights })));
  const known = costs.map((value) => (Number.isFinite(value) ? value : Infinity));
  return data.mixtures[known.indexOf(Math.min(...known))];
}

/** What the chosen mixture is expected to cost more than the advised one, at the chosen size. */
function costSentence(data, state, rows) {
  const advised = predictions(data, { ...state, weights: data.start.weights });
  const extra = costOf(data, state, rows) - costOf(data, state, advised), unit = data.unit.split(" per ")[0];
  if (!Number.isFinite(extra)) return "";
  if (Math.abs(extra) < 1e-9) return "This is the advised mixture.";
  return `Expected to cost ${Math.abs(extra).toPrecision(2)} ${unit} ${extra > 0 ? "more" : "less"} than the advised mixture.`;
}

/** What lies beyond what was trained; empty where nothing does. */
function extrapolation(data, state) {
  const untested = (name) => data.untested.includes(name) ? ", with no back-test" : "";
  const beyond = Object.entries({ size: "N", tokens: "D" }).filter(([name]) => data[name]).flatMap(([name, symbol]) =>
    state[name] > 1.001 * data[name][1] ? [`${symbol} is ${Number((state[name] / data[name][1]).toPrecision(2))} times the largest fitted${untested(name)}`] : []);
  const outside = data.tasks.filter((task, index) => {
    const [low, high] = data.weights[task], weight = state.weights[index];
    return weight < low - 1e-3 || weight > high + 1e-3;
  });
  if (outside.length) beyond.push(`outside the weights trained: ${outside.join(", ")}`);
  return beyond.length ? `Extrapolated: ${beyond.join("; ")}.` : "";
}

/** Fill the charts; bands lie over the weight, which only rises, so that none can cross itself. */
function draw(data, views, state, rows) {
  const fill = (view, datasets) => {
    for (const [name, values] of Object.entries(datasets)) view.data(name, values);
    view.signal("chosen", state.size).runAsync();
  };
  if (views.now) fill(views.now, { now: rows.filter((row) => Number.isFinite(row.value)) });
  if (!views.plane) return;
  const curve = data.mixtures.map((weights) => predictions(data, { ...state, weights }))
    .filter((rows) => rows.every((row) => Number.isFinite(row.value)));
  const [x, y] = rows, now = { one: x.value, two: y.value };
  const reach = [{ ...now, one: x.low, x2: x.high, y2: y.value }, { ...now, two: y.low, x2: x.value, y2: y.high }];
  fill(views.weights, { curve: curve.flat().map((row) => ({ ...row, weight: row.first })), now: rows });
  fill(views.plane, { plane: curve.map(([one, two]) => ({ one: one.value, two: two.value, weight: one.weight })),
    now: [now], new: reach });
}
