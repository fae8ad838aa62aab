// One task: its classes, the answers of one or two methods to its queries, and why it is hard.
import { byId, el, percent, shown } from "./dom.js";

const player = new Audio();
let pressed = null;

function stop() {
  player.pause();
  pressed?.setAttribute("aria-pressed", "false");
  pressed = null;
}
player.addEventListener("ended", stop);

function play(button, path) {
  const again = pressed === button;
  stop();
  if (again) return;
  pressed = button;
  button.setAttribute("aria-pressed", "true");
  player.src = path;
  player.play().catch(() => { if (pressed === button) stop(); }); // another clip may have been started meanwhile
}

function enlarge(set, row, name, small) {
  const dialog = byId("large");
  const picture = el("img", { src: `items/${set.catalog}/${row}-large.jpg`, alt: name });
  // An exported site has no large pictures.
  picture.addEventListener("error", () => { if (picture.src !== small.src) picture.src = small.src; }, { once: true });
  const close = el("button", { type: "button", onclick: () => dialog.close() }, "Close");
  dialog.replaceChildren(picture, el("p", {}, name), close);
  dialog.showModal();
}

function thumbnail(set, item, answer) {
  const [name, row, context] = item;
  const alt = `${answer}${answer ? ": " : ""}${name}${context === null ? "" : `, in ${context}`}`;
  const missing = () => el("span", { class: "broken", title: "This item cannot be shown." }, shown(name));
  if (row === null || set.catalog === null) return [missing()];
  const image = el("img", { src: `items/${set.catalog}/${row}.jpg`, alt, loading: "lazy", fetchpriority: "low", width: 56, height: 56 });
  const press = set.sounds
    ? (event) => play(event.currentTarget, `items/${set.catalog}/${row}.mp3`)
    : () => enlarge(set, row, alt, image);
  const button = el("button", { type: "button", class: set.sounds ? "play" : "enlarge", title: name, onclick: press }, image);
  if (set.sounds) button.setAttribute("aria-pressed", "false");
  image.addEventListener("error", () => button.replaceWith(missing()));
  const caption = context === null ? null : el("span", { class: "context", title: context, "aria-hidden": "true" }, context);
  return [button, caption];
}

function strip(set, task, codes, verdict = () => null) {
  const items = codes.map((code, position) => {
    const wrong = verdict(position);
    const entry = el("li", { "data-position": position, class: wrong === null ? "" : "missed" });
    entry.append(...thumbnail(set, task.items[code], wrong ?? "").filter(Boolean));
    if (wrong !== null) entry.append(el("span", { class: "answer", title: wrong }, wrong.replace(/^classified as /, "→ ")));
    return entry;
  });
  return el("ul", {}, ...items);
}

// The answers of a classifier to the queries of a class: null if correct, else in words.
function verdicts(set, task, rows, slot, classifier) {
  const { missed, answered } = task.answers[classifier];
  if (missed === null) return () => null;
  return (position) => {
    const place = missed[slot].indexOf(position);
    if (place < 0) return null;
    const answer = answered?.[slot]?.[place];
    if (answer === undefined) return "missed";
    return answer in rows ? `classified as ${answer + 1} ${className(set, rows[answer])}` : "no class named";
  };
}

export const className = (set, row) => shown(set.names[set.label[row] - 1]);

function answersOf(set, task, rows, slot, chosen, counts) {
  const row = rows[slot];
  const codes = task.classes[slot].query;
  return chosen.map((classifier, place) => {
    const score = `${counts[place].correct[row]} of ${codes.length} correct`;
    const heading = el("h4", {}, shown(set.classifiers[classifier].name), " ", el("span", { class: "score" }, score));
    return el("div", { class: "strip query" }, heading, strip(set, task, codes, verdicts(set, task, rows, slot, classifier)));
  });
}

