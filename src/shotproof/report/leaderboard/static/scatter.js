// Scatter of two columns, better up and to the right, with the Pareto front.
import { el, percent } from "./dom.js";

const [LEFT, BOTTOM, EDGE] = [60, 44, 12];
const [NARROWEST, WIDEST] = [280, 760];
const WHISKERS = 60; // more would hide the points
const FRAME = [-50, 150]; // limits of skill lost (%): a classifier with little skill may lose many times as much

const svg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// Round values within a range.
function ticks(low, high) {
  const rough = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((value) => value >= rough * 0.8);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(value);
  return found;
}

function scale(column, places, start, end) {
  let [low, high] = [Infinity, -Infinity];
  for (const place of places) {
    low = Math.min(low, column.mean[place]);
    high = Math.max(high, column.mean[place]);
  }
  const margin = Math.max((high - low) * 0.06, 0.5);
  [low, high] = [low - margin, high + margin];
  if (column.quantity === "skill_lost" && low < FRAME[1] && high > FRAME[0]) {
    [low, high] = [Math.max(low, FRAME[0]), Math.min(high, FRAME[1])];
  }
  const [from, to] = column.quantity === "accuracy" ? [low, high] : [high, low];
  const at = (value) => start + ((value - from) / (to - from)) * (end - start);
  return { at, ticks: ticks(low, high), clamp: (value) => at(Math.min(Math.max(value, low), high)) };
}

const dots = (points, kind) => {
  const path = points.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("");
  return svg("path", { class: `dots ${kind}`, d: path });
};

// groups: places by kind, in drawing order; frontPlaces: places that a line joins.
export function scatter(box, x, y, labels, groups, frontPlaces, describe, open) {
  const all = Object.values(groups).flat();
  if (all.length === 0) {
    box.replaceChildren(el("p", { class: "missing" }, "No classifier has both numbers."));
    return;
  }
  // One unit per pixel, so that texts have the same size on a phone.
  const width = Math.min(Math.max(box.clientWidth, NARROWEST), WIDEST);
  const height = Math.round(Math.max(0.62 * width, 280));
  const [across, up] = [scale(x, all, LEFT, width - EDGE), scale(y, all, height - BOTTOM, EDGE)];
  const spot = (place) => [across.clamp(x.mean[place]), up.clamp(y.mean[place])];
  const parts = [];
  for (const value of across.ticks) {
    const at = across.at(value);
    parts.push(svg("line", { class: "grid", x1: at, x2: at, y1: EDGE, y2: height - BOTTOM }));
    parts.push(svg("text", { class: "tick", x: at, y: height - BOTTOM + 14, "text-anchor": "middle" }, String(+value.toFixed(6)).replace("-", "\u2212")));
  }
  for (const value of up.ticks) {
    const at = up.at(value);
    parts.push(svg("line", { class: "grid", x1: LEFT, x2: width - EDGE, y1: at, y2: at }));
    parts.push(svg("text", { class: "tick", x: LEFT - 6, y: at + 3.5, "text-anchor": "end" }, String(+value.toFixed(6)).replace("-", "\u2212")));
  }
  parts.push(svg("text", { class: "axis-label", x: (LEFT + width - EDGE) / 2, y: height - 8, "text-anchor": "middle" }, labels[0]));
  const middle = (height - BOTTOM) / 2;
  parts.push(svg("text", { class: "axis-label", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, labels[1]));
  const open_ = [...groups.open, ...groups.front];
  for (const place of open_.length <= WHISKERS ? open_ : groups.front.slice(0, WHISKERS)) {
    const [left, top] = spot(place);
    if (x.low[place] !== null) parts.push(svg("line", { class: "whisker", x1: across.clamp(x.low[place]), x2: across.clamp(x.high[place]), y1: top, y2: top }));
    if (y.low[place] !== null) parts.push(svg("line", { class: "whisker", x1: left, x2: left, y1: up.clamp(y.low[place]), y2: up.clamp(y.high[place]) }));
  }
  const line = frontPlaces.map((place) => spot(place).map((coordinate) => coordinate.toFixed(1)).join(" "));
  if (line.length > 1) parts.push(svg("path", { class: "front-line", d: `M${line.join("L")}` }));
  for (const [kind, places] of Object.entries(groups)) parts.push(dots(places.map(spot), kind));
  const ring = svg("circle", { class: "ring", r: 6, visibility: "hidden" });
  const description = `${labels[0]} against ${labels[1]}: ${all.length} classifiers`;
  const drawn = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": description }, ...parts, ring);
  const hint = el("p", { class: "hint caption" }, "Point at a mark to see its values; click it to open the classifier’s page.");
  const spots = all.map((place) => [place, ...spot(place)]);
  const near = (event) => {
    const frame = drawn.getBoundingClientRect();
    const [px, py] = [((event.clientX - frame.left) * width) / frame.width, ((event.clientY - frame.top) * height) / frame.height];
    let [nearest, least] = [null, 24 ** 2];
    for (const mark of spots) {
      const distance = (mark[1] - px) ** 2 + (mark[2] - py) ** 2;
      if (distance < least) [nearest, least] = [mark, distance];
    }
    return nearest;
  };
  drawn.addEventListener("pointermove", (event) => {
    const nearest = near(event);
    ring.setAttribute("visibility", nearest ? "visible" : "hidden");
    if (!nearest) return;
    const [place, left, top] = nearest;
    ring.setAttribute("cx", left);
    ring.setAttribute("cy", top);
    hint.textContent = `${describe(place)}: ${labels[0]} ${percent(x.mean[place])}, ${labels[1]} ${percent(y.mean[place])}`;
  });
  drawn.addEventListener("click", (event) => {
    const nearest = near(event);
    if (nearest) open(nearest[0]);
  });
  box.replaceChildren(drawn, hint);
}
