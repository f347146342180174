// The capacity law (Fernandes et al. 2023, eqs. 11 and 12) on the numbers that the page carries.

const LEAST_WEIGHT = 1e-3;

/** f̂(p) = p + c1 p^c2 (1 - p)^c3. */
function fraction(law, weight) {
  return weight + law.c1 * weight ** law.c2 * (1 - weight) ** law.c3;
}

/** β (f̂(p) N)^-α + L∞; the power is subtracted where the metric rises to a ceiling. */
function predict(law, size, weight, rising) {
  const power = law.beta * (fraction(law, weight) * size) ** -law.alpha;
  return law.l_inf + (rising ? -power : power);
}

/** Quantile of numbers by linear interpolation between order statistics. */
function quantile(values, level) {
  const sorted = Float64Array.from(values).sort();
  const place = level * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

/** The central 95% of numbers, or null where there are none. */
function interval(values) {
  return values.length ? [quantile(values, 0.025), quantile(values, 0.975)] : null;
}

/** Everything the law says of a task at a size and a weight; intervals are those of its refits. */
function describe(task, size, weight, rising) {
  const over = (tell) => interval(task.draws.map(tell));
  return {
    weight,
    value: predict(task.law, size, weight, rising),
    interval: over((law) => predict(law, size, weight, rising)),
    fraction: fraction(task.law, weight),
    fractionInterval: over((law) => fraction(law, weight)),
    effective: fraction(task.law, weight) * size,
    alone: predict(task.law, size, 1, rising),
  };
}

/** The first of two tasks' weight at which preference · L_1 + (1 - preference) · L_2 is best. */
function recommend(tasks, size, preference, rising) {
  const sign = rising ? -1 : 1;
  const cost = (weight) =>
    sign * (preference * predict(tasks[0].law, size, weight, rising) +
      (1 - preference) * predict(tasks[1].law, size, 1 - weight, rising));
  return minimum(cost, LEAST_WEIGHT, 1 - LEAST_WEIGHT);
}

/** The preference under which a weight would be the best: where the weighted slopes cancel. */
function impliedPreference(tasks, size, weight, rising) {
  const step = 1e-5;
  const slope = (task, at) =>
    Math.abs(predict(task.law, size, at + step, rising) - predict(task.law, size, at - step, rising));
  const [first, second] = [slope(tasks[0], weight), slope(tasks[1], 1 - weight)];
  return first + second > 0 ? second / (first + second) : 0.5;
}

/** Where a function is least between two ends: the best of a grid, refined by golden sections. */
function minimum(cost, low, high) {
  const steps = 200, golden = (Math.sqrt(5) - 1) / 2;
  const at = (index) => low + ((high - low) * index) / steps;
  let best = 0;
  for (let index = 1; index <= steps; index += 1) if (cost(at(index)) < cost(at(best))) best = index;
  let [left, right] = [at(Math.max(best - 1, 0)), at(Math.min(best + 1, steps))];
  while (right - left > 1e-9) {
    const reach = golden * (right - left);
    if (cost(right - reach) <= cost(left + reach)) right = left + reach;
    else left = right - reach;
  }
  return (left + right) / 2;
}

/** `1e9`, `2.5B`, `300k` or `1,000,000` as a number; NaN where it cannot be read. */
function parseSize(text) {
  const found = /^\s*([0-9.,_ ]*[0-9](?:e[+-]?[0-9]+)?)\s*([kmbgt]?)\s*$/i.exec(text);
  if (!found) return NaN;
  const multiple = { "": 1, k: 1e3, m: 1e6, b: 1e9, g: 1e9, t: 1e12 }[found[2].toLowerCase()];
  const size = Number(found[1].replace(/[,_ ]/g, "")) * multiple;
  return size >= 1 && Number.isFinite(size) ? size : NaN;
}

/** `37.2K`, `1.3M`, `2B`. */
function formatSize(size) {
  for (const [limit, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "K"]]) {
    if (size >= limit) return `${Number((size / limit).toPrecision(3))}${unit}`;
  }
  return `${Number(size.toPrecision(3))}`;
}

/** A number at four significant digits, trailing zeros kept. */
function formatValue(value) {
  return Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(4);
}

function formatInterval(bounds, format = formatValue) {
  return bounds ? `${format(bounds[0])} to ${format(bounds[1])}` : "unknown";
}

function formatShare(share) {
  return `${(100 * share).toFixed(1)}%`;
}
