// Stages and their steps as bars on one axis of time; beside the bars of another run where there is one.

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
    el('p', { class: 'soft' }, summary), bars);
}
