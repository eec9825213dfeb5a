// Runs: the studies of the store, looked at again while the view is open, for they may be running.

import { drawFigure } from "./figures.js";
import { byId, make, postJson } from "./page.js";
import { fillTable } from "./tables.js";

const EVERY_MS = 2000;
const FIRST = 6; // runs shown before any is chosen
const MOST = 24;

let listing = null;
let chosen = new Set(); // runs, as JSON of their key
let listed = null; // the experiment whose runs are listed
let timer = 0;
let tags = {};

export function startRuns(changed) {
  const show = (which) => {
    byId("plan-view").hidden = which === "runs";
    byId("runs-view").hidden = which !== "runs";
    byId("show-plan").setAttribute("aria-pressed", which !== "runs");
    byId("show-runs").setAttribute("aria-pressed", which === "runs");
    if (which === "runs") look();
    dispatchEvent(new Event("resize")); // figures that were hidden have no size yet
  };
  for (const which of ["plan", "runs"]) {
    byId(`show-${which}`).addEventListener("click", () => {
      show(which);
      changed();
    });
  }
  byId("study").addEventListener("change", () => {
    look(true);
    changed();
  });
  for (const radio of document.getElementsByName("against"))
    radio.addEventListener("change", loadCurves);
  if (new URLSearchParams(location.hash.slice(1)).get("view") === "runs") show("runs");
}

/** Load what has changed, and again in a while as long as the view is open. */
async function look(anew = false) {
  clearTimeout(timer);
  if (byId("runs-view").hidden) return;
  try {
    if (!document.hidden || anew) await refresh();
  } catch {
    byId("runs-note").textContent = "The server does not answer.";
  }
  timer = setTimeout(look, EVERY_MS);
}

async function refresh() {
  const found = await load("/api/runs");
  if (found) listing = found;
  if (listing.error) {
    byId("runs-note").textContent = listing.error.message;
    return;
  }
  if (found) fillStudies();
  const isEmpty = listing.experiments.length === 0;
  byId("study-label").hidden = byId("losses").hidden = isEmpty;
  byId("runs-note").textContent = isEmpty
    ? `Nothing is stored in ${listing.store} yet. \`fedplan run demo\` puts a small study there.`
    : `${listing.store}, looked at again every two seconds.`;
  if (isEmpty) return;
  const { experiment, study } = selected();
  if (experiment !== listed) {
    listed = experiment;
    chosen = new Set();
    tags = {};
  }
  const runs = await load(`/api/runs?experiment=${experiment}`);
  if (runs && !runs.error) {
    if (!chosen.size) choose(runs.runs, study);
    fillRuns(runs);
    await loadCurves();
  }
}

async function load(path) {
  const response = await fetch(path, {
    headers: tags[path] ? { "if-none-match": tags[path] } : {},
  });
  if (response.status === 304) return null;
  tags[path] = response.headers.get("etag");
  return response.json();
}

function fillStudies() {
  const select = byId("study");
  const before = select.value || new URLSearchParams(location.hash.slice(1)).get("study");
  const { studies, experiments } = listing;
  const others = experiments.filter((one) => !studies.some((study) => study.experiment === one.id));
  select.replaceChildren(
    ...studies.map(({ id, name, plan, num_runs, created }) => {
      const label = plan ? `, ${plan.label}` : "";
      return new Option(`${name}${label} (${num_runs} runs, ${created.slice(0, 16)})`, id);
    }),
    ...others.map(({ id, name, num_runs }) => new Option(`${name} (${num_runs} runs)`, id)),
  );
  if ([...select.options].some((option) => option.value === before)) select.value = before;
}

function selected() {
  const study = listing.studies.find((one) => one.id === byId("study").value) ?? null;
  byId("study-plan").textContent = study?.plan
    ? `Trained with ${study.plan.label}. ${study.plan.why ?? ""}`
    : "";
  return { study, experiment: study?.experiment ?? byId("study").value };
}

function choose(runs, study) {
  const planned = runs.filter((run) => run.name === study?.plan?.label);
  const going = runs.filter((run) => run.status === "unfinished");
  const own = [...going, ...planned]; // others may be of a sweep of the same experiment
  for (const run of own.length ? own : runs)
    if (chosen.size < FIRST) chosen.add(JSON.stringify(run.key));
}

function fillRuns({ runs, total }) {
  const some = `${runs.length} of ${total} runs`;
  fillTable(byId("runs"), {
    caption: total > runs.length ? some : `${total} runs; tick those to compare`,
    head: ["run", "seed", "rounds", "loss", "time", "energy", "ended by"],
    rows: runs.map((run) => [
      make("label", {}, tickBox(JSON.stringify(run.key)), ` ${run.name}`),
      run.key[2],
      ...[run.rounds, run.loss, run.time, run.energy],
      run.status === "unfinished" ? "going on, or cut off" : run.status,
    ]),
  });
}

/** What says whether a run is among the curves. */
function tickBox(key) {
  const box = make("input", { type: "checkbox", checked: chosen.has(key) });
  box.addEventListener("change", () => {
    if (box.checked && chosen.size >= MOST) box.checked = false;
    if (box.checked) chosen.add(key);
    else chosen.delete(key);
    loadCurves();
  });
  return box;
}

async function loadCurves() {
  const { experiment, study } = selected();
  const runs = [...chosen].map((key) => JSON.parse(key));
  const against = document.querySelector('input[name="against"]:checked').value;
  const asked = { experiment, study: study?.id ?? null, runs, against };
  const found = await postJson("/api/curves", JSON.stringify(asked));
  if (!found.success) return;
  byId("bill").textContent = [found.forecast?.words ?? "", ...found.going].join(" ").trim();
  drawFigure("losses", found.figure);
}
