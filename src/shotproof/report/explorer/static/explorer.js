// The page. All choices are in the address, so that a link shows the same view.
import { ERRORS, ORDERS, choose } from "./choose.js";
import { showConfusion } from "./confusion.js";
import { TaskSet, loadIndex } from "./data.js";
import { byId, counted, el, percent, shown } from "./dom.js";
import { List } from "./list.js";
import { className, showTask } from "./task.js";

const KEYS = ["view", "set", "a", "b", "class", "other", "planted", "support", "query", "errors", "least", "most", "order", "task"];
const NARROW = matchMedia("(max-width: 60rem)");

let sets = [];
let now = {}; // the chosen set, classifiers, their counts and the listed tasks
let turn = 0; // a later choice cancels what an earlier one is still loading
let opening = 0; // a later task cancels an earlier task, but not the current choice

const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

function address(changes) {
  const wanted = { ...state(), ...changes };
  const kept = KEYS.filter((key) => wanted[key] !== undefined && wanted[key] !== null);
  return `#${new URLSearchParams(kept.map((key) => [key, wanted[key]]))}`;
}

// Filters replace the address; another task or view is a step that the browser's back button can undo.
function go(changes, step = false) {
  history[step ? "pushState" : "replaceState"](null, "", address(changes));
  return show();
}

function fill(select, names, chosen, any = null) {
  const options = names.map((name, place) => el("option", { value: place }, shown(name)));
  if (any !== null) options.unshift(el("option", { value: "" }, any));
  select.replaceChildren(...options);
  select.value = chosen < 0 ? "" : String(chosen);
  select.closest("label").hidden = any !== null && names.length === 0;
}

function fillNamed(select, named, chosen) {
  select.replaceChildren(...Object.entries(named).map(([value, text]) => el("option", { value }, text)));
  select.value = chosen;
}

const find = (names, name) => (name === undefined ? -1 : names.indexOf(name));
const code = (names, name) => (name === undefined ? null : names.indexOf(name) + 1 || -1);
const bound = (text, otherwise) => (text === undefined || text === "" || Number.isNaN(Number(text)) ? otherwise : Number(text));

function fillControls(asked, set, a, b) {
  fill(byId("set"), sets.map((one) => one.name), set.place);
  const classifiers = set.classifiers.map((one) => one.name);
  fill(byId("a"), classifiers, a);
  fill(byId("b"), classifiers, b, "none");
  fill(byId("class"), set.names, find(set.labels, asked.class), "any");
  fill(byId("other"), set.names, find(set.labels, asked.other), "any");
  fill(byId("planted"), set.planted_names, find(set.planted_names, asked.planted), "any");
  fill(byId("support"), set.contexts, find(set.contexts, asked.support), `any ${set.context ?? ""}`);
  fill(byId("query"), set.contexts, find(set.contexts, asked.query), `any ${set.context ?? ""}`);
  const alone = b < 0 ? ["above", "below", "lead", "lag"] : [];
  const offered = (named) => Object.fromEntries(Object.entries(named).filter(([value]) => !alone.includes(value)));
  fillNamed(byId("errors"), offered(ERRORS), asked.errors ?? "");
  fillNamed(byId("order"), offered(ORDERS), asked.order ?? "number");
  byId("least").value = asked.least ?? "";
  byId("most").value = asked.most ?? "";
}

// A row of the list: the task, its classes with their correct answers, and the accuracies.
function row(place) {
  const { set, counts } = now;
  const rows = Array.from({ length: set.starts[place + 1] - set.starts[place] }, (_, slot) => set.starts[place] + slot);
  const share = (at) => (set.queries[at] ? counts[0].correct[at] / set.queries[at] : 1);
  rows.sort((one, other) => share(one) - share(other) || one - other); // a line may be too short for all classes
  const classes = rows.flatMap((at) => [
    el("span", { class: share(at) < 0.5 ? "weak" : "" }, `${className(set, at)} ${counts[0].correct[at]}/${set.queries[at]}`),
    " ",
  ]);
  const values = counts.map((one) => el("span", { class: "value" }, `${percent(one.mean[place])}%`));
  return [
    el("span", { class: "line" }, el("span", { class: "task-number" }, `Task ${set.number[place]}`), ...values),
    el("span", { class: "classes" }, ...classes),
  ];
}

const list = new List(byId("list"), row, (index) => {
  const place = now.listed[index];
  history[NARROW.matches ? "pushState" : "replaceState"](null, "", address({ task: now.set.number[place] }));
  document.body.classList.add("reading");
  openTask(place);
});

function openTask(place) {
  const mine = ++opening;
  if (place < 0) {
    byId("task").replaceChildren(el("p", { class: "aside" }, "No task matches the filters above."));
    return Promise.resolve();
  }
  const back = el("button", { type: "button", class: "back", onclick: () => { go({ task: null }); byId("list").focus(); } }, "Back to the list");
  const box = el("div");
  const shownTask = showTask(box, now.set, place, now.chosen, now.counts, () => mine === opening);
  return shownTask.then(() => {
    if (mine !== opening) return;
    byId("task").replaceChildren(back, box);
    byId("task").scrollTop = 0;
    if (NARROW.matches) byId("task").focus();
  });
}

function summarize() {
  const { set, listed, chosen, counts } = now;
  const of = listed.length === set.tasks ? counted(set.tasks, "task") : `${listed.length.toLocaleString("en")} of ${counted(set.tasks, "task")}`;
  const means = chosen.map((classifier, place) => {
    let sum = 0;
    for (const task of listed) sum += counts[place].mean[task];
    return `${shown(set.classifiers[classifier].name)} ${percent(sum / listed.length)}%`;
  });
  const heads = chosen.map((classifier) => el("span", { class: "value" }, shown(set.classifiers[classifier].name)));
  byId("columns").replaceChildren(el("span", { class: "task-number" }, "Task"), ...heads);
  byId("summary").textContent = listed.length ? `${of}: ${means.join(", ")}` : `${of}.`;
}

