// The page: its state, one question at a time to the server, and what the answer changes.

import {
  say,
  showBasis,
  showDoubts,
  showGroups,
  showHeadline,
  showProblems,
  showRows,
} from "./answer.js";
import { CONTROLS, makeControls, markProblems, showState, useScales } from "./controls.js";
import { drawCurve, drawFrontier, drawMap } from "./figures.js";
import { drawHistogram, drawTurns } from "./fleet.js";
import { startRuns } from "./runs.js";

const byId = (id) => document.getElementById(id);
const form = byId("controls");
const USUAL = {
  objective: "weight",
  fleet: "given",
  bound: "given",
  pilots: "given",
  law: "normal",
};
for (const { key, usual } of Object.values(CONTROLS).flat())
  if (usual !== undefined) USUAL[key] = usual;
const LAWS = {
  turns: "Groups of devices of like speed, one after the other; slow groups less often.",
  shuffled: "K clients a round in a random order: everyone once before anyone again.",
  uniform: "K clients at random in every round, as in the paper.",
  weighted: "K clients at random, quick ones more often and counting less.",
};
const NAMES = { fleet: new Map(), pilots: new Map() }; // of uploads, by id
const SETTLED_MS = 250;
const TOO_LATE_MS = 400;

let start = null; // what the server began with
let state = readLink();
let latest = null; // the last answer shown
let asking = null; // { controller, since, key }
let frame = 0;
let settled = 0;

function readLink() {
  const found = {};
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    if (key === "view" || key === "study") continue;
    found[key] =
      text !== "" && Number.isFinite(Number(text)) && key !== "fleet" && key !== "pilots"
        ? Number(text)
        : text;
  }
  return found;
}

function writeLink() {
  const params = new URLSearchParams(state);
  if (!byId("runs-view").hidden) {
    params.set("view", "runs");
    if (byId("study").value) params.set("study", byId("study").value);
  }
  const text = params.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

/** What is sent: the state, and the usual values of what is in use. */
function question() {
  const value = (key) => state[key] ?? USUAL[key];
  const sent = { objective: value("objective"), fleet: value("fleet"), bound: value("bound") };
  const groups = ["limits", "current", value("objective") === "prices" ? "prices" : "weight"];
  if (sent.fleet === "drawn") {
    groups.push("drawn");
    sent.law = value("law");
  }
  if (sent.bound === "own") groups.push("own");
  if (value("pilots") !== "given") sent.pilots = value("pilots"); // with an own bound: its sliders' range
  if (state.participation) sent.participation = state.participation;
  if (state.method && isMapped()) sent.method = state.method;
  for (const { key } of CONTROLS.assumed) if (key in state) sent[key] = state[key];
  for (const { key } of groups.flatMap((group) => CONTROLS[group])) {
    if (value(key) !== undefined) sent[key] = value(key);
  }
  return sent;
}

/** Whether plans are for uniform sampling with a bound, which have methods and maps. */
function isMapped() {
  const law = state.participation ?? latest?.participation.law ?? "uniform";
  return law === "uniform" && isMeasured();
}

function isMeasured() {
  if (state.bound === "none") return false;
  return start?.is_measured !== false || state.bound === "own" || "pilots" in state;
}

function change(key, value) {
  if (value === null || value === undefined || value === USUAL[key]) delete state[key];
  else state[key] = value;
  showParts();
  moved();
}

function moved() {
  byId("answer").setAttribute("aria-busy", "true"); // until the newest state is answered
  if (!frame) frame = requestAnimationFrame(ask);
  clearTimeout(settled);
  settled = setTimeout(writeLink, SETTLED_MS);
}

/** Ask for the state as it is now. One question is under way at a time, so that answers keep up
 * with a slider; one that takes long is given up for the newest. */
async function ask() {
  frame = 0;
  const body = JSON.stringify(question());
  if (asking) {
    if (asking.body === body) return;
    asking.again = true;
    if (performance.now() - asking.since > TOO_LATE_MS) asking.controller.abort();
    return;
  }
  const mine = { controller: new AbortController(), since: performance.now(), body, again: false };
  asking = mine;
  try {
    const response = await post("/api/plan", body, mine.controller.signal);
    if (response.success !== undefined && !response.error) show(response, body);
    else showProblems(response.error);
  } catch (error) {
    if (error.name !== "AbortError")
      showProblems({
        message: "The server does not answer. Is `fedplan serve` still running?",
        problems: [],
      });
  } finally {
    asking = null;
    if (mine.again) ask();
    else if (!frame) byId("answer").setAttribute("aria-busy", "false");
  }
}

async function post(path, body, signal, type = "application/json") {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": type },
    body,
    signal,
  });
  return response.json();
}

