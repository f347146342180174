// Sets the page in motion: the size, shared by both views, and the view that fits the number of tasks.

const SIZE_STEPS = 250;

function startExplorer(root) {
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const size = { value: data.sizes[data.sizes.length - 1] };
  const view = data.tasks.length === 2 ? exploreFrontier : exploreMixture;
  for (const part of document.querySelectorAll(".static-frontier")) part.hidden = true;
  root.hidden = false;
  const show = view(root, data, size);
  sizeControls(root, data, size, show);
  show();
}

/** The logarithmic slider and the field beside it. */
function sizeControls(root, data, size, show) {
  const slider = root.querySelector("[name=size]"), field = root.querySelector("[name=parameters]");
  const low = Math.log(data.sizes[0]), high = Math.log(10 * data.sizes[data.sizes.length - 1]);
  const position = (value) => (SIZE_STEPS * (Math.log(value) - low)) / (high - low);
  slider.max = SIZE_STEPS;
  root.querySelector(".reach").style.setProperty("--known", `${position(data.sizes[data.sizes.length - 1]) / (SIZE_STEPS / 100)}%`);
  const write = () => {
    slider.value = position(size.value);
    slider.setAttribute("aria-valuetext", `${formatSize(size.value)} parameters`);
  };
  slider.addEventListener("input", () => {
    const chosen = Math.exp(low + (slider.value / SIZE_STEPS) * (high - low));
    size.value = snapped(chosen, data.sizes, (high - low) / SIZE_STEPS / 2); // no further, or keys would stick
    field.value = formatSize(size.value);
    complain(field, false);
    write();
    show();
  });
  field.addEventListener("change", () => {
    const parsed = parseSize(field.value);
    complain(field, Number.isNaN(parsed));
    if (Number.isNaN(parsed)) return;
    size.value = parsed;
    write();
    show();
  });
  field.value = formatSize(size.value);
  write();
}

function complain(field, wrong) {
  field.setAttribute("aria-invalid", String(wrong));
  field.setCustomValidity(wrong ? "Give a number of parameters, such as 300K, 2.5B or 1e9." : "");
  if (wrong) field.reportValidity();
}

/** An observed size, if one lies within reach of where the slider stands. */
function snapped(value, sizes, reach) {
  return sizes.find((size) => Math.abs(Math.log(size / value)) < reach) ?? Number(value.toPrecision(3));
}

startExplorer(document.getElementById("explorer"));
