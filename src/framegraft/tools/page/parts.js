"use strict";
// Small parts that everything is made of. All text goes in as text, never as HTML.

function h(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) made.append(child);
  }
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function seconds(value) {
  if (value >= 1) return value.toFixed(2) + " s";
  if (value >= 1e-3) return (value * 1e3).toFixed(1) + " ms";
  return (value * 1e6).toFixed(0) + " µs";
}

function nanoseconds(value) {
  if (value === null || value === undefined) return "";
  return value < 1e4 ? value.toFixed(0) + " ns" : (value / 1e3).toFixed(0) + " µs";
}

function plural(count, word) { return count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s"); }

function baseName(path) { return path.split(/[\\/]/).pop(); }

function near(place) {  // the last two parts of file:line
  return place.split(/[\\/]/).slice(-2).join("/");
}

const TOKENS = /(#.*$)|((?:\b[rbfuRBFU]{1,2})?(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|\b(False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)\b|\b(\d[\w.]*)\b/g;

function coloured(line) {
  const out = [];
  let last = 0;
  for (const found of line.matchAll(TOKENS)) {
    if (found.index > last) out.push(line.slice(last, found.index));
    const kind = found[1] ? "c" : found[2] ? "s" : found[3] ? "k" : "n";
    out.push(h("span", {class: kind}, found[0]));
    last = found.index + found[0].length;
  }
  out.push(line.slice(last));
  return out;
}

// lines: array of text; options.first: number of the first; options.status: {number: word}; options.marks: {number: [element]}
function codeView(lines, options = {}) {
  const first = options.first === undefined ? 1 : options.first;
  const rows = h("div", {class: "rows"});
  lines.forEach((line, index) => {
    const number = first + index;
    const status = (options.status || {})[number] || "";
    rows.append(h("div", {class: "line " + status, "data-line": number}, h("i", {}, String(number)), h("span", {}, coloured(line))));
    for (const mark of (options.marks || {})[number] || []) rows.append(mark);
  });
  return h("div", {class: "code", tabindex: "0"}, rows);
}

// columns: [title, cell(row), {right, sort(row)}]
function table(columns, rows, limit = 300) {
  const body = h("tbody");
  let shown = rows;
  let direction = 1;
  const fill = () => {
    body.replaceChildren(...shown.slice(0, limit).map((row) => h("tr", {}, columns.map(([, cell, more]) =>
      h("td", {class: [(more || {}).right ? "right" : "", (more || {}).class || ""].join(" ").trim() || null}, cell(row))))));
    if (shown.length > limit) {
      body.append(h("tr", {}, h("td", {colspan: columns.length}, h("button", {type: "button", onclick: () => { limit = Infinity; fill(); }},
        "Show all " + shown.length))));
    }
  };
  const head = columns.map(([title, , more]) => {
    const sort = (more || {}).sort;
    const attributes = {class: (more || {}).right ? "right" : null};
    if (sort) {
      attributes.style = "cursor: pointer";
      attributes.title = "Sort";
      attributes.onclick = () => {
        direction = -direction;
        shown = [...rows].sort((a, b) => (sort(a) > sort(b) ? 1 : -1) * direction);
        fill();
      };
    }
    return h("th", attributes, title);
  });
  fill();
  return h("div", {class: "table"}, h("table", {}, h("thead", {}, h("tr", {}, head)), body));
}

const tip = h("div", {class: "tip", hidden: true});
function showTip(event, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  if (!tip.isConnected) document.body.append(tip);
  const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const y = event.clientY + 18 + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18;
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = Math.max(4, y) + "px";
}
function hideTip() { tip.hidden = true; }

// Pan and zoom by wheel, drag, pinch and buttons. axis "x" keeps the height.
function panZoom(drawing, width, height, view, axis = "xy") {
  const whole = {x: 0, y: 0, w: width, h: height};
  let box = Object.assign({}, view || whole);
  const apply = () => drawing.setAttribute("viewBox", `${box.x} ${box.y} ${box.w} ${box.h}`);
  const zoom = (factor, cx, cy) => {
    const w = Math.min(Math.max(box.w * factor, width / 1e5), Math.max(width, box.w) * 1.5);
    const f = w / box.w;
    box = {x: cx - (cx - box.x) * f, y: axis === "x" ? box.y : cy - (cy - box.y) * f, w, h: axis === "x" ? box.h : box.h * f};
    apply();
    drawing.dispatchEvent(new CustomEvent("zoomed", {detail: box}));
  };
  const at = (event) => {
    const r = drawing.getBoundingClientRect();
    if (axis === "x") return [box.x + ((event.clientX - r.left) / r.width) * box.w, 0];
    const m = drawing.getScreenCTM().inverse();
    return [m.a * event.clientX + m.e, m.d * event.clientY + m.f];
  };
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(Math.sign(event.deltaY) * 0.18), ...at(event));
  }, {passive: false});
  const pointers = new Map();
  drawing.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); drawing.setPointerCapture(event.pointerId); });
  drawing.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const others = [...pointers.values()].filter((p) => p.pointerId !== event.pointerId);
    if (others.length) {
      const far = (p) => Math.hypot(p.clientX - others[0].clientX, p.clientY - others[0].clientY) || 1;
      zoom(far(before) / far(event), ...at(event));
    } else {
      const scale = axis === "x" ? box.w / drawing.getBoundingClientRect().width : drawing.getScreenCTM().inverse().a;
      box.x -= (event.clientX - before.clientX) * scale;
      if (axis !== "x") box.y -= (event.clientY - before.clientY) * scale;
      apply();
      drawing.dispatchEvent(new CustomEvent("zoomed", {detail: box}));
    }
    pointers.set(event.pointerId, event);
  });
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) drawing.addEventListener(name, (event) => pointers.delete(event.pointerId));
  apply();
  const button = (label, title, act) => h("button", {type: "button", title, onclick: act}, label);
  const middle = () => [box.x + box.w / 2, box.y + box.h / 2];
  return h("div", {class: axis === "x" ? "pan wide" : "pan"}, drawing, h("div", {class: "tools"},
    button("+", "Zoom in", () => zoom(0.7, ...middle())), button("−", "Zoom out", () => zoom(1.4, ...middle())),
    button("⤢", "All of it", () => { box = Object.assign({}, whole); apply(); drawing.dispatchEvent(new CustomEvent("zoomed", {detail: box})); })));
}

// Why a graph broke and what to do; what stands in backquotes is code.
function advice(broken) {
  const spelled = (text) => text.split("`").map((part, i) => i % 2 ? h("code", {}, part) : part);
  return [...spelled(broken.why), h("br"), h("b", {}, "What to do: "), ...spelled(broken.hint)];
}
