// Figures: plotly's traces and layout as the server has made them, drawn when they come into sight.

import { byId, make } from "./page.js";
import { scrollBox, tableOf } from "./tables.js";

const CONFIG = { displayModeBar: false, responsive: true };
const EVERY = 8; // rows and columns of a map, of which a table has one

// Plotly is fetched and compiled beside the page, but begins once the first answer is on the screen
// in words.
let loading = null;
function plotly() {
  loading ??= new Promise((done) =>
    requestAnimationFrame(() =>
      setTimeout(() => {
        document.head.append(make("script", { src: byId("plotly").href, onload: done }));
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

/** Draw a figure, at once or when it comes into sight; `clicked` hears of the keys of a point. */
export function drawFigure(id, picture, clicked = () => {}) {
  const figure = byId(id);
  const plot = figure.querySelector(".plot");
  const again = async () => {
    await plotly();
    if (!plot.data) {
      await ownTask();
      if (shown.get(id) !== again) return; // there is a newer one
    }
    const { data, layout, title } = picture;
    const words = figure.querySelector(".title");
    if (words && title) words.textContent = title;
    plot.style.height = `${layout.height}px`;
    const isNew = !plot.data;
    await window.Plotly.react(plot, data, { ...layout, dragmode: false }, CONFIG);
    if (isNew)
      plot.on("plotly_click", ({ points }) => {
        const keys = points.find((point) => Array.isArray(point.customdata))?.customdata;
        if (keys) clicked(...keys);
      });
  };
  plotly(); // also where nothing is in sight yet
  if (!shown.has(id)) sight.observe(figure);
  shown.set(id, again);
  if (picture.head) showTable(figure, () => rowsOf(picture));
  if (inSight.has(id)) again();
  else waiting.add(id);
}

/** What the pointer would tell of a figure, as a table. */
function rowsOf({ data, head }) {
  const map = data.find((trace) => trace.type === "contour");
  const lines = (text) => text.replace(/<\/?b>/g, "").split("<br>");
  const places = data
    .filter((trace) => trace.hovertext)
    .flatMap(({ x, hovertext }) => hovertext.map((text, place) => [x[place], lines(text)]))
    .sort(([one], [other]) => one - other);
  if (!map) return { head, rows: places.map(([, cells]) => cells) };
  const some = (list) => list.filter((_, place) => place % EVERY === 0);
  const percent = (value) => `${(100 * value).toFixed(0)}%`;
  return {
    caption: "Extra cost, clients per round K down and local steps E across.",
    head: ["K \\ E", ...some(map.x).map((e) => e.toPrecision(3))],
    rows: some(map.y).map((k, row) => [
      k.toPrecision(3),
      ...some(map.customdata[row * EVERY]).map(percent),
    ]),
  };
}

function showTable(figure, table) {
  let details = figure.querySelector("details");
  if (!details) {
    const title = figure.querySelector("figcaption").textContent;
    details = make("details", {}, make("summary", {}, "As a table"), scrollBox(`${title}, as a table`));
    details.addEventListener("toggle", () => details.fill?.());
    figure.append(details);
  }
  details.fill = () => {
    if (details.open) details.lastChild.replaceChildren(tableOf(table()));
  };
  details.fill();
}

addEventListener("beforeprint", () => waiting.forEach((id) => shown.get(id)()));
