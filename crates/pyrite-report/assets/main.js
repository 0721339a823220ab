// Puts the report together: tabs, theme, help, keys.

const data = JSON.parse(document.getElementById('data').textContent);
const [run, other] = data.runs;

const KEYS = [
  ['1 … 9', 'go to a part of the report'], ['/', 'search the graph'], ['n, p', 'next and previous match'],
  ['d, D', 'next and previous mismatch'], ['arrows', 'in the graph: up to an input, down to a user, left and right in the layer'],
  ['Enter', 'open a module; on a node, close its module'], ['c, o', 'close or open all modules'], ['+, −, 0', 'zoom, fit'],
  ['PgUp, PgDn', 'move the graph'], ['t', 'light or dark'], ['?', 'this help'], ['Esc', 'leave the search, clear the choice'],
];

/** The parts that this run has something for. */
const parts = [
  ['overview', 'Overview', null, () => overviewPanel(run, openNode)],
  ['stages', 'Stages', run.stages.length, () => stagesPanel(run)],
  ['graphs', 'Graphs', run.graphs.length, () => graphs().element],
  ['kernels', 'Kernels', run.kernels.length, () => kernelsPanel(run, openNode)],
  ['capture', 'Capture', run.breaks.length + run.recompiles.length + run.guards.length, () => capturePanel(run)],
  ['minify', 'Minification', run.minify.length, () => minifyPanel(run)],
  ['files', 'Files', run.files.length, () => filesPanel(run, wantedFile)],
  ['compare', 'Comparison', other ? null : 0, () => comparePanel(run, other)],
].filter(([, , count]) => count !== 0);

let wantedFile = null;
let graphPanel = null;
const made = new Map();

function graphs() {
  graphPanel ||= new GraphPanel(run, (path) => { wantedFile = path; made.delete('files'); show('files'); });
  return graphPanel;
}

/** Shows a node in its graph. */
function openNode({ graph, node }) {
  show('graphs');
  graphs().open(graph);
  graphs().chooseNode(node);
}

function show(id, { focus = false } = {}) {
  const part = parts.find(([name]) => name === id) || parts[0];
  if (!made.has(part[0])) made.set(part[0], part[3]());
  const main = document.getElementById('main');
  main.replaceChildren(made.get(part[0]));
  main.setAttribute('role', 'tabpanel');
  main.setAttribute('aria-labelledby', `tab-${part[0]}`);
  for (const tab of document.querySelectorAll('#tabs button')) {
    const selected = tab.id === `tab-${part[0]}`;
    tab.setAttribute('aria-selected', String(selected));
    tab.tabIndex = selected ? 0 : -1;
    if (selected && focus) tab.focus();
  }
  // A page inside of another, such as a notebook, has no address of its own.
  if (window.parent === window) history.replaceState(null, '', `#${part[0]}`);
}

function makeTabs() {
  const tabs = document.getElementById('tabs');
  tabs.append(...parts.map(([id, label, count]) => el('button', {
    type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': 'main', onclick: () => show(id),
  }, label, count === null ? '' : el('span', { class: 'count' }, formatCount(count)))));
  tabs.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = parts.findIndex(([id]) => `tab-${id}` === document.activeElement.id);
    show(parts[(at + step + parts.length) % parts.length][0], { focus: true });
  });
}

/** The theme that is shown: the chosen one, else the system's. */
function theme() {
  return document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

function showTheme() {
  document.getElementById('theme').textContent = theme() === 'dark' ? 'Light' : 'Dark';
  if (!graphPanel) return;
  graphPanel.canvas.colours = null;
  graphPanel.canvas.draw();
}

function switchTheme() {
  document.documentElement.dataset.theme = theme() === 'dark' ? 'light' : 'dark';
  showTheme();
}

function makeHelp() {
  const help = document.getElementById('help');
  const open = () => help.showModal();
  help.append(el('h2', { id: 'help-title' }, 'Keys'),
    el('dl', {}, KEYS.flatMap(([key, what]) => [el('dt', {}, key), el('dd', {}, what)])),
    el('button', { type: 'button', autofocus: true, onclick: () => help.close() }, 'Close'));
  document.getElementById('help-open').addEventListener('click', open);
  return open;
}

function listenForKeys(openHelp) {
  document.addEventListener('keydown', (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.getElementById('help').open) return;
    if (event.key === '?') openHelp();
    else if (event.key === 't') switchTheme();
    else if (event.key === '/' && run.graphs.length) {
      show('graphs');
      graphs().search.focus();
    } else if (/^[1-9]$/.test(event.key) && parts[event.key - 1]) show(parts[event.key - 1][0], { focus: true });
    else return;
    event.preventDefault();
  });
}

document.getElementById('title').textContent = run.title;
document.getElementById('subtitle').textContent = run.subtitle;
makeTabs();
document.getElementById('theme').addEventListener('click', switchTheme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);
listenForKeys(makeHelp());
show(location.hash.slice(1));
showTheme();
