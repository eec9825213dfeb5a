// Tables: of settings, of runs, and of every figure for who cannot see it.

/** A box for a table that may be wider than its place: it scrolls, by keyboard too. */
export function scrollBox(name) {
  const box = document.createElement("div");
  box.className = "scroll";
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", name);
  return box;
}

/** A table of rows whose first cell names them. */
export function tableOf({ head, rows, caption }) {
  const table = document.createElement("table");
  fillTable(table, { head, rows, caption });
  return table;
}

export function fillTable(table, { head, rows, caption }) {
  const made = [];
  if (caption) {
    const title = document.createElement("caption");
    title.textContent = caption;
    made.push(title);
  }
  const thead = document.createElement("thead");
  const top = thead.insertRow();
  for (const name of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    top.append(cell);
  }
  const body = document.createElement("tbody");
  for (const row of rows) {
    const line = body.insertRow();
    if (row.role) line.dataset.role = row.role;
    (row.cells ?? row).forEach((content, place) => {
      const cell = document.createElement(place ? "td" : "th");
      if (!place) cell.scope = "row";
      if (content instanceof Node) cell.append(content);
      else cell.textContent = content;
      line.append(cell);
    });
  }
  table.replaceChildren(...made, thead, body);
}
