// Where in a value two results differ: a map of its elements, and how many have which error.

/** The map and the histogram of a difference. Digits are decades: 9 is an error of at least the value's own size, 0 is none. */
function spreadView(spread, shape) {
  return [el('h3', {}, 'Elements that differ'), spreadMap(spread, shape), spreadHistogram(spread)];
}

function spreadMap({ map, cell }, shape) {
  const [down, across] = [map.length, map[0].length];
  const size = Math.max(4, Math.min(14, Math.floor(288 / across)));
  const cells = map.flatMap((row, y) => [...row].map((digit, x) => el('svg:rect', {
    x: x * size, y: y * size, width: size, height: size, class: 'cell', style: `--error: ${Number(digit) / 9}`,
  })));
  const what = `${shape || 'The value'} as ${down} × ${across} cells of ${formatCount(cell[0])} × ${formatCount(cell[1])} elements, the last dimension across`;
  return el('svg:svg', { class: 'map', viewBox: `0 0 ${across * size} ${down * size}`, width: across * size, height: down * size, role: 'img', 'aria-label': what },
    el('svg:title', {}, what), cells);
}

function spreadHistogram({ histogram }) {
  const names = histogram.map((_, digit) => (digit === 0 ? 'equal' : digit === 1 ? '< 1e-7' : digit === 9 ? '≥ 1' : `≥ 1e${digit - 9}`));
  const most = Math.max(...histogram, 1);
  const rows = histogram.flatMap((count, digit) => {
    if (!count) return [];
    const bar = el('div', { class: 'count-bar', style: `--error: ${digit / 9}` });
    bar.style.width = `${Math.max(1, (count / most) * 100)}%`;
    return [el('span', { class: 'soft' }, names[digit]), el('div', {}, bar), el('span', { class: 'number' }, formatCount(count))];
  });
  return el('div', { class: 'histogram', role: 'img', 'aria-label': `Elements by error: ${histogram.map((count, digit) => `${names[digit]} ${count}`).join(', ')}` }, rows);
}
