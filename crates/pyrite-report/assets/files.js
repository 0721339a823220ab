// Every file of the run, by stage and graph.

function filesPanel(run, wanted) {
  const view = el('div', { class: 'card' });
  const list = el('ul', { class: 'list', 'aria-label': 'Files' });
  const buttons = [];
  const show = (index) => {
    const file = run.files[index];
    buttons.forEach((button, number) => button.setAttribute('aria-current', String(number === index)));
    view.replaceChildren(el('header', {}, el('h2', {}, file.path), copyButton(file.text)),
      codeView(file.text, file.path, linesThatCall(file.text, suspects(run))));
  };
  const groups = new Map();
  run.files.forEach((file, index) => {
    const group = [file.stage, file.graph].filter(Boolean).join(' / ') || 'run';
    groups.set(group, [...(groups.get(group) || []), index]);
  });
  for (const [group, indices] of groups) {
    list.append(el('li', {}, el('h3', {}, group)));
    for (const index of indices) {
      const file = run.files[index];
      buttons[index] = el('button', { type: 'button', onclick: () => show(index) },
        el('span', {}, file.name), el('span', {}, `${formatCount(file.text.split('\n').length)} lines`));
      list.append(el('li', {}, buttons[index]));
    }
  }
  arrowKeys(list, 'button');
  show(Math.max(0, run.files.findIndex((file) => file.path === wanted)));
  return el('div', { class: 'files' }, list, view);
}
