// Where the boxes of a graph stand.
//
// Takes nodes in the order they run, each with the indices of its inputs, and a set of module paths that are closed. A closed
// module is one box. Boxes stand in layers, each below everything it uses, as far as closing modules leaves no cycle; an
// edge that would lead upwards is kept and drawn, but places nothing. What uses no more than what uses it, such as an input
// of the graph, stands right above its first user. Edges get a place of their own in every layer in between, so that they pass beside
// boxes: those across few layers always, longer ones as long as there are not too many such places. An edge without places is a
// labelled stub at both of its ends. The time is linear in nodes, edges and places but for sorting layers.

const LAYER_HEIGHT = 46;
const BOX_HEIGHT = 26;
const GAP = 14;
const LONGEST_ROUTED = 6;
const MOST_PLACES = 3000;
const SWEEPS = 3;
const NEIGHBOURHOOD = 15;

/** The closed module that a node belongs to, the outermost one. */
function closedModuleOf(module, closed) {
  if (!module || closed.size === 0) return null;
  for (let at = module.indexOf('.'); at !== -1; at = module.indexOf('.', at + 1)) {
    if (closed.has(module.slice(0, at))) return module.slice(0, at);
  }
  return closed.has(module) ? module : null;
}

/** A name as people say it: inputs that capture named by the path of a parameter have that path. */
function shortName(name) {
  const found = /^l_(?:self|fn)_+(?:modules_)?(.*?)_*$/i.exec(name);
  return found ? found[1].replace(/_+(?:modules|parameters|buffers)_+/g, '.') : name;
}

/** For every node the closed module it is part of, or null. An input of the graph that only one closed module uses is part of
    that module. */
function closedModulesOf(nodes, closed) {
  const modules = nodes.map((node) => closedModuleOf(node.module, closed));
  const users = new Map();
  nodes.forEach((node, index) => {
    for (const input of node.inputs) {
      if (nodes[input].op !== 'placeholder' && nodes[input].op !== 'get_attr') continue;
      users.set(input, users.has(input) && users.get(input) !== modules[index] ? null : modules[index]);
    }
  });
  for (const [input, module] of users) if (modules[input] === null) modules[input] = module;
  return modules;
}

/** Boxes for nodes and closed modules, and the edges between them. */
function boxesOf(nodes, closed) {
  const modules = closedModulesOf(nodes, closed);
  const boxes = [];
  const boxOfNode = new Int32Array(nodes.length);
  const boxOfModule = new Map();
  nodes.forEach((node, index) => {
    const module = modules[index];
    let box = module === null ? undefined : boxOfModule.get(module);
    if (box === undefined) {
      box = { number: 0, module, nodes: [], first: Infinity, heat: 0, ins: [], outs: [], farIns: [], farOuts: [], x: 0, y: 0, layer: 0, width: 0 };
      if (module !== null) boxOfModule.set(module, box);
      boxes.push(box);
    }
    box.nodes.push(index);
    box.heat = Math.max(box.heat, node.heat || 0);
    // Inputs of the graph come before everything; a module is where its first call is.
    if (node.op !== 'placeholder' || module === null) box.first = Math.min(box.first, index);
  });
  boxes.sort((a, b) => a.first - b.first || a.nodes[0] - b.nodes[0]);
  boxes.forEach((box, number) => {
    box.number = number;
    for (const index of box.nodes) boxOfNode[index] = number;
  });
  const edges = [];
  const seen = new Set();
  nodes.forEach((node, index) => {
    const to = boxOfNode[index];
    for (const input of node.inputs) {
      const from = boxOfNode[input];
      const key = from * boxes.length + to;
      if (from === to || seen.has(key)) continue;
      seen.add(key);
      edges.push({ from, to, via: [], note: (nodes[input].shape || '').slice(0, 22) });
      boxes[from].outs.push(to);
      boxes[to].ins.push(from);
    }
  });
  for (const box of boxes) {
    const node = nodes[box.nodes[0]];
    box.label = box.module === null ? labelOf(node) : box.module;
    box.note = box.module !== null ? `${box.nodes.length}` : (node.shape || '').slice(0, 22);
    box.kind = box.module === null ? node.op : 'module';
    const length = Math.min(box.label.length, 34) + (box.note ? box.note.length + 2 : 0);
    box.width = length * 7.25 + 24;
  }
  return { boxes, edges, boxOfNode };
}

