// The explorer: what the law predicts for the size, length and mixture that its controls choose.

const STEPS = 400;
const BEND = { log: Math.log, logit: (share) => Math.log(share / (1 - share)) };

/** The numbers of a grid at a place: cubic through the four nearest points along every axis. */
function interpolate(axes, { log, numbers }, place) {
  const width = numbers.length / axes.reduce((count, axis) => count * axis.count, 1);
  let terms = [[0, 1]];
  for (const { name, scale, low, high, count } of axes) {
    const [start, end, here] = [low, high, Math.min(Math.max(place[name], low), high)].map(BEND[scale]);
    const at = ((here - start) / (end - start)) * (count - 1);
    const first = Math.min(Math.max(Math.floor(at) - 1, 0), count - 4), near = [0, 1, 2, 3];
    const share = (i) => near.reduce((product, j) => (i === j ? product : (product * (at - first - j)) / (i - j)), 1);
    terms = terms.flatMap(([index, factor]) => near.map((i) => [index * count + first + i, factor * share(i)]));
  }
  const sum = (k) => terms.reduce((total, [index, factor]) => total + factor * numbers[index * width + k], 0);
  return Array.from({ length: width }, (_, k) => (log ? Math.exp(sum(k)) : sum(k)));
}

const sumOver = (values, term) => Object.entries(values).reduce((total, [name, value]) => total + term(value, name), 0);
const power = (share, exponent) => (share > 0 ? share ** exponent : 0);

/** f̂ of the law's form: with transfer, a hump whose gain is the partners' mean, or a line. */
function fractionOf(law, weight, partners) {
  if ("rho" in law) {
    const gain = sumOver(law.tau, (worth, name) => worth * power(partners[name], law.rho));
    return ((law.tau_0 + power(weight, law.rho) + gain) / (law.tau_0 + 1)) ** (1 / law.rho);
  }
  if (!("c2" in law)) return 1 + law.c1 * (weight - 1);
  const mean = () => (weight < 1 ? sumOver(law.c1, (gain, name) => gain * partners[name]) / (1 - weight) : 0);
  return weight + (typeof law.c1 === "number" ? law.c1 : mean()) * weight ** law.c2 * (1 - weight) ** law.c3;
}

/** The laws of size, length and mixture, as `mnmt_laws.laws` has them; its power subtracted where a metric rises. */
function lawValue(law, weight, partners, { size, tokens }, { sign, share, tied }) {
  if ("k" in law) {
    const worth = () => power(weight, law.gamma_0) + sumOver(law.c, (c, name) => c * power(partners[name], law.gamma[name]));
    const mixed = "t" in law ? Math.exp(sumOver(law.t, (rate, name) => rate * partners[name])) : 1 / worth();
    return law.l_inf + sign * (law.k * mixed + law.a * size ** -law.alpha + ("b" in law ? law.b * tokens ** -law.beta : 0));
  }
  const fraction = fractionOf(law, weight, partners);
  const capacity = law.beta * (fraction * size) ** -law.alpha;
  if (!("gamma" in law)) return law.l_inf + sign * capacity;
  const transferred = () => weight + ("tau" in law ? sumOver(law.tau, (worth, name) => worth * partners[name]) : 0);
  const exposure = share ? fraction : "q" in law ? weight ** law.q : transferred();
  const length = ((share ? fraction : 1) * size) ** (law.e ?? 0) * (exposure * tokens) ** -(tied ? law.alpha : law.delta);
  return law.l_inf + sign * (capacity + law.gamma * length);
}

/** A value with both intervals from a law and its refits, as Python's `predict_interval` computes them. */
function withIntervals({ estimate, draws, spread }, place, log, predict) {
  const value = predict(estimate), sample = draws.map(predict).sort((one, two) => one - two);
  const quantile = (level) => {
    const at = Math.min(Math.max(level * (sample.length + 1) - 1, 0), sample.length - 1), below = Math.floor(at);
    return sample[below] + (at - below) * ((sample[below + 1] ?? sample[below]) - sample[below]);
  };
  const law = [0.025, 0.975].map(quantile), [bend, unbend] = log ? [Math.log, Math.exp] : [Number, Number];
  const beyond = ({ low, high }, at) => Math.max(Math.log(at / high), Math.log(low / at), 0);
  const excess = sumOver(spread.axes, (axis, name) => axis.excess * beyond(axis, place[name]) ** 2);
  const noise = (spread.within ?? NaN) * Math.sqrt(1 + excess);
  const widened = (end, side) => unbend(bend(value) + side * Math.hypot(Math.max(side * (bend(end) - bend(value)), 0), noise));
  return [value, ...law, widened(law[0], -1), widened(law[1], 1)];
}

