// Draws the charts, and lets buttons copy.

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
  for (const place of document.querySelectorAll("[data-spec]")) await vegaEmbed(place, read(place.dataset.spec), OPTIONS);
  document.documentElement.dataset.ready = "";
}

startPage();
