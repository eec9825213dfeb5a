// The page: its state, one question at a time to the server, and what the answer changes.

import { showAnswer, showDoubts, showProblems } from "./answer.js";
import { CONTROLS, makeControls, showState, useScales, usual } from "./controls.js";
import { drawFigure } from "./figures.js";
import { byId, make, post, postJson } from "./page.js";
import { startRuns } from "./runs.js";

const form = byId("controls");
const USUAL = { objective: "weight", fleet: "given", bound: "given", pilots: "given", law: "normal" };
const LAWS = {
  turns: "Groups of devices of like speed, one after the other; slow groups less often.",
  shuffled: "K clients a round in a random order: everyone once before anyone again.",
  uniform: "K clients at random in every round, as in the paper.",
  weighted: "K clients at random, quick ones more often and counting less.",
};
const FIGURES = ["turns", "bills", "frontier", "map", "steps", "clients", "histogram"];
const NAMES = { fleet: new Map(), pilots: new Map() }; // of uploads, by id
const SETTLED_MS = 250;
const TOO_LATE_MS = 400;

let start = null; // what the server began with
let state = readLink();
let latest = null; // the last answer shown
let asking = null; // { controller, since, body, again }
let frame = 0;
let settled = 0;

/** What is asked for a key: the state's value, or the usual one. */
const value = (key) => state[key] ?? USUAL[key] ?? usual(key);

function readLink() {
  const found = {};
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    const isNumber = text !== "" && Number.isFinite(Number(text));
    if (key === "view" || key === "study") continue;
    found[key] = isNumber && key !== "fleet" && key !== "pilots" ? Number(text) : text;
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
  const keys = ["objective", "fleet", "bound", "participation"];
  if (value("fleet") === "drawn") keys.push("law");
  if (isMapped()) keys.push("method");
  if (value("pilots") !== "given") keys.push("pilots"); // with an own bound: its sliders' range
  for (const group of ["limits", "current", ...inUse()]) keys.push(...Object.keys(CONTROLS[group]));
  for (const key of Object.keys(CONTROLS.assumed)) if (key in state) keys.push(key);
  const pairs = keys.map((key) => [key, value(key)]);
  return Object.fromEntries(pairs.filter(([, given]) => given !== undefined));
}

/** The groups of controls that depend on what was chosen. */
function inUse() {
  const groups = [value("objective") === "prices" ? "prices" : "weight"];
  if (value("fleet") === "drawn") groups.push("drawn");
  if (value("bound") === "own") groups.push("own");
  return groups;
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

function change(key, to) {
  if (to === null || to === undefined || to === (USUAL[key] ?? usual(key))) delete state[key];
  else state[key] = to;
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
    const found = await postJson("/api/plan", body, { signal: mine.controller.signal });
    if (found.error) showProblems(found.error);
    else show(found, body);
  } catch (error) {
    const message = "The server does not answer. Is `fedplan serve` still running?";
    if (error.name !== "AbortError") showProblems({ message, problems: [] });
  } finally {
    asking = null;
    if (mine.again) ask();
    else if (!frame) byId("answer").setAttribute("aria-busy", "false");
  }
}

function show(answer, body) {
  latest = answer;
  showAnswer(answer);
  showParts();
  if (answer.participation.law === "turns") byId("law-other").textContent = "";
  useScales(answer.scales, state);
  askDoubts(body);
  showPictures(answer);
  document.documentElement.dataset.shown = body; // what the figures show, for who watches the page
}

function showPictures({ pictures }) {
  for (const id of FIGURES) {
    byId(id).hidden = !pictures[id];
    if (pictures[id]) drawFigure(id, pictures[id], pick);
  }
  byId("no-map").textContent = pictures.note;
  byId("no-map").hidden = !pictures.note;
}

function pick(k, e) {
  state.current_clients_per_round = k;
  state.current_local_steps = e;
  showState(state);
  moved();
}

