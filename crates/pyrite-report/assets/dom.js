// Building blocks of the page. Text reaches the page as text only: nothing here parses markup, so a hostile name stays a name.

/** An element with attributes (or listeners, or properties) and children. */
function el(tag, attributes, ...children) {
  const element = tag.startsWith('svg:')
    ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== ''));
  return element;
}

/** Gives an element other children, in arrays of any depth. */
function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== ''));
}

/** Tells what happened to who does not see it. */
function say(text) {
  document.getElementById('said').textContent = text;
}

/** A time, with three figures. */
function formatSeconds(seconds) {
  if (!(seconds >= 0)) return '–';
  if (seconds >= 100) return `${seconds.toFixed(0)} s`;
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(3)} ms`;
  return `${(seconds * 1e6).toPrecision(3)} µs`;
}

/** A count with thin groups of three digits. */
function formatCount(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** A button that copies a text, where the browser lets it, and says so. */
function copyButton(text) {
  const button = el('button', { type: 'button', class: 'copy' }, 'Copy');
  button.addEventListener('click', async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copied = copyBySelection(text);
    }
    button.textContent = copied ? 'Copied' : 'Select and copy';
    say(copied ? 'Copied to the clipboard' : 'The browser does not allow copying');
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return button;
}

/** Copies from a file page, where the clipboard is closed to scripts. */
function copyBySelection(text) {
  const area = el('textarea', { class: 'unseen', 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  return copied;
}

/** Arrow keys move the focus among the buttons of a list. */
function arrowKeys(list, selector) {
  list.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const items = [...list.querySelectorAll(selector)];
    const next = items[items.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  });
}
