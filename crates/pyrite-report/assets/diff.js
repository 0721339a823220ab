// The difference of two texts by lines.
//
// Common beginnings and ends are cut off; the rest goes through the table of longest common subsequences where that is small
// enough, else lines of the one are looked for in the other in order, which is exact for a text of which lines were removed.

const LARGEST_TABLE = 4e6;

/** Pairs of indices of lines that stay. */
function commonLines(a, b) {
  const pairs = [];
  if (a.length * b.length <= LARGEST_TABLE) {
    const width = b.length + 1;
    const table = new Uint32Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i -= 1) {
      for (let j = b.length - 1; j >= 0; j -= 1) {
        table[i * width + j] = a[i] === b[j]
          ? table[(i + 1) * width + j + 1] + 1
          : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
      if (a[i] === b[j]) pairs.push([i++, j++]);
      else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i += 1;
      else j += 1;
    }
    return pairs;
  }
  let i = 0;
  b.forEach((line, j) => {
    const found = a.indexOf(line, i);
    if (found === -1) return;
    pairs.push([found, j]);
    i = found + 1;
  });
  return pairs;
}

/** Lines with a sign: ' ' for what stays, '-' for what goes, '+' for what comes. */
function diffLines(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const lines = a.slice(0, start).map((text) => [' ', text]);
  let [i, j] = [0, 0];
  for (const [x, y] of [...commonLines(...middle), [middle[0].length, middle[1].length]]) {
    for (; i < x; i += 1) lines.push(['-', middle[0][i]]);
    for (; j < y; j += 1) lines.push(['+', middle[1][j]]);
    if (x < middle[0].length) lines.push([' ', middle[0][x]]);
    i += 1;
    j += 1;
  }
  return lines.concat(a.slice(a.length - end).map((text) => [' ', text]));
}

/** The changed lines with some around them; long unchanged parts become one line that says how many they are. */
function folded(lines, around) {
  const near = new Uint8Array(lines.length);
  lines.forEach(([sign], index) => {
    if (sign !== ' ') near.fill(1, Math.max(0, index - around), index + around + 1);
  });
  const shown = [];
  for (let index = 0; index < lines.length; index += 1) {
    if (near[index]) { shown.push(lines[index]); continue; }
    const from = index;
    while (index + 1 < lines.length && !near[index + 1]) index += 1;
    const count = index - from + 1;
    shown.push(count === 1 ? lines[from] : ['…', `${count} lines stay`]);
  }
  return shown;
}
