// An answer in words and tables: the headline, other settings, doubts, problems.

import { KEYS, markProblems } from "./controls.js";
import { byId, make } from "./page.js";
import { fillTable } from "./tables.js";

const COMPARED = {
  current: "your setting costs",
  paper: "the paper's method costs",
  uniform: "uniform sampling costs",
};
const inEnglish = (number) => number.toLocaleString("en");

export function showAnswer(answer) {
  byId("problems").hidden = true;
  byId("result").classList.remove("stale");
  markProblems(new Set());
  showHeadline(answer);
  showRows(answer);
  showGroups(answer);
  showSlowest(answer);
  showBasis(answer);
  for (const name of ["message", "command", "python"]) byId(name).textContent = answer[name];
  byId("file-note").hidden = answer.fleet_file === null;
  byId("download").textContent = answer.fleet_file ?? "fleet.csv";
  say(answer);
}

let telling = 0;
function say(answer) {
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

function showHeadline(answer) {
  byId("headline").replaceChildren(
    ...(answer.success ? planned(answer) : ["No setting meets the limits"]),
  );
  byId("numbers").classList.toggle("attainable", !answer.success);
  byId("numbers").replaceChildren(
    ...(answer.success ? totals(answer) : attainable(answer)).map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value)),
    ),
  );
}

function planned({ participation: { law, groups }, num_clients, rows: [row], is_guess }) {
  const bold = (text) => make("b", {}, text);
  // What a narrow screen has no room for; it is still read out.
  const aside = (text) => make("span", { className: "aside" }, text);
  const all = inEnglish(num_clients);
  const of = `clients per round${law === "uniform" ? "" : ` (${law})`}`;
  const sampled = [aside("Use "), bold(`K = ${row.words.clients}`), ` of ${all}`, aside(` ${of}`)];
  const everyone = [bold(`All ${all} clients`), " in every round"];
  const inTurns = [bold(`${groups.length} groups`), " take turns"];
  return [
    is_guess ? "The pilots do not settle this. A guess: " : "",
    ...[sampled, everyone, inTurns][Math.min(groups.length, 2)],
    ", ",
    bold(`E = ${inEnglish(row.local_steps)}`),
    aside(" local steps"),
  ];
}

function totals({ rows, unit, regret }) {
  const { rounds, time, energy, cost, co2 } = rows[0].words;
  const pairs = Object.entries({ rounds, time, energy, [`cost (${unit})`]: cost });
  if (co2) pairs.push(["carbon", co2]);
  for (const [role, name] of Object.entries(COMPARED)) {
    const other = rows.find((item) => item.role === role);
    if (other?.remark) pairs.push([name, other.remark]);
  }
  if (regret !== null) pairs.push(["regret at most", `${(100 * regret).toFixed(1)}%`]);
  return pairs;
}

function attainable({ rows }) {
  return rows
    .filter(({ role }) => role === "attainable")
    .map(({ name, words }) => [name, `${words.time}, ${words.energy}, ${words.rounds} rounds`]);
}

function showRows({ rows }) {
  fillTable(byId("rows"), {
    head: ["setting", "K", "E", "rounds", "time", "energy", "cost", ""],
    rows: rows.map(({ name, role, feasible, local_steps, words, remark }) => ({
      role,
      cells: [
        name + (feasible || role === "attainable" ? "" : " (breaks a limit)"),
        words.clients,
        inEnglish(local_steps),
        ...[words.rounds, words.time, words.energy, words.cost],
        remark,
      ],
    })),
  });
}

/** The groups that take turns; nothing where none do. */
function showGroups({ participation: { groups, table } }) {
  byId("groups-part").hidden = groups.length === 0;
  const swatch = ({ colour }) => make("span", { className: "swatch", style: `background: ${colour}` });
  fillTable(byId("groups"), {
    head: table.head,
    rows: table.rows.map(([number, ...cells], place) => [
      make("span", {}, swatch(groups[place]), number),
      ...cells,
    ]),
  });
}

/** The slowest devices, and how often a round waits for them. */
function showSlowest({ pictures: { slowest: rows } }) {
  byId("slowest").parentElement.hidden = rows.length === 0;
  fillTable(byId("slowest"), {
    caption: "The slowest, and how often a round waits for them",
    head: ["device", "devices", "its round", "rounds"],
    rows,
  });
}

export function showDoubts(cases) {
  byId("doubts").hidden = cases.length === 0;
  byId("doubts").classList.remove("stale");
  const hasClients = cases.every((item) => item.clients_per_round !== null);
  const most = Math.max(0.001, ...cases.map((item) => item.regret));
  fillTable(byId("sensitivity"), {
    head: ["if", ...(hasClients ? ["best K"] : []), "best E", "staying costs"],
    rows: cases.map(({ name, clients_per_round, local_steps, regret, words }) => {
      const bar = make("span", { className: "meter", style: `width: ${(4 * regret) / most}rem` });
      return [
        name,
        ...(hasClients ? [inEnglish(clients_per_round)] : []),
        inEnglish(local_steps),
        make("span", {}, bar, words),
      ];
    }),
  });
}

export function showProblems({ problems, message }) {
  byId("problems").replaceChildren(
    make("strong", {}, problems.length > 1 ? `${problems.length} problems:` : "This cannot be planned."),
    make("ul", {}, ...problems.map((problem) => make("li", {}, problem.text))),
    problems.length ? "" : message,
  );
  byId("problems").hidden = false;
  byId("result").classList.add("stale");
  const text = problems.map((problem) => `${problem.column ?? ""} ${problem.message}`).join(" ");
  markProblems(new Set(KEYS.filter((key) => new RegExp(`\\b${key}\\b`).test(text))));
}

function showBasis({ fleet, num_clients, convergence: { name, is_measured } }) {
  byId("basis").textContent =
    `${fleet.name}: ${inEnglish(num_clients)} devices; ${is_measured ? "bound: " : ""}${name}`;
}
