// Tables: of settings, of runs, and of every figure for who cannot see it.

import { make } from "./page.js";

/** A box for a table that may be wider than its place: it scrolls, by keyboard too. */
export function scrollBox(name) {
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": name });
}

/** A table of rows whose first cell names them. */
export function tableOf(content) {
  const table = make("table");
  fillTable(table, content);
  return table;
}

export function fillTable(table, { head, rows, caption }) {
  const cell = (content, place) =>
    place ? make("td", {}, content) : make("th", { scope: "row" }, content);
  table.replaceChildren(
    ...(caption ? [make("caption", {}, caption)] : []),
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...(row.cells ?? row).map(cell)))),
  );
  rows.forEach(({ role }, place) => {
    if (role) table.tBodies[0].rows[place].dataset.role = role;
  });
}
