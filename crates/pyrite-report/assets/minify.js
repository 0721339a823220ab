// The search for the smallest program: a curve of nodes over time or queries, and what every improvement took away.

function minifyPanel(run) {
  const steps = run.minify;
  const improved = steps.filter((step) => typeof step.text === 'string');
  const state = { axis: 'seconds', current: Math.max(0, improved.length - 1), width: 1000 };
  const drawing = el('div', { class: 'drawing' });
  new ResizeObserver(() => {
    if (!drawing.clientWidth || drawing.clientWidth === state.width) return;
    state.width = drawing.clientWidth;
    drawing.replaceChildren(curve(steps, improved, state, choose));
  }).observe(drawing);
  const list = el('ul', { class: 'list', 'aria-label': 'Improvements' });
  const view = el('div', { class: 'card' });
  const buttons = improved.map((step, index) => el('button', { type: 'button', onclick: () => choose(index) },
    el('span', {}, step.pass || 'start'),
    el('span', {}, `${formatCount(step.nodes)} nodes · ${formatSeconds(step.seconds)}`)));
  list.append(...buttons.map((button) => el('li', {}, button)));
  arrowKeys(list, 'button');

  function choose(index) {
    state.current = index;
    buttons.forEach((button, number) => button.setAttribute('aria-current', String(number === index)));
    drawing.replaceChildren(curve(steps, improved, state, choose));
    const step = improved[index];
    if (!step) return;
    const before = improved[index - 1];
    const first = steps[0];
    const title = !before && step !== first ? `${first.nodes} → ${step.nodes} nodes, ${formatCount(first.elements)} → ${formatCount(step.elements)} elements` : before ? `${before.nodes} → ${step.nodes} nodes, ${formatCount(before.elements)} → ${formatCount(step.elements)} elements` : `the start: ${step.nodes} nodes`;
    const lines = before ? folded(diffLines(before.text, step.text), 3) : step.text.split('\n').map((text) => [' ', text]);
    view.replaceChildren(el('header', {}, el('h2', {}, title), copyButton(step.text)), diffView(lines));
    say(`${step.pass || 'start'}: ${title}`);
  }

  const axis = (name, label) => el('button', {
    type: 'button', 'aria-pressed': String(state.axis === name),
    onclick: (event) => {
      state.axis = name;
      for (const button of event.currentTarget.parentElement.children) button.setAttribute('aria-pressed', String(button === event.currentTarget));
      choose(state.current);
    },
  }, label);
  const last = steps[steps.length - 1];
  choose(state.current);
  return el('div', {},
    el('div', { class: 'bar-row' },
      el('h2', {}, `${formatCount(steps[0].nodes)} nodes became ${formatCount(last.nodes)} in ${formatCount(last.query)} queries, ${formatSeconds(last.seconds)}`),
      el('div', { class: 'switch', role: 'group', 'aria-label': 'Horizontal axis' }, axis('seconds', 'over time'), axis('query', 'over queries'))),
    drawing, el('div', { class: 'under' }, list, view));
}

/** Signed lines, coloured. */
function diffView(lines) {
  const kinds = { '+': 'l add', '-': 'l del', ' ': 'l', '…': 'l gap' };
  return el('div', { class: 'diff', tabindex: '0', role: 'region', 'aria-label': 'What changed' },
    el('div', { class: 'inner' }, lines.map(([sign, text]) => el('div', { class: kinds[sign] }, `${sign} ${text}`))));
}

/** The curve. Nodes go on a logarithmic axis: the last ten matter as much as the first thousand. */
function curve(steps, improved, state, choose) {
  const [width, height, left, bottom, top, right] = [state.width, 260, 56, 30, 10, 16];
  const at = (step) => step[state.axis];
  const widest = Math.max(...steps.map(at), 1e-9);
  const most = Math.max(...steps.map((step) => step.nodes), 2);
  const x = (value) => left + (value / widest) * (width - left - right);
  const y = (nodes) => top + (1 - Math.log(Math.max(nodes, 1)) / Math.log(most)) * (height - top - bottom);
  const ticks = [];
  for (let power = 1; power <= most; power *= 10) for (const part of [1, 2, 5]) if (part * power <= most) ticks.push(part * power);
  const few = ticks.filter((_, index) => ticks.length <= 7 || index % 2 === 0);
  let path = '';
  steps.forEach((step, index) => {
    path += index === 0 ? `M${x(at(step))},${y(step.nodes)}` : `H${x(at(step)).toFixed(1)}V${y(step.nodes).toFixed(1)}`;
  });
  const horizontal = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const value = part * widest;
    const label = state.axis === 'seconds' ? formatSeconds(value) : formatCount(Math.round(value));
    return el('svg:text', { x: x(value), y: height - 8, 'text-anchor': part === 1 ? 'end' : part === 0 ? 'start' : 'middle' }, part === 0 ? '0' : label);
  });
  const points = improved.map((step, index) => el('svg:circle', {
    class: 'point', cx: x(at(step)), cy: y(step.nodes), r: 5, 'aria-current': String(index === state.current),
    onclick: () => choose(index),
  }, el('svg:title', {}, `${step.pass || 'start'}: ${step.nodes} nodes`)));
  return el('svg:svg', {
    class: 'curve', viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `Nodes of the smallest failing program, from ${steps[0].nodes} to ${steps[steps.length - 1].nodes}`,
  },
  few.map((value) => el('svg:line', { class: 'grid', x1: left, x2: width - right, y1: y(value), y2: y(value) })),
  few.map((value) => el('svg:text', { x: left - 8, y: y(value) + 4, 'text-anchor': 'end' }, formatCount(value))),
  horizontal, el('svg:path', { class: 'path', d: path }), points);
}
