"use strict";
// Draws every figure over its still image; where this fails, or does not run, the image stays.
const NARROW = 640;

function fit(spec, width) {
  const layout = spec.layout;
  layout.margin = { l: 64, r: 24, t: 24, b: 60 };
  layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
  delete layout.width;
  if (width >= NARROW) return spec;
  // No room for a legend inside of a panel: it goes below.
  layout.margin = { l: 52, r: 12, t: 16, b: 60 };
  layout.annotations = []; // what stands at a bar is in the caption
  layout.font = { ...layout.font, size: 12 };
  let entries = 0;
  for (const trace of spec.data) {
    if (trace.showlegend !== false && trace.name) entries += 1;
    if (trace.legend) delete trace.legend;
  }
  for (const key of Object.keys(layout)) if (/^legend\d+$/.test(key)) delete layout[key];
  layout.legend = { orientation: "h", x: 0, y: -0.2, yanchor: "top", font: { size: 11 } };
  layout.height = (layout.height || 420) - 60 + 18 * entries;
  return spec;
}

async function draw(figure) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const live = document.createElement("div");
  live.className = "live";
  live.setAttribute("role", "group");
  live.setAttribute("aria-label", figure.querySelector("img").alt);
  figure.prepend(live);
  const options = { responsive: true, displaylogo: false };
  try {
    fit(spec, figure.clientWidth);
    await Plotly.newPlot(live, spec.data, spec.layout, options);
    figure.classList.add("drawn");
  } catch (error) {
    live.remove();
    console.warn("A figure stays still:", error);
  }
}

for (const figure of document.querySelectorAll("figure[data-plot]")) draw(figure);
