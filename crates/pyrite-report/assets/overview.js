// The first page: what failed, where, how small, how sure, how long; what each step found; the smallest program that shows it.

function overviewPanel(run, openNode) {
  const left = el('div', {}, answers(run, openNode));
  if (run.findings.length) {
    left.append(el('section', {}, el('h2', {}, 'Steps'),
      el('ol', { class: 'steps' }, run.findings.map(({ step, text }) => el('li', {}, el('b', {}, step), el('span', {}, text))))));
  }
  const facts = [...run.facts];
  if (run.started) facts.splice(1, 0, ['began', `${new Date(run.started * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`]);
  left.append(el('section', {}, el('h2', {}, 'The run'),
    el('table', {}, el('tbody', {}, facts.map(([name, value]) => el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, value)))))));
  if (!run.repro) return left;
  return el('div', { class: 'columns' }, left, reproCard(run));
}

/** The questions that everybody has, each with its answer, or with why there is none. */
function answers(run, openNode) {
  const rows = [
    ['What failed', run.signature || 'nothing: no failure was recorded'],
    ['Where', failurePlace(run, openNode)],
    ['How small', howSmall(run)],
    ['How sure', howSure(run)],
    ['How long', howLong(run)],
  ];
  return el('dl', { class: 'answers', id: 'answers' }, rows.map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}

function failurePlace(run, openNode) {
  if (!run.signature) return '–';
  const place = firstFailure(run);
  const operators = blamedOperators(run);
  if (!place) return operators.length ? operators.join(' or ') : 'not located: no node was compared or blamed';
  const graph = run.graphs[place.graph];
  const node = graph.nodes[place.node];
  const source = node.stack ? node.stack.trim().split('\n').pop().trim() : '';
  return [el('button', { type: 'button', class: 'link', onclick: () => openNode(place) }, node.name), ' ',
    [node.target && el('code', {}, node.target), node.shape && `${node.dtype || ''} ${node.shape}`.trim(), node.module].filter(Boolean)
      .flatMap((part) => [' · ', part]).slice(1),
    source ? el('div', { class: 'soft' }, source) : ''];
}

function howSmall(run) {
  const [first, last] = [run.minify[0], run.minify[run.minify.length - 1]];
  if (!last) return run.repro ? 'not minimized' : '–';
  const became = (name) => `${formatCount(first[name])} → ${formatCount(last[name])} ${name}`;
  return el('span', { id: 'figures' }, `${became('nodes')}, ${became('elements')}: ${formatCount(last.query)} queries, ${formatSeconds(last.seconds)}`);
}

function howSure(run) {
  const confirmed = run.findings.find(({ step }) => step === 'confirm');
  const proven = !run.repro ? '' : run.repro.proven === true ? 'the repro fails so in a fresh process'
    : run.repro.proven === false ? 'the repro was not proven' : 'no proof was recorded';
  return [confirmed && confirmed.text, proven].filter(Boolean).join('; ') || 'not confirmed';
}

function howLong(run) {
  if (run.stages.length) {
    const end = Math.max(...run.stages.map((step) => step.start + step.seconds));
    const first = Math.min(...run.stages.map((step) => step.start));
    const open = run.stages.find((step) => step.ended === false);
    return `${formatSeconds(end - first)}${open ? `, died in ${open.name}` : ''}`;
  }
  const last = run.minify[run.minify.length - 1];
  return last ? formatSeconds(last.seconds) : 'not measured';
}

/** The repro, ready to be copied, with the calls that fail marked. */
function reproCard(run) {
  const { repro } = run;
  const state = repro.proven === true ? 'proven in a fresh process' : repro.proven === false ? 'not proven' : '';
  return el('div', { class: 'card', id: 'repro' },
    el('header', {}, el('h2', {}, repro.path, el('span', { class: 'count' }, state)), copyButton(repro.text)),
    codeView(repro.text, 'The repro', linesThatCall(repro.text, suspects(run))));
}
