// Losses of runs, against rounds, seconds or joules.

import { colour, draw, layout } from "./plots.js";

const SERIES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

// Where a run went on with another setting: at the loss after the round before.
function changes(curve, against, place) {
  const found = (curve.decisions ?? [])
    .filter((one) => one.round > 1)
    .map((one) => ({ ...one, at: curve.rounds.findLastIndex((round) => round < one.round) }))
    .filter((one) => one.at >= 0);
  return {
    x: found.map((one) => curve[against][one.at]),
    y: found.map((one) => curve.losses[one.at]),
    text: found.map((one) => `from round ${one.round}: ${one.local_steps} local steps`),
    mode: "markers",
    marker: { symbol: "diamond", size: 7, color: SERIES[place % SERIES.length] },
    name: `${curve.name}, re-planned`,
    showlegend: false,
    hovertemplate: "%{text}<extra></extra>",
  };
}

export function drawLosses(data, against) {
  const names = { rounds: "round", seconds: "seconds", joules: "joules" };
  const interval = data.forecast?.intervals?.[against];
  const note = { showarrow: false, font: { color: colour("soft") } };
  draw(
    "losses",
    () => ({
      traces: [...data.curves.map((curve, place) => ({
        x: curve[against],
        y: curve.losses,
        mode: "lines",
        name: curve.name,
        line: {
          color: SERIES[place % SERIES.length],
          width: 2,
          dash: ["solid", "dash", "dot", "dashdot"][Math.floor(place / SERIES.length) % 4],
        },
        hovertemplate: `${curve.name}<br>%{x:,.4~g}: %{y:.4f}<extra></extra>`,
      })), ...data.curves
        .map((curve, place) => changes(curve, against, place))
        .filter((marks) => marks.x.length)],
      layout: layout(
        { title: { text: names[against] }, rangemode: "tozero" },
        { title: { text: "training loss" } },
        data.curves.length,
        {
          shapes: [
            ...(data.target_loss === null
              ? []
              : [
                  {
                    type: "line",
                    xref: "paper",
                    x0: 0,
                    x1: 1,
                    y0: data.target_loss,
                    y1: data.target_loss,
                    line: { color: colour("soft"), dash: "dash", width: 1.5 },
                  },
                ]),
            ...(interval
              ? [
                  {
                    type: "rect",
                    yref: "paper",
                    y0: 0,
                    y1: 1,
                    x0: interval[0],
                    x1: interval[1],
                    fillcolor: colour("band"),
                    line: { width: 0 },
                    layer: "below",
                  },
                ]
              : []),
          ],
          annotations: [
            ...(data.target_loss === null
              ? []
              : [
                  {
                    ...note,
                    text: `target ${data.target_loss}`,
                    xref: "paper",
                    x: 1,
                    y: data.target_loss,
                    xanchor: "right",
                    yanchor: "bottom",
                  },
                ]),
            ...(interval
              ? [
                  {
                    ...note,
                    text: "end as foretold, 9 of 10",
                    yref: "paper",
                    y: 1,
                    x: interval[0],
                    xanchor: "left",
                    yanchor: "top",
                  },
                ]
              : []),
          ],
        },
      ),
    }),
    () => ({
      head: ["run", "how it ended", "what it took", "last loss"],
      rows: data.curves.map((curve) => [
        curve.name,
        curve.status,
        curve.words,
        curve.losses.at(-1)?.toPrecision(4) ?? "-",
      ]),
    }),
  );
}
