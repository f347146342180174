// Draws the charts, lets buttons copy, and starts the explorer.

const OPTIONS = { actions: false, renderer: "svg", defaultStyle: false, logLevel: 1 };
const read = (id) => JSON.parse(document.getElementById(id).textContent);

function copyFrom(button) {
  const source = document.getElementById(button.dataset.copy), label = button.textContent;
  const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = label; }, 1500); };
  const select = () => { getSelection().selectAllChildren(source); document.execCommand("copy"); };
  (navigator.clipboard?.writeText(source.textContent) ?? Promise.reject()).catch(select).then(done);
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
  for (const place of document.querySelectorAll("[data-spec]")) await vegaEmbed(place, read(place.dataset.spec), OPTIONS);
  document.documentElement.dataset.ready = "";
}

startPage();
