// A graph as layers from its inputs to its output: longest paths, then two sweeps that put nodes near their neighbours.

const NODE_HEIGHT = 40, LAYER_GAP = 34, NODE_GAP = 16, MOST_NODES = 4000;

function layout(nodes) {
  const byName = new Map(nodes.map((n, i) => [n.name, i]));
  const inputs = nodes.map((n) => n.inputs.map((name) => byName.get(name)).filter((i) => i !== undefined));
  const users = nodes.map(() => []);
  inputs.forEach((list, i) => list.forEach((j) => users[j].push(i)));
  const layer = nodes.map(() => 0);
  nodes.forEach((n, i) => { layer[i] = inputs[i].length ? Math.max(...inputs[i].map((j) => layer[j])) + 1 : 0; });
  for (let i = nodes.length - 1; i >= 0; i--) {  // inputs stand right above what uses them first
    if (!inputs[i].length && users[i].length) layer[i] = Math.max(0, Math.min(...users[i].map((j) => layer[j])) - 1);
  }
  const layers = [];
  nodes.forEach((n, i) => { (layers[layer[i]] = layers[layer[i]] || []).push(i); });
  for (let i = 0; i < layers.length; i++) layers[i] = layers[i] || [];
  const width = nodes.map((n) => Math.max(70, 7.4 * Math.max(n.label.length, n.value.length * 0.93) + 18));
  const x = nodes.map(() => 0);
  const place = (list, wanted) => {
    list.sort((a, b) => wanted(a) - wanted(b));
    let edge = -Infinity;
    const want = list.map(wanted);
    list.forEach((i, k) => { x[i] = Math.max(want[k] - width[i] / 2, edge); edge = x[i] + width[i] + NODE_GAP; });
    const drift = list.reduce((sum, i, k) => sum + x[i] + width[i] / 2 - want[k], 0) / (list.length || 1);
    list.forEach((i) => { x[i] -= drift; });
  };
  const centre = (i) => x[i] + width[i] / 2;
  const mean = (list, own) => (list.length ? list.reduce((sum, j) => sum + centre(j), 0) / list.length : own);
  layers.forEach((list) => { let edge = 0; list.forEach((i) => { x[i] = edge; edge += width[i] + NODE_GAP; }); });
  for (let sweep = 0; sweep < 3; sweep++) {
    layers.forEach((list) => place(list, (i) => mean(inputs[i], mean(users[i], centre(i)))));
    for (let k = layers.length - 1; k >= 0; k--) place(layers[k], (i) => mean(users[i], mean(inputs[i], centre(i))));
  }
  let left = Infinity;
  nodes.forEach((n, i) => { left = Math.min(left, x[i]); });
  let right = 0;
  nodes.forEach((n, i) => { x[i] += 20 - left; right = Math.max(right, x[i] + width[i]); });
  const y = nodes.map((n, i) => 20 + layer[i] * (NODE_HEIGHT + LAYER_GAP));
  return {x, y, width, inputs, w: right + 20, h: 40 + layers.length * (NODE_HEIGHT + LAYER_GAP) - LAYER_GAP};
}

function tail(name) { return name.length > 30 ? "…" + name.slice(-29) : name; }

function graphPicture(graph) {
  const shown = graph.nodes.slice(0, MOST_NODES);
  const nodes = shown.map((n) => Object.assign({label: n.op === "call_function" || n.op === "call_method" ? n.target : n.op === "output" ? "output" : tail(n.name)}, n));
  const at = layout(nodes);
  const edges = [], boxes = [];
  nodes.forEach((node, i) => {
    for (const j of at.inputs[i]) {
      const x1 = at.x[j] + at.width[j] / 2, y1 = at.y[j] + NODE_HEIGHT, x2 = at.x[i] + at.width[i] / 2, y2 = at.y[i];
      const bend = Math.max(14, (y2 - y1) / 2);
      edges.push(svg("path", {class: "edge", "marker-end": "url(#tip)", d: `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`}));
    }
    const middle = at.x[i] + at.width[i] / 2;
    const group = svg("g", {class: "node " + node.op, "data-name": node.name},
      svg("rect", {x: at.x[i], y: at.y[i], width: at.width[i], height: NODE_HEIGHT, rx: 6}),
      svg("text", {x: middle, y: at.y[i] + (node.value ? 17 : 24), "text-anchor": "middle"}, node.label),
      node.value ? svg("text", {class: "sub", x: middle, y: at.y[i] + 32, "text-anchor": "middle"}, node.value) : null);
    group.addEventListener("pointermove", (event) => showTip(event, h("b", {class: "mono"}, `${node.name} = ${node.target}(${node.args})`),
      h("div", {}, node.value), h("div", {class: "dim"}, node.where)));
    group.addEventListener("pointerleave", hideTip);
    boxes.push(group);
  });
  const drawing = svg("svg", {role: "img", "aria-label": "graph " + graph.name, height: Math.min(560, Math.max(160, at.h))},
    svg("defs", {}, svg("marker", {id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"},
      svg("path", {d: "M0 0L8 4L0 8z", fill: "var(--dim)"}))),
    edges, boxes);
  const start = at.h > 700 || at.w > 1400 ? {x: Math.max(0, at.x[0] - 300), y: 0, w: Math.min(at.w, 1000), h: 560} : null;
  const made = panZoom(drawing, at.w, at.h, start);
  return graph.nodes.length > MOST_NODES ? h("div", {}, h("p", {class: "dim"}, `The first ${MOST_NODES} of ${graph.nodes.length} nodes.`), made) : made;
}
