// The rows that a saved page holds, asked as a server is asked: held-out rows, with the columns of `held-out-data`.
const UNKNOWN = 2; // whether it is wrong, as of losses
const FEW = 4; // columns that stand for a row without an image or a text

class SavedRows {
  constructor() {
    const read = (id) => { const element = document.getElementById(id); return element ? JSON.parse(element.textContent) : null; };
    this.data = read("rows-data");
    this.held = read("held-out-data");
    this.map = read("map-data");
    this.rows = new Int32Array(this.decode(this.data.rows).buffer);
    this.wrong = this.decode(this.held.wrong);
    this.known = !this.wrong.includes(UNKNOWN);
    this.numbers = { loss: this.singles(this.data.loss), confidence: this.singles(this.data.confidence) };
    this.masks = new Map();
  }

  decode(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)); }
  singles(text) { return text ? new Float32Array(this.decode(text).buffer) : null; }
  value(name, j) { return this.held.columns[name]?.values[j] ?? null; }

  // A condition -> one boolean a row; each is worked out once.
  mask(condition) {
    if (!this.masks.has(condition)) this.masks.set(condition, parse(condition, this.held.columns, this.held.media).mask());
    return this.masks.get(condition);
  }

  members(slice) {
    const packed = this.decode(this.data.members[slice] ?? "");
    return (j) => ((packed[j >> 3] >> (j & 7)) & 1) === 1;
  }

  filters(query) {
    const tests = [];
    const inside = query.slice ? this.members(query.slice) : null;
    if (inside && query.side !== "any") tests.push((j) => inside(j) === (query.side !== "out"));
    if (query.outcome) tests.push((j) => (this.wrong[j] === 1) === (query.outcome === "wrong"));
    if (query.where?.trim()) { const mask = this.mask(query.where); tests.push((j) => mask[j]); }
    if (query.verdict) tests.push(this.inVerdict(query.verdict));
    if (query.loop && this.map) { const within = this.inLoop(query.loop); tests.push((j) => within(this.rows[j])); }
    if (query.pictured && hasImages) tests.push((j) => holdsImage(this.rows[j]));
    return tests;
  }

  inVerdict(verdict) {
    const wanted = Object.entries(this.data.verdicts).filter(([, own]) => verdict === "none" || own === verdict);
    const slices = wanted.map(([id]) => this.members(id));
    return (j) => slices.some((inside) => inside(j)) === (verdict !== "none");
  }

  inLoop(text) {
    const loop = text.split(";").map((pair) => pair.split(",").map(Number));
    const places = new Int16Array(this.decode(this.map.xy).buffer);
    return (row) => isInLoop(places[2 * row] / 32767, places[2 * row + 1] / 32767, loop);
  }

  find(query) {
    const tests = this.filters(query);
    const found = [];
    for (let j = 0; j < this.data.n; j++) if (tests.every((test) => test(j))) found.push(j);
    return this.sort(found, query);
  }

  sort(found, query) {
    const depth = query.order === "depth" && query.slice ? this.decode(this.data.depth[query.slice]) : null;
    const values = depth ?? this.numbers[query.order];
    const sign = query.up ? 1 : -1;
    if (values) return found.sort((a, b) => sign * (values[a] - values[b]) || a - b);
    const key = (j) => { let x = (j + 1) * 2654435761 + Number(query.seed || 0) * 40503; x ^= x >>> 15; x = Math.imul(x, 2246822519); return (x ^ (x >>> 13)) >>> 0; };
    return found.sort((a, b) => key(a) - key(b));
  }

  // What was said of a row; a number of a regression to three digits, as elsewhere.
  said(name, j) {
    const value = this.value(name, j);
    return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(3))) : value;
  }

  line(j) {
    const names = Object.keys(this.held.columns).filter((name) => !["id", "label", "prediction", "text"].includes(name));
    const text = this.value("text", j);
    const all = names.map((name) => [name, String(this.value(name, j) ?? "missing")]);
    return {
      j, row: this.rows[j], id: String(this.value("id", j)), label: this.said("label", j), prediction: this.said("prediction", j),
      wrong: this.known ? this.wrong[j] === 1 : null, loss: this.numbers.loss?.[j].toPrecision(3) ?? null, confidence: this.numbers.confidence?.[j] ?? null,
      role: "held-out", text, columns: text === null && !hasImages ? all.slice(0, FEW) : [], metadata: all,
    };
  }

  async read(query, start, count) {
    const found = this.find(query);
    return { total: found.length, start, order: query.order, rows: found.slice(start, start + count).map((j) => this.line(j)) };
  }

  // Of all rows that match, whether this page holds their images or not: those that it holds were chosen to be looked at,
  // and are wrong more often than others.
  async view(query) {
    const found = this.find({ ...query, pictured: "" });
    const inside = new Uint8Array(this.data.n);
    for (const j of found) inside[j] = 1;
    const wrong = found.filter((j) => this.wrong[j] === 1).length;
    const all = this.wrong.reduce((sum, bit) => sum + (bit === 1 ? 1 : 0), 0);
    const counts = { n: found.length, wrong, others: this.data.n - found.length, others_wrong: all - wrong, known: this.known };
    return { ...counts, columns: this.data.columns.map((column) => this.count(column, inside)), lit: this.light(found) };
  }

  count(column, inside) {
    const bars = column.bars.map((bar) => {
      const counts = { ...bar, in: 0, out: 0 };
      this.mask(bar.condition).forEach((match, j) => { if (match) counts[inside[j] ? "in" : "out"] += 1; });
      return counts;
    });
    return { ...column, bars };
  }

  light(found) {
    if (!this.map) return null;
    const bits = new Uint8Array(Math.ceil(this.map.n / 8));
    for (const j of found) bits[this.rows[j] >> 3] |= 1 << (this.rows[j] & 7);
    return bits;
  }

  async open(line) { return { ...line, near: null, slices: Object.keys(this.data.members).filter((id) => this.members(id)(line.j)) }; }

  atRow(row) { const j = this.rows.indexOf(row); return j < 0 ? null : this.line(j); }
}

function isInLoop(x, y, loop) {
  let hit = false;
  for (let a = 0, b = loop.length - 1; a < loop.length; b = a++) {
    const [ax, ay] = loop[a], [bx, by] = loop[b];
    if ((ay > y) !== (by > y) && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) hit = !hit;
  }
  return hit;
}
