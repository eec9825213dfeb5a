// Figures: arrays from the server, drawn by plotly; and the same as tables for who cannot see them.

const script = document.getElementById("plotly");
const ready = window.Plotly ? Promise.resolve() : new Promise((done) => script.addEventListener("load", done));
const CONFIG = { displayModeBar: false, responsive: true };
const shown = new Map(); // element id -> how to draw it again

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function axis(given) {
  return { ...given, gridcolor: colour("grid"), linecolor: colour("soft"), automargin: true };
}

/** The layout that all figures share; `lines` of the legend stand below the figure. */
function layout(xaxis, yaxis, lines, more = {}) {
  const small = window.innerWidth < 480;
  return {
    xaxis: axis(xaxis),
    yaxis: axis(yaxis),
    margin: { l: 56, r: 14, t: 14, b: 50 + 19 * lines },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: small ? 11 : 0.78 * parseFloat(getComputedStyle(document.documentElement).fontSize), color: colour("ink") },
    legend: { orientation: small || lines > 1 ? "v" : "h", x: 0, yref: "container", y: 0, yanchor: "bottom", tracegroupgap: 0 },
    hoverlabel: { align: "left" },
    dragmode: false,
    showlegend: true,
    ...more,
  };
}

function draw(id, make, table) {
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

/** A table of rows whose first cell names them. */
export function tableOf({ head, rows, caption }) {
  const table = document.createElement("table");
  fillTable(table, { head, rows, caption });
  return table;
}

export function fillTable(table, { head, rows, caption }) {
  const made = [];
  if (caption) {
    const title = document.createElement("caption");
    title.textContent = caption;
    made.push(title);
  }
  const thead = document.createElement("thead");
  const top = thead.insertRow();
  for (const name of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    top.append(cell);
  }
  const body = document.createElement("tbody");
  for (const row of rows) {
    const line = body.insertRow();
    if (row.role) line.dataset.role = row.role;
    (row.cells ?? row).forEach((content, place) => {
      const cell = document.createElement(place ? "td" : "th");
      if (!place) cell.scope = "row";
      if (content instanceof Node) cell.append(content);
      else cell.textContent = content;
      line.append(cell);
    });
  }
  table.replaceChildren(...made, thead, body);
}

function markTraces(marks, { legend = true } = {}) {
  return marks.map((mark) => ({
    x: [mark.x],
    y: [mark.y],
    mode: "markers",
    name: mark.name,
    marker: { symbol: mark.symbol, size: mark.size, color: mark.colour, line: { color: "white", width: 1.2 } },
    cliponaxis: false,
    showlegend: legend,
    hovertemplate: `<b>${mark.name}</b>${mark.words ? `<br>${mark.words}` : ""}<extra></extra>`,
  }));
}

export function drawFrontier(data) {
  const kept = (met) => data.x.map((_, place) => place).filter((place) => data.met[place] === met);
  const points = (met, name, face) => {
    const places = kept(met);
    return {
      x: places.map((place) => data.x[place]),
      y: places.map((place) => data.y[place]),
      customdata: places.map((place) => data.setting[place]),
      text: places.map((place) => `<b>K=${data.setting[place][0]}, E=${data.setting[place][1]}</b><br>${data.words[place]}` +
        (data.weights[place] ? `<br>cheapest for energy weights ${data.weights[place]}` : "")),
      hovertemplate: "%{text}<extra></extra>",
      mode: "markers",
      name,
      marker: { size: 6.5, color: face, line: { color: colour("curve"), width: 1.2 } },
      showlegend: places.length > 0 && name !== "frontier",
    };
  };
  return draw("frontier", () => ({
    traces: [
      { x: data.x, y: data.y, mode: "lines", line: { color: colour("bar"), width: 2 }, hoverinfo: "skip", showlegend: false },
      points(false, "over a limit", "rgba(0,0,0,0)"),
      points(true, "frontier", colour("curve")),
      ...markTraces(data.marks),
    ],
    layout: layout(data.xaxis, data.yaxis, data.marks.length + data.met.includes(false), {
      shapes: data.lines.map((line) => ({
        type: "line",
        line: { color: colour("soft"), dash: "dash", width: 1.5 },
        ...(line.along === "x" ? { x0: line.at, x1: line.at, yref: "paper", y0: 0, y1: 1 } : { y0: line.at, y1: line.at, xref: "paper", x0: 0, x1: 1 }),
      })),
      annotations: data.lines.map((line) => ({
        text: line.name,
        showarrow: false,
        font: { color: colour("soft"), size: 11 },
        bgcolor: colour("card"),
        opacity: 0.85,
        ...(line.along === "x" ? { x: axisPlace(data.xaxis, line.at), yref: "paper", y: 1, textangle: 90, xanchor: "left", yanchor: "top" }
          : { y: axisPlace(data.yaxis, line.at), xref: "paper", x: 1, xanchor: "right", yanchor: "bottom" }),
      })),
    }),
  }), () => ({
    caption: data.note,
    head: ["setting", "time and energy", "energy weights"],
    rows: data.setting.map(([k, e], place) => [`K=${k}, E=${e}`, data.words[place], data.weights[place] || "none"]),
  }));
}

// Plotly places annotations of a logarithmic axis by the exponent.
const axisPlace = ({ type }, value) => (type === "log" ? Math.log10(value) : value);

export function drawMap(data) {
  const figure = document.getElementById("map");
  figure.querySelector("figcaption").textContent = data.title;
  figure.hidden = !data.is_map;
  if (!data.is_map) return Promise.resolve();
  const count = data.levels.length;
  const share = (rank) => rank / Math.max(count, 1);
  const scale = count ? data.colours.map((shade, rank) => [share(rank), shade]) : [[0, data.colours[0]], [1, data.colours[0]]];
  const traces = [{
    type: "contour", x: data.x, y: data.y, z: data.bands, customdata: data.extra,
    contours: { start: 0, end: Math.max(count - 1, 0), size: 1, coloring: "fill" },
    colorscale: scale, line: { color: "#767676", width: 1 }, showscale: count > 0,
    colorbar: { title: { text: "extra" }, thickness: 12, outlinewidth: 0, tickvals: data.levels.map((_, place) => place), ticktext: data.levels },
    hovertemplate: `K=%{y:,.0f}, E=%{x:,.0f}<br>${data.quantity} %{customdata:+.1%}<extra></extra>`,
  }];
  if (data.forbidden) {
    traces.push({
      type: "contour", ...data.forbidden, showscale: false, hoverinfo: "skip", name: "over a limit",
      contours: { start: 0.5, end: 0.5, size: 1, coloring: "fill" }, line: { width: 1, color: "#444" },
      colorscale: [[0, "rgba(60,60,60,0)"], [1, "rgba(60,60,60,0.45)"]],
    });
  }
  traces.push(...markTraces(data.marks));
  return draw("map", () => ({ traces, layout: layout(data.xaxis, data.yaxis, data.marks.length) }),
    () => {
      const some = (list) => list.filter((_, place) => place % 8 === 0);
      return {
        caption: "Extra cost, clients per round K down and local steps E across.",
        head: ["K \\ E", ...some(data.x).map((e) => e.toPrecision(3))],
        rows: some(data.y).map((k, row) => [k.toPrecision(3), ...some(data.extra[row * 8]).map((value) => `${(100 * value).toFixed(0)}%`)]),
      };
    });
}

export function drawCurve(id, data, at) {
  const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
  return draw(id, () => ({
    traces: [
      { ...edge, x: data.x, y: data.low },
      { ...edge, x: data.x, y: data.high, fill: "tonexty", fillcolor: colour("band"), name: "if the bound were otherwise", showlegend: true },
      { x: data.x, y: data.y, mode: "lines", name: "as planned", line: { color: colour("curve"), width: 2.5 }, hovertemplate: "%{x:,}: %{y:.3f}<extra></extra>" },
      { x: [at], y: [1], mode: "markers", name: "the plan", showlegend: false, marker: { symbol: "star", size: 16, color: "#D55E00", line: { color: "white", width: 1.2 } }, hoverinfo: "skip" },
    ],
    layout: layout(data.xaxis, data.yaxis, 2),
  }), () => ({
    head: [data.xaxis.title.text, "cost / the plan's", "lowest", "highest"],
    rows: data.x.map((value, place) => [value, data.y[place], data.low[place], data.high[place]]),
  }));
}

export function drawHistogram(data) {
  const figure = document.getElementById("histogram");
  let list = figure.querySelector(".slowest");
  if (!list) {
    list = document.createElement("div");
    list.className = "slowest scroll";
    figure.append(list);
  }
  list.replaceChildren(tableOf({
    caption: "The slowest, and how often a round waits for them",
    head: ["device", "devices", "its round", "rounds"],
    rows: data.slowest.map((item) => [item.name, item.count.toLocaleString("en"), item.time, item.share]),
  }));
  return draw("histogram", () => ({
    traces: [
      {
        type: "bar", x: data.left, y: data.counts, width: data.left.map((left, place) => data.right[place] - left), offset: 0,
        marker: { color: colour("bar") }, showlegend: false,
        text: data.counts.map((count, place) => `${data.left[place]} to ${data.right[place]}: ${count.toLocaleString("en")} devices`),
        textposition: "none", hovertemplate: "%{text}<extra></extra>",
      },
      ...data.lines.map((line, place) => ({
        x: [line.at, line.at], y: [0, Math.max(...data.counts)], mode: "lines", name: line.name, hoverinfo: "name",
        line: { color: place ? "#D55E00" : colour("soft"), dash: place ? "solid" : "dash", width: 2 },
      })),
    ],
    layout: layout(data.xaxis, { title: { text: "devices" }, rangemode: "tozero" }, 2, { bargap: 0 }),
  }), () => ({
    head: ["a round takes", "devices"],
    rows: data.counts.map((count, place) => [`${data.left[place]} to ${data.right[place]}`, count]),
  }));
}

const SERIES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

export function drawLosses(data, against) {
  const names = { rounds: "round", seconds: "seconds", joules: "joules" };
  const interval = data.forecast?.intervals?.[against];
  const note = { showarrow: false, font: { color: colour("soft") } };
  return draw("losses", () => ({
    traces: data.curves.map((curve, place) => ({
      x: curve[against], y: curve.losses, mode: "lines", name: curve.name,
      line: { color: SERIES[place % SERIES.length], width: 2, dash: ["solid", "dash", "dot", "dashdot"][Math.floor(place / SERIES.length) % 4] },
      hovertemplate: `${curve.name}<br>%{x:,.4~g}: %{y:.4f}<extra></extra>`,
    })),
    layout: layout({ title: { text: names[against] }, rangemode: "tozero" }, { title: { text: "training loss" } }, data.curves.length, {
      shapes: [
        ...(data.target_loss === null ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: data.target_loss, y1: data.target_loss, line: { color: colour("soft"), dash: "dash", width: 1.5 } }]),
        ...(interval ? [{ type: "rect", yref: "paper", y0: 0, y1: 1, x0: interval[0], x1: interval[1], fillcolor: colour("band"), line: { width: 0 }, layer: "below" }] : []),
      ],
      annotations: [
        ...(data.target_loss === null ? [] : [{ ...note, text: `target ${data.target_loss}`, xref: "paper", x: 1, y: data.target_loss, xanchor: "right", yanchor: "bottom" }]),
        ...(interval ? [{ ...note, text: "predicted end, 9 of 10", yref: "paper", y: 1, x: interval[0], xanchor: "left", yanchor: "top" }] : []),
      ],
    }),
  }), () => ({
    head: ["run", "how it ended", "what it took", "last loss"],
    rows: data.curves.map((curve) => [curve.name, curve.status, curve.words, curve.losses.at(-1)?.toPrecision(4) ?? "-"]),
  }));
}

/** Call back with (K, E) where a setting is picked in a figure. */
export async function onPick(callback) {
  await ready;
  const plot = document.querySelector("#frontier .plot");
  plot.on?.("plotly_click", ({ points }) => {
    const setting = points.find((point) => Array.isArray(point.customdata))?.customdata;
    if (setting) callback(...setting);
  });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.forEach((again) => again()));
