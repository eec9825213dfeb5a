// Plots: what all figures share, drawn by plotly: layout, colours of the page, a table below.

import { tableOf } from "./tables.js";

const script = document.getElementById("plotly");
export const ready = window.Plotly
  ? Promise.resolve()
  : new Promise((done) => script.addEventListener("load", done));
const CONFIG = { displayModeBar: false, responsive: true };
const shown = new Map(); // element id -> how to draw it again

export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function axis(given) {
  return { ...given, gridcolor: colour("grid"), linecolor: colour("soft"), automargin: true };
}

/** The layout that all figures share; `lines` of the legend stand below the figure. */
export function layout(xaxis, yaxis, lines, more = {}) {
  const small = window.innerWidth < 480;
  return {
    xaxis: axis(xaxis),
    yaxis: axis(yaxis),
    margin: { l: 56, r: 14, t: 14, b: 50 + 19 * lines },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: {
      family: "system-ui, sans-serif",
      size: small ? 11 : 0.78 * parseFloat(getComputedStyle(document.documentElement).fontSize),
      color: colour("ink"),
    },
    legend: {
      orientation: small || lines > 1 ? "v" : "h",
      x: 0,
      yref: "container",
      y: 0,
      yanchor: "bottom",
      tracegroupgap: 0,
    },
    hoverlabel: { align: "left" },
    dragmode: false,
    showlegend: true,
    ...more,
  };
}

export function draw(id, make, table) {
  const figure = document.getElementById(id);
  const again = async () => {
    await ready;
    const { traces, layout } = make();
    await window.Plotly.react(figure.querySelector(".plot"), traces, layout, CONFIG);
  };
  shown.set(id, again);
  if (table) showTable(figure, table);
  return again();
}

function showTable(figure, table) {
  let details = figure.querySelector("details");
  if (!details) {
    details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "As a table";
    details.append(summary, document.createElement("div"));
    details.addEventListener("toggle", () => details.fill?.());
    figure.append(details);
  }
  details.fill = () => {
    if (details.open) details.lastChild.replaceChildren(tableOf(table()));
  };
  details.fill();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  shown.forEach((again) => again()),
);
