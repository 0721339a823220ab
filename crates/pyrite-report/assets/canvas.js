// The picture of a graph: a canvas that is drawn anew for what is in sight.
//
// It shows a layout, moves and zooms with mouse and keys, and tells who asked which node was chosen. Only boxes and edges in
// sight are drawn, and labels only where they can be read, so a picture costs the same for ten nodes and ten thousand.

const ZOOM_RANGE = [0.02, 3];
const STRIP = 18;
const STUB = 9;

class GraphCanvas {
  constructor(onChoose, onToggle) {
    this.onChoose = onChoose;
    this.onToggle = onToggle;
    this.element = el('canvas', {
      tabindex: '0', role: 'application', 'aria-label': 'The graph. Arrow keys follow edges, Enter opens or closes a module.',
    });
    this.context = this.element.getContext('2d');
    this.view = { x: 0, y: 0, zoom: 1 };
    this.layout = null;
    this.chosen = null;
    this.matches = new Set();
    this.waiting = false;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  /** Shows a layout. */
  show(nodes, layout) {
    this.nodes = nodes;
    this.layout = layout;
    this.draw();
  }

  /** The colours of the page, read once per theme. */
  readColours() {
    const probe = el('span', {});
    document.body.append(probe);
    const read = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    const names = ['raised', 'sunken', 'line', 'line-strong', 'ink', 'ink-soft', 'accent', 'on-accent'];
    this.colours = Object.fromEntries(names.map((name) => [name, read(name)]));
    this.fonts = {
      label: `12px ${getComputedStyle(document.documentElement).getPropertyValue('--mono')}`,
      stub: `9px ${getComputedStyle(document.documentElement).getPropertyValue('--mono')}`,
    };
    this.ramp = Array.from({ length: 33 }, (_, step) => mixColours(this.colours.sunken, this.colours.accent, step / 32));
    probe.remove();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    this.width = width;
    this.height = height;
    this.element.width = Math.round(width * ratio);
    this.element.height = Math.round(height * ratio);
    this.ratio = ratio;
    this.paint();
  }

  /** Draws before the next frame, once however often it was asked for. */
  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    if (!this.layout || !this.width) return;
    if (!this.colours) this.readColours();
    const { context, view } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.translate(this.width / 2, this.height / 2);
    context.scale(view.zoom, view.zoom);
    context.translate(-view.x, -view.y);
    const sight = {
      left: view.x - this.width / 2 / view.zoom, right: view.x + this.width / 2 / view.zoom,
      top: view.y - this.height / 2 / view.zoom - BOX_HEIGHT, bottom: view.y + this.height / 2 / view.zoom + BOX_HEIGHT,
    };
    this.paintEdges(sight);
    this.paintBoxes(sight);
    context.restore();
    this.paintStrip();
  }