function show(answer, body) {
  latest = answer;
  byId("problems").hidden = true;
  byId("result").classList.remove("stale");
  markProblems(new Set());
  showHeadline(answer);
  showRows(answer);
  showGroups(answer);
  showParts();
  if (answer.participation.law === "turns") byId("law-other").textContent = "";
  byId("message").textContent = answer.message;
  byId("command").textContent = answer.command;
  byId("python").textContent = answer.python;
  byId("file-note").hidden = answer.fleet_file === null;
  byId("download").textContent = answer.fleet_file ?? "fleet.csv";
  useScales(answer.scales, state, USUAL);
  showBasis(answer);
  askDoubts(body);
  showPictures(answer);
  say(answer);
  document.documentElement.dataset.shown = body; // what the figures show, for who watches the page
}

function showPictures({ pictures, participation, rows }) {
  const { frontier, map, curves, turns, fleet, note } = pictures;
  for (const [id, data] of Object.entries({ frontier, map, turns, steps: curves, clients: curves }))
    byId(id).hidden = data === null;
  byId("no-map").textContent = note;
  byId("no-map").hidden = !note;
  if (turns) drawTurns(turns, participation.groups);
  if (frontier) drawFrontier(frontier, pick);
  if (map) drawMap(map);
  if (curves) {
    drawCurve("steps", curves.steps, rows[0].local_steps);
    drawCurve("clients", curves.clients, rows[0].clients_per_round);
  }
  drawHistogram(fleet, participation.groups);
}

function pick(k, e) {
  state.current_clients_per_round = k;
  state.current_local_steps = e;
  showState(state, USUAL);
  moved();
}

let doubting = 0;
function askDoubts(body) {
  clearTimeout(doubting);
  byId("doubts").classList.add("stale");
  doubting = setTimeout(async () => {
    const found = await post("/api/sensitivity", body);
    if (!found.success || body !== JSON.stringify(question())) return;
    showDoubts(found.sensitivity);
    byId("law-other").textContent = found.turns;
  }, SETTLED_MS);
}

/** Show the controls that are in use. */
function showParts() {
  const value = (key) => state[key] ?? USUAL[key];
  const group = (name, visible) => {
    form.querySelector(`[data-group="${name}"]`).hidden = !visible;
  };
  group("weight", value("objective") === "weight");
  group("prices", value("objective") === "prices");
  group("drawn", value("fleet") === "drawn");
  group("own", value("bound") === "own");
  group("assumed", !isMeasured());
  byId("method-part").hidden = !isMapped();
  const law = state.participation ?? latest?.participation.law;
  for (const radio of form.elements.participation) radio.checked = radio.value === law;
  byId("law-hint").textContent = LAWS[law] ?? "";
  form.elements.law.value = value("law");
  for (const radio of form.elements.objective) radio.checked = radio.value === value("objective");
  form.elements.method.value = state.method ?? "";
}

