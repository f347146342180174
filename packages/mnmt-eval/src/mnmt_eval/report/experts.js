// The experts that serve each task: a row per task, a column per expert, coloured by the task's use of the expert
// over the mean use of all tasks.
const figure = document.querySelector(".mixture");
const EVEN = 128;
const STEPS = 16;
const MOST_NUMBERS = 32;
const MOST_POWERS = 2; // colours are full from a quarter, and from four times the mean
let drawn = null;

// Decode a byte of a picture: a multiple of the mean over all tasks.
const ratioOf = (byte) => (byte ? 2 ** ((byte - EVEN) / STEPS) : 0);
const times = (ratio) => (ratio === 0 ? "never" : `${ratio.toFixed(ratio < 0.095 ? 2 : 1)} times the mean of the tasks`);

function orderTasks(tasks) {
  const places = tasks.map((_, place) => place);
  if (fields.tasks.value === "alike") return places;
  const sides = tasks.map((task) => task.split("-"));
  const key = (place) => (fields.tasks.value === "target" ? [...sides[place]].reverse() : sides[place]).join(" ");
  return places.sort((a, b) => key(a).localeCompare(key(b)));
}

// Order the experts by the mean position of the tasks that they serve.
function orderExperts(rows, count) {
  const middle = (expert) => {
    const ratios = rows.map((row) => row[expert]);
    const sum = ratios.reduce((a, b) => a + b, 0);
    return sum ? ratios.reduce((total, ratio, place) => total + place * ratio, 0) / sum : Infinity;
  };
  const middles = Array.from({ length: count }, (_, expert) => middle(expert));
  return middles.map((_, expert) => expert).sort((a, b) => middles[a] - middles[b] || a - b);
}

function arrange({ name, tasks, loads, ratios }) {
  const bytes = Uint8Array.from(atob(ratios), (char) => char.charCodeAt(0));
  const order = orderTasks(tasks);
  const rows = order.map((task) => Array.from(bytes.subarray(task * loads.length, (task + 1) * loads.length), ratioOf));
  const experts = orderExperts(rows, loads.length);
  return {
    name, experts, tasks: order.map((task) => tasks[task]), loads: experts.map((expert) => loads[expert]),
    rows: rows.map((row) => experts.map((expert) => row[expert])),
  };
}

function prepare(canvas, width, height) {
  Object.assign(canvas, { width, height });
  canvas.style.imageRendering = width > 256 ? "auto" : "pixelated";
  return canvas.getContext("2d");
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function paintCells(canvas, { rows, experts }, limit) {
  const context = prepare(canvas, experts.length, rows.length);
  const [more, less] = [colour("--mine"), colour("--other")];
  rows.forEach((row, y) => row.forEach((ratio, x) => {
    const powers = ratio ? Math.log2(ratio) : -Infinity;
    context.fillStyle = powers > 0 ? more : less;
    context.globalAlpha = Math.min(Math.abs(powers) / limit, 1);
    context.fillRect(x, y, 1, 1);
  }));
}

const BAR = 40;

function paintLoads(canvas, { loads }) {
  const context = prepare(canvas, loads.length, BAR);
  const most = Math.max(...loads, 1);
  context.fillStyle = colour("--muted");
  loads.forEach((load, x) => context.fillRect(x, BAR - (BAR * load) / most, 1, (BAR * load) / most));
  context.fillStyle = colour("--ink");
  context.fillRect(0, Math.min(BAR - BAR / most, BAR - 1), loads.length, 1);
}

// The colour scale, from far below the mean to far above, with the ratio of each colour.
function paintScale(limit) {
  const parts = [-1, -0.5, 0, 0.5, 1].map((place) => {
    const part = element("span", "", `${Number((2 ** (place * limit)).toPrecision(2))}×`);
    const swatch = element("i");
    swatch.style.background = colour(place > 0 ? "--mine" : "--other");
    swatch.style.opacity = Math.abs(place);
    part.prepend(swatch);
    return part;
  });
  figure.querySelector(".scale").replaceChildren("used as often as by tasks on average: ", ...parts);
}

function drawMixture() {
  if (!data.pictures.length) return;
  drawn = arrange(data.pictures.find(({ name }) => name === fields.mixture.value));
  const { tasks, experts } = drawn;
  const limit = Math.min(Math.log2(tasks.length), MOST_POWERS);
  const canvas = figure.querySelector(".cells canvas");
  figure.style.setProperty("--row", `${tasks.length > 60 ? 12 : tasks.length > 20 ? 16 : 24}px`);
  figure.style.setProperty("--rows", tasks.length);
  figure.style.setProperty("--width", `${experts.length * 56}px`);
  figure.querySelector(".tasks").replaceChildren(...tasks.map((task) => element("li", "", task)));
  const numbers = experts.length > MOST_NUMBERS ? [] : experts.map((expert) => element("li", "", expert));
  figure.querySelector(".numbers").replaceChildren(...numbers);
  figure.querySelector(".layer").textContent = drawn.name;
  canvas.setAttribute("aria-label", `${drawn.name}: ${tasks.length} tasks by ${experts.length} experts; arrow keys read a cell`);
  paintLoads(figure.querySelector(".loads"), drawn);
  paintCells(canvas, drawn, limit);
  paintScale(limit);
  readCell(null);
}

// Describe a cell; null clears the description.
function readCell(cell) {
  const cursor = figure.querySelector(".cursor");
  const reading = figure.querySelector(".reading");
  cursor.hidden = cell === null;
  reading.textContent = "";
  if (cell === null) return;
  const { tasks, experts, rows, loads } = drawn;
  Object.assign(cursor.dataset, cell);
  Object.assign(cursor.style, {
    left: `${(100 * cell.x) / experts.length}%`, width: `${100 / experts.length}%`,
    top: `${(100 * cell.y) / tasks.length}%`, height: `${100 / tasks.length}%`,
  });
  reading.textContent = `${tasks[cell.y]}, expert ${experts[cell.x]}: ${times(rows[cell.y][cell.x])}; its load is ${loads[cell.x].toFixed(2)}`;
}

function cellAt({ clientX, clientY }) {
  const box = figure.querySelector(".cells canvas").getBoundingClientRect();
  const place = (part, count) => Math.min(Math.max(Math.floor(part * count), 0), count - 1);
  return {
    x: place((clientX - box.left) / box.width, drawn.experts.length),
    y: place((clientY - box.top) / box.height, drawn.tasks.length),
  };
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function moveCell(event) {
  if (!(event.key in MOVES)) return;
  event.preventDefault();
  const { hidden, dataset } = figure.querySelector(".cursor");
  const [dx, dy] = hidden ? [0, 0] : MOVES[event.key];
  const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
  const [x, y] = hidden ? [0, 0] : [Number(dataset.x), Number(dataset.y)];
  readCell({ x: within(x + dx, drawn.experts.length), y: within(y + dy, drawn.tasks.length) });
}

if (figure) {
  const canvas = figure.querySelector(".cells canvas");
  for (const type of ["pointermove", "pointerdown"]) canvas.addEventListener(type, (event) => readCell(cellAt(event)));
  canvas.addEventListener("keydown", moveCell);
  for (const name of PICTURE_FIELDS) {
    fields[name].addEventListener("input", () => {
      writeAddress();
      drawMixture();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMixture);
  figure.hidden = figure.previousElementSibling.hidden = false;
}
