// Python text with line numbers and colours. The numbers are made by the style sheet, so that the text of the element is the text.

const KEYWORDS = new Set(('and as assert async await break class continue def del elif else except False finally for from global if import in is '
  + 'lambda None nonlocal not or pass raise return True try while with yield').split(' '));
const TOKEN = /(#.*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([A-Za-z_]\w*)|(\d[\w.]*(?:[eE][-+]?\d+)?)/g;

/** A text as code; lines whose numbers, from 1, are in `marked` stand out. */
function codeView(text, label, marked = new Set()) {
  const lines = text.split('\n');
  if (lines[lines.length - 1] === '') lines.pop();
  const end = text.endsWith('\n') ? '\n' : '';
  return el('pre', { tabindex: '0', 'aria-label': label, class: 'code' }, lines.map((line, index) => el('span', {
    class: marked.has(index + 1) ? 'line marked' : 'line',
  }, coloured(line), index < lines.length - 1 ? '\n' : end)));
}

/** The parts of a line, those with a colour as elements. */
function coloured(line) {
  const parts = [];
  let last = 0;
  for (const found of line.matchAll(TOKEN)) {
    const [token, comment, string, word, number] = found;
    const kind = comment ? 'comment' : string ? 'string' : number ? 'number' : KEYWORDS.has(word) ? 'keyword' : null;
    if (!kind) continue;
    parts.push(line.slice(last, found.index), el('i', { class: kind }, token));
    last = found.index + token.length;
  }
  parts.push(line.slice(last));
  return parts;
}

/** The numbers, from 1, of the lines of a program that call one of some operators. */
function linesThatCall(text, operators) {
  const lines = new Set();
  text.split('\n').forEach((line, index) => {
    if (operators.some((operator) => line.includes(`${operator}(`))) lines.add(index + 1);
  });
  return lines;
}
