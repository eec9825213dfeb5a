// Controls: a slider and a number for each key of the state; the values of sliders by ratio come
// from the server, so that nothing is computed here.

import { make } from "./page.js";

const PRICE = [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 20, 50, 100];
const SMALL_PRICE = [
  0, 1e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1,
];
const AMOUNT = [0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const CARBON = [0, 20, 50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 1000];
const TIMES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
const ENERGIES = [
  0, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100,
];
const STEPS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
const SIZES = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];

const MOST_ROUNDS = [10, 20, 50, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10000];
const ROUNDS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
const GAPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

// What `values` are of, where they are whole numbers that the server scales; and what being left
// empty means.
const K = { values: "clients_per_round", whole: true };
const E = { values: "local_steps", whole: true };
const GIVEN = { open: "not given" };
const LIMIT = { open: "no limit" };
const LEAST = { open: "no limit", opensFirst: true };

// Controls by group and key. `values` are a slider's; a text is the name of a scale that the server
// sends; without, its `range` is the lowest, the highest and the step. `open` ones may be left empty,
// which the slider says at its end; for the least of something, at its beginning.
export const CONTROLS = {
  weight: {
    energy_weight: {
      label: "Energy weight",
      hint: "0 = only time, 1 = only energy",
      range: [0, 1, 0.01],
      usual: 0.3,
    },
  },
  prices: {
    price_hour: { label: "Money an hour of training", values: PRICE, usual: 2 },
    price_kwh: { label: "Money a kWh", values: PRICE, usual: 0.3 },
    price_client_round: {
      label: "Money a participation",
      hint: "each time a client takes part in a round",
      values: SMALL_PRICE,
      usual: 0,
    },
    price_mb: { label: "Money a megabyte", values: SMALL_PRICE, usual: 0 },
    mb_per_client_round: { label: "Megabytes a participation", values: AMOUNT, usual: 0 },
    co2_per_kwh: {
      label: "Grams of CO2 a kWh",
      hint: "alone: CO2 is what is minimised",
      values: CARBON,
      usual: 0,
    },
    price_co2_kg: { label: "Money a kilogram of CO2", values: PRICE, usual: 0 },
  },
  current: {
    current_clients_per_round: { label: "Clients per round K", ...K, ...GIVEN },
    current_local_steps: { label: "Local steps E", ...E, ...GIVEN },
  },
  limits: {
    deadline_s: { label: "Deadline (s)", values: "deadline_s", ...LIMIT },
    energy_budget_j: { label: "Energy budget (J)", values: "energy_budget_j", ...LIMIT },
    max_rounds: { label: "Most rounds", values: MOST_ROUNDS, whole: true, ...LIMIT },
    min_clients_per_round: { label: "Smallest K, or smallest group", ...K, ...LEAST },
    max_clients_per_round: { label: "Largest K, or largest group", ...K, ...LIMIT },
    min_local_steps: { label: "Smallest E", ...E, ...LEAST },
    max_local_steps: { label: "Largest E", ...E, ...LIMIT },
  },
  drawn: {
    num_clients: { label: "Devices", values: SIZES, usual: 100, whole: true },
    step_time_s: { label: "Seconds a local step", values: TIMES, usual: 0.1 },
    comm_time_s: {
      label: "Seconds an exchange",
      hint: "download and upload of the model",
      values: TIMES,
      usual: 2,
    },
    step_energy_j: { label: "Joules a local step", values: ENERGIES, usual: 0.001 },
    comm_energy_j: { label: "Joules an exchange", values: ENERGIES, usual: 0.02 },
    spread: {
      label: "Spread",
      hint: "standard deviation over mean",
      range: [0, 1.5, 0.01],
      usual: 0.33,
    },
    straggler_share: {
      label: "Stragglers",
      hint: "share of the devices",
      range: [0, 0.5, 0.01],
      usual: 0,
    },
    straggler_slowdown: {
      label: "Slower by",
      hint: "a straggler, times",
      range: [1, 20, 0.5],
      usual: 5,
    },
    fleet_seed: { label: "Seed", range: [0, 100, 1], usual: 1, whole: true },
  },
  own: {
    a0: { label: "a0", hint: "how far from the best the start is", values: "a0" },
    b0: { label: "b0", hint: "what long local runs cost in rounds", values: "b0" },
    c0: { label: "c0", hint: "what sampling few clients costs", values: "c0" },
    target_gap: { label: "Target gap", values: GAPS, usual: 1 },
  },
  assumed: {
    rounds: {
      label: "Rounds with all clients",
      hint: "about as many as training would need",
      values: ROUNDS,
      usual: 100,
    },
    saturation_low: {
      label: "Saturation at least",
      hint: "local steps at which half of what steps can save is saved",
      values: STEPS,
      usual: 8,
    },
    saturation_high: { label: "Saturation at most", values: STEPS, usual: 256 },
  },
};
const ALL = Object.assign({}, ...Object.values(CONTROLS));
export const KEYS = Object.keys(ALL);
export const usual = (key) => ALL[key]?.usual;

