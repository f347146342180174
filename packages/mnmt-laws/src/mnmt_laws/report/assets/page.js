// Draws the charts, lets buttons copy, and starts the explorer.

const OPTIONS = { actions: false, renderer: "svg", defaultStyle: false, logLevel: 1 };
const read = (id) => JSON.parse(document.getElementById(id).textContent);

function copyFrom(button) {
  const source = document.getElementById(button.dataset.copy), label = button.textContent;
  const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = label; }, 1500); };
  const select = () => { getSelection().selectAllChildren(source); document.execCommand("copy"); };
  (navigator.clipboard?.writeText(source.textContent) ?? Promise.reject()).catch(select).then(done);
}

// A chart takes the width of its place, so one that is folded away is drawn when it is opened.
async function embed(place) {
  if (place.dataset.drawn) return;
  place.dataset.drawn = "yes";
  await vegaEmbed(place, read(place.dataset.spec), OPTIONS);
}

function unfold() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.matches("details")) target.open = true;
}

async function startPage() {
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copyFrom(button));
  if (document.getElementById("explorer-data")) {
    const data = read("explorer-data"), views = {};
    for (const grid of Object.values(data.grids)) {
      grid.numbers = new Float32Array(Uint8Array.from(atob(grid.numbers), (sign) => sign.charCodeAt(0)).buffer);
    }
    for (const name of ["weights", "plane", "now"].filter((name) => document.getElementById(`chart-${name}`))) {
      views[name] = (await vegaEmbed(`#chart-${name}`, read(`spec-${name}`), OPTIONS)).view;
    }
    startExplorer(data, views);
  }
  for (const place of document.querySelectorAll("[data-spec]")) if (!place.closest("details:not([open])")) await embed(place);
  for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", () => fold.open && fold.querySelectorAll("[data-spec]").forEach(embed));
  addEventListener("hashchange", unfold);
  unfold();
  document.documentElement.dataset.ready = "";
}

startPage();
