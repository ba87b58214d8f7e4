const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main"), list = document.getElementById("list"), search = document.getElementById("search");
const graphOf = new Map(data.graphs.map((g) => [g.capture, g]));
const captureOf = new Map(data.captures.map((c) => [c.number, c]));
const functionOf = new Map(data.functions.map((f) => [f.id, f]));
const PHASES = ["trace", "emit", "backend", "guards"];
const PHASE_WORDS = {trace: "tracing the bytecode", emit: "writing new bytecode", backend: "the backend", guards: "building guards"};

// --- words --------------------------------------------------------------------------------------------------------

function captureTitle(c) {
  return functionOf.get(c.function).name + (c.resume ? `, resumed at line ${c.resume}` : "") + (c.index ? `, entry ${c.index + 1}` : "");
}

function captureChips(c) {
  const chips = [];
  if (c.outcome === "eager") chips.push(h("span", {class: "chip bad"}, "eager mode"));
  if (c.outcome === "error") chips.push(h("span", {class: "chip bad"}, "failed"));
  if (c.graph) chips.push(h("span", {class: "chip good"}, plural(c.operations, "operation")));
  if (c.break && c.outcome === "entry") chips.push(h("span", {class: "chip bad"}, "breaks: " + c.break.reason));
  if (c.recompile) chips.push(h("span", {class: "chip mixed"}, "recompile"));
  return chips;
}

function functionChips(f) {
  const captures = f.captures.map((n) => captureOf.get(n));
  const chips = [];
  const graphs = captures.filter((c) => c.graph).length;
  const breaks = captures.filter((c) => c.break).length;
  const again = captures.filter((c) => c.recompile).length;
  if (f.inlined) chips.push(h("span", {class: "chip good"}, "inlined"));
  if (graphs) chips.push(h("span", {class: "chip good"}, plural(graphs, "graph")));
  if (breaks) chips.push(h("span", {class: "chip bad"}, plural(breaks, "break")));
  if (again) chips.push(h("span", {class: "chip mixed"}, plural(again, "recompile")));
  return chips;
}

function swatch(name) { return `--swatch: var(--${name})`; }

function phaseBar(phases) {
  const total = PHASES.reduce((sum, p) => sum + phases[p], 0) || 1;
  return h("div", {},
    h("div", {class: "stack"}, PHASES.map((p) => h("span", {style: `background: var(--${p}); width: ${(100 * phases[p]) / total}%`, title: p}))),
    h("div", {class: "legend"}, PHASES.map((p) => h("span", {style: swatch(p)}, `${p}: ${PHASE_WORDS[p]}, ${seconds(phases[p])}`))));
}

function stackView(broken) {
  return h("div", {class: "code"}, h("div", {class: "rows"}, broken.stack.map(([file, line, name], i) => [
    h("div", {class: "line"}, h("i"), h("span", {class: "dim"}, `${near(file)}:${line} in ${name}`)),
    broken.source[i].map((text, k) => h("div", {class: "line"}, h("i"), h("span", {class: k ? "was" : ""}, "    ", k ? text : coloured(text)))),
  ])));
}

// --- the timeline ---------------------------------------------------------------------------------------------------

function timeline() {
  const width = 1000, height = 74, span = Math.max(data.program.seconds, 1e-9);
  const scale = (t) => (t / span) * width;
  const bars = [];
  for (const event of data.timeline) {
    const capture = captureOf.get(event.capture);
    let items;
    if (event.kind === "capture") {
      let at = event.start;
      items = PHASES.map((p) => { const bar = {x: at, w: capture.phases[p], y: 8, fill: `var(--${p})`}; at += capture.phases[p]; return bar; });
    } else {
      items = [{x: event.start, w: event.seconds, y: 42, fill: "var(--run)"}];
    }
    for (const item of items) {
      const bar = svg("rect", {x: scale(item.x), y: item.y, width: Math.max(scale(item.w), 0.4), height: 24, fill: item.fill});
      bar.addEventListener("pointermove", (e) => showTip(e, h("b", {}, event.kind === "capture" ? "captures " : "runs graph of "), captureTitle(capture),
        h("div", {class: "dim"}, `${seconds(event.seconds)}, from ${seconds(event.start)}`)));
      bar.addEventListener("pointerleave", hideTip);
      bar.addEventListener("click", () => { location.hash = "c" + capture.number; });
      bars.push(bar);
    }
  }
  const drawing = svg("svg", {height, preserveAspectRatio: "none", role: "img", "aria-label": "timeline"}, bars);
  const axis = h("div", {class: "legend"});
  drawing.addEventListener("zoomed", (e) => label(e.detail));
  const label = (box) => axis.replaceChildren(
    h("span", {style: swatch("line")}, `from ${seconds(Math.max(0, (box.x / width) * span))} to ${seconds(((box.x + box.w) / width) * span)}`),
    ...PHASES.map((p) => h("span", {style: swatch(p)}, p)), h("span", {style: swatch("run")}, "graphs running"));
  label({x: 0, w: width});
  return h("div", {}, panZoom(drawing, width, height, null, "x"), axis);
}

