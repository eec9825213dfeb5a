// Controls: a slider and a number for each key of the state; the values of sliders by ratio come
// from the server, so that nothing is computed here.

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

// `values` are a slider's; a text is the name of a scale that the server sends. `open` ones may be
// left empty, which the slider says at its end; for the least of something, at its beginning.
export const CONTROLS = {
  weight: [
    {
      key: "energy_weight",
      label: "Energy weight",
      hint: "0 = only time, 1 = only energy",
      low: 0,
      high: 1,
      step: 0.01,
      usual: 0.3,
    },
  ],
  prices: [
    { key: "price_hour", label: "Money an hour of training", values: PRICE, usual: 2 },
    { key: "price_kwh", label: "Money a kWh", values: PRICE, usual: 0.3 },
    {
      key: "price_client_round",
      label: "Money a participation",
      hint: "each time a client takes part in a round",
      values: SMALL_PRICE,
      usual: 0,
    },
    { key: "price_mb", label: "Money a megabyte", values: SMALL_PRICE, usual: 0 },
    { key: "mb_per_client_round", label: "Megabytes a participation", values: AMOUNT, usual: 0 },
    {
      key: "co2_per_kwh",
      label: "Grams of CO2 a kWh",
      hint: "alone: CO2 is what is minimised",
      values: CARBON,
      usual: 0,
    },
    { key: "price_co2_kg", label: "Money a kilogram of CO2", values: PRICE, usual: 0 },
  ],
  current: [
    {
      key: "current_clients_per_round",
      label: "Clients per round K",
      values: "clients_per_round",
      open: "not given",
      whole: true,
    },
    {
      key: "current_local_steps",
      label: "Local steps E",
      values: "local_steps",
      open: "not given",
      whole: true,
    },
  ],
  limits: [
    { key: "deadline_s", label: "Deadline (s)", values: "deadline_s", open: "no limit" },
    {
      key: "energy_budget_j",
      label: "Energy budget (J)",
      values: "energy_budget_j",
      open: "no limit",
    },
    {
      key: "max_rounds",
      label: "Most rounds",
      values: [10, 20, 50, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10000],
      open: "no limit",
      whole: true,
    },
    {
      key: "min_clients_per_round",
      label: "Smallest K, or smallest group",
      values: "clients_per_round",
      open: "no limit",
      opensFirst: true,
      whole: true,
    },
    {
      key: "max_clients_per_round",
      label: "Largest K, or largest group",
      values: "clients_per_round",
      open: "no limit",
      whole: true,
    },
    {
      key: "min_local_steps",
      label: "Smallest E",
      values: "local_steps",
      open: "no limit",
      opensFirst: true,
      whole: true,
    },
    {
      key: "max_local_steps",
      label: "Largest E",
      values: "local_steps",
      open: "no limit",
      whole: true,
    },
  ],
  drawn: [
    { key: "num_clients", label: "Devices", values: SIZES, usual: 100, whole: true },
    { key: "step_time_s", label: "Seconds a local step", values: TIMES, usual: 0.1 },
    {
      key: "comm_time_s",
      label: "Seconds an exchange",
      hint: "download and upload of the model",
      values: TIMES,
      usual: 2,
    },
    { key: "step_energy_j", label: "Joules a local step", values: ENERGIES, usual: 0.001 },
    { key: "comm_energy_j", label: "Joules an exchange", values: ENERGIES, usual: 0.02 },
    {
      key: "spread",
      label: "Spread",
      hint: "standard deviation over mean",
      low: 0,
      high: 1.5,
      step: 0.01,
      usual: 0.33,
    },
    {
      key: "straggler_share",
      label: "Stragglers",
      hint: "share of the devices",
      low: 0,
      high: 0.5,
      step: 0.01,
      usual: 0,
    },
    {
      key: "straggler_slowdown",
      label: "Slower by",
      hint: "a straggler, times",
      low: 1,
      high: 20,
      step: 0.5,
      usual: 5,
    },
    { key: "fleet_seed", label: "Seed", low: 0, high: 100, step: 1, usual: 1, whole: true },
  ],
  own: [
    { key: "a0", label: "a0", hint: "how far from the best the start is", values: "a0" },
    { key: "b0", label: "b0", hint: "what long local runs cost in rounds", values: "b0" },
    { key: "c0", label: "c0", hint: "what sampling few clients costs", values: "c0" },
    {
      key: "target_gap",
      label: "Target gap",
      values: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
      usual: 1,
    },
  ],
  assumed: [
    {
      key: "rounds",
      label: "Rounds with all clients",
      hint: "about as many as training would need",
      values: [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000],
      usual: 100,
    },
    {
      key: "saturation_low",
      label: "Saturation at least",
      hint: "local steps at which half of what steps can save is saved",
      values: STEPS,
      usual: 8,
    },
    { key: "saturation_high", label: "Saturation at most", values: STEPS, usual: 256 },
  ],
};