let doubting = 0;
function askDoubts(body) {
  clearTimeout(doubting);
  byId("doubts").classList.add("stale");
  doubting = setTimeout(async () => {
    const found = await postJson("/api/sensitivity", body);
    if (!found.success || body !== JSON.stringify(question())) return;
    showDoubts(found.sensitivity);
    byId("law-other").textContent = found.turns;
  }, SETTLED_MS);
}

/** Show the controls that are in use. */
function showParts() {
  const shown = new Set(inUse());
  if (!isMeasured()) shown.add("assumed");
  for (const name of ["weight", "prices", "drawn", "own", "assumed"])
    form.querySelector(`[data-group="${name}"]`).hidden = !shown.has(name);
  byId("method-part").hidden = !isMapped();
  const law = state.participation ?? latest?.participation.law;
  form.elements.participation.value = law;
  byId("law-hint").textContent = LAWS[law] ?? "";
  form.elements.law.value = value("law");
  form.elements.objective.value = value("objective");
  form.elements.method.value = state.method ?? "";
}

function fillSelects() {
  if (!start) return;
  const fill = (id, options, chosen) => {
    byId(id).replaceChildren(...options.map(([key, text]) => new Option(text, key)));
    byId(id).value = chosen;
  };
  const uploads = (kind) => [...NAMES[kind]].map(([id, name]) => [id, `uploaded: ${name}`]);
  const drawn = ["drawn", "drawn by these sliders"];
  fill("fleet", [["given", start.fleet], drawn, ...uploads("fleet")], value("fleet"));
  const bounds = [["given", start.convergence], ...uploads("pilots"), ["own", "these sliders"]];
  if (start.is_measured) bounds.push(["none", "nothing measured"]);
  fill("bound", bounds, state.bound ?? value("pilots"));
  const methods = [
    ["", "the usual one"],
    ["exact", "exact: proven optimum"],
    ["paper", "the paper's Algorithm 2"],
  ];
  if (start.has_pilots || NAMES.pilots.size) methods.splice(2, 0, ["robust", "robust: least regret"]);
  fill("method", methods, state.method ?? "");
}

async function upload(kind, file) {
  const path = `/api/upload/${kind}?name=${encodeURIComponent(file.name)}`;
  const found = await postJson(path, file, { type: "text/csv" });
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
  button.dataset.words ??= button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = button.dataset.words;
  }, 1500);
}

async function download() {
  const response = await post("/api/fleet.csv", JSON.stringify(question()));
  const href = URL.createObjectURL(await response.blob());
  make("a", { href, download: latest.fleet_file }).click();
  URL.revokeObjectURL(href);
}

function chooseBound(which) {
  if (which === "own") {
    for (const [key, known] of Object.entries(latest.convergence.bound))
      state[key] ??= Number(known.toPrecision(6));
    change("bound", "own");
  } else {
    for (const key of Object.keys({ ...CONTROLS.own, ...CONTROLS.assumed })) delete state[key];
    delete state.bound;
    if (which === "none") change("bound", "none");
    else change("pilots", which);
  }
  showState(state);
}

function listen() {
  form.addEventListener("submit", (event) => event.preventDefault());
  // Sliders and numbers, which have no name, tell by themselves.
  form.addEventListener("change", ({ target }) => {
    if (target.name === "bound") chooseBound(target.value);
    else if (target.name) change(target.name, target.value || null);
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
  showState(state);
  moved();
}

makeControls(form, change);
listen();
showState(state);
showParts();
ask();
startRuns(writeLink);
start = await (await fetch("/api/start")).json();
fillSelects();
showParts();
if (window.innerWidth >= 960 || Object.keys(CONTROLS.limits).some((key) => key in state))
  byId("limits-part").open = true;
if (state.fleet && state.fleet !== "given") byId("fleet-part").open = true;
if (state.bound || state.pilots || state.method) byId("bound-part").open = true;
