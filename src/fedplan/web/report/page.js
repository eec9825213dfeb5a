"use strict";
// Draws every figure over its still image; where this fails, or does not run, the image stays.
const WIDE = 640; // pixels from which on a figure has room to be higher

async function draw(figure) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const live = document.createElement("div");
  live.className = "live";
  live.setAttribute("role", "group");
  live.setAttribute("aria-label", figure.querySelector("img").alt);
  figure.prepend(live);
  const options = { responsive: true, displaylogo: false };
  try {
    if (figure.clientWidth >= WIDE) spec.layout.height *= 1.3;
    await Plotly.newPlot(live, spec.data, spec.layout, options);
    figure.classList.add("drawn");
  } catch (error) {
    live.remove();
    console.warn("A figure stays still:", error);
  }
}

for (const figure of document.querySelectorAll("figure[data-plot]")) draw(figure);