const parts = new Map();

/** Make every control; `changed(key, value)` hears of each move, null where a value was removed. */
export function makeControls(form, changed) {
  for (const [group, controls] of Object.entries(CONTROLS)) {
    const place = form.querySelector(`[data-group="${group}"]`);
    for (const control of controls) place.append(makeControl(control, changed));
  }
}

function makeControl(control, changed) {
  const box = document.createElement("div");
  box.className = "control";
  const label = document.createElement("label");
  label.htmlFor = control.key;
  label.textContent = control.label;
  const slider = document.createElement("input");
  slider.type = "range";
  slider.id = `${control.key}-slider`;
  slider.setAttribute("aria-label", `${control.label}, slider`);
  const number = document.createElement("input");
  number.type = "number";
  number.id = control.key;
  number.step = control.whole ? "1" : "any";
  if (control.open) number.placeholder = control.open;
  box.append(label, slider, number);
  if (control.hint) {
    const hint = document.createElement("small");
    hint.id = `${control.key}-hint`;
    hint.textContent = control.hint;
    number.setAttribute("aria-describedby", hint.id);
    box.append(hint);
  }
  const part = { control, slider, number, values: null };
  parts.set(control.key, part);
  useValues(part, Array.isArray(control.values) ? control.values : null);
  slider.addEventListener("input", () => {
    const value = sliderValue(part);
    number.value = value ?? "";
    say(part);
    changed(control.key, value);
  });
  number.addEventListener("input", () => {
    const value = number.value === "" ? null : Number(number.value);
    placeSlider(part, value ?? (control.open ? null : control.usual));
    changed(control.key, value); // empty is the usual value
  });
  number.addEventListener("change", () => {
    if (number.value === "" && !control.open) number.value = control.usual ?? "";
  });
  return box;
}

function useValues(part, values) {
  const { control, slider } = part;
  part.values = values;
  if (values) {
    slider.min = 0;
    slider.max = values.length - (control.open ? 0 : 1);
    slider.step = 1;
  } else if (control.step) {
    slider.min = control.low;
    slider.max = control.high;
    slider.step = control.step;
  }
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
export function showState(state, usual) {
  for (const [key, part] of parts) {
    const value = state[key] ?? usual[key] ?? null;
    if (document.activeElement !== part.number) part.number.value = value ?? "";
    if (document.activeElement !== part.slider) placeSlider(part, value);
  }
}

/** Take the scales that the server sends; a slider that is being moved keeps its own until later. */
export function useScales(scales, state, usual) {
  for (const [key, part] of parts) {
    const name = part.control.values;
    if (typeof name !== "string" || !scales[name] || document.activeElement === part.slider)
      continue;
    if (JSON.stringify(scales[name]) === JSON.stringify(part.values)) continue;
    useValues(part, scales[name]);
    placeSlider(part, state[key] ?? usual[key] ?? null);
  }
}

/** Mark the controls that the server finds wrong. */
export function markProblems(keys) {
  for (const [key, { number }] of parts) {
    if (keys.has(key)) number.setAttribute("aria-invalid", "true");
    else number.removeAttribute("aria-invalid");
  }
}
