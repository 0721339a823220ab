// A list of any length: only the rows in sight are elements of the page.

const ROW_HEIGHT = 26;

class Rows {
  constructor(label, describe, onChoose) {
    this.describe = describe;
    this.onChoose = onChoose;
    this.items = [];
    this.current = -1;
    this.space = el('div', { role: 'presentation' });
    this.element = el('div', { class: 'rows', role: 'listbox', tabindex: '0', 'aria-label': label }, this.space);
    this.element.addEventListener('scroll', () => this.draw());
    this.element.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -1e9, End: 1e9 }[event.key];
      if (!step || !this.items.length) return;
      event.preventDefault();
      const next = Math.min(this.items.length - 1, Math.max(0, this.current + step));
      this.onChoose(this.items[next]);
    });
    this.element.addEventListener('click', (event) => {
      const row = event.target.closest('.row');
      if (row) this.onChoose(this.items[Number(row.dataset.index)]);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show(items) {
    this.items = items;
    this.current = -1;
    this.space.style.height = `${items.length * ROW_HEIGHT}px`;
    this.element.scrollTop = 0;
    this.draw();
  }

  /** Marks an item, and brings it into sight. */
  mark(item) {
    this.current = this.items.indexOf(item);
    const { element } = this;
    const top = this.current * ROW_HEIGHT;
    if (this.current >= 0 && (top < element.scrollTop || top + ROW_HEIGHT > element.scrollTop + element.clientHeight)) {
      element.scrollTop = top - element.clientHeight / 2;
    }
    this.draw();
  }

  draw() {
    const { element } = this;
    const first = Math.max(0, Math.floor(element.scrollTop / ROW_HEIGHT) - 2);
    const last = Math.min(this.items.length, first + Math.ceil(element.clientHeight / ROW_HEIGHT) + 5);
    const rows = [];
    for (let index = first; index < last; index += 1) {
      const [text, note] = this.describe(this.items[index]);
      const selected = index === this.current;
      const row = el('div', {
        class: 'row', role: 'option', id: selected ? 'row-current' : undefined, 'aria-selected': String(selected),
        'aria-setsize': this.items.length, 'aria-posinset': index + 1, title: text,
      }, el('span', {}, text), el('span', { class: 'soft' }, note));
      row.dataset.index = index;
      row.style.top = `${index * ROW_HEIGHT}px`;
      rows.push(row);
    }
    this.space.replaceChildren(...rows);
    if (this.current >= 0) element.setAttribute('aria-activedescendant', 'row-current');
    else element.removeAttribute('aria-activedescendant');
  }
}
