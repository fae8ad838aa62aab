// List of any length: only the visible rows are in the document.
import { el } from "./dom.js";

const ROW_HEIGHT = 58;
const MOST_PIXELS = 8_000_000; // browsers draw nothing beyond about 16 million
const MARGIN_ROWS = 6;

export class List {
  // draw(place) returns the content of a row; picked(index) is called when the user chooses one.
  constructor(box, draw, picked) {
    [this.spacer, this.rows] = box.children;
    Object.assign(this, { box, draw, picked, places: [], active: -1 });
    box.addEventListener("scroll", () => this.later(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest("[role=option]");
      if (row) this.pick(Number(row.dataset.index));
    });
    new ResizeObserver(() => this.later()).observe(box);
  }

  show(places, active) {
    this.places = places;
    this.active = active;
    this.spacer.style.height = `${Math.min(places.length * ROW_HEIGHT, MOST_PIXELS)}px`;
    this.rows.replaceChildren();
    if (active >= 0) this.reveal(active);
    this.render();
  }

  // 1 if the list is not longer than MOST_PIXELS; otherwise the scroll bar is stretched to reach all rows.
  get factor() {
    const room = this.spacer.offsetHeight - this.box.clientHeight;
    const needed = this.places.length * ROW_HEIGHT - this.box.clientHeight;
    return room > 0 && needed > 0 ? needed / room : 1;
  }

  reveal(index) {
    const [top, height] = [index * ROW_HEIGHT, this.box.clientHeight];
    const seen = this.box.scrollTop * this.factor;
    if (top < seen) this.box.scrollTop = top / this.factor;
    else if (top + ROW_HEIGHT > seen + height) this.box.scrollTop = (top + ROW_HEIGHT - height) / this.factor;
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.render();
    });
  }

  render() {
    const seen = this.box.scrollTop * this.factor;
    const first = Math.max(0, Math.floor(seen / ROW_HEIGHT) - MARGIN_ROWS);
    const last = Math.min(this.places.length, Math.ceil((seen + this.box.clientHeight) / ROW_HEIGHT) + MARGIN_ROWS);
    const kept = new Map([...this.rows.children].map((row) => [Number(row.dataset.index), row]));
    const wanted = [];
    for (let index = first; index < last; index++) wanted.push(kept.get(index) ?? this.row(index));
    for (const [index, row] of kept) if (index < first || index >= last) row.remove();
    wanted.forEach((row, position) => {
      const index = Number(row.dataset.index);
      row.style.top = `${index * ROW_HEIGHT - seen + this.box.scrollTop}px`;
      row.setAttribute("aria-selected", String(index === this.active));
      if (this.rows.children[position] !== row) this.rows.insertBefore(row, this.rows.children[position] ?? null);
    });
    if (this.active >= first && this.active < last) this.box.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  row(index) {
    const place = { role: "option", "aria-setsize": this.places.length, "aria-posinset": index + 1 };
    return el("div", { ...place, id: `row-${index}`, class: "row", "data-index": index }, ...this.draw(this.places[index]));
  }

  pick(index) {
    this.active = index;
    this.reveal(index);
    this.render();
    this.picked(index);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW_HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey || !this.places.length) return;
    event.preventDefault();
    this.pick(Math.min(this.places.length - 1, Math.max(0, this.active + steps[event.key])));
  }
}
