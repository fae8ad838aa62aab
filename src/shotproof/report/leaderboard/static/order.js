// Which classifiers are listed, in which order, and who is on the front. Pure: arrays in, places out.

const higherIsBetter = (column) => column.quantity === "accuracy";
const worth = (column, place) => (higherIsBetter(column) ? column.mean[place] : -column.mean[place]);

// Places whose name holds every word, in the order given.
export function found(names, text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return [...names.keys()].filter((place) => words.every((word) => names[place].includes(word)));
}

// Best first unless turned round; those without a number come last either way, and ties keep their order.
export function sorted(places, column, turned) {
  const sign = turned ? 1 : -1;
  const numbered = places.filter((place) => column.mean[place] !== null);
  const keys = new Float64Array(column.mean.length);
  for (const place of numbered) keys[place] = sign * worth(column, place);
  const order = Uint32Array.from(numbered).sort((a, b) => keys[a] - keys[b] || a - b);
  return [...order, ...places.filter((place) => column.mean[place] === null)];
}

// Those than whom no other has a better mean in one and none worse in the other, from the best in x on.
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

// Bits as Python packs them, in hexadecimal.
export const bit = (text, place) => ((parseInt(text.substr(2 * (place >> 3), 2), 16) >> (7 - (place & 7))) & 1) === 1;
