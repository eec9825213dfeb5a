// Plots: what all figures share, drawn by plotly: layout, colours of the page, a table below.

import { scrollBox, tableOf } from "./tables.js";

// Plotly is fetched and compiled beside the page, but begins once the first answer is on the screen
// in words.
let loading = null;
function plotly() {
  loading ??= new Promise((done) =>
    requestAnimationFrame(() =>
      setTimeout(() => {
        const script = document.createElement("script");
        script.src = document.getElementById("plotly").href;
        script.addEventListener("load", done);
        document.head.append(script);
      }),
    ),
  );
  return loading;
}
// A figure's first drawing takes long, so each has a task of its own: what is there is seen
// before the next one begins.
let turn = Promise.resolve();
function ownTask() {
  turn = turn.then(() => new Promise((go) => setTimeout(go)));
  return turn;
}
const CONFIG = { displayModeBar: false, responsive: true };
const shown = new Map(); // element id -> how to draw it again
const waiting = new Set(); // ids of figures that have changed while out of sight
const inSight = new Set();
// Drawing is most of a move's work in the browser, so only what can be seen is drawn at once.
const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) inSight.add(target.id);
      else inSight.delete(target.id);
      if (isIntersecting && waiting.delete(target.id)) shown.get(target.id)();
    }
  },
  { rootMargin: "150px" },
);

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

/** Draw a figure, at once or when it comes into sight; `first(plot)` hears of the first time. */
export function draw(id, make, table, first = () => {}) {
  const figure = document.getElementById(id);
  const again = async () => {
    await plotly();
    const plot = figure.querySelector(".plot");
    if (!plot.data) {
      await ownTask();
      if (shown.get(id) !== again) return; // there is a newer one
    }
    const { traces, layout } = make();
    const isNew = !plot.data;
    await window.Plotly.react(plot, traces, layout, CONFIG);
    if (isNew) first(plot);
  };
  plotly(); // also where nothing is in sight yet
  if (!shown.has(id)) sight.observe(figure);
  shown.set(id, again);
  if (table) showTable(figure, table);
  if (inSight.has(id)) again();
  else waiting.add(id);
}

function showTable(figure, table) {
  let details = figure.querySelector("details");
  if (!details) {
    details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "As a table";
    const title = figure.querySelector("figcaption").textContent;
    details.append(summary, scrollBox(`${title}, as a table`));
    details.addEventListener("toggle", () => details.fill?.());
    figure.append(details);
  }
  details.fill = () => {
    if (details.open) details.lastChild.replaceChildren(tableOf(table()));
  };
  details.fill();
}

addEventListener("beforeprint", () => waiting.forEach((id) => shown.get(id)()));
for (const what of ["(prefers-color-scheme: dark)", "(max-width: 60rem)"])
  matchMedia(what).addEventListener("change", () => shown.forEach((again) => again()));
