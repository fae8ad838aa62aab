// The leaderboard. All choices are in the address, so that every view has a link.
import { byId, counted, el, percent, shown } from "./dom.js";
import { bit, front, matching, sortPlaces } from "./order.js";
import { scatter } from "./scatter.js";
import { Table } from "./table.js";

const board = globalThis.leaderboard;
const METRICS = { acc: "accuracy", wacc: "worst-class accuracy" };
const SHOWN_LINKS = 40;
const titles = board.methods.map((method, place) => (board.encoders[place] ? `${method} on ${board.encoders[place]}` : method));
const searched = titles.map((title) => title.toLowerCase());
let columns = []; // columns of the chosen data set and metric
let table = null;

const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

function go(changes) {
  const next = Object.entries({ ...state(), ...changes }).filter(([, value]) => value !== null && value !== "");
  location.replace(`#${new URLSearchParams(next)}`);
}

const key = (column) => `${board.axes[column.axis].name}/${column.quantity}`;
const link = (place) => el("a", { href: `classifiers/${board.pages[place]}` }, shown(board.methods[place]));
const open = (place) => { location.href = `classifiers/${board.pages[place]}`; };
const minus = (text) => text.replace("-", "\u2212");
const bounds = (column, place) => `[${minus(percent(column.low[place]))}, ${minus(percent(column.high[place]))}]`;
const named = (column) => {
  const quantity = column.quantity !== "accuracy" ? "skill lost" : column.metric === "acc" ? "accuracy" : "worst class";
  return column.intervalName === board.intervalName ? quantity : `${quantity} (${column.intervalName})`;
};
const label = (column) => {
  const quantity = column.quantity === "accuracy" ? METRICS[column.metric] : "skill lost";
  return `${quantity} on ${board.axes[column.axis].name} (%)`;
};

function rank(column, place) {
  if (column.best[place] === null) return "\u2013";
  return column.best[place] === column.worst[place] ? `${column.best[place]}` : `${column.best[place]}\u2013${column.worst[place]}`;
}

// The columns of an axis are grouped below its name; the first one has a rule on its left.
const number = (column) => `number${columns[columns.indexOf(column) - 1]?.axis === column.axis ? "" : " first"}`;

function cell(column, place, chosen) {
  const mean = column.mean[place];
  const kind = `${number(column)}${column === chosen ? " chosen" : ""}`;
  if (mean === null) return el("td", { class: `${kind} none` }, "\u2013");
  const ranked = column.best[place] === null ? "not ranked" : `rank ${rank(column, place)} of ${column.of}`;
  const interval = column.low[place] === null ? "no interval" : bounds(column, place);
  return el("td", { class: kind, title: ranked }, minus(percent(mean)), el("span", { class: "half" }, interval));
}

const row = (chosen) => (place) => [
  el("td", { class: "rank number" }, rank(chosen, place)),
  el("th", { scope: "row" }, link(place), el("span", { class: "half" }, [board.remedied[place] ? "with a remedy" : "", board.encoders[place]].filter(Boolean).join(" \u00b7 ") || "\u00a0")),
  ...columns.map((column) => cell(column, place, chosen)),
];

function heads(chosen, turned) {
  const groups = new Map();
  for (const column of columns) groups.set(column.axis, [...(groups.get(column.axis) ?? []), column]);
  const above = [...groups].map(([axis, of]) => el("th", { scope: "colgroup", class: "first", colspan: of.length, title: board.axes[axis].about }, board.axes[axis].name));
  const below = columns.map((column) => {
    const down = (column.quantity === "accuracy") !== turned;
    const order = column !== chosen ? "none" : down ? "descending" : "ascending";
    const sort = () => go({ sort: key(column), turned: column === chosen && !turned ? "1" : null });
    return el("th", { scope: "col", class: number(column), "aria-sort": order }, el("button", { type: "button", class: "sort", onclick: sort, "data-sort": key(column) }, named(column)));
  });
  byId("axes").replaceChildren(el("th", { class: "rank number", scope: "col", rowspan: 2 }, "Rank"), el("th", { scope: "col", rowspan: 2, class: "name" }, "Classifier"), ...above);
  byId("columns").replaceChildren(...below);
  byId("widths").replaceChildren(el("col", { class: "rank" }), el("col", { class: "name" }), ...columns.map(() => el("col")));
}

// The default columns: skill lost, and the accuracy on its reference.
function defaults() {
  const lost = columns.find((column) => column.quantity === "skill_lost");
  const reference = lost ? board.axes[lost.axis].reference : null;
  const accuracy = columns.find((column) => column.axis === reference && column.quantity === "accuracy");
  return { accuracy: accuracy ?? columns[0], lost: lost ?? columns[1] ?? columns[0] };
}

