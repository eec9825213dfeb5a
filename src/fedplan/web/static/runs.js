// Runs: the studies of the store, looked at again while the view is open, for they may be running.

import { drawLosses } from "./losses.js";
import { fillTable } from "./tables.js";

const EVERY_MS = 2000;
const FIRST = 6; // runs shown before any is chosen
const MOST = 24;
const byId = (id) => document.getElementById(id);

let listing = null;
let chosen = new Set(); // runs, as JSON of their key
let listed = null; // the experiment whose runs are listed
let curves = null;
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
    radio.addEventListener("change", drawAgain);
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
  if (found) {
    listing = found;
    if (found.error) {
      byId("runs-note").textContent = found.error.message;
      return;
    }
    fillStudies();
  }
  if (!listing?.experiments?.length) {
    byId("runs-note").textContent =
      `Nothing is stored in ${listing.store} yet. \`fedplan run demo\` puts a small study there.`;
    byId("study-label").hidden = byId("losses").hidden = true;
    return;
  }
  byId("study-label").hidden = byId("losses").hidden = false;
  byId("runs-note").textContent = `${listing.store}, looked at again every two seconds.`;
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
  const withStudy = new Set(listing.studies.map((study) => study.experiment));
  const options = [
    ...listing.studies.map(
      (study) =>
        new Option(
          `${study.name}${planOf(study)} (${study.num_runs} runs, ${study.created.slice(0, 16)})`,
          study.id,
        ),
    ),
    ...listing.experiments
      .filter((one) => !withStudy.has(one.id))
      .map((one) => new Option(`${one.name} (${one.num_runs} runs)`, one.id)),
  ];
  select.replaceChildren(...options);
  if (options.some((option) => option.value === before)) select.value = before;
}

function planOf({ plan }) {
  return plan ? `, ${plan.label}` : "";
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
  fillTable(byId("runs"), {
    caption:
      total > runs.length
        ? `${runs.length} of ${total} runs`
        : `${total} runs; tick those to compare`,
    head: ["run", "seed", "rounds", "loss", "time", "energy", "ended by"],
    rows: runs.map((run) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), {
        type: "checkbox",
        checked: chosen.has(JSON.stringify(run.key)),
      });
      box.addEventListener("change", () => {
        if (box.checked && chosen.size >= MOST) box.checked = false;
        if (box.checked) chosen.add(JSON.stringify(run.key));
        else chosen.delete(JSON.stringify(run.key));
        loadCurves();
      });
      label.append(box, ` ${run.name}`);
      return [
        label,
        run.key[2],
        run.rounds,
        run.loss,
        run.time,
        run.energy,
        run.status === "unfinished" ? "going on, or cut off" : run.status,
      ];
    }),
  });
}

async function loadCurves() {
  const { experiment, study } = selected();
  const body = JSON.stringify({
    experiment,
    study: study?.id ?? null,
    runs: [...chosen].map((key) => JSON.parse(key)),
  });
  const response = await fetch("/api/curves", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  const found = await response.json();
  if (!found.success) return;
  curves = found;
  const going = found.curves.filter((curve) => curve.status === "unfinished");
  const parts = [];
  if (found.forecast)
    parts.push(
      `${found.forecast.name}: ${found.forecast.words}.`,
    );
  for (const curve of going) parts.push(`So far ${curve.name}: ${curve.words}.`);
  byId("bill").textContent = parts.join(" ");
  drawAgain();
}

function drawAgain() {
  if (curves) drawLosses(curves, document.querySelector('input[name="against"]:checked').value);
}