  paintEdges(sight) {
    const { context, layout, colours, view } = this;
    const trace = (edge) => {
      const [from, to] = [layout.boxes[edge.from], layout.boxes[edge.to]];
      if (Math.min(from.y, to.y) > sight.bottom || Math.max(from.y, to.y) < sight.top) return;
      context.moveTo(from.x, from.y + BOX_HEIGHT / 2);
      let last = { x: from.x, y: from.y + BOX_HEIGHT / 2 };
      for (const next of [...edge.via, { x: to.x, y: to.y - BOX_HEIGHT / 2 }]) {
        const half = (last.y + next.y) / 2;
        if (view.zoom < 0.25) context.lineTo(next.x, next.y);
        else context.bezierCurveTo(last.x, half, next.x, half, next.x, next.y);
        last = next;
      }
    };
    context.lineWidth = 1 / Math.min(1, Math.max(view.zoom, 0.3));
    context.strokeStyle = colours['line-strong'];
    context.beginPath();
    for (const edge of layout.edges) if (edge.routed) trace(edge);
    context.stroke();
    this.paintStubs(sight);
    const ofChosen = layout.edges.filter((edge) => edge.from === this.chosen || edge.to === this.chosen);
    if (ofChosen.length) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 1.6 / Math.min(1, view.zoom);
      context.beginPath();
      ofChosen.forEach(trace);
      context.stroke();
    }
    this.paintShapes(sight, ofChosen);
  }

  /** Shapes where they are not to be read off the box above: on edges that leave modules or pass other layers, and on those of the
   * chosen node. */
  paintShapes(sight, ofChosen) {
    const { context, layout, colours, view } = this;
    if (view.zoom < 0.6) return;
    const marked = new Set(ofChosen);
    context.font = this.fonts.stub;
    context.textBaseline = 'middle';
    for (const edge of layout.edges) {
      const [from, to] = [layout.boxes[edge.from], layout.boxes[edge.to]];
      if (!edge.note || !edge.routed || !(marked.has(edge) || from.kind === 'module' || edge.via.length)) continue;
      // In the middle of a long edge, where no box is.
      const middle = edge.via[Math.floor(edge.via.length / 2)];
      const x = middle ? middle.x : (from.x + to.x) / 2;
      const y = middle ? middle.y : (from.y + to.y) / 2;
      if (y < sight.top || y > sight.bottom || x < sight.left || x > sight.right) continue;
      const width = context.measureText(edge.note).width;
      context.fillStyle = colours.raised;
      context.fillRect(x - width / 2 - 2, y - 6, width + 4, 12);
      context.fillStyle = marked.has(edge) ? colours.ink : colours['ink-soft'];
      context.fillText(edge.note, x - width / 2, y);
    }
  }

  /** Both ends of edges that are too long to be drawn, with the name of what is at the other end. */
  paintStubs(sight) {
    const { context, layout, colours, view } = this;
    if (view.zoom < 0.25) return;
    const name = (numbers) => (numbers.length === 1 ? layout.boxes[numbers[0]].label : `${numbers.length} far`);
    context.setLineDash([2, 2]);
    context.font = this.fonts.stub;
    context.textBaseline = 'middle';
    context.fillStyle = colours['ink-soft'];
    context.beginPath();
    for (const box of layout.boxes) {
      if (box.y < sight.top || box.y > sight.bottom || box.x < sight.left || box.x > sight.right) continue;
      for (const [numbers, side, arrow] of [[box.farOuts, 1, '↓'], [box.farIns, -1, '↑']]) {
        if (!numbers.length) continue;
        const [x, y] = [box.x + box.width / 2 - 12, box.y + (side * BOX_HEIGHT) / 2];
        context.moveTo(x, y);
        context.lineTo(x, y + side * STUB);
        if (view.zoom > 0.6) context.fillText(`${arrow} ${name(numbers)}`, x + 4, y + (side * STUB) / 2 + side);
      }
    }
    context.stroke();
    context.setLineDash([]);
  }

  paintBoxes(sight) {
    const { context, layout, colours, view } = this;
    const readable = view.zoom > 0.45;
    context.font = this.fonts.label;
    context.textBaseline = 'middle';
    const first = Math.max(0, Math.floor(sight.top / LAYER_HEIGHT));
    const last = Math.min(layout.rows.length - 1, Math.ceil(sight.bottom / LAYER_HEIGHT));
    for (let row = first; row <= last; row += 1) {
      for (const number of layout.rows[row]) {
        const box = layout.boxes[number];
        const [left, top] = [box.x - box.width / 2, box.y - BOX_HEIGHT / 2];
        if (left > sight.right || left + box.width < sight.left) continue;
        const step = Math.round(box.heat * 32);
        context.fillStyle = box.heat > 0 ? this.ramp[step] : box.kind === 'placeholder' ? colours.raised : colours.sunken;
        context.strokeStyle = colours['line-strong'];
        context.lineWidth = 1;
        context.beginPath();
        context.roundRect(left, top, box.width, BOX_HEIGHT, box.kind === 'placeholder' ? BOX_HEIGHT / 2 : 5);
        context.fill();
        if (box.kind === 'placeholder') context.setLineDash([3, 3]);
        context.stroke();
        context.setLineDash([]);
        if (box.kind === 'module') {
          context.beginPath();
          context.roundRect(left + 3, top + 3, box.width - 6, BOX_HEIGHT - 6, 3);
          context.stroke();
        }
        if (this.matches.has(number)) this.ring(box, colours.accent, 2);
        if (number === this.chosen) this.ring(box, colours.ink, 2.5);
        if (!readable) continue;
        context.fillStyle = box.heat > 0.6 ? colours['on-accent'] : colours.ink;
        const label = box.label.length > 34 ? `${box.label.slice(0, 33)}…` : box.label;
        context.fillText(label, left + 11, box.y + 0.5);
        if (box.note) {
          context.fillStyle = box.heat > 0.6 ? colours['on-accent'] : colours['ink-soft'];
          context.textAlign = 'right';
          context.fillText(box.note, left + box.width - 11, box.y + 0.5);
          context.textAlign = 'left';
        }
      }
    }
  }

  ring(box, colour, width) {
    const { context, view } = this;
    const room = 2 / Math.min(1, view.zoom);
    context.lineWidth = width / Math.min(1, view.zoom);
    context.strokeStyle = colour;
    context.beginPath();
    context.roundRect(box.x - box.width / 2 - room, box.y - BOX_HEIGHT / 2 - room, box.width + 2 * room, BOX_HEIGHT + 2 * room, 7);
    context.stroke();
  }

  /** A strip at the right: the whole height of the graph, its heat, and the part in sight. */
  paintStrip() {
    const { context, layout, colours, view } = this;
    const [left, height] = [this.width - STRIP, this.height];
    const whole = layout.bottom + LAYER_HEIGHT;
    context.fillStyle = colours.sunken;
    context.fillRect(left, 0, STRIP, height);
    const mark = Math.max(2, (LAYER_HEIGHT / whole) * height);
    layout.rows.forEach((row, index) => {
      const y = ((index * LAYER_HEIGHT + LAYER_HEIGHT / 2) / whole) * height;
      let heat = 0;
      let found = false;
      for (const number of row) {
        heat = Math.max(heat, layout.boxes[number].heat);
        found ||= this.matches.has(number);
      }
      if (heat > 0) {
        context.fillStyle = this.ramp[Math.round(heat * 32)];
        context.fillRect(left, y - mark / 2, STRIP, mark);
      }
      if (found) {
        context.fillStyle = colours.accent;
        context.fillRect(left, y - 1, 5, 2);
      }
    });
    const top = ((view.y - this.height / 2 / view.zoom + LAYER_HEIGHT / 2) / whole) * height;
    const size = (this.height / view.zoom / whole) * height;
    context.strokeStyle = colours['ink-soft'];
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, Math.max(0.5, top), STRIP - 1, Math.min(height - 1, Math.max(6, size)));
  }

  /** The box under a point of the canvas. */
  at(px, py) {
    if (!this.layout) return null;
    const x = (px - this.width / 2) / this.view.zoom + this.view.x;
    const y = (py - this.height / 2) / this.view.zoom + this.view.y;
    const row = this.layout.rows[Math.round(y / LAYER_HEIGHT)] || [];
    if (Math.abs(y - Math.round(y / LAYER_HEIGHT) * LAYER_HEIGHT) > BOX_HEIGHT / 2) return null;
    return row.find((number) => Math.abs(this.layout.boxes[number].x - x) <= this.layout.boxes[number].width / 2) ?? null;
  }

  /** The whole width, from the top, as large as can be read if that fits. */
  fit() {
    const { layout } = this;
    if (!layout || !this.width) return;
    const [width, height] = [layout.right - layout.left + 60, layout.bottom + LAYER_HEIGHT + 40];
    const room = this.width - STRIP;
    const zoom = Math.min(1.1, room / width, this.height / height);
    this.view.zoom = Math.max(zoom, Math.min(0.5, room / width), ZOOM_RANGE[0]);
    this.view.x = (layout.left + layout.right) / 2 + STRIP / 2 / this.view.zoom;
    const shown = this.height / this.view.zoom;
    this.view.y = height <= shown ? layout.bottom / 2 : shown / 2 - 30;
    this.draw();
  }

  zoomBy(factor, px = this.width / 2, py = this.height / 2) {
    const before = this.view.zoom;
    const zoom = Math.min(ZOOM_RANGE[1], Math.max(ZOOM_RANGE[0], before * factor));
    this.view.x += (px - this.width / 2) * (1 / before - 1 / zoom);
    this.view.y += (py - this.height / 2) * (1 / before - 1 / zoom);
    this.view.zoom = zoom;
    this.draw();
  }

  /** Chooses a box, and brings it into sight where it is not. */
  choose(number, { centre = false } = {}) {
    this.chosen = number;
    const box = number === null ? null : this.layout.boxes[number];
    if (box) {
      if (centre && this.view.zoom < 0.6) this.view.zoom = 0.9;
      const [w, h] = [this.width / 2 / this.view.zoom, this.height / 2 / this.view.zoom];
      const out = Math.abs(box.x - this.view.x) > w * 0.8 || Math.abs(box.y - this.view.y) > h * 0.8;
      if (out || centre) { this.view.x = box.x; this.view.y = box.y; }
    }
    this.draw();
  }

  /** The box that an arrow key leads to. */
  neighbour(key) {
    const { layout } = this;
    if (this.chosen === null) return layout.rows[0]?.[0] ?? null;
    const box = layout.boxes[this.chosen];
    if (key === 'ArrowUp' || key === 'ArrowDown') {
      const near = key === 'ArrowUp' ? box.ins : box.outs;
      const distance = (number) => {
        const other = layout.boxes[number];
        return Math.abs(other.y - box.y) + Math.abs(other.x - box.x) / 4 + (other.kind === 'placeholder' ? 1e6 : 0);
      };
      return near.length ? near.reduce((best, number) => (distance(number) < distance(best) ? number : best)) : null;
    }
    const row = layout.rows[box.layer];
    return row[row.indexOf(this.chosen) + (key === 'ArrowLeft' ? -1 : 1)] ?? null;
  }

  listen() {
    const { element } = this;
    let drag = null;
    const point = (event) => [event.offsetX, event.offsetY];
    element.addEventListener('pointerdown', (event) => {
      const [x, y] = point(event);
      drag = { x, y, moved: false, strip: x > this.width - STRIP };
      element.setPointerCapture(event.pointerId);
      if (drag.strip) this.jump(y);
    });
    element.addEventListener('pointermove', (event) => {
      if (!drag) return;
      const [x, y] = point(event);
      if (drag.strip) { this.jump(y); return; }
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 4) return;
      drag.moved = true;
      element.classList.add('dragging');
      this.view.x -= (x - drag.x) / this.view.zoom;
      this.view.y -= (y - drag.y) / this.view.zoom;
      Object.assign(drag, { x, y });
      this.draw();
    });
    element.addEventListener('pointerup', (event) => {
      element.classList.remove('dragging');
      const clicked = drag && !drag.moved && !drag.strip;
      drag = null;
      if (clicked) this.onChoose(this.at(...point(event)));
    });
    element.addEventListener('dblclick', (event) => {
      const number = this.at(...point(event));
      if (number !== null) this.onToggle(number);
    });
    element.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) {
        this.zoomBy(Math.exp(-event.deltaY * 0.01), ...point(event));
        return;
      }
      const unit = event.deltaMode === 1 ? 20 : 1;
      this.view.x += ((event.shiftKey ? event.deltaY : event.deltaX) * unit) / this.view.zoom;
      this.view.y += ((event.shiftKey ? 0 : event.deltaY) * unit) / this.view.zoom;
      this.draw();
    }, { passive: false });
    element.addEventListener('keydown', (event) => {
      if (!this.layout || event.ctrlKey || event.metaKey || event.altKey) return;
      const zoom = { '+': 1.25, '=': 1.25, '-': 0.8 }[event.key];
      if (event.key.startsWith('Arrow')) {
        const next = this.neighbour(event.key);
        if (next !== null) this.onChoose(next);
      } else if (zoom) this.zoomBy(zoom);
      else if (event.key === '0') this.fit();
      else if (event.key === 'PageDown' || event.key === 'PageUp') {
        this.view.y += ((event.key === 'PageDown' ? 0.8 : -0.8) * this.height) / this.view.zoom;
        this.draw();
      } else if (event.key === 'Home' || event.key === 'End') {
        this.view.y = event.key === 'Home' ? 0 : this.layout.bottom;
        this.draw();
      } else if (event.key === 'Enter' || event.key === ' ') {
        if (this.chosen !== null) this.onToggle(this.chosen);
      } else if (event.key === 'Escape') this.onChoose(null);
      else return;
      event.preventDefault();
    });
  }

  /** Moves to where the strip was touched. */
  jump(py) {
    this.view.y = (py / this.height) * (this.layout.bottom + LAYER_HEIGHT) - LAYER_HEIGHT / 2;
    this.draw();
  }
}

/** A colour between two, both as the browser computes them: `rgb(r, g, b)`. */
function mixColours(from, to, part) {
  const parse = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
  const [a, b] = [parse(from), parse(to)];
  return `rgb(${a.map((channel, index) => Math.round(channel + (b[index] - channel) * part)).join(', ')})`;
}