// --- views ----------------------------------------------------------------------------------------------------------

function card(value, word, kind) { return h("div", {class: "card " + (kind || "")}, h("b", {}, value), word); }

function overview() {
  const t = data.totals, p = data.program;
  const byReason = new Map();
  for (const c of data.captures) if (c.break) (byReason.get(c.break.text) || byReason.set(c.break.text, []).get(c.break.text)).push(c);
  const breaks = [...byReason.values()].sort((a, b) => b.length - a.length);
  return [
    h("h1", {}, "Overview"),
    h("p", {class: "dim mono"}, `${p.arguments.join(" ")} · ${p.started} · ${seconds(p.seconds)} · Python ${p.python}, torch ${p.torch}, ${p.platform}`),
    h("div", {class: "cards"},
      card(t.graphs.toLocaleString("en"), t.graphs === 1 ? "graph" : "graphs", "good"), card(t.operations.toLocaleString("en"), "operations captured"),
      card(t.breaks.toLocaleString("en"), t.breaks === 1 ? "graph break" : "graph breaks", t.breaks ? "bad" : "good"),
      card(t.recompiles.toLocaleString("en"), t.recompiles === 1 ? "recompile" : "recompiles", t.recompiles ? "bad" : "good"),
      card(t.guards.toLocaleString("en"), "guards"), card(t.eager.toLocaleString("en"), "frames in eager mode", t.eager ? "bad" : "good"),
      card(seconds(t.capture_seconds), "to capture"), card(t.runs.toLocaleString("en"), `graph calls, ${seconds(t.run_seconds)}`)),
    h("h2", {}, "Timeline"), timeline(),
    h("h2", {}, "Time to capture"), phaseBar(t.phases),
    breaks.length ? h("h2", {}, "Graph breaks") : null,
    breaks.map((same) => h("div", {class: "box"},
      h("div", {}, h("span", {class: "chip bad"}, same[0].break.reason), same[0].break.detail, same.length > 1 ? h("span", {class: "dim"}, ` (${same.length} times)`) : null, " ",
        h("a", {href: "#f" + same[0].function}, functionOf.get(same[0].function).name)),
      stackView(same[0].break),
      h("p", {}, ...advice(same[0].break)))),
    t.recompiles ? [h("h2", {}, "Recompiles"), recompileTree(data.captures)] : null,
    data.graphs.length ? [h("h2", {}, "Graphs"), graphTable(data.graphs)] : null,
  ];
}

function graphTable(graphs) {
  const of = (g) => captureOf.get(g.capture);
  return h("div", {class: "box"}, table([
    ["graph", (g) => h("a", {href: "#c" + g.capture, class: "mono"}, g.name)],
    ["of", (g) => captureTitle(of(g)), {class: "code-cell"}],
    ["operations", (g) => of(g).operations, {right: true, sort: (g) => of(g).operations}],
    ["calls", (g) => of(g).runs, {right: true, sort: (g) => of(g).runs}],
    ["time of calls", (g) => seconds(of(g).run_seconds), {right: true, sort: (g) => of(g).run_seconds}],
    ["guards cost", (g) => nanoseconds(of(g).guard_nanoseconds), {right: true, sort: (g) => of(g).guard_nanoseconds || 0}],
    ["time to capture", (g) => seconds(of(g).seconds), {right: true, sort: (g) => of(g).seconds}],
  ], graphs));
}

function recompileTree(captures) {
  const wanted = new Set(captures.map((c) => c.number));
  const children = new Map();
  for (const c of captures) if (c.recompile && wanted.has(c.recompile.parent)) (children.get(c.recompile.parent) || children.set(c.recompile.parent, []).get(c.recompile.parent)).push(c);
  const item = (c) => {
    const r = c.recompile;
    return h("li", {}, h("a", {href: "#c" + c.number}, captureTitle(c)), " ",
      r ? h("div", {}, "the guard ", h("code", {class: "mono"}, r.guard.length > 160 ? r.guard.slice(0, 157) + "..." : r.guard), " failed: was ",
        h("code", {class: "mono was"}, r.was), ", is ", h("code", {class: "mono is"}, r.now), r.cause ? h("span", {class: "dim"}, `, needed by ${near(r.cause)}`) : null) : null,
      children.has(c.number) ? h("ul", {class: "tree"}, children.get(c.number).map(item)) : null);
  };
  const roots = captures.filter((c) => (children.has(c.number) && !(c.recompile && wanted.has(c.recompile.parent))) || (c.recompile && !wanted.has(c.recompile.parent)));
  return roots.length ? h("div", {class: "box"}, h("ul", {class: "tree"}, roots.map(item))) : h("p", {class: "dim"}, "None.");
}

