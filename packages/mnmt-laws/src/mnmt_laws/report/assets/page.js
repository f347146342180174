// Draws the charts, lets buttons copy, and starts the explorer.

const OPTIONS = { actions: false, renderer: "svg", defaultStyle: false, logLevel: 1 };
const read = (id) => JSON.parse(document.getElementById(id).textContent);

function copyFrom(button) {
  const source = document.getElementById(button.dataset.copy), label = button.textContent;
  const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = label; }, 1500); };
  const select = () => { getSelection().selectAllChildren(source); document.execCommand("copy"); };
  (navigator.clipboard?.writeText(source.textContent) ?? Promise.reject()).catch(select).then(done);
}

// Vega is in the page or comes from the network; where that is missing, the numbers stand without figures.
async function drawChart(place, spec) {
  if (window.vegaEmbed) return (await vegaEmbed(place, read(spec), OPTIONS)).view;
  place.textContent = "This figure needs the network, unless mnmt-laws is installed with its extra `svg`.";
}

// A chart takes the width of its place, so one that is folded away is drawn when it is opened.
async function embed(place) {
  if (place.dataset.drawn) return;
  place.dataset.drawn = "yes";
  await drawChart(place, place.dataset.spec);
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
    for (const name of ["weights", "plane", "now"]) {
      const place = document.getElementById(`chart-${name}`);
      if (place) views[name] = await drawChart(place, `spec-${name}`);
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
