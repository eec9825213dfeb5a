// What every module of the page uses: elements by id, elements made, and questions to the server.

export const byId = (id) => document.getElementById(id);

/** An element with these properties or attributes, and these children. */
export function make(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function post(path, body, { signal, type = "application/json" } = {}) {
  return fetch(path, { method: "POST", headers: { "content-type": type }, body, signal });
}

export const postJson = async (...given) => (await post(...given)).json();