function guardTables(c) {
  const groups = c.guard_groups.length ? h("div", {class: "box"}, h("h3", {}, "By what they are about"), table([
    ["about", (g) => h("span", {class: "mono"}, g.name)], ["guards", (g) => g.count, {right: true, sort: (g) => g.count}],
    ["cost of a call", (g) => nanoseconds(g.nanoseconds), {right: true, sort: (g) => g.nanoseconds || 0}],
  ], [...c.guard_groups].sort((a, b) => (b.nanoseconds || 0) - (a.nanoseconds || 0)), 15)) : null;
  return [
    groups,
    h("div", {class: "box"}, h("h3", {}, "One by one"), table([
      ["guard", (g) => h("span", {class: "mono"}, g.code.length > 220 ? g.code.slice(0, 217) + "..." : g.code), {class: "code-cell"}],
      ["why", (g) => g.meaning, {class: "code-cell"}], ["asked for by", (g) => h("span", {class: "mono", title: g.cause}, near(g.cause))],
    ], c.guards, 60)),
  ];
}

function graphView(g) {
  const place = h("div");
  const buttons = [];
  const show = (index) => {
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(i === index)));
    place.replaceChildren(index === 0 ? graphPicture(g) : codeView(g.code.split("\n")));
  };
  ["Picture", "Code"].forEach((word, i) => buttons.push(h("button", {type: "button", onclick: () => show(i)}, word)));
  show(0);
  return h("div", {}, h("p", {}, buttons[0], " ", buttons[1], " ", h("span", {class: "dim"}, plural(g.nodes.length, "node"), "; drag and scroll to look around")), place);
}

function captureView(c, open) {
  const g = graphOf.get(c.number);
  const body = h("div");
  let filled = false;
  const fill = () => {
    if (filled) return;
    filled = true;
    body.append(...[
      c.recompile ? recompileTree([c]) : null,
      c.break ? h("div", {class: "box"}, h("p", {}, h("span", {class: "chip bad"}, c.break.reason), c.break.detail), stackView(c.break),
        h("p", {}, ...advice(c.break))) : null,
      g ? h("h2", {}, "Graph ", h("span", {class: "mono"}, g.name)) : null, g ? graphView(g) : null,
      c.guards.length ? h("h2", {}, plural(c.guards.length, "guard"), c.guard_nanoseconds !== null ? `, ${nanoseconds(c.guard_nanoseconds)} a call` : "") : null,
      c.guards.length ? guardTables(c) : null,
      h("h2", {}, "Time to capture"), h("p", {class: "dim"}, `${seconds(c.seconds)}, traced ${plural(c.attempts, "time")}`), phaseBar(c.phases),
      c.runs ? h("p", {class: "dim"}, `The graph was called ${plural(c.runs, "time")}, ${seconds(c.run_seconds)} in all.`) : null,
    ].filter(Boolean).flat());
  };
  const details = h("details", {id: "c" + c.number, open: open, class: "box", ontoggle: () => details.open && fill()},
    h("summary", {}, h("b", {}, captureTitle(c)), " ", captureChips(c)), body);
  if (open) fill();
  return details;
}

function functionView(f, chosen) {
  const captures = f.captures.map((n) => captureOf.get(n));
  const marks = {};
  const seen = new Set();
  for (const m of f.marks) {
    const key = `${m.line} ${m.reason} ${m.detail} ${m.here}`;
    if (seen.has(key)) continue;
    seen.add(key);
    (marks[m.line] = marks[m.line] || []).push(h("div", {class: "mark" + (m.here ? "" : " inner")}, h("b", {}, m.reason), m.detail ? ": " + m.detail : "",
      m.here ? [h("br"), ...advice(m)] : " (in a function called here)"));
  }
  const source = f.source.length ? codeView(f.source, {first: f.line, status: f.lines, marks}) : h("p", {class: "dim"}, "The source file is not to be had.");
  const written = captures.filter((c) => c.transformed);
  const other = h("div");
  const select = h("select", {"aria-label": "Which transformed code", onchange: () => show(Number(select.value))},
    written.map((c) => h("option", {value: c.number}, captureTitle(c))));
  const show = (n) => {
    const c = captureOf.get(n);
    other.replaceChildren(...[c.refused ? h("p", {class: "dim"}, "The decompiler refuses this code (" + c.refused + "); its bytecode:") : null,
      codeView(c.transformed.replace(/\n$/, "").split("\n"))].filter(Boolean));
  };
  if (written.length) {
    const first = chosen && chosen.transformed ? chosen.number : written[0].number;
    select.value = String(first);
    show(first);
  }
  return [
    h("h1", {}, f.name), h("p", {class: "dim mono"}, `${f.filename}:${f.line}`), h("p", {}, functionChips(f)),
    h("div", {class: "legend"}, h("span", {style: swatch("good")}, "captured"), h("span", {style: swatch("bad")}, "runs in eager mode, or breaks the graph"),
      h("span", {style: swatch("mixed")}, "both, in different entries")),
    h("div", {class: written.length ? "pair" : ""}, h("div", {}, h("h3", {}, "Original"), source),
      written.length ? h("div", {}, h("h3", {}, "What runs instead ", written.length > 1 ? select : null), other) : null),
    captures.some((c) => c.recompile) ? [h("h2", {}, "Recompiles"), recompileTree(captures)] : null,
    captures.length ? h("h2", {}, plural(captures.length, "capture")) : h("p", {class: "dim"}, "Only captured as part of functions that call it."),
    captures.map((c) => captureView(c, captures.length === 1 || chosen === c)),
  ];
}