function fillSelects() {
  if (!start) return;
  const option = (value, text) => new Option(text, value);
  const uploads = (kind) => [...NAMES[kind]].map(([id, name]) => option(id, `uploaded: ${name}`));
  const fleet = byId("fleet");
  fleet.replaceChildren(
    option("given", start.fleet),
    option("drawn", "drawn by these sliders"),
    ...uploads("fleet"),
  );
  fleet.value = state.fleet ?? "given";
  const bound = byId("bound");
  bound.replaceChildren(
    option("given", start.convergence),
    ...uploads("pilots"),
    option("own", "these sliders"),
    ...(start.is_measured ? [option("none", "nothing measured")] : []),
  );
  bound.value = state.bound ?? state.pilots ?? "given";
  byId("method").replaceChildren(
    option("", "the usual one"),
    option("exact", "exact: proven optimum"),
    ...(start.has_pilots || NAMES.pilots.size ? [option("robust", "robust: least regret")] : []),
    option("paper", "the paper's Algorithm 2"),
  );
  byId("method").value = state.method ?? "";
}

async function upload(kind, file) {
  const found = await post(
    `/api/upload/${kind}?name=${encodeURIComponent(file.name)}`,
    file,
    undefined,
    "text/csv",
  );
  if (!found.success) {
    showProblems(found.error);
    return;
  }
  NAMES[kind].set(found.id, file.name);
  if (kind === "pilots") delete state.bound;
  change(kind, found.id);
  fillSelects();
}

async function copy(what) {
  writeLink();
  const text = what === "link" ? location.href : byId(what).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // no permission, or not a secure page: select it instead
    const range = document.createRange();
    if (what !== "link") range.selectNodeContents(byId(what));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  byId("copied").textContent = `Copied the ${what}.`;
  const button = document.querySelector(`[data-copy="${what}"]`);
  const words = button.dataset.words ?? button.textContent;
  button.dataset.words = words;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = words;
  }, 1500);
}

async function download() {
  const response = await fetch("/api/fleet.csv", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(question()),
  });
  const address = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement("a"), {
    href: address,
    download: latest.fleet_file,
  }).click();
  URL.revokeObjectURL(address);
}

function useOwnBound() {
  for (const key of ["a0", "b0", "c0"])
    state[key] ??= Number(latest.convergence.bound[key].toPrecision(6));
}

function listen() {
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const radio of form.elements.objective)
    radio.addEventListener("change", () => change("objective", radio.value));
  for (const radio of form.elements.participation)
    radio.addEventListener("change", () => change("participation", radio.value));
  form.elements.law.addEventListener("change", ({ target }) => change("law", target.value));
  byId("fleet").addEventListener("change", ({ target }) => change("fleet", target.value));
  byId("method").addEventListener("change", ({ target }) => change("method", target.value || null));
  byId("bound").addEventListener("change", ({ target }) => {
    if (target.value === "own") {
      useOwnBound();
      change("bound", "own");
    } else {
      for (const { key } of [...CONTROLS.own, ...CONTROLS.assumed]) delete state[key];
      delete state.bound;
      if (target.value === "none") change("bound", "none");
      else change("pilots", target.value);
    }
    showState(state, USUAL);
  });
  for (const kind of ["fleet", "pilots"]) {
    byId(`${kind}-file`).addEventListener("change", ({ target }) => {
      if (target.files[0]) upload(kind, target.files[0]);
      target.value = "";
    });
  }
  for (const button of document.querySelectorAll("[data-copy]"))
    button.addEventListener("click", () => copy(button.dataset.copy));
  byId("download").addEventListener("click", download);
  byId("reset").addEventListener("click", () => restore({}));
  addEventListener("hashchange", () => restore(readLink()));
}

function restore(to) {
  state = to;
  fillSelects();
  showParts();
  showState(state, USUAL);
  moved();
}

makeControls(form, change);
listen();
showState(state, USUAL);
showParts();
ask();
startRuns(writeLink);
start = await (await fetch("/api/start")).json();
fillSelects();
showParts();
if (window.innerWidth >= 960 || CONTROLS.limits.some(({ key }) => key in state))
  byId("limits-part").open = true;
if (state.fleet && state.fleet !== "given") byId("fleet-part").open = true;
if (state.bound || state.pilots || state.method) byId("bound-part").open = true;
