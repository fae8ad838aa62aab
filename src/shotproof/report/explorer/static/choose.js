// Selection and order of the listed tasks. Pure: arrays in, positions of tasks out.

export const ERRORS = {
  "": "any",
  missed: "some queries missed",
  none: "no query missed",
  above: "better than the other method",
  below: "worse than the other method",
};

export const ORDERS = {
  number: "by number",
  hardest: "hardest first",
  easiest: "easiest first",
  lowest: "lowest accuracy first",
  highest: "highest accuracy first",
  worst: "worst class first",
  lead: "largest lead first",
  lag: "largest lag first",
};

// Codes count from 1; null matches any.
function rowFits(set, row, wanted) {
  return (
    (wanted.label === null || set.label[row] === wanted.label) &&
    (wanted.planted === null || set.planted[row] === wanted.planted) &&
    (wanted.support === null || set.support_context[row] === wanted.support) &&
    (wanted.query === null || set.query_context[row] === wanted.query)
  );
}

export function choose(set, first, second, wanted) {
  const byRow = ["label", "planted", "support", "query"].some((name) => wanted[name] !== null);
  const chosen = new Uint32Array(set.tasks);
  let count = 0;
  for (let task = 0; task < set.tasks; task++) {
    const value = first.mean[task];
    if (value < wanted.least || value > wanted.most) continue;
    if (wanted.errors === "above" && !(second && value > second.mean[task])) continue;
    if (wanted.errors === "below" && !(second && value < second.mean[task])) continue;
    let [fits, other, missed] = [false, wanted.other === null, false];
    for (let row = set.starts[task]; row < set.starts[task + 1]; row++) {
      if (!byRow || rowFits(set, row, wanted)) {
        fits = true;
        missed ||= first.correct[row] < set.queries[row];
      }
      other ||= set.label[row] === wanted.other;
    }
    if (!fits || !other) continue;
    if (wanted.errors === "missed" && !missed) continue;
    if (wanted.errors === "none" && missed) continue;
    chosen[count++] = task;
  }
  return sorted(chosen.subarray(0, count), set, first, second, wanted.order);
}

function sorted(chosen, set, first, second, order) {
  const lead = (task) => (second ? first.mean[task] - second.mean[task] : 0);
  const keys = {
    hardest: (task) => set.rank[task],
    easiest: (task) => -set.rank[task],
    lowest: (task) => first.mean[task],
    highest: (task) => -first.mean[task],
    worst: (task) => first.worst[task],
    lead: (task) => -lead(task),
    lag: lead,
  };
  const key = keys[order];
  if (key === undefined) return chosen;
  // Sorting numbers is much faster than sorting tasks by a function: by the key, then by the place.
  const values = Float64Array.from(chosen, key);
  const places = Uint32Array.from(chosen.keys());
  places.sort((a, b) => values[a] - values[b] || a - b);
  return places.map((place) => chosen[place]);
}