const key = (asked) => JSON.stringify(KEYS.filter((name) => name !== "task" && name !== "view").map((name) => asked[name]));

async function show() {
  const mine = ++turn;
  const asked = state();
  const set = sets.find((one) => one.key === asked.set) ?? sets[0];
  const names = set.classifiers.map((one) => one.name);
  const a = Math.max(0, find(names, asked.a));
  const b = find(names, asked.b) === a ? -1 : find(names, asked.b);
  fillControls(asked, set, a, b);
  const chosen = b < 0 ? [a] : [a, b];
  const confusing = asked.view === "confusion";
  byId("to-tasks").href = address({ view: null });
  byId("to-confusion").href = address({ view: "confusion" });
  byId(confusing ? "to-confusion" : "to-tasks").setAttribute("aria-current", "page");
  byId(confusing ? "to-tasks" : "to-confusion").removeAttribute("aria-current");
  document.body.classList.toggle("confusing", confusing);
  byId("confusion").hidden = !confusing;
  await set.open();
  const counts = await Promise.all(chosen.map((classifier) => set.counts(classifier)));
  if (mine !== turn) return;
  if (now.key !== key(asked)) {
    const wanted = {
      label: code(set.labels, asked.class),
      other: code(set.labels, asked.other),
      planted: code(set.planted_names, asked.planted),
      support: code(set.contexts, asked.support),
      query: code(set.contexts, asked.query),
      errors: asked.errors ?? "",
      least: bound(asked.least, -1),
      most: bound(asked.most, 101),
      order: asked.order ?? "number",
    };
    now = { set, chosen, counts, listed: choose(set, counts[0], counts[1], wanted), key: key(asked) };
    now.fresh = true;
    summarize();
  }
  const { task } = state(); // a task may have been picked while the counts were loading
  const asking = task === undefined ? -1 : set.number.indexOf(Number(task));
  document.body.classList.toggle("reading", asking >= 0);
  const first = NARROW.matches ? -1 : (now.listed[0] ?? -1); // show a task beside the list if there is room
  const place = asking >= 0 ? asking : first;
  const index = place < 0 ? -1 : now.listed.indexOf(place);
  if (now.fresh) {
    now.fresh = false;
    byId("list").scrollTop = 0;
    list.show(now.listed, index);
  } else if (list.active !== index) list.show(now.listed, index);
  if (confusing) {
    const open = (truth, answer) => go({ view: null, class: set.labels[truth], other: set.labels[answer], errors: "missed", task: null }, true);
    await showConfusion(byId("confusion"), set, chosen, open, () => mine === turn);
  } else await openTask(place);
}

function showError(error) {
  byId("summary").textContent = `The data could not be loaded: ${error.message}`;
}

function listen() {
  const changed = (changes) => go(changes).catch(showError);
  const named = (id, names) => byId(id).addEventListener("change", (event) => {
    const value = event.target.value;
    changed({ [id]: value === "" ? null : names()[Number(value)] });
  });
  byId("set").addEventListener("change", (event) => {
    const { a, b, order, view } = state();
    const cleared = Object.fromEntries(KEYS.map((name) => [name, null]));
    changed({ ...cleared, a, b, order, view, set: sets[Number(event.target.value)].key });
  });
  const classifiers = () => now.set.classifiers.map((one) => one.name);
  named("a", classifiers);
  named("b", classifiers);
  named("class", () => now.set.labels);
  named("other", () => now.set.labels);
  named("planted", () => now.set.planted_names);
  named("support", () => now.set.contexts);
  named("query", () => now.set.contexts);
  for (const id of ["errors", "order", "least", "most"]) {
    byId(id).addEventListener("change", (event) => changed({ [id]: event.target.value || null }));
  }
  byId("number").addEventListener("change", (event) => {
    if (event.target.value !== "") changed({ task: event.target.value });
  });
  byId("filters").querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", (event) => {
    event.preventDefault();
    const { set, a, b, view } = state();
    const cleared = Object.fromEntries(KEYS.map((name) => [name, null]));
    byId("number").value = "";
    changed({ ...cleared, set, a, b, view });
  });
  for (const id of ["to-tasks", "to-confusion"]) {
    byId(id).addEventListener("click", (event) => {
      event.preventDefault();
      go({ view: id === "to-confusion" ? "confusion" : null }, true).catch(showError);
    });
  }
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the choices
    byId("list").focus();
  });
  byId("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href);
    byId("copy").textContent = "Copied";
    setTimeout(() => { byId("copy").textContent = "Copy link"; }, 2000);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.body.classList.contains("reading") && !byId("large").open && NARROW.matches) {
      go({ task: null }).catch(showError);
      byId("list").focus();
    }
  });
  addEventListener("popstate", () => show().catch(showError));
  NARROW.addEventListener("change", () => show().catch(showError));
}

async function start() {
  byId("needs-server").hidden = true;
  const index = await loadIndex();
  document.title = `${index.title} · explorer`;
  byId("title").textContent = shown(index.title);
  sets = index.sets.map(({ planted, ...about }, place) => new TaskSet({ ...about, planted_names: planted }, place, index.part_tasks));
  byId("filters").hidden = false;
  byId("filters").open = !NARROW.matches;
  document.querySelector("main").hidden = false;
  listen();
  await show();
}

start().catch(showError);
