// Makes and fills elements. Whatever comes from the cluster becomes text nodes or values of attributes, never markup.

/** An element with *attributes* (`onclick` and the like are listeners; null and false leave one out) and *children*. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  fill(made, ...children);
  return made;
}

/** Puts *children*, elements or texts, in place of what *parent* has; null and false leave one out. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

/** Changes the text of *target* if it is another one, so that nothing is laid out for equal texts. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export function byId(id) {
  return document.getElementById(id);
}

/** A table with *heads* and *rows* of cells; cells in the columns *numbers* are aligned to the right. */
export function table(caption, heads, rows, numbers = []) {
  const place = (index) => (numbers.includes(index) ? "number" : null);
  return element(
    "div",
    { class: "wide" },
    element(
      "table",
      {},
      element("caption", { class: "unseen" }, caption),
      element("thead", {}, element("tr", {}, ...heads.map((head, i) => element("th", { scope: "col", class: place(i) }, head)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, i) => element("td", { class: place(i) }, cell))))),
    ),
  );
}

/** A function that has *draw* called before the next picture, once however often it is called until then. */
export function oncePerFrame(draw) {
  let asked = 0;
  return () => {
    asked ||= requestAnimationFrame((time) => {
      asked = 0;
      draw(time);
    });
  };
}
