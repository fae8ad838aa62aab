// Loading of data: the index at the start, the columns of a task set and the counts of a classifier when they are chosen,
// tasks in parts when one of them is opened.

const ARRAYS = { Uint8Array, Uint16Array, Uint32Array };
const PARTS_KEPT = 24;

async function load(path) {
  const answer = await fetch(path, { priority: "high" }); // before the pictures of the previous task
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

export const loadIndex = async () => (await load("data/index.json")).json();

export class TaskSet {
  constructor(about, place, partTasks) {
    Object.assign(this, about, { place, partTasks });
    this.parts = new Map();
    this.accuracies = new Map();
    this.confusions = new Map();
  }

  async column(name) {
    const buffer = await (await load(`data/${this.place}/${name}.bin`)).arrayBuffer();
    return new ARRAYS[this.columns[name]](buffer);
  }

  // The columns that lists are filtered and sorted by, except the classifiers' counts.
  open() {
    const names = ["number", "starts", "rank", "queries", "label", "planted", "support_context", "query_context"];
    this.opened ??= Promise.all(names.map(async (name) => { this[name] = await this.column(name); }));
    return this.opened;
  }

  // A classifier's correct answers by row, and its accuracy and worst-class accuracy by task, in percent.
  counts(classifier) {
    if (!this.accuracies.has(classifier)) this.accuracies.set(classifier, this.count(classifier));
    return this.accuracies.get(classifier);
  }

  async count(classifier) {
    const [correct] = await Promise.all([this.column(`correct-${classifier}`), this.open()]);
    const [mean, worst] = [new Float32Array(this.tasks), new Float32Array(this.tasks)];
    for (let task = 0; task < this.tasks; task++) {
      let [sum, asked, least] = [0, 0, 100];
      for (let row = this.starts[task]; row < this.starts[task + 1]; row++) {
        if (this.queries[row] === 0) continue;
        const share = (100 * correct[row]) / this.queries[row];
        sum += share;
        asked += 1;
        least = Math.min(least, share);
      }
      mean[task] = sum / asked;
      worst[task] = least;
    }
    return { correct, mean, worst };
  }

  confusion(classifier) {
    if (!this.confusions.has(classifier)) {
      const path = `data/${this.place}/confusion-${classifier}.json`;
      this.confusions.set(classifier, load(path).then((answer) => answer.json()));
    }
    return this.confusions.get(classifier);
  }

  // One task with its items; the last few parts are kept.
  async task(place) {
    const number = Math.floor(place / this.partTasks);
    if (!this.parts.has(number)) {
      this.parts.set(number, load(`data/${this.place}/tasks-${number}.json`).then((answer) => answer.json()));
      if (this.parts.size > PARTS_KEPT) this.parts.delete(this.parts.keys().next().value);
    }
    const part = await this.parts.get(number);
    return { ...part.tasks[place % this.partTasks], items: part.items };
  }
}