/** Gives every box its layer. */
function assignLayers(boxes) {
  for (const box of boxes) {
    let layer = 0;
    for (const from of box.ins) if (from < box.number) layer = Math.max(layer, boxes[from].layer + 1);
    box.layer = layer;
  }
  for (let number = boxes.length - 1; number >= 0; number -= 1) {
    const box = boxes[number];
    if (box.ins.length > box.outs.length) continue;
    let first = Infinity;
    for (const to of box.outs) if (to > number) first = Math.min(first, boxes[to].layer);
    if (first === Infinity || first - 1 <= box.layer) continue;
    box.layer = first - 1;
    box.lowered = true;
  }
}

/** The layers, with places for the edges that pass through. */
function fillLayers(boxes, edges) {
  const count = boxes.reduce((most, box) => Math.max(most, box.layer + 1), 0);
  const layers = Array.from({ length: count }, () => []);
  const slots = boxes.map((box) => ({ box, width: box.width, up: [], down: [], x: 0, order: 0 }));
  for (const slot of slots) layers[slot.box.layer].push(slot);
  const span = (edge) => boxes[edge.to].layer - boxes[edge.from].layer;
  let places = MOST_PLACES;
  // Of the long edges the shorter ones first: more of them fit.
  for (const edge of [...edges].sort((a, b) => span(a) - span(b))) {
    const [from, to] = [boxes[edge.from].layer, boxes[edge.to].layer];
    edge.routed = to > from && (to - from <= LONGEST_ROUTED || to - from <= places);
    if (!edge.routed) {
      boxes[edge.from].farOuts.push(edge.to);
      boxes[edge.to].farIns.push(edge.from);
      continue;
    }
    if (to - from > LONGEST_ROUTED) places -= to - from;
    let above = slots[edge.from];
    for (let layer = from + 1; layer < to; layer += 1) {
      const passing = { box: null, width: 6, up: [above], down: [], x: 0, order: 0 };
      above.down.push(passing);
      edge.via.push(passing);
      layers[layer].push(passing);
      above = passing;
    }
    above.down.push(slots[edge.to]);
    // A weight stands where it is used; it does not pull its user aside.
    if (!boxes[edge.from].lowered) slots[edge.to].up.push(above);
  }
  return { layers, slots };
}

/** Sorts each layer by where its neighbours stand, downwards and upwards in turn. */
function orderLayers(layers) {
  for (const layer of layers) layer.forEach((slot, order) => { slot.order = order; });
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const downwards = sweep % 2 === 0;
    const side = downwards ? 'up' : 'down';
    for (let step = 0; step < layers.length; step += 1) {
      const layer = layers[downwards ? step : layers.length - 1 - step];
      if (layer.length < 2) continue;
      for (const slot of layer) {
        const near = slot[side];
        let sum = 0;
        for (const other of near) sum += other.order;
        slot.wanted = near.length ? sum / near.length : slot.order;
      }
      layer.sort((a, b) => a.wanted - b.wanted || a.order - b.order);
      layer.forEach((slot, order) => { slot.order = order; });
    }
  }
}

/** The mean place of some slots. */
function meanPlace(slots) {
  let sum = 0;
  for (const slot of slots) sum += slot.x;
  return sum / slots.length;
}

/** Places the slots of a layer side by side around the middle. */
function centreLayer(layer) {
  let width = -GAP;
  for (const slot of layer) width += slot.width + GAP;
  let left = -width / 2;
  for (const slot of layer) {
    slot.x = left + slot.width / 2;
    left += slot.width + GAP;
  }
}

/** Places the slots of a layer as near as possible to their neighbours on one side, in their order and without overlap. Those
    that have neighbours only on the other side stand near these, and move nobody. */