// A reason is a button: if pressed, it frames the items that it refers to.
function reason(section, support, query, text) {
  const press = (event) => {
    const on = event.currentTarget.getAttribute("aria-pressed") === "true";
    for (const other of section.querySelectorAll(".reason")) other.setAttribute("aria-pressed", "false");
    for (const item of section.querySelectorAll(".holds")) item.classList.remove("holds");
    if (on) return;
    event.currentTarget.setAttribute("aria-pressed", "true");
    for (const [side, positions] of [[".support", support], [".query", query]]) {
      for (const list of section.querySelectorAll(`${side} ul`)) {
        for (const position of positions) list.children[position]?.classList.add("holds");
      }
    }
  };
  return el("li", {}, el("button", { type: "button", class: "reason", "aria-pressed": "false", onclick: press }, text));
}

function reasons(set, task, rows, slot, section) {
  const { lures, mismatches, support, query } = task.classes[slot];
  return [
    ...lures.map((lure) => {
      const owner = `the support of ${lure.slot + 1} ${className(set, rows[lure.slot])}`;
      const cue = set.contexts.includes(lure.word) ? `are in ${lure.word}, like ${owner}` : `have ${lure.word}, which was planted in ${owner}`;
      return reason(section, [], lure.query, `${lure.query.length} of ${query.length} queries ${cue}.`);
    }),
    ...mismatches.map((mismatch) => reason(section, mismatch.support, mismatch.query,
      `${mismatch.word}: in ${mismatch.support.length} of ${support.length} support items and ${mismatch.query.length} of ${query.length} queries.`)),
  ];
}

// Queries that every classifier missed, of those whose results record missed queries.
function missedByAll(task, slot) {
  const missedLists = task.answers.filter((answers) => answers.missed !== null).map((answers) => answers.missed[slot]);
  return missedLists.length ? missedLists[0].filter((position) => missedLists.every((missed) => missed.includes(position))) : [];
}

function showClass(set, task, rows, slot, chosen, counts) {
  const row = rows[slot];
  const section = el("section", { class: "explored-class" });
  const planted = set.planted[row] ? set.planted_names[set.planted[row] - 1] : null;
  const all = missedByAll(task, slot);
  const why = reasons(set, task, rows, slot, section);
  if (all.length) why.push(reason(section, [], all, `${all.length} of ${task.classes[slot].query.length} queries were missed by every method.`));
  section.append(
    el("h3", {}, el("span", { class: "slot" }, `${slot + 1}`), className(set, row), planted === null ? null : el("span", { class: "planted" }, `${set.contexts.includes(planted) ? set.context : "planted"}: ${planted}`)),
    el("div", { class: "strip support" }, el("h4", {}, "Support"), strip(set, task, task.classes[slot].support)),
    el("div", { class: chosen.length > 1 ? "beside-methods" : "" }, ...answersOf(set, task, rows, slot, chosen, counts)),
  );
  if (why.length) section.append(el("ul", { class: "reasons", "aria-label": `Why ${className(set, row)} is hard here` }, ...why));
  return section;
}

export async function showTask(box, set, place, chosen, counts, stillWanted) {
  stop();
  const task = await set.task(place);
  if (!stillWanted()) return;
  const rows = Array.from({ length: set.starts[place + 1] - set.starts[place] }, (_, slot) => set.starts[place] + slot);
  const rank = set.rank[place];
  const hardness = `Hardness rank ${rank.toLocaleString("en")} of ${set.tasks.toLocaleString("en")} (1 is the hardest); mean accuracy over all methods ${percent(task.accuracy)}%`;
  const each = chosen.map((classifier, index) =>
    el("li", {}, el("strong", {}, `${percent(counts[index].mean[place])}%`), ` ${shown(set.classifiers[classifier].name)}`));
  const silent = chosen.filter((classifier) => task.answers[classifier].missed === null);
  box.replaceChildren(
    el("h2", {}, `Task ${set.number[place]}`),
    el("p", { class: "aside" }, `${hardness}.`),
    el("ul", { class: "legend" }, ...each),
    silent.length ? el("p", { class: "missing" }, "The results record how many queries were missed, but not which ones.") : "",
    ...rows.map((_, slot) => showClass(set, task, rows, slot, chosen, counts)),
  );
}
