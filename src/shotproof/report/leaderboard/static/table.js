// Table of any length: only the visible rows are in the document.
import { el } from "./dom.js";

const ROW_HEIGHT = 48; // as in leaderboard.css
const MARGIN_ROWS = 8;

export class Table {
  // draw(place) returns the cells of a row.
  constructor(box, body, draw) {
    Object.assign(this, { box, body, draw, places: [], printing: false });
    [this.before, this.after] = [0, 0].map(() => el("tr", { class: "space", "aria-hidden": "true" }, el("td")));
    box.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(box);
    // Paper does not scroll, so a printed table needs all rows.
    for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
      addEventListener(event, () => {
        this.printing = printing;
        this.render();
      });
    }
  }

  show(places) {
    this.places = places;
    this.first = this.last = null;
    this.box.scrollTop = 0;
    this.box.querySelector("table").setAttribute("aria-rowcount", places.length + 2);
    this.render();
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.render();
    });
  }

  render() {
    const count = this.places.length;
    const seen = Math.ceil(this.box.clientHeight / ROW_HEIGHT);
    const top = Math.min(Math.floor(this.box.scrollTop / ROW_HEIGHT), Math.max(count - seen, 0));
    const [first, last] = this.printing ? [0, count] : [Math.max(0, top - MARGIN_ROWS), Math.min(count, top + seen + MARGIN_ROWS)];
    if (first === this.first && last === this.last) return;
    const kept = new Map([...this.body.children].map((row) => [row.dataset.index, row]));
    const rows = [];
    for (let index = first; index < last; index++) {
      const known = this.first === null ? undefined : kept.get(String(index));
      rows.push(known ?? el("tr", { "data-index": index, "aria-rowindex": index + 3 }, ...this.draw(this.places[index])));
    }
    [this.first, this.last] = [first, last];
    this.before.style.height = `${first * ROW_HEIGHT}px`;
    this.after.style.height = `${(count - last) * ROW_HEIGHT}px`;
    const focused = document.activeElement?.closest("tr");
    this.body.replaceChildren(this.before, ...rows, this.after);
    if (focused && focused.isConnected) focused.querySelector("a")?.focus({ preventScroll: true });
  }
}