// --- the list and the search ------------------------------------------------------------------------------------------

let haystacks = null;
function matches(f, words) {
  if (!haystacks) {
    haystacks = new Map(data.functions.map((each) => {
      const captures = each.captures.map((n) => captureOf.get(n));
      const text = [each.name, each.filename, ...each.source, ...captures.flatMap((c) => [c.transformed, c.break ? c.break.text : "",
        ...c.guards.map((g) => g.code), graphOf.has(c.number) ? graphOf.get(c.number).code : ""])];
      return [each.id, text.join("\n").toLowerCase()];
    }));
  }
  return words.every((word) => haystacks.get(f.id).includes(word));
}

function showList() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = data.functions.filter((f) => !words.length || matches(f, words));
  const item = (f) => h("a", {href: "#f" + f.id, "aria-current": location.hash === "#f" + f.id ? "true" : null}, f.name,
    h("small", {}, `${baseName(f.filename)}:${f.line}`), h("small", {}, functionChips(f)));
  const own = shown.filter((f) => !f.inlined), inner = shown.filter((f) => f.inlined);
  list.replaceChildren(...[
    h("a", {href: "#overview", "aria-current": /^#?(overview)?$/.test(location.hash) ? "true" : null}, "Overview"),
    h("h2", {}, words.length ? `${shown.length} of ${data.functions.length} functions` : `${plural(own.length, "captured function")}`), ...own.map(item),
    inner.length ? h("h2", {}, "Inlined into them") : null, ...inner.map(item)].filter(Boolean));
}

function showMain() {
  hideTip();
  const hash = location.hash.slice(1);
  let view;
  if (/^f\d+$/.test(hash) && functionOf.has(Number(hash.slice(1)))) view = functionView(functionOf.get(Number(hash.slice(1))));
  else if (/^c\d+$/.test(hash) && captureOf.has(Number(hash.slice(1)))) {
    const c = captureOf.get(Number(hash.slice(1)));
    view = functionView(functionOf.get(c.function), c);
  } else view = overview();
  main.replaceChildren(...view.flat(Infinity).filter(Boolean));
  const target = /^c\d+$/.test(hash) ? document.getElementById(hash) : null;
  if (target) window.scrollTo(0, target.getBoundingClientRect().top + window.scrollY - 60); else window.scrollTo(0, 0);
  list.classList.remove("open");
  document.getElementById("menu").setAttribute("aria-expanded", "false");
  showList();
}

document.getElementById("program").textContent = data.program.arguments.map((a, i) => (i ? a : baseName(a))).join(" ");
document.getElementById("menu").addEventListener("click", (e) => e.target.setAttribute("aria-expanded", String(list.classList.toggle("open"))));
document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("framegraft-theme", name); } catch (e) { /* pages from disk may have no storage */ }
}
let theme = null;
try { theme = localStorage.getItem("framegraft-theme"); } catch (e) { /* as above */ }
setTheme(theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
search.addEventListener("input", () => { showList(); list.classList.toggle("open", Boolean(search.value)); });
search.addEventListener("keydown", (e) => {
  if (e.key === "Enter") { const first = list.querySelector("a[href^='#f']"); if (first) location.hash = first.getAttribute("href"); }
  if (e.key === "Escape") { search.value = ""; showList(); list.classList.remove("open"); }
});
document.addEventListener("keydown", (e) => { if (e.key === "/" && e.target === document.body) { e.preventDefault(); search.focus(); } });
window.addEventListener("hashchange", showMain);
showMain();
