// Compiled kernels and calls between them, the slowest first: how long each takes, and its code.

/** The nodes that a kernel computes: its name is theirs, joined with `_`; the longest name that fits is taken. */
function kernelNodes(kernel, nodes) {
  const names = new Map(nodes.map((node, index) => [node.name, index]));
  const words = kernel.name.split('_');
  const found = [];
  for (let from = 0; from < words.length;) {
    let to = words.length;
    while (to > from && !names.has(words.slice(from, to).join('_'))) to -= 1;
    if (to > from) found.push(names.get(words.slice(from, to).join('_')));
    from = Math.max(to, from + 1);
  }
  return found;
}

/** The kernel that computes a node of a graph. */
function kernelOf(run, graph, node) {
  return run.kernels.find((kernel) => kernel.graph === graph.name && kernelNodes(kernel, graph.nodes).some((index) => graph.nodes[index] === node));
}

function kernelsPanel(run, openNode) {
  const timed = run.kernels.filter((kernel) => typeof kernel.seconds === 'number');
  const total = timed.reduce((sum, kernel) => sum + kernel.seconds, 0);
  const rows = [...run.kernels].sort((a, b) => (b.seconds || 0) - (a.seconds || 0));
  const code = el('div', { class: 'kernel-code' });
  const choose = (kernel) => {
    const graph = run.graphs.findIndex((known) => known.name === kernel.graph && kernelNodes(kernel, known.nodes).length);
    const nodes = graph < 0 ? [] : kernelNodes(kernel, run.graphs[graph].nodes);
    fill(code, el('h3', {}, kernel.name),
      el('p', { class: 'soft' }, [kernel.op ? `A call of ${kernel.op}` : 'A kernel', kernel.bytes ? `${formatCount(kernel.bytes)} bytes of machine code` : '', timeOf(kernel)].filter(Boolean).join(', ')),
      nodes.length ? el('div', { class: 'links' }, nodes.map((node) => el('button', { type: 'button', onclick: () => openNode({ graph, node }) }, run.graphs[graph].nodes[node].name))) : '',
      kernel.loops ? el('pre', {}, kernel.loops) : '',
      kernel.disassembly ? el('details', {}, el('summary', {}, 'Instructions'), el('pre', {}, kernel.disassembly)) : '');
    say(`Kernel ${kernel.name}, ${timeOf(kernel)}`);
  };
  const timeOf = (kernel) => (typeof kernel.seconds === 'number' ? formatSeconds(kernel.seconds) : 'not measured');
  const table = el('table', { class: 'kernels' },
    el('thead', {}, el('tr', {}, ['Kernel', 'Graph', 'Time', 'Share', 'Code'].map((title) => el('th', { scope: 'col' }, title)))),
    el('tbody', {}, rows.map((kernel) => {
      const share = total && typeof kernel.seconds === 'number' ? kernel.seconds / total : 0;
      const bar = el('div', { class: 'bar' });
      bar.style.width = `${share * 100}%`;
      return el('tr', {}, el('td', {}, el('button', { type: 'button', class: 'link', onclick: () => choose(kernel) }, el('code', {}, kernel.name))),
        el('td', { class: 'soft' }, kernel.graph || ''), el('td', { class: 'number' }, timeOf(kernel)),
        el('td', {}, el('div', { class: 'share' }, bar, el('span', {}, share ? `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %` : ''))),
        el('td', { class: 'soft' }, kernel.op || (kernel.bytes ? `${formatCount(kernel.bytes)} bytes` : '')));
    })));
  const summary = timed.length ? `${formatSeconds(total)} in ${formatCount(timed.length)} kernels and calls, each by its fastest run.`
    : 'No run was timed: kernels are timed where a compiled program runs while the trace is written.';
  if (rows.length) choose(rows[0]);
  return el('div', { class: 'kernels-part' }, el('h2', {}, 'Kernels'), el('p', { class: 'soft' }, summary), table, code);
}
