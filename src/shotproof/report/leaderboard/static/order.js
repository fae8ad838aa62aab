// Selection and order of the listed classifiers, and the Pareto front. Pure: arrays in, positions out.

const higherIsBetter = (column) => column.quantity === "accuracy";
const worth = (column, place) => (higherIsBetter(column) ? column.mean[place] : -column.mean[place]);

// Places whose name contains every word of the text.
export function matching(names, text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return [...names.keys()].filter((place) => words.every((word) => names[place].includes(word)));
}

// Best first unless the order is reversed; places without a number come last, and ties keep their order.
export function sortPlaces(places, column, turned) {
  const sign = turned ? 1 : -1;
  const numbered = places.filter((place) => column.mean[place] !== null);
  const keys = new Float64Array(column.mean.length);
  for (const place of numbered) keys[place] = sign * worth(column, place);
  const order = Uint32Array.from(numbered).sort((a, b) => keys[a] - keys[b] || a - b);
  return [...order, ...places.filter((place) => column.mean[place] === null)];
}

// The Pareto front: places that no other place beats in one mean without being worse in the other, the best in x first.
export function front(places, x, y) {
  const both = places.filter((place) => x.mean[place] !== null && y.mean[place] !== null);
  both.sort((a, b) => worth(x, b) - worth(x, a) || worth(y, b) - worth(y, a));
  const kept = [];
  let [best, at] = [-Infinity, NaN];
  for (const place of both) {
    const [right, up] = [worth(x, place), worth(y, place)];
    if (up > best || (up === best && right === at)) {
      kept.push(place);
      [best, at] = [up, right];
    }
  }
  return kept;
}

// A bit of numpy.packbits' output in hexadecimal.
export const bit = (text, place) => ((parseInt(text.substr(2 * (place >> 3), 2), 16) >> (7 - (place & 7))) & 1) === 1;