/** What the law says of every task of a mixture. */
function predictions(data, { size, tokens, weights }) {
  return data.tasks.map((task, index) => {
    const partners = Object.fromEntries(data.tasks.map((name, k) => [name, weights[k]]).filter(([name]) => name !== task));
    const numbers = data.grids ? interpolate(data.axes, data.grids[task], { size, tokens, weight: weights[0] })
      : weights[index] > 0 || data.form.zeroShot
        ? withIntervals(data.laws[task], { size, tokens }, data.log, (law) => lawValue(law, weights[index], partners, { size, tokens }, data.form))
        : Array(5).fill(NaN);
    const [value, low, high, newLow, newHigh] = numbers;
    return { task, weight: weights[index], first: weights[0], value, low, high, newLow, newHigh };
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
  const state = { tokens: data.tokens?.[1], ...data.start };
  const normalised = (shares) => shares.map((share) => share / (shares.reduce((sum, other) => sum + other, 0) || 1));

  const show = () => {
    for (const [name, [low, high]] of Object.entries(spans)) {
      find(`[data-axis=${name}]`).value = (STEPS * (Math.log(state[name]) - low)) / (high - low);
      find(`[data-typed=${name}]`).value = formatCount(state[name]);
    }
    sliders.forEach((slider, index) => { if (slider !== document.activeElement || sliders.length < 2) slider.value = state.weights[index]; });
    const rows = predictions(data, state);
    find("#readout").replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      const [law, model] = [formatInterval(row.low, row.high), formatInterval(row.newLow, row.newHigh)];
      const cells = Number.isFinite(row.value) ? [formatValue(row.value), law, model] : ["no law without training on it", "", ""];
      for (const text of [row.task, formatShare(row.weight), ...cells]) line.insertCell().textContent = text;
      return line;
    }));
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
    if (stored.has("weights") && fits) state.weights = normalised(weights);
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
    state.weights = sliders.length === 1 ? [shares[0], 1 - shares[0]] : normalised(shares);
  });
  const preference = find("#preference");
  if (preference) listen(preference, () => { state.weights = bestWeights(data, state, Number(preference.value)); });
  addEventListener("hashchange", restore);
  restore();
}

/** The weights of two tasks whose metric, averaged by preference, is best. */
function bestWeights(data, state, preference) {
  const cost = ([one, two]) => (data.rising ? -1 : 1) * (preference * one.value + (1 - preference) * two.value);
  const all = Array.from({ length: 999 }, (_, k) => [(k + 1) / 1000, 1 - (k + 1) / 1000]);
  const costs = all.map((weights) => cost(predictions(data, { ...state, weights })));
  return all[costs.indexOf(Math.min(...costs))];
}

/** What lies beyond what was trained; empty where nothing does. */
function extrapolation(data, state) {
  const untested = (name) => data.untested.includes(name) ? ", with no back-test of the law" : "";
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
  const places = Array.from({ length: 121 }, (_, k) => 0.002 + (0.996 * k) / 120);
  const curve = places.map((weight) => predictions(data, { ...state, weights: [weight, 1 - weight] }));
  const [x, y] = rows, now = { one: x.value, two: y.value };
  const along = (low, high) => [{ ...now, one: x[low], x2: x[high], y2: y.value }, { ...now, two: y[low], x2: x.value, y2: y[high] }];
  fill(views.weights, { curve: curve.flat().map((row) => ({ ...row, weight: row.first })), now: rows });
  fill(views.plane, { plane: curve.map(([one, two]) => ({ one: one.value, two: two.value, weight: one.weight })),
    now: [now], law: along("low", "high"), new: along("newLow", "newHigh") });
}
