"use strict";

const data = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");

// Tables: a heading's button sorts by its column; a second press reverses the order. Rows without a value stay last.
function sortBy(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  const sign = direction === "ascending" ? 1 : -1;
  const key = (row) => {
    const cell = row.cells[column];
    if (cell.classList.contains("none")) return null;
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true }));
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  for (const cell of table.tHead.rows[0].cells) cell.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", direction);
  document.querySelector(".announce").textContent = `Sorted by ${heading.textContent.trim()}, ${direction}.`;
}

for (const button of document.querySelectorAll("table.sortable .sort")) {
  button.addEventListener("click", () => sortBy(button.closest("table"), button.closest("th").cellIndex));
}

// Thumbnails: each image is embedded once, even if several tasks show it, and decoded when its task is opened.
const images = data("gallery-images");
const show = (thumbnails) => thumbnails.forEach((image) => { image.src = images[image.dataset.image]; });
const closed = "details.task:not([open])";
show([...document.querySelectorAll("img[data-image]")].filter((image) => !image.closest(closed)));
for (const task of document.querySelectorAll(closed)) {
  task.addEventListener("toggle", () => show(task.querySelectorAll("img[data-image]")), { once: true });
}

// Sounds: a press plays a clip from its beginning, a second press stops it; one clip plays at a time.
const sounds = data("gallery-sounds");
const player = new Audio();
let pressed = null;

function stop() {
  player.pause();
  pressed?.setAttribute("aria-pressed", "false");
  pressed = null;
}

for (const button of document.querySelectorAll("button[data-sound]")) {
  button.addEventListener("click", () => {
    const again = pressed === button;
    stop();
    if (again) return;
    pressed = button;
    button.setAttribute("aria-pressed", "true");
    player.src = sounds[button.dataset.sound];
    player.play();
  });
}
player.addEventListener("ended", stop);

// The chosen classifier's correct counts and missed queries.
const marks = data("gallery-marks");

function markQueries(queries, answers, slot) {
  queries.forEach((query, position) => {
    const place = answers?.missed[slot]?.indexOf(position) ?? -1;
    query.classList.toggle("missed", place >= 0);
    query.querySelector(".verdict").textContent = place >= 0 ? "missed" : "";
    const called = query.querySelector(".called");
    const name = answers?.called[slot]?.[place];
    if (called) called.textContent = name ? `→ ${name}` : "";
    if (called) called.title = called.textContent;
  });
}

function mark(task, answers, name) {
  const unknown = task.querySelector(".unknown");
  const isUnrecorded = answers?.missed.every((positions) => positions === null);
  unknown.hidden = answers !== null && !isUnrecorded;
  unknown.textContent = answers === null
    ? `${name} was not evaluated on this task.`
    : "The results record how many queries were missed, but not which ones.";
  task.querySelectorAll(".class").forEach((shown, slot) => {
    const score = shown.querySelector(".score");
    score.textContent = answers === null ? "" : `${answers.correct[slot]} of ${score.dataset.queries} correct`;
    markQueries(shown.querySelectorAll("[data-query]"), answers, slot);
    const before = answers?.unchanged ?? null;
    markQueries(shown.querySelectorAll("[data-unchanged]"), before, slot);
    const scoreBefore = shown.querySelector(".score-unchanged");
    if (scoreBefore) scoreBefore.textContent = before === null ? "" : `unchanged: ${before.correct[slot]}`;
  });
}

const chooser = document.getElementById("classifier");

function markAll() {
  const name = chooser.selectedOptions[0].textContent;
  for (const task of document.querySelectorAll(".task")) mark(task, marks[task.dataset.task][chooser.value], name);
}

if (chooser) {
  chooser.addEventListener("change", markAll);
  markAll();
}

// Escape closes an explanation without moving the focus.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const tip of document.querySelectorAll(".with-tip:hover, .with-tip:focus-within")) tip.classList.add("closed");
});
for (const tip of document.querySelectorAll(".with-tip")) {
  for (const leaving of ["focusout", "mouseleave"]) tip.addEventListener(leaving, () => tip.classList.remove("closed"));
}

// A printed page shows every metadata list.
addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("#provenance details")) closed.open = true;
});
