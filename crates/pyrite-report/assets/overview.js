// The first page: what was found, step by step, and the smallest program that shows it.

function overviewPanel(run) {
  const facts = [...run.facts];
  if (run.started) facts.splice(1, 0, ['began', `${new Date(run.started * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`]);
  const left = el('div', {});
  const [first, last] = [run.minify[0], run.minify[run.minify.length - 1]];
  if (last) {
    const became = (name) => `${formatCount(first[name])} ${name} became ${formatCount(last[name])}`;
    left.append(el('p', { class: 'lead', id: 'figures' }, `${became('nodes')}, ${became('elements')}: ${formatCount(last.query)} questions, ${formatSeconds(last.seconds)}`));
  }
  if (run.findings.length) {
    left.append(el('section', {}, el('h2', {}, 'What was found'),
      el('ul', { class: 'steps' }, run.findings.map(({ step, text }) => el('li', {}, el('b', {}, step), el('span', {}, text))))));
  }
  left.append(el('section', {}, el('h2', {}, 'The run'),
    el('table', {}, el('tbody', {}, facts.map(([name, value]) => el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, value)))))));
  if (!run.repro) return left;
  return el('div', { class: 'columns' }, left, reproCard(run.repro));
}

/** The repro, ready to be copied. */
function reproCard(repro) {
  const state = repro.proven === true ? 'proven in a fresh process' : repro.proven === false ? 'not proven' : '';
  return el('div', { class: 'card', id: 'repro' },
    el('header', {}, el('h2', {}, repro.path, el('span', { class: 'count' }, state)), copyButton(repro.text)),
    el('pre', { tabindex: '0', 'aria-label': 'The repro' }, repro.text));
}
