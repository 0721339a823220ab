// The graphs of a run: the picture, the list with its search, and what is known of the chosen node.

const MOST_BOXES = 160;

class GraphPanel {
  constructor(run, openFile) {
    this.run = run;
    this.openFile = openFile;
    this.canvas = new GraphCanvas((number) => this.chooseBox(number), (number) => this.toggleBox(number));
    this.search = el('input', { type: 'search', placeholder: 'Search: name, operator, module', 'aria-label': 'Search nodes', 'aria-keyshortcuts': '/' });
    this.search.addEventListener('input', () => this.filter());
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') { event.preventDefault(); this.step(event.shiftKey ? -1 : 1); }
      if (event.key === 'Escape') { this.search.value = ''; this.filter(); this.canvas.element.focus(); }
    });
    this.select = el('select', { 'aria-label': 'Graph' }, run.graphs.map((graph, index) => el('option', { value: index }, `${graphKey(graph)} · ${graph.nodes.length}`)));
    this.select.addEventListener('change', () => this.open(Number(this.select.value)));
    this.rows = new Rows('Nodes', (index) => this.describe(index), (index) => this.chooseNode(index));
    this.found = el('p', { class: 'soft', id: 'found' });
    this.found.style.margin = '0';
    this.detail = el('aside', { class: 'detail', 'aria-label': 'The chosen node' });
    this.nextButton = el('button', { type: 'button', title: 'Next mismatch (d)', onclick: () => this.nextMismatch(1) }, 'Next mismatch');
    this.legend = el('div', { class: 'legend', 'aria-hidden': 'true' }, 'agrees', el('i', {}), 'differs');
    const button = (label, text, act) => el('button', { type: 'button', 'aria-label': label, title: label, onclick: act }, text);
    this.element = el('div', { class: 'graph' },
      el('div', { class: 'side' }, this.select, this.search, this.found, this.rows.element),
      el('div', { class: 'stage' }, this.canvas.element,
        el('div', { class: 'buttons' },
          button('Zoom in', '+', () => this.canvas.zoomBy(1.25)), button('Zoom out', '−', () => this.canvas.zoomBy(0.8)),
          button('Fit (0)', 'Fit', () => this.canvas.fit()), button('Close all modules (c)', 'Close', () => this.closeAll()),
          button('Open all modules (o)', 'Open', () => this.openAll()), this.nextButton),
        this.legend),
      this.detail);
    this.element.addEventListener('keydown', (event) => this.key(event));
    this.open(this.firstToShow());
  }

  /** The first graph with a failure, else the largest. */
  firstToShow() {
    const failure = firstFailure(this.run);
    if (failure) return failure.graph;
    return this.run.graphs.reduce((best, graph, index, all) => (graph.nodes.length > all[best].nodes.length ? index : best), 0);
  }

  open(index) {
    this.select.value = String(index);
    this.graph = this.run.graphs[index];
    this.nodes = this.graph.nodes;
    const failing = new Set(failingNodes(this.run, this.graph));
    this.nodes.forEach((node, index) => { node.heat = node.divergence ? heatOf(node.divergence) : failing.has(index) ? 1 : 0; });
    this.users = null;
    this.lines = null;
    this.chosen = null;
    this.mismatches = [...failing];
    this.nextButton.hidden = this.mismatches.length === 0;
    this.legendShown = this.nodes.some((node) => node.divergence);
    this.legend.hidden = !this.legendShown;
    this.closed = modulesToClose(this.nodes, MOST_BOXES);
    this.relayout();
    this.filter();
    if (this.mismatches.length) this.chooseNode(this.mismatches[0]);
    else this.showDetail();
    requestAnimationFrame(() => {
      this.canvas.resize();
      this.canvas.fit();
      if (this.chosen === null) return;
      this.canvas.choose(this.canvas.chosen, { centre: true });
      this.rows.mark(this.chosen);
    });
  }

  relayout() {
    this.layout = layoutGraph(this.nodes, this.closed);
    this.canvas.chosen = this.chosen === null ? null : this.layout.boxOfNode[this.chosen];
    this.canvas.show(this.nodes, this.layout);
    this.markMatches();
  }

  filter() {
    const wanted = this.search.value.trim().toLowerCase();
    const indices = [];
    this.nodes.forEach((node, index) => {
      if (!wanted || `${node.name} ${node.target || ''} ${node.module || ''}`.toLowerCase().includes(wanted)) indices.push(index);
    });
    this.matches = wanted ? indices : [];
    this.rows.show(indices);
    this.rows.mark(this.chosen);
    this.found.textContent = wanted ? `${formatCount(indices.length)} of ${formatCount(this.nodes.length)} nodes` : `${formatCount(this.nodes.length)} nodes`;
    this.markMatches();
    this.canvas.draw();
  }

  markMatches() {
    this.canvas.matches = new Set((this.matches || []).map((index) => this.layout.boxOfNode[index]));
  }

  describe(index) {
    const node = this.nodes[index];
    return [labelOf(node), node.shape || ''];
  }

  /** The next match of the search from the chosen node on. */
  step(direction) {
    this.go(this.matches, direction);
  }

  nextMismatch(direction) {
    this.go(this.mismatches, direction);
  }

  go(indices, direction) {
    if (!indices.length) return;
    const at = this.chosen === null ? -1 : this.chosen;
    const next = direction > 0 ? indices.find((index) => index > at) ?? indices[0]
      : [...indices].reverse().find((index) => index < at) ?? indices[indices.length - 1];
    this.chooseNode(next);
  }

  /** Chooses a node from outside of the picture: the module it hides in is opened, and the picture goes there. */
  chooseNode(index) {
    this.chosen = index;
    let hidden = closedModuleOf(this.nodes[index].module, this.closed);
    if (hidden !== null) {
      for (; hidden !== null; hidden = closedModuleOf(this.nodes[index].module, this.closed)) this.openModule(hidden);
      this.relayout();
    }
    this.canvas.choose(this.layout.boxOfNode[index], { centre: true });
    this.rows.mark(index);
    this.showDetail();
  }

  chooseBox(number) {
    const box = number === null ? null : this.layout.boxes[number];
    this.chosen = box ? this.callOf(box) : null;
    this.canvas.choose(number);
    this.rows.mark(this.chosen);
    if (box && box.module !== null) this.showModule(box);
    else this.showDetail();
  }

  /** The first call of a box, or its only node. */
  callOf(box) {
    return box.nodes.find((index) => this.nodes[index].op !== 'placeholder') ?? box.nodes[0];
  }

  /** Opens a closed module; its own modules stay closed. */
  openModule(path) {
    this.closed.delete(path);
    for (const node of this.nodes) {
      if (!node.module || !node.module.startsWith(`${path}.`)) continue;
      const end = node.module.indexOf('.', path.length + 1);
      this.closed.add(end === -1 ? node.module : node.module.slice(0, end));
    }
  }

  toggleBox(number) {
    const box = this.layout.boxes[number];
    const before = { x: box.x, y: box.y };
    if (box.module !== null) this.openModule(box.module);
    else {
      const { module } = this.nodes[box.nodes[0]];
      if (!module) return;
      this.closed.add(module);
    }
    this.chosen = this.callOf(box);
    this.relayout();
    // What was chosen stays where it was on the screen.
    const after = this.layout.boxes[this.layout.boxOfNode[this.chosen]];
    this.canvas.view.x += after.x - before.x;
    this.canvas.view.y += after.y - before.y;
    this.chooseBox(after.number);
  }

  closeAll() {
    this.closed = new Set();
    for (const node of this.nodes) if (node.module) this.closed.add(node.module.split('.')[0]);
    this.relayout();
    this.canvas.fit();
  }

  openAll() {
    this.closed = new Set();
    this.relayout();
    this.canvas.fit();
  }

  key(event) {
    if (event.target === this.search || event.target === this.select || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      n: () => this.step(1), p: () => this.step(-1), d: () => this.nextMismatch(1), D: () => this.nextMismatch(-1),
      c: () => this.closeAll(), o: () => this.openAll(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** The line of the graph's text that makes a node. */
  lineOf(node) {
    if (!this.lines) {
      this.lines = new Map();
      const file = this.run.files[this.graph.text];
      for (const line of (file ? file.text : '').split('\n')) {
        const found = /^\s*([A-Za-z_]\w*)\s*(?::[^=]*)?=[^=]/.exec(line);
        if (found && !this.lines.has(found[1])) this.lines.set(found[1], line.trim());
      }
    }
    return this.lines.get(node.name);
  }

  usersOf(index) {
    if (!this.users) {
      this.users = this.nodes.map(() => []);
      this.nodes.forEach((node, user) => node.inputs.forEach((input) => { if (!this.users[input].includes(user)) this.users[input].push(user); }));
    }
    return this.users[index];
  }

  showModule(box) {
    const counts = new Map();
    for (const index of box.nodes) {
      const target = this.nodes[index].target || this.nodes[index].op;
      counts.set(target, (counts.get(target) || 0) + 1);
    }
    const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => el('tr', {}, el('td', {}, el('code', {}, name)), el('td', { class: 'number' }, count)));
    this.detail.replaceChildren(el('h2', {}, box.module), el('p', { class: 'soft' }, `A module of ${box.nodes.length} nodes. Enter opens it.`),
      el('table', {}, el('tbody', {}, rows)));
    say(`Module ${box.module}, ${box.nodes.length} nodes`);
  }

  showDetail() {
    if (this.chosen === null) {
      this.detail.replaceChildren(el('h2', {}, this.graph.name || this.graph.file || 'graph'),
        el('p', { class: 'soft' }, 'Choose a node to see what it computes, where it comes from and who uses it. Press ? for the keys.'));
      return;
    }
    const node = this.nodes[this.chosen];
    const row = (name, value) => (value ? [el('dt', {}, name), el('dd', {}, value)] : []);
    const d = node.divergence;
    const links = (title, indices) => (indices.length ? [el('h3', {}, title), el('div', { class: 'links' },
      indices.slice(0, 40).map((index) => el('button', { type: 'button', onclick: () => this.chooseNode(index) }, shortName(this.nodes[index].name))),
      indices.length > 40 ? `and ${indices.length - 40} more` : '')] : []);
    const kernel = kernelOf(this.run, this.graph, node);
    fill(this.detail,
      el('h2', { id: 'chosen' }, node.name),
      el('dl', {},
        row('operator', node.target && el('code', {}, node.target)), row('kind', node.op), row('value', [node.dtype, node.shape].filter(Boolean).join(' ')),
        row('module', node.module),
        d ? row('differs in', d.class) : [], d ? row('error', typeof d.error === 'number' ? `${d.error.toExponential(2)}, against fp64` : '') : [],
        d && typeof d.reference === 'number' ? row('reference', `${d.reference.toExponential(2)}, against fp64`) : []),
      d && d.value ? el('pre', {}, d.value) : '',
      d && d.spread ? spreadView(d.spread, node.shape) : '',
      !d && this.mismatches.includes(this.chosen) ? el('p', { class: 'fault' }, `Calls the operator that is blamed: ${this.run.signature}`) : '',
      !d && this.legendShown ? el('p', { class: 'soft' }, 'Not measured: this value was not compared.') : '',
      this.lineOf(node) ? codeView(this.lineOf(node), 'The line of this node') : '',
      node.stack ? [el('h3', {}, 'Source'), el('pre', {}, node.stack)] : '',
      ...links('Uses', [...new Set(node.inputs)]), ...links('Used by', this.usersOf(this.chosen)),
      kernel ? [el('h3', {}, `Kernel ${kernel.name}${typeof kernel.seconds === 'number' ? `, ${formatSeconds(kernel.seconds)}` : ''}`), kernel.loops ? el('pre', {}, kernel.loops) : ''] : '',
      this.filesOf());
    say(`${node.name}, ${node.target || node.op}${node.shape ? `, ${node.shape}` : ''}${d && d.class ? `, differs in ${d.class}` : ''}`);
  }

  /** Files of the graph, as buttons. */
  filesOf() {
    const files = this.run.files.filter((file) => file.graph && file.graph === this.graph.name && file.stage === this.graph.stage);
    if (!files.length) return '';
    return el('div', {}, el('h3', {}, 'Files of this graph'), el('div', { class: 'links' },
      files.map((file) => el('button', { type: 'button', onclick: () => this.openFile(file.path) }, file.name))));
  }
}
