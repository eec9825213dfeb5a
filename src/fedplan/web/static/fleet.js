// Figures of the devices: how long a round takes each, and who trains when.

import { colour, draw, layout } from "./plots.js";
import { byId } from "./page.js";
import { scrollBox, tableOf } from "./tables.js";

const NARROW = 640; // pixels; a narrower figure has its panels one below the other
const ANY = "rgba(0,0,0,0)";

/** Who trains when: traces and layout as the server has made them, in the page's size. */
export function drawTurns(data, groups) {
  const figure = byId("turns");
  const plot = figure.querySelector(".plot");
  draw(
    "turns",
    () => {
      const narrow = plot.clientWidth < NARROW;
      const { title, data: traces, layout: given } = narrow ? data.narrow : data.wide;
      figure.querySelector("p").textContent = `${title}.`;
      plot.style.height = `${given.height}px`;
      const made = { ...given, margin: { l: 10, r: narrow ? 26 : 34, t: 10, b: 50 }, dragmode: false };
      made.paper_bgcolor = made.plot_bgcolor = ANY;
      made.font = { ...given.font, size: narrow ? 11 : 12 };
      return { traces, layout: made };
    },
    () => ({
      caption: "The first rounds, in their order.",
      head: ["round", "group", "devices", "its round"],
      rows: data.order.map((group, place) => [
        (place + 1).toLocaleString("en"),
        (group + 1).toLocaleString("en"),
        groups[group].words.clients,
        groups[group].words.time,
      ]),
    }),
  );
}

/** Devices by the length of their round, in the colours of their groups where there are any. */
export function drawHistogram(data, groups) {
  showSlowest(data.slowest);
  byId("histogram").classList.toggle("by-group", data.group !== null);
  const name = (place) => {
    if (!data.group) return "";
    return data.group[place] < 0 ? ", without data" : `, group ${data.group[place] + 1}`;
  };
  const shade = (place) => groups[data.group?.[place]]?.colour ?? colour("bar");
  const words = data.counts.map(
    (count, place) =>
      `${data.left[place]} to ${data.right[place]}: ${count.toLocaleString("en")} devices${name(place)}`,
  );
  const top = Math.max(...data.counts.map((count, place) => data.base[place] + count));
  draw(
    "histogram",
    () => ({
      traces: [
        {
          type: "bar",
          x: data.left,
          y: data.counts,
          base: data.base,
          width: data.left.map((left, place) => data.right[place] - left),
          offset: 0,
          marker: { color: data.left.map((_, place) => shade(place)) },
          showlegend: false,
          text: words,
          textposition: "none",
          hovertemplate: "%{text}<extra></extra>",
        },
        ...data.lines.map((line, place) => ({
          x: [line.at, line.at],
          y: [0, top],
          mode: "lines",
          name: line.name,
          hoverinfo: "name",
          line: {
            color: place ? "#D55E00" : colour("soft"),
            dash: place ? "solid" : "dash",
            width: 2,
          },
        })),
      ],
      layout: layout(data.xaxis, { title: { text: "devices" }, rangemode: "tozero" }, 2, {
        bargap: 0,
        barmode: "overlay",
      }),
    }),
    () => ({
      head: ["a round takes", ...(data.group ? ["group"] : []), "devices"],
      rows: data.counts.map((count, place) => [
        `${data.left[place]} to ${data.right[place]}`,
        ...(data.group ? [data.group[place] < 0 ? "none" : data.group[place] + 1] : []),
        count,
      ]),
    }),
  );
}

function showSlowest(slowest) {
  const figure = byId("histogram");
  let list = figure.querySelector(".slowest");
  if (!list) {
    list = scrollBox("The slowest devices");
    list.classList.add("slowest");
    figure.append(list);
  }
  list.hidden = slowest.length === 0;
  list.replaceChildren(
    tableOf({
      caption: "The slowest, and how often a round waits for them",
      head: ["device", "devices", "its round", "rounds"],
      rows: slowest.map((item) => [
        item.name,
        item.count.toLocaleString("en"),
        item.time,
        item.share,
      ]),
    }),
  );
}
