// An answer in words and tables: the headline, other settings, doubts, problems.

import { CONTROLS, markProblems } from "./controls.js";
import { fillTable } from "./tables.js";

const byId = (id) => document.getElementById(id);

let telling = 0;
export function say(answer) {
  clearTimeout(telling);
  telling = setTimeout(() => {
    const row = answer.rows[0];
    byId("live").textContent = answer.success
      ? `${inWords(answer)}, ${row.local_steps} local steps: ${row.words.time}, ${row.words.energy}.`
      : "No setting meets the limits.";
  }, 700);
}

/** Who trains, in a few words. */
function inWords({ participation: { law, groups }, num_clients, rows }) {
  if (groups.length > 1) return `${groups.length} groups take turns`;
  if (groups.length) return `All ${num_clients} clients in every round`;
  return `${rows[0].clients_per_round} clients per round${law === "uniform" ? "" : ` (${law})`}`;
}

export function showHeadline(answer) {
  const head = byId("headline");
  const row = answer.rows[0];
  const bold = (text) => Object.assign(document.createElement("b"), { textContent: text });
  // What a narrow screen has no room for; it is still read out.
  const aside = (text) =>
    Object.assign(document.createElement("span"), { className: "aside", textContent: text });
  const pairs = [];
  if (answer.success) {
    const { law, groups } = answer.participation;
    const all = answer.num_clients.toLocaleString("en");
    const who = groups.length
      ? [
          bold(groups.length > 1 ? `${groups.length} groups` : `All ${all} clients`),
          groups.length > 1 ? " take turns" : " in every round",
        ]
      : [
          aside("Use "),
          bold(`K = ${row.words.clients}`),
          ` of ${all}`,
          aside(` clients per round${law === "uniform" ? "" : ` (${law})`}`),
        ];
    head.replaceChildren(
      ...(answer.is_guess ? ["The pilots do not settle this. A guess: "] : []),
      ...who,
      ", ",
      bold(`E = ${row.local_steps.toLocaleString("en")}`),
      aside(" local steps"),
    );
    pairs.push(
      ["rounds", row.words.rounds],
      ["time", row.words.time],
      ["energy", row.words.energy],
      [`cost (${answer.unit})`, row.words.cost],
    );
    if (row.words.co2) pairs.push(["carbon", row.words.co2]);
    for (const [role, name] of [
      ["current", "your setting costs"],
      ["paper", "the paper's method costs"],
      ["uniform", "uniform sampling costs"],
    ]) {
      const other = answer.rows.find((item) => item.role === role);
      if (other?.remark) pairs.push([name, other.remark]);
    }
    if (answer.regret !== null)
      pairs.push(["regret at most", `${(100 * answer.regret).toFixed(1)}%`]);
  } else {
    head.textContent = "No setting meets the limits";
    for (const row of answer.rows.filter(({ role }) => role === "attainable")) {
      pairs.push([row.name, `${row.words.time}, ${row.words.energy}, ${row.words.rounds} rounds`]);
    }
  }
  byId("numbers").classList.toggle("attainable", !answer.success);
  byId("numbers").replaceChildren(
    ...pairs.map(([name, value]) => {
      const box = document.createElement("div");
      box.append(
        Object.assign(document.createElement("dt"), { textContent: name }),
        Object.assign(document.createElement("dd"), { textContent: value }),
      );
      return box;
    }),
  );
}

export function showRows(answer) {
  fillTable(byId("rows"), {
    head: ["setting", "K", "E", "rounds", "time", "energy", "cost", ""],
    rows: answer.rows.map((row) => ({
      role: row.role,
      cells: [
        row.name + (row.feasible || row.role === "attainable" ? "" : " (breaks a limit)"),
        row.words.clients,
        row.local_steps.toLocaleString("en"),
        row.words.rounds,
        row.words.time,
        row.words.energy,
        row.words.cost,
        row.remark,
      ],
    })),
  });
}

/** The groups that take turns; nothing where none do. */
export function showGroups({ participation: { groups } }) {
  byId("groups-part").hidden = groups.length === 0;
  fillTable(byId("groups"), {
    head: ["group", "devices", "slowest round", "energy", "share of data", "trains in"],
    rows: groups.map(({ words, colour }, place) => {
      const name = document.createElement("span");
      const swatch = Object.assign(document.createElement("span"), { className: "swatch" });
      swatch.style.background = colour;
      name.append(swatch, String(place + 1));
      return [name, words.clients, words.time, words.energy, words.data_share, words.frequency];
    }),
  });
}

export function showDoubts(cases) {
  byId("doubts").hidden = cases.length === 0;
  byId("doubts").classList.remove("stale");
  const hasClients = cases.every((item) => item.clients_per_round !== null);
  const most = Math.max(0.001, ...cases.map((item) => item.regret));
  fillTable(byId("sensitivity"), {
    head: ["if", ...(hasClients ? ["best K"] : []), "best E", "staying costs"],
    rows: cases.map((item) => {
      const cell = document.createElement("span");
      const bar = Object.assign(document.createElement("span"), { className: "meter" });
      bar.style.width = `${(4 * item.regret) / most}rem`;
      cell.append(bar, item.words);
      return [
        item.name,
        ...(hasClients ? [item.clients_per_round.toLocaleString("en")] : []),
        item.local_steps.toLocaleString("en"),
        cell,
      ];
    }),
  });
}

export function showProblems(error) {
  const box = byId("problems");
  const list = document.createElement("ul");
  for (const problem of error.problems)
    list.append(
      Object.assign(document.createElement("li"), { textContent: problem.text ?? problem.message }),
    );
  const several = error.problems.length > 1;
  box.replaceChildren(
    Object.assign(document.createElement("strong"), {
      textContent: several ? `${error.problems.length} problems:` : "This cannot be planned.",
    }),
    list,
  );
  if (!error.problems.length) box.append(error.message);
  box.hidden = false;
  byId("result").classList.add("stale");
  const text = error.problems
    .map((problem) => `${problem.column ?? ""} ${problem.message}`)
    .join(" ");
  markProblems(
    new Set(
      Object.values(CONTROLS)
        .flat()
        .map(({ key }) => key)
        .filter((key) => new RegExp(`\\b${key}\\b`).test(text)),
    ),
  );
}

export function showBasis(answer) {
  byId("basis").textContent =
    `${answer.fleet.name}: ${answer.num_clients.toLocaleString("en")} devices; ${answer.convergence.is_measured ? `bound: ${answer.convergence.name}` : answer.convergence.name}`;
}
