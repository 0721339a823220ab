// Stages and their steps: a flame graph that zooms, and bars on one axis of time, beside those of another run where there is one.

/** Steps of a run under names that two runs share: the n-th of a name is the n-th of that name. */
function stepsByName(run) {
  const seen = new Map();
  return run.stages.map((step) => {
    const name = [step.stage, step.graph, step.name].join('\u0000');
    const nth = seen.get(name) || 0;
    seen.set(name, nth + 1);
    return [`${name}\u0000${nth}`, step];
  });
}

function stagesPanel(run, other) {
  const steps = stepsByName(run);
  const others = new Map(other ? stepsByName(other) : []);
  const end = Math.max(...run.stages.map((step) => step.start + step.seconds), 1e-9);
  const first = Math.min(...run.stages.map((step) => step.start));
  const longest = Math.max(...run.stages.map((step) => step.seconds), ...[...others.values()].map((step) => step.seconds), 1e-9);
  const rows = steps.flatMap(([key, step]) => {
    const label = el('span', { class: 'name' }, step.name, step.graph ? el('span', { class: 'count' }, step.graph) : '');
    label.style.paddingLeft = `${step.depth * 18}px`;
    const before = others.get(key);
    const track = el('div', { class: other ? 'track pair' : 'track' });
    const bar = el('div', { class: 'bar' });
    if (other) {
      bar.style.width = `${(step.seconds / longest) * 100}%`;
      track.append(bar);
      if (before) {
        const second = el('div', { class: 'bar second' });
        second.style.width = `${(before.seconds / longest) * 100}%`;
        track.append(second);
      }
    } else {
      bar.style.left = `${((step.start - first) / (end - first)) * 100}%`;
      bar.style.width = `${(step.seconds / (end - first)) * 100}%`;
      track.append(bar);
    }
    track.setAttribute('role', 'img');
    track.setAttribute('aria-label', `${step.name}: ${formatSeconds(step.seconds)}`);
    const open = step.ended === false ? ', no end' : '';
    const time = open ? `${formatSeconds(step.seconds)}${open}` : other && before ? `${formatSeconds(step.seconds)} / ${formatSeconds(before.seconds)}` : formatSeconds(step.seconds);
    return [label, track, el('span', { class: 'time' }, time)];
  });
  const bars = el('div', { class: 'bars' }, rows);
  if (other) bars.style.gridTemplateColumns = 'minmax(140px, max-content) 1fr 170px';
  const slowest = [...run.stages].sort((a, b) => b.seconds - a.seconds).find((step) => step.name !== step.stage);
  const total = formatSeconds(end - first);
  const summary = slowest ? `${total} in all; the longest step is ${slowest.name}, ${formatSeconds(slowest.seconds)}.` : `${total} in all.`;
  return el('div', {}, el('h2', {}, other ? 'Time by step: this run, and below it the other' : 'Time by step'),
    el('p', { class: 'soft' }, summary), other ? '' : flameGraph(run), bars);
}

/** Steps above the steps they are in; a click on one gives it the whole width. */
function flameGraph(run) {
  const whole = { start: Math.min(...run.stages.map((step) => step.start)), end: Math.max(...run.stages.map((step) => step.start + step.seconds)) };
  const layer = layersOf(run.stages);
  const depth = Math.max(...layer) + 1;
  const field = el('div', { class: 'flame', role: 'group', 'aria-label': 'Flame graph of the steps' });
  field.style.height = `${depth * 22}px`;
  const out = el('button', { type: 'button', onclick: () => show(whole) }, 'Whole run');
  const blocks = run.stages.map((step, index) => {
    const name = [step.name, step.graph].filter(Boolean).join(' · ');
    const block = el('button', {
      type: 'button', class: 'block', title: `${name}: ${formatSeconds(step.seconds)}`, 'aria-label': `${name}: ${formatSeconds(step.seconds)}`,
      onclick: () => show({ start: step.start, end: step.start + step.seconds }),
    }, `${name} ${formatSeconds(step.seconds)}`);
    block.style.top = `${layer[index] * 22}px`;
    return block;
  });
  function show(range) {
    const span = Math.max(range.end - range.start, 1e-9);
    run.stages.forEach((step, index) => {
      const [from, to] = [Math.max(step.start, range.start), Math.min(step.start + step.seconds, range.end)];
      blocks[index].hidden = to < from || (to === from && span < whole.end - whole.start);
      blocks[index].style.left = `${((from - range.start) / span) * 100}%`;
      blocks[index].style.width = `${((to - from) / span) * 100}%`;
    });
    out.disabled = range === whole;
    say(range === whole ? 'The whole run' : `From ${formatSeconds(range.start - whole.start)} to ${formatSeconds(range.end - whole.start)}`);
  }
  field.append(...blocks);
  show(whole);
  return el('div', { class: 'flame-card' }, field, out);
}

/** The line of each step in the flame graph: below what it is in, and below what runs at the same time. */
function layersOf(steps) {
  const ends = [];
  const tiny = 1e-9;
  return steps.map((step) => {
    let line = Math.min(step.depth, ends.length);
    while (ends[line] !== undefined && ends[line] > step.start + tiny) line += 1;
    ends[line] = step.start + step.seconds;
    ends.length = line + 1;
    return line;
  });
}
