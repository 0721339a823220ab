// Two runs side by side: outcome, times, graphs, operators, breaks, the values that differ.

function comparePanel(run, other) {
  return el('div', {},
    outcomeTable(run, other),
    run.stages.length && other.stages.length ? el('section', {}, stagesPanel(run, other)) : '',
    graphTable(run, other),
    operatorTable(run, other),
    divergenceTable(run, other));
}

function tableOf(title, heads, rows) {
  if (!rows.length) return '';
  return el('section', {}, el('h2', {}, title),
    el('table', {},
      el('thead', {}, el('tr', {}, heads.map((head, index) => el('th', { scope: 'col', class: index ? 'number' : '' }, head)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, row.map((cell, index) => el('td', { class: index ? 'number' : '' }, cell)))))));
}

function outcomeTable(run, other) {
  const end = (r) => (r.minify.length ? r.minify[r.minify.length - 1] : null);
  const rows = [['folder', (r) => r.folder], ['command', (r) => r.subtitle], ['failure', (r) => r.signature || 'none'],
    ['smallest program', (r) => (end(r) ? `${end(r).nodes} nodes` : '–')],
    ['queries', (r) => (end(r) ? formatCount(end(r).query) : '–')],
    ['breaks', (r) => formatCount(r.breaks.length)], ['recompiles', (r) => formatCount(r.recompiles.length)],
    ['guards', (r) => formatCount(r.guards.length)], ['kernels', (r) => formatCount(r.kernels.length)]];
  return el('section', {}, el('h2', {}, 'Outcome'), el('table', {},
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, ''), el('th', { scope: 'col' }, 'this run'), el('th', { scope: 'col' }, 'the other'))),
    el('tbody', {}, rows.map(([name, of]) => el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, of(run)), el('td', {}, of(other)))))));
}

const graphKey = (graph) => [graph.stage, graph.name, graph.file].filter(Boolean).join(' / ');

function graphTable(run, other) {
  const [mine, others] = [run, other].map((r) => new Map(r.graphs.map((graph) => [graphKey(graph), graph.nodes.length])));
  const keys = [...new Set([...mine.keys(), ...others.keys()])];
  const show = (count) => (count === undefined ? '–' : formatCount(count));
  return tableOf('Graphs, in nodes', ['graph', 'this run', 'the other', 'change'], keys.map((key) => {
    const [a, b] = [mine.get(key), others.get(key)];
    return [key, show(a), show(b), a === undefined || b === undefined ? '' : signed(a - b)];
  }));
}

function signed(change) {
  return change === 0 ? '=' : change > 0 ? `+${formatCount(change)}` : `−${formatCount(-change)}`;
}

function operatorTable(run, other) {
  const count = (r) => {
    const counts = new Map();
    for (const graph of r.graphs) {
      for (const node of graph.nodes) if (node.target) counts.set(node.target, (counts.get(node.target) || 0) + 1);
    }
    return counts;
  };
  const [mine, others] = [count(run), count(other)];
  const rows = [...new Set([...mine.keys(), ...others.keys()])].sort()
    .map((name) => [name, mine.get(name) || 0, others.get(name) || 0])
    .filter(([, a, b]) => a !== b)
    .map(([name, a, b]) => [name, formatCount(a), formatCount(b), signed(a - b)]);
  return tableOf('Operators that occur more or less often, over all graphs', ['operator', 'this run', 'the other', 'change'], rows);
}

function divergenceTable(run, other) {
  const collect = (r) => {
    const errors = new Map();
    for (const graph of r.graphs) {
      for (const node of graph.nodes) if (node.divergence) errors.set(`${graphKey(graph)}: ${node.name}`, node.divergence);
    }
    return errors;
  };
  const [mine, others] = [collect(run), collect(other)];
  const show = (divergence) => (!divergence ? 'not measured' : divergence.class ? formatError(divergence.error) : 'agrees');
  const keys = [...new Set([...mine.keys(), ...others.keys()])].filter((key) => [mine, others].some((side) => side.get(key)?.class));
  return tableOf('Values that differ from the reference', ['value', 'this run', 'the other'],
    keys.slice(0, 200).map((key) => [key, show(mine.get(key)), show(others.get(key))]));
}

function formatError(error) {
  return typeof error === 'number' ? error.toExponential(2) : 'differs';
}