function showTable(asked, listed) {
  const chosen = columns.find((column) => key(column) === asked.sort) ?? defaults().accuracy;
  const turned = asked.turned === "1";
  const order = sortPlaces(listed, chosen, turned);
  // The focus stays on the heading while a user sorts by keyboard.
  const focused = document.activeElement?.dataset?.sort;
  heads(chosen, turned);
  if (focused) document.querySelector(`[data-sort="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  table.draw = row(chosen);
  table.show(order);
  const way = turned ? "worst" : "best";
  byId("summary").textContent = `${counted(listed.length, "classifier")}, ${way} first by ${label(chosen).replace(" (%)", "")}.`;
}

function options(select, choices, value) {
  select.replaceChildren(...choices.map(([id, name]) => el("option", { value: id, selected: id === value }, shown(name))));
}

function showScatter(asked, listed) {
  const x = columns.find((column) => key(column) === asked.x) ?? defaults().accuracy;
  const y = columns.find((column) => key(column) === asked.y) ?? defaults().lost;
  const names = columns.map((column) => [key(column), label(column)]);
  options(byId("x"), names, key(x));
  options(byId("y"), names, key(y));
  const pair = pairOf(x, y);
  const both = listed.filter((place) => x.mean[place] !== null && y.mean[place] !== null);
  const best = front(both, x, y);
  const onFront = new Set(best);
  const beaten = (place) => pair !== undefined && bit(pair.beaten, place);
  const ranked = (place) => x.best[place] !== null && y.best[place] !== null;
  const others = both.filter((place) => !onFront.has(place));
  const maybe = others.filter((place) => ranked(place) && !beaten(place));
  const groups = { beaten: others.filter((place) => !ranked(place) || beaten(place)), open: maybe, front: best };
  scatter(byId("scatter"), x, y, [label(x), label(y)], groups, best, (place) => shown(titles[place]), open);
  const verb = best.length === 1 ? "is" : "are";
  const summary = `${best.length} of ${counted(both.length, "classifier")} ${verb} on the front by their means. ${counted(maybe.length, "other")} may be on it, because no classifier is conclusively better on both (${board.level} ${[...new Set([x.intervalName, y.intervalName])].join(" and ")} intervals, with Holm’s correction for each axis).`;
  byId("front-summary").textContent = x === y ? "Choose two different axes." : summary;
  const item = (place) => {
    const details = [`${minus(percent(x.mean[place]))}, ${minus(percent(y.mean[place]))}`, beaten(place) ? "; a classifier that is not listed is conclusively better" : ""];
    return el("li", {}, link(place), board.encoders[place] ? ` on ${board.encoders[place]}` : "", el("span", { class: "half" }, ` ${details.join("")}`));
  };
  const rest = best.length - SHOWN_LINKS;
  byId("front").replaceChildren(...best.slice(0, SHOWN_LINKS).map(item), rest > 0 ? el("li", {}, `and ${rest} more`) : "");
}

const pairOf = (a, b) => {
  const [first, second] = [board.columns.indexOf(a), board.columns.indexOf(b)].sort((one, other) => one - other);
  return board.pairs.find((pair) => pair.columns[0] === first && pair.columns[1] === second);
};

function showCorrelations() {
  byId("correlations").closest("section").hidden = board.pairs.every((pair) => pair.r === null);  // too few classifiers
  const head = columns.map((column) => el("th", { scope: "col", class: "number" }, `${board.axes[column.axis].name}, ${named(column)}`));
  const rows = columns.map((a) => el("tr", {}, el("th", { scope: "row" }, `${board.axes[a.axis].name}, ${named(a)}`), ...columns.map((b) => {
    const pair = a === b ? undefined : pairOf(a, b);
    if (pair === undefined || pair.r === null) return el("td", { class: "number none" }, a === b ? "" : "\u2013");
    const show = () => { go({ x: key(a), y: key(b) }); byId("fronts").scrollIntoView(); };
    const cell = el("td", { class: "number heat" }, el("button", { type: "button", onclick: show, title: "Show the scatter" }, minus(pair.r.toFixed(2))));
    cell.style.setProperty("--r", `${Math.round(45 * Math.abs(pair.r))}%`);
    return cell;
  })));
  byId("correlations").replaceChildren(el("thead", {}, el("tr", {}, el("td"), ...head)), el("tbody", {}, ...rows));
}

let before = null;

function show() {
  const asked = state();
  const place = Math.max(0, board.dataSets.indexOf(asked.data));
  const metric = asked.metric in METRICS ? asked.metric : board.metric;
  const chosen = `${place} ${metric}`;
  columns = board.columns.filter((column) => board.axes[column.axis].dataSet === place && column.metric === metric);
  options(byId("data"), board.dataSets.map((name) => [name, name]), board.dataSets[place]);
  options(byId("metric"), Object.entries(METRICS), metric);
  if (byId("search").value !== (asked.search ?? "")) byId("search").value = asked.search ?? "";
  const measured = matching(searched, asked.search ?? "").filter((place) => columns.some((column) => column.mean[place] !== null));
  showTable(asked, measured);
  const plotted = JSON.stringify([chosen, asked.search, asked.x, asked.y, byId("scatter").clientWidth]);
  if (before?.plotted !== plotted) later(() => showScatter(asked, measured));
  if (before?.chosen !== chosen) later(showCorrelations);
  before = { plotted, chosen, width: byId("scatter").clientWidth };
}

// Draw everything below the table after the table.
const later = (work) => setTimeout(work, 0);

function listen() {
  const chosen = (id, cleared) => byId(id).addEventListener("change", (event) => go({ [id]: event.target.value, ...cleared }));
  chosen("data", { sort: null, turned: null, x: null, y: null });
  chosen("metric", {});
  chosen("x", {});
  chosen("y", {});
  byId("search").addEventListener("input", (event) => go({ search: event.target.value }));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", show);
  addEventListener("resize", () => before.width !== byId("scatter").clientWidth && show());
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the choices
    byId("table").focus();
  });
}

table = new Table(byId("table"), byId("rows"), () => []);
listen();
show();
document.documentElement.dataset.ready = "";
