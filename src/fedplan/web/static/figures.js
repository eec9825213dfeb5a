// Figures of a plan: arrays from the server, placed and coloured; nothing is computed here.

import { colour, draw, layout } from "./plots.js";

function markTraces(marks, { legend = true } = {}) {
  return marks.map((mark) => ({
    x: [mark.x],
    y: [mark.y],
    mode: "markers",
    name: mark.name,
    marker: {
      symbol: mark.symbol,
      size: mark.size,
      color: mark.colour,
      line: { color: "white", width: 1.2 },
    },
    cliponaxis: false,
    showlegend: legend,
    hovertemplate: `<b>${mark.name}</b>${mark.words ? `<br>${mark.words}` : ""}<extra></extra>`,
  }));
}

/** The frontier; `picked(K, E)` hears of a click on one of its points. */
export function drawFrontier(data, picked) {
  const kept = (met) => data.x.map((_, place) => place).filter((place) => data.met[place] === met);
  const points = (met, name, face) => {
    const places = kept(met);
    return {
      x: places.map((place) => data.x[place]),
      y: places.map((place) => data.y[place]),
      customdata: places.map((place) => data.setting[place]),
      text: places.map(
        (place) =>
          `<b>K=${data.setting[place][0]}, E=${data.setting[place][1]}</b><br>${data.words[place]}` +
          (data.weights[place] ? `<br>cheapest for energy weights ${data.weights[place]}` : ""),
      ),
      hovertemplate: "%{text}<extra></extra>",
      mode: "markers",
      name,
      marker: { size: 6.5, color: face, line: { color: colour("curve"), width: 1.2 } },
      showlegend: places.length > 0 && name !== "frontier",
    };
  };
  draw(
    "frontier",
    () => ({
      traces: [
        {
          x: data.x,
          y: data.y,
          mode: "lines",
          line: { color: colour("bar"), width: 2 },
          hoverinfo: "skip",
          showlegend: false,
        },
        points(false, "over a limit", "rgba(0,0,0,0)"),
        points(true, "frontier", colour("curve")),
        ...markTraces(data.marks),
      ],
      layout: layout(data.xaxis, data.yaxis, data.marks.length + data.met.includes(false), {
        shapes: data.lines.map((line) => ({
          type: "line",
          line: { color: colour("soft"), dash: "dash", width: 1.5 },
          ...(line.along === "x"
            ? { x0: line.at, x1: line.at, yref: "paper", y0: 0, y1: 1 }
            : { y0: line.at, y1: line.at, xref: "paper", x0: 0, x1: 1 }),
        })),
        annotations: data.lines.map((line) => ({
          text: line.name,
          showarrow: false,
          font: { color: colour("soft"), size: 11 },
          bgcolor: colour("card"),
          opacity: 0.85,
          ...(line.along === "x"
            ? {
                x: axisPlace(data.xaxis, line.at),
                yref: "paper",
                y: 1,
                textangle: 90,
                xanchor: "left",
                yanchor: "top",
              }
            : {
                y: axisPlace(data.yaxis, line.at),
                xref: "paper",
                x: 1,
                xanchor: "right",
                yanchor: "bottom",
              }),
        })),
      }),
    }),
    () => ({
      caption: data.note,
      head: ["setting", "time and energy", "energy weights"],
      rows: data.setting.map(([k, e], place) => [
        `K=${k}, E=${e}`,
        data.words[place],
        data.weights[place] || "none",
      ]),
    }),
    (plot) => {
      plot.on("plotly_click", ({ points }) => {
        const setting = points.find((point) => Array.isArray(point.customdata))?.customdata;
        if (setting) picked(...setting);
      });
    },
  );
}

// Plotly places annotations of a logarithmic axis by the exponent.
const axisPlace = ({ type }, value) => (type === "log" ? Math.log10(value) : value);

export function drawMap(data) {
  const figure = document.getElementById("map");
  figure.querySelector("figcaption").textContent = data.title;
  figure.hidden = !data.is_map;
  if (!data.is_map) return;
  const count = data.levels.length;
  const share = (rank) => rank / Math.max(count, 1);
  const scale = count
    ? data.colours.map((shade, rank) => [share(rank), shade])
    : [
        [0, data.colours[0]],
        [1, data.colours[0]],
      ];
  const traces = [
    {
      type: "contour",
      x: data.x,
      y: data.y,
      z: data.bands,
      customdata: data.extra,
      contours: { start: 0, end: Math.max(count - 1, 0), size: 1, coloring: "fill" },
      colorscale: scale,
      line: { color: "#767676", width: 1 },
      showscale: count > 0,
      colorbar: {
        title: { text: "extra" },
        thickness: 12,
        outlinewidth: 0,
        tickvals: data.levels.map((_, place) => place),
        ticktext: data.levels,
      },
      hovertemplate: `K=%{y:,.0f}, E=%{x:,.0f}<br>${data.quantity} %{customdata:+.1%}<extra></extra>`,
    },
  ];
  if (data.forbidden) {
    traces.push({
      type: "contour",
      ...data.forbidden,
      showscale: false,
      hoverinfo: "skip",
      name: "over a limit",
      contours: { start: 0.5, end: 0.5, size: 1, coloring: "fill" },
      line: { width: 1, color: "#444" },
      colorscale: [
        [0, "rgba(60,60,60,0)"],
        [1, "rgba(60,60,60,0.45)"],
      ],
    });
  }
  traces.push(...markTraces(data.marks));
  draw(
    "map",
    () => ({ traces, layout: layout(data.xaxis, data.yaxis, data.marks.length) }),
    () => {
      const some = (list) => list.filter((_, place) => place % 8 === 0);
      return {
        caption: "Extra cost, clients per round K down and local steps E across.",
        head: ["K \\ E", ...some(data.x).map((e) => e.toPrecision(3))],
        rows: some(data.y).map((k, row) => [
          k.toPrecision(3),
          ...some(data.extra[row * 8]).map((value) => `${(100 * value).toFixed(0)}%`),
        ]),
      };
    },
  );
}

export function drawCurve(id, data, at) {
  const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
  draw(
    id,
    () => ({
      traces: [
        { ...edge, x: data.x, y: data.low },
        {
          ...edge,
          x: data.x,
          y: data.high,
          fill: "tonexty",
          fillcolor: colour("band"),
          name: "if the bound were otherwise",
          showlegend: true,
        },
        {
          x: data.x,
          y: data.y,
          mode: "lines",
          name: "as planned",
          line: { color: colour("curve"), width: 2.5 },
          hovertemplate: "%{x:,}: %{y:.3f}<extra></extra>",
        },
        {
          x: [at],
          y: [1],
          mode: "markers",
          name: "the plan",
          showlegend: false,
          marker: {
            symbol: "star",
            size: 16,
            color: "#D55E00",
            line: { color: "white", width: 1.2 },
          },
          hoverinfo: "skip",
        },
      ],
      layout: layout(data.xaxis, data.yaxis, 2),
    }),
    () => ({
      head: [data.xaxis.title.text, "cost / the plan's", "lowest", "highest"],
      rows: data.x.map((value, place) => [value, data.y[place], data.low[place], data.high[place]]),
    }),
  );
}