function placeLayer(layer, side, opposite) {
  let right = -Infinity;
  let moved = 0;
  let movers = 0;
  for (const slot of layer) {
    const near = slot[side];
    const wanted = near.length ? meanPlace(near) : slot[opposite].length ? meanPlace(slot[opposite]) : slot.x;
    slot.x = Math.max(wanted, right + slot.width / 2);
    right = slot.x + slot.width / 2 + GAP;
    if (!near.length) continue;
    moved += wanted - slot.x;
    movers += 1;
  }
  if (!movers) return;
  for (const slot of layer) slot.x += moved / movers;
}

/** Takes out the drift of layers to one side: the middle of every neighbourhood of layers goes to the middle of the picture. */
function straighten(layers) {
  const sums = new Float64Array(layers.length + 1);
  layers.forEach((layer, index) => {
    sums[index + 1] = sums[index] + (layer.length ? meanPlace(layer) : 0);
  });
  layers.forEach((layer, index) => {
    const [from, to] = [Math.max(0, index - NEIGHBOURHOOD), Math.min(layers.length, index + NEIGHBOURHOOD + 1)];
    const drift = (sums[to] - sums[from]) / (to - from);
    for (const slot of layer) slot.x -= drift;
  });
}

/** The layout of a graph: boxes with places, edges, the layers from top to bottom, and the extent. */
function layoutGraph(nodes, closed) {
  const { boxes, edges, boxOfNode } = boxesOf(nodes, closed);
  assignLayers(boxes);
  const { layers, slots } = fillLayers(boxes, edges);
  orderLayers(layers);
  layers.forEach(centreLayer);
  for (let sweep = 0; sweep <= SWEEPS; sweep += 1) {
    const downwards = sweep % 2 === 0;
    for (let step = 0; step < layers.length; step += 1) {
      const layer = layers[downwards ? step : layers.length - 1 - step];
      if (downwards) placeLayer(layer, 'up', 'down');
      else placeLayer(layer, 'down', 'up');
    }
  }
  straighten(layers);
  let [left, right] = [Infinity, -Infinity];
  layers.forEach((layer, index) => {
    for (const slot of layer) {
      slot.y = index * LAYER_HEIGHT;
      left = Math.min(left, slot.x - slot.width / 2);
      right = Math.max(right, slot.x + slot.width / 2);
    }
  });
  slots.forEach((slot) => { slot.box.x = slot.x; slot.box.y = slot.y; });
  const rows = layers.map((layer) => layer.filter((slot) => slot.box).map((slot) => slot.box.number));
  if (boxes.length === 0) [left, right] = [0, 0];
  return { boxes, edges, boxOfNode, rows, left, right, bottom: Math.max(0, layers.length - 1) * LAYER_HEIGHT };
}

/** The modules to close at first, so that a large graph begins as an overview: the deepest level with few enough boxes. Calls
    that a module makes itself, beside those of its own modules, stay open below its level. */
function modulesToClose(nodes, most) {
  if (nodes.length <= most) return new Set();
  const paths = nodes.filter((node) => node.op === 'call_function').map((node) => (node.module ? node.module.split('.') : []));
  const parents = new Set();
  for (const path of paths) for (let depth = 1; depth < path.length; depth += 1) parents.add(path.slice(0, depth).join('.'));
  let chosen = new Set();
  for (let depth = 1; ; depth += 1) {
    const closed = new Set();
    let open = 0;
    for (const path of paths) {
      const own = path.slice(0, depth).join('.');
      if (path.length === 0 || (path.length < depth && parents.has(own))) open += 1;
      else closed.add(own);
    }
    if (depth > 1 && closed.size + open > most) return chosen;
    chosen = closed;
    if (paths.every((path) => path.length <= depth)) return chosen;
  }
}

/** The name of a node, with its operator where the name does not tell it. */
function labelOf(node) {
  const operator = /^\w+\.(\w+)/.exec(node.op === 'call_function' ? node.target || '' : '');
  const name = shortName(node.name);
  return operator && !node.name.includes(operator[1].replace(/^_+|_+$/g, '')) ? `${name} ${operator[1]}` : name;
}