const parts = new Map();

/** Make every control; `changed(key, value)` hears of each move, null where a value was removed. */
export function makeControls(form, changed) {
  for (const [group, controls] of Object.entries(CONTROLS)) {
    const place = form.querySelector(`[data-group="${group}"]`);
    for (const [key, control] of Object.entries(controls))
      place.append(makeControl(key, control, changed));
  }
}

function makeControl(key, control, changed) {
  const { label, hint, open, whole, values, range } = control;
  const about = hint ? { "aria-describedby": `${key}-hint` } : {};
  const slider = make("input", {
    type: "range",
    id: `${key}-slider`,
    "aria-label": `${label}, slider`,
  });
  const number = make("input", {
    type: "number",
    id: key,
    step: whole ? "1" : "any",
    placeholder: open ?? "",
    ...about,
  });
  const part = { control, slider, number, values: null };
  parts.set(key, part);
  if (Array.isArray(values)) useValues(part, values);
  else if (range) [slider.min, slider.max, slider.step] = range;
  slider.addEventListener("input", () => {
    const value = sliderValue(part);
    number.value = value ?? "";
    say(part);
    changed(key, value);
  });
  number.addEventListener("input", () => {
    const value = number.value === "" ? null : Number(number.value);
    placeSlider(part, value ?? control.usual ?? null);
    changed(key, value); // empty is the usual value
  });
  number.addEventListener("change", () => {
    if (number.value === "") number.value = control.usual ?? "";
  });
  return make(
    "div",
    { className: "control" },
    make("label", { htmlFor: key }, label),
    slider,
    number,
    ...(hint ? [make("small", { id: `${key}-hint` }, hint)] : []),
  );
}

function useValues(part, values) {
  part.values = values;
  part.slider.min = 0;
  part.slider.max = values.length - (part.control.open ? 0 : 1);
  part.slider.step = 1;
}

function sliderValue({ control, slider, values }) {
  if (!values) return Number(slider.value);
  const place = Number(slider.value) - (control.opensFirst ? 1 : 0);
  return values[place] ?? null;
}

function placeSlider(part, value) {
  const { control, slider, values } = part;
  const first = control.opensFirst ? 1 : 0;
  if (!values) slider.value = value ?? slider.min;
  else if (value === null || value === undefined) slider.value = first ? 0 : values.length;
  else {
    const above = values.findIndex((item) => item >= value);
    slider.value = first + (above < 0 ? values.length - 1 : above);
  }
  say(part);
}

function say({ control, slider, number }) {
  slider.setAttribute("aria-valuetext", number.value === "" ? (control.open ?? "") : number.value);
}

/** Show a state; what the user is typing into stays as it is. */
export function showState(state) {
  for (const [key, part] of parts) {
    const value = state[key] ?? usual(key) ?? null;
    if (document.activeElement !== part.number) part.number.value = value ?? "";
    if (document.activeElement !== part.slider) placeSlider(part, value);
  }
}

/** Take the scales that the server sends; a slider that is being moved keeps its own until later. */
export function useScales(scales, state) {
  for (const [key, part] of parts) {
    const name = part.control.values;
    if (typeof name !== "string" || !scales[name] || document.activeElement === part.slider)
      continue;
    if (JSON.stringify(scales[name]) === JSON.stringify(part.values)) continue;
    useValues(part, scales[name]);
    placeSlider(part, state[key] ?? usual(key) ?? null);
  }
}

/** Mark the controls that the server finds wrong. */
export function markProblems(keys) {
  for (const [key, { number }] of parts) {
    if (keys.has(key)) number.setAttribute("aria-invalid", "true");
    else number.removeAttribute("aria-invalid");
  }
}
