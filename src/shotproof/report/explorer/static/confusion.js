// Confused classes: a matrix if it is small enough, and the pairs that are confused most often.
import { el, percent, shown } from "./dom.js";

const MOST_CLASSES = 64;
const MOST_PAIRS = 200;

const share = (pairs, place) => (100 * pairs.times[place]) / Math.max(1, pairs.of[place]);

function matrix(set, pairs, open) {
  const cells = new Map();
  pairs.truth.forEach((truth, place) => cells.set(truth * set.labels.length + pairs.answer[place], place));
  const head = el("tr", {}, el("th", { scope: "col" }, "classified as"),
    ...set.names.map((name) => el("th", { scope: "col" }, el("span", {}, shown(name)))));
  const rows = set.names.map((name, truth) => el("tr", {}, el("th", { scope: "row" }, shown(name)),
    ...set.names.map((other, answer) => {
      if (truth === answer) return el("td", { class: "self" });
      const place = cells.get(truth * set.labels.length + answer);
      if (place === undefined) return el("td", { class: "none" });
      const value = share(pairs, place);
      const title = `${name} classified as ${other}: ${pairs.times[place]} of ${pairs.of[place]} queries`;
      const cell = el("td", {}, el("button", { type: "button", title, "aria-label": title, onclick: () => open(truth, answer) }, value.toFixed(0)));
      cell.style.setProperty("--heat", `${Math.min(50, value)}%`);
      return cell;
    })));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix" },
    el("table", { class: "confusions" }, el("thead", {}, head), el("tbody", {}, ...rows)));
}

function table(set, pairs, open) {
  const places = pairs.truth.map((_, place) => place).slice(0, MOST_PAIRS);
  const rows = places.map((place) => {
    const [truth, answer] = [pairs.truth[place], pairs.answer[place]];
    return el("tr", {},
      el("th", { scope: "row" }, shown(set.names[truth])), el("td", {}, shown(set.names[answer])),
      el("td", { class: "number" }, pairs.times[place].toLocaleString("en")),
      el("td", { class: "number" }, `${percent(share(pairs, place))}%`),
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => open(truth, answer) }, "tasks")));
  });
  const head = ["Class", "classified as", "queries", "share of queries", ""].map((text, place) =>
    el("th", { scope: "col", class: place === 2 || place === 3 ? "number" : "" }, text));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Pairs" }, el("table", { class: "compact" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)));
}

export async function showConfusion(box, set, chosen, open, stillWanted) {
  const confusions = await Promise.all(chosen.map((classifier) => set.confusion(classifier)));
  if (!stillWanted()) return;
  const parts = chosen.map((classifier, place) => {
    const pairs = confusions[place];
    const name = shown(set.classifiers[classifier].name);
    if (pairs === null) {
      return el("section", {}, el("h2", {}, name), el("p", { class: "missing" },
        "The results do not record the wrong answers, because an earlier version wrote them. Evaluate again."));
    }
    if (!pairs.truth.length) return el("section", {}, el("h2", {}, name), el("p", {}, "No query was assigned to a wrong class."));
    const shares = "In percent of the queries of the class, in tasks that have both classes. Click a number to list these tasks.";
    return el("section", {}, el("h2", {}, name), el("p", { class: "aside" }, shares),
      set.labels.length <= MOST_CLASSES ? matrix(set, pairs, open) : "", table(set, pairs, open));
  });
  box.replaceChildren(...parts);
}
