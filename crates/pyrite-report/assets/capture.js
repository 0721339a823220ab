// What the user's own lines did to capture: breaks, recompiles, guards.

function capturePanel(run) {
  const byFile = new Map();
  for (const mark of [...run.breaks, ...run.recompiles]) {
    if (!byFile.has(mark.file)) byFile.set(mark.file, []);
    byFile.get(mark.file).push(mark);
  }
  const parts = [...byFile].map(([file, marks]) => el('section', {}, el('h2', {}, file, el('span', { class: 'count' }, countMarks(marks))), sourceView(run, file, marks)));
  if (run.guards.length) {
    const guards = run.guards.map(({ graph, guard }) => el('tr', {}, el('td', {}, graph || '–'), el('td', {}, el('code', {}, guard))));
    parts.push(el('section', {}, el('h2', {}, 'Guards', el('span', { class: 'count' }, formatCount(guards.length))),
      el('p', { class: 'soft' }, 'A captured frame is used again while all of these hold.'),
      el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'frame'), el('th', { scope: 'col' }, 'guard'))), el('tbody', {}, guards))));
  }
  return el('div', {}, parts);
}

function countMarks(marks) {
  const breaks = marks.filter((mark) => 'reason' in mark).length;
  const again = marks.length - breaks;
  return [breaks && `${breaks} ${breaks === 1 ? 'break' : 'breaks'}`, again && `${again} ${again === 1 ? 'recompile' : 'recompiles'}`]
    .filter(Boolean).join(', ');
}

/** The lines of a file around the marks, each mark below its line. */
function sourceView(run, file, marks) {
  const source = run.sources.find((known) => known.file === file);
  const lines = new Map();
  for (const { line, text } of source ? source.lines : []) lines.set(line, text);
  for (const mark of marks) if (!lines.has(mark.line)) lines.set(mark.line, mark.source || '');
  const view = el('div', { class: 'source', tabindex: '0', role: 'region', 'aria-label': `Lines of ${file}` });
  let last = null;
  for (const number of [...lines.keys()].sort((a, b) => a - b)) {
    if (last !== null && number > last + 1) view.append(el('div', { class: 'l' }, el('span', {}, '…'), el('span', {})));
    last = number;
    const here = marks.filter((mark) => mark.line === number);
    view.append(el('div', { class: here.length ? 'l marked' : 'l' }, el('span', {}, number), el('span', {}, lines.get(number))));
    for (const mark of here) view.append(noteOf(mark));
  }
  return view;
}

function noteOf(mark) {
  if ('reason' in mark) {
    const rest = mark.skipped ? ' The frame runs without capture.' : '';
    return el('div', { class: 'note' }, el('b', {}, `break in ${mark.function}: `), mark.reason + rest, mark.hint ? el('div', { class: 'soft' }, mark.hint) : '');
  }
  const times = mark.times === 1 ? 'once' : `${mark.times} times`;
  return el('div', { class: 'note' }, el('b', {}, `${mark.function} was captured again, ${times}: `), el('code', {}, mark.guard),
    mark.source ? el('div', { class: 'soft' }, mark.source) : '');
}
