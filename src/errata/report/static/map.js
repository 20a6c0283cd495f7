// A map: every row a point on a canvas; pan, zoom at the cursor, a point that shows its row, and a loop that becomes a
// group with its numbers.
// A saved page has all its numbers in it; a served one asks for the points it draws and for the numbers of a loop.
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const bit = (packed, i) => (packed[i >> 3] >> (i & 7)) & 1;
const WRONG = 1;
const UNKNOWN = 2;
const FEWEST = 20;
const REACH = 14; // pixels from the cursor within which a point is meant
const CLICK = 4; // pixels that a click may move
const STRETCH = 2; // how much wider than high, or higher than wide, points may be drawn to fill the space
const ROOM = .47; // half of the space, less an edge

function decode(data) {
  const positions = new Int16Array(bytes(data.xy).buffer), outcome = bytes(data.outcome), members = {};
  for (const [id, packed] of Object.entries(data.members)) members[id] = bytes(packed);
  const rows = data.rows ? new Int32Array(bytes(data.rows).buffer) : null; // where not every row is drawn
  return { n: data.n, of: data.of, row: (i) => (rows ? rows[i] : i), x: (i) => positions[2 * i] / 32767, y: (i) => positions[2 * i + 1] / 32767, outcome, members };
}

let loading = null;
function loadPoints(box) {
  const inside = document.getElementById("map-data");
  loading ??= inside ? Promise.resolve(decode(JSON.parse(inside.textContent)))
    : fetch(box.dataset.api).then((answer) => { if (!answer.ok) throw new Error(answer.statusText); return answer.json(); }).then(decode);
  return loading;
}

class Chart {
  constructor(box, data) {
    Object.assign(this, { box, data, id: box.dataset.map, canvas: box.querySelector("canvas"), view: { x: 0, y: 0, k: 1 }, loop: [], drag: null, lassoing: false, near: -1, told: new Map() });
    this.ink = this.canvas.getContext("2d");
    this.points = document.createElement("canvas"); // drawn once for a view: a cursor and a loop move above them
    this.screen = new Float32Array(2 * data.n);
    this.lit = box.errataLit ?? data.members[this.id] ?? new Uint8Array(Math.ceil(data.n / 8));
    this.card = box.querySelector(".map-card");
    this.measure();
    for (const name of [".fallback", ".placing"]) box.querySelector(name).hidden = true;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  // Where the points are: a map seldom fills its square.
  measure() {
    const low = [1, 1], high = [-1, -1];
    for (let i = 0; i < this.data.n; i++) [this.data.x(i), this.data.y(i)].forEach((at, axis) => { low[axis] = Math.min(low[axis], at); high[axis] = Math.max(high[axis], at); });
    this.centre = low.map((at, axis) => (at + high[axis]) / 2);
    this.half = low.map((at, axis) => Math.max(1e-3, (high[axis] - at) / 2));
  }

  scale() {
    const wide = this.canvas.width * ROOM / this.half[0], high = this.canvas.height * ROOM / this.half[1];
    const least = Math.min(wide, high) * this.view.k;
    return [Math.min(wide * this.view.k, STRETCH * least), Math.min(high * this.view.k, STRETCH * least)];
  }

  toScreen(x, y) {
    const [sx, sy] = this.scale();
    return [this.canvas.width / 2 + (x - this.centre[0] + this.view.x) * sx, this.canvas.height / 2 - (y - this.centre[1] + this.view.y) * sy];
  }

  toMap(event) {
    const edge = this.canvas.getBoundingClientRect(), dpr = devicePixelRatio || 1, [sx, sy] = this.scale();
    const across = (event.clientX - edge.left) * dpr - this.canvas.width / 2, down = (event.clientY - edge.top) * dpr - this.canvas.height / 2;
    return [across / sx + this.centre[0] - this.view.x, -down / sy + this.centre[1] - this.view.y];
  }

  light(bits) { this.lit = bits; this.drawSoon(); }

  draw() {
    const home = this.canvas.parentElement;
    const dpr = devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.points]) { canvas.width = home.clientWidth * dpr; canvas.height = home.clientHeight * dpr; }
    this.stale = false;
    this.place();
    this.drawPoints(dpr);
    this.drawAbove();
  }

  place() {
    const { data, screen } = this, [sx, sy] = this.scale();
    const left = this.canvas.width / 2 + (this.view.x - this.centre[0]) * sx, top = this.canvas.height / 2 - (this.view.y - this.centre[1]) * sy;
    for (let i = 0; i < data.n; i++) { screen[2 * i] = left + data.x(i) * sx; screen[2 * i + 1] = top - data.y(i) * sy; }
  }

  drawPoints(dpr) {
    const ink = this.points.getContext("2d");
    const unknown = this.data.outcome[0] === UNKNOWN;
    const rest = findColour("--rest");
    this.stampLayer(ink, false, makeDot(rest, 1.6 * dpr, true), makeCross(rest, 1.6 * dpr));
    ink.globalCompositeOperation = "destination-in"; // the layer as a whole lets the paper through
    ink.fillStyle = "rgb(0 0 0 / .55)"; ink.fillRect(0, 0, this.points.width, this.points.height);
    ink.globalCompositeOperation = "source-over";
    this.stampLayer(ink, true, makeDot(findColour(unknown ? "--slice" : "--correct"), 2.4 * dpr), makeCross(findColour("--error"), 2.7 * dpr));
  }

  // A stamp for every point: one path of twenty thousand circles takes seconds to fill. In the order of the rows: with
  // wrong ones on top, a dense group that is right nine times of ten would look wrong.
  stampLayer(ink, lit, dot, cross) {
    const { data, screen } = this;
    for (let i = 0; i < data.n; i++) {
      if (Boolean(bit(this.lit, i)) !== lit) continue;
      const stamp = data.outcome[i] === WRONG ? cross : dot;
      const x = Math.round(screen[2 * i] - stamp.width / 2), y = Math.round(screen[2 * i + 1] - stamp.width / 2);
      if (x > -stamp.width && y > -stamp.width && x < this.points.width && y < this.points.height) ink.drawImage(stamp, x, y);
    }
  }

  drawAbove() {
    const dpr = devicePixelRatio || 1;
    this.ink.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.points.width && this.points.height) this.ink.drawImage(this.points, 0, 0);
    if (this.loop.length > 2) this.drawOutline(findColour("--slice"), dpr);
    if (this.near >= 0) this.drawRing(findColour("--ink"), dpr);
  }

  drawOutline(colour, dpr) {
    const { ink } = this;
    ink.beginPath();
    this.loop.forEach(([x, y], i) => { const at = this.toScreen(x, y); if (i) ink.lineTo(...at); else ink.moveTo(...at); });
    ink.closePath(); ink.strokeStyle = colour; ink.lineWidth = 2 * dpr; ink.setLineDash([6 * dpr, 4 * dpr]); ink.stroke(); ink.setLineDash([]);
  }

  drawRing(colour, dpr) {
    const [x, y] = this.toScreen(this.data.x(this.near), this.data.y(this.near));
    this.ink.beginPath(); this.ink.arc(x, y, 7 * dpr, 0, 7); this.ink.strokeStyle = colour; this.ink.lineWidth = 2 * dpr; this.ink.stroke();
  }

  // What lies under the cursor stays there; without one, the middle.
  zoom(factor, event = null) {
    const before = event && this.toMap(event);
    this.view.k = Math.min(40, Math.max(.8, this.view.k * factor));
    if (before) { const after = this.toMap(event); this.view.x += after[0] - before[0]; this.view.y += after[1] - before[1]; }
    this.drawSoon();
  }

  reset() { Object.assign(this.view, { x: 0, y: 0, k: 1 }); const had = this.loop.length > 0; this.clearLoop(); if (had) this.tellLoop(); }
  clearLoop() { this.loop = []; this.showCounts(null); this.drawSoon(); }

  // The loop as an address has it: 150 points are as good as 2,000.
  get loopText() {
    const every = Math.max(1, Math.ceil(this.loop.length / 150));
    return this.loop.filter((_, i) => i % every === 0).map(([x, y]) => `${x.toFixed(4)},${y.toFixed(4)}`).join(";");
  }

  tellLoop() { this.box.dispatchEvent(new CustomEvent("errata-loop", { detail: { loop: this.loopText } })); }

  // The point that is meant, -1 for none; those of the slice are drawn above others, and win.
  findPoint(event) {
    const edge = this.canvas.getBoundingClientRect(), dpr = devicePixelRatio || 1;
    const at = [(event.clientX - edge.left) * dpr, (event.clientY - edge.top) * dpr];
    let best = -1, least = (REACH * dpr) ** 2;
    for (let i = 0; i < this.data.n; i++) {
      const across = this.screen[2 * i] - at[0], down = this.screen[2 * i + 1] - at[1];
      const away = (across * across + down * down) * (bit(this.lit, i) ? .5 : 1);
      if (away < least) { least = away; best = i; }
    }
    return best;
  }

  point(event) {
    const i = this.findPoint(event);
    if (i === this.near) return;
    this.near = i;
    this.drawAboveSoon();
    this.card.hidden = true;
    clearTimeout(this.wait);
    if (i >= 0) this.wait = setTimeout(() => this.showCard(i), 60);
  }

  async showCard(i) {
    const line = await this.describe(this.data.row(i)).catch(() => null);
    if (this.near !== i || !line) return;
    this.card.className = `map-card ${kindOf(line)}`;
    this.card.replaceChildren(); fillCard(this.card, line, 112);
    const [x, y] = this.toScreen(this.data.x(i), this.data.y(i)), dpr = devicePixelRatio || 1;
    const right = x / dpr > this.canvas.clientWidth / 2, low = y / dpr > this.canvas.clientHeight / 2;
    this.card.style.left = right ? "auto" : `${x / dpr + 14}px`; this.card.style.right = right ? `${this.canvas.clientWidth - x / dpr + 14}px` : "auto";
    this.card.style.top = low ? "auto" : `${y / dpr}px`; this.card.style.bottom = low ? `${this.canvas.clientHeight - y / dpr}px` : "auto";
    this.card.hidden = false;
  }

  async describe(row) {
    if (!this.told.has(row)) this.told.set(row, isSaved ? describeSaved(row) : await askServer(`/api/at/${row}`));
    return this.told.get(row);
  }

  leave() { this.near = -1; this.card.hidden = true; clearTimeout(this.wait); this.drawAboveSoon(); }

  openPoint(event) {
    const i = this.findPoint(event);
    if (i >= 0) this.box.dispatchEvent(new CustomEvent("errata-open", { bubbles: true, detail: { row: this.data.row(i), slice: this.id } }));
  }

  pan(x, y) { this.view.x += x; this.view.y += y; this.drawSoon(); }
  drawSoon() { this.stale = true; this.drawAboveSoon(); }
  drawAboveSoon() { this.due ??= requestAnimationFrame(() => { this.due = null; if (this.stale) this.draw(); else this.drawAbove(); }); }
  setLasso(on) { this.lassoing = on; this.canvas.classList.toggle("lasso", on); this.leave(); this.findTool("lasso").setAttribute("aria-pressed", String(on)); }
  findTool(name) { return this.box.querySelector(`[data-do="${name}"]`); }

  inLoop(i) {
    const x = this.data.x(i), y = this.data.y(i), loop = this.loop;
    let hit = false;
    for (let a = 0, b = loop.length - 1; a < loop.length; b = a++) {
      const [ax, ay] = loop[a], [bx, by] = loop[b];
      if ((ay > y) !== (by > y) && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) hit = !hit;
    }
    return hit;
  }

  // Every other point goes when there are many: a server takes 5,000, and an eye sees no difference.
  extendLoop(at) {
    this.loop.push(at);
    if (this.loop.length > 2000) this.loop = this.loop.filter((_, i) => i % 2 === 0);
  }

  async count() {
    if (this.box.dataset.api) {
      const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ loop: this.loop }) };
      const answer = await fetch("/api/lasso", options);
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.json();
    }
    const counts = { n: 0, wrong: 0, others: 0, others_wrong: 0, known: this.data.outcome[0] !== UNKNOWN };
    for (let i = 0; i < this.data.n; i++) {
      const inside = this.inLoop(i), wrong = this.data.outcome[i] === WRONG ? 1 : 0;
      counts[inside ? "n" : "others"] += 1; counts[inside ? "wrong" : "others_wrong"] += wrong;
    }
    return counts;
  }

  async finishLoop() {
    if (this.loop.length < 4) { this.loop = []; return this.drawAbove(); }
    this.drawAbove();
    this.tellLoop();
    const list = this.findTool("list");
    if (list) list.href = isSaved ? `#rows?loop=${this.loopText}` : `/rows?loop=${encodeURIComponent(this.loopText)}`;
    try { this.showCounts(await this.count()); } catch (error) { this.showSentence("The loop was not counted", `${error.message}. Draw it again.`); }
  }

  showCounts(counts) {
    const toggle = (name, on) => { this.box.querySelector(name).hidden = !on; };
    const canSave = counts !== null && counts.n > 0;
    toggle(".idle", counts === null);
    toggle(".said", counts !== null);
    toggle(".keep", canSave);
    toggle(".hand", canSave);
    if (counts === null) return;
    const percent = (k, n) => (100 * k / n).toFixed(1);
    if (counts.n === 0) this.showSentence("No row in your loop", "Draw it around some points.");
    else if (!counts.known) this.showSentence(`${counts.n.toLocaleString("en")} rows`, `in your loop, of ${(counts.n + counts.others).toLocaleString("en")}.`);
    else if (counts.n < FEWEST) this.showSentence("Too few to tell", `${counts.wrong} of ${counts.n} are wrong. At least ${FEWEST} rows are needed.`);
    else {
      const [low, high] = wilsonInterval(counts.wrong, counts.n);
      const rest = counts.others ? `The rest: ${percent(counts.others_wrong, counts.others)}% of ${counts.others.toLocaleString("en")}.` : "";
      const interval = `95% interval ${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}`;
      const detail = `${counts.wrong.toLocaleString("en")} of ${counts.n.toLocaleString("en")} rows in your loop. ${interval}. ${rest}`;
      this.showSentence(`${percent(counts.wrong, counts.n)}% wrong`, detail);
    }
  }

  showSentence(headline, detail) {
    const sentence = this.box.querySelector(".said");
    const big = document.createElement("span");
    big.className = "big"; big.textContent = headline;
    sentence.replaceChildren(big, detail); sentence.hidden = false;
    this.box.querySelector(".idle").hidden = true;
  }

  listen() {
    const { canvas } = this;
    const act = {
      lasso: () => this.setLasso(!this.lassoing),
      in: () => this.zoom(1.3),
      out: () => this.zoom(1 / 1.3),
      reset: () => this.reset(),
      keep: () => this.saveLoop(),
    };
    for (const [name, does] of Object.entries(act)) this.findTool(name)?.addEventListener("click", does);
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      this.drag = this.toMap(e); this.pressed = [e.clientX, e.clientY];
      this.looping = this.lassoing || e.shiftKey;
      if (this.looping) this.loop = [this.drag];
    });
    canvas.addEventListener("pointermove", (e) => {
      if (!this.drag) { if (e.pointerType === "mouse" && !this.lassoing) this.point(e); return; }
      const at = this.toMap(e);
      if (this.looping) { this.extendLoop(at); this.drawAboveSoon(); } else this.pan(at[0] - this.drag[0], at[1] - this.drag[1]);
    });
    canvas.addEventListener("pointercancel", () => { this.drag = null; });
    canvas.addEventListener("pointerup", (e) => {
      if (!this.drag) return;
      const still = Math.hypot(e.clientX - this.pressed[0], e.clientY - this.pressed[1]) < CLICK;
      this.drag = null;
      if (this.looping) this.finishLoop(); else if (still) this.openPoint(e);
    });
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("wheel", (e) => {
      if (document.activeElement !== canvas && !e.ctrlKey) return;
      e.preventDefault();
      this.zoom(e.deltaY < 0 ? 1.15 : 1 / 1.15, e);
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      const step = .08 / this.view.k;
      const by = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[e.key];
      if (by) { e.preventDefault(); this.pan(...by); }
      if (e.key === "Escape") this.reset();
    });
  }

  saveLoop() { this.box.dispatchEvent(new CustomEvent("errata-save-loop", { bubbles: true, detail: { slice: this.id, loop: this.loop } })); }
}

const findColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function makeStamp(reach, paint) {
  const stamp = document.createElement("canvas");
  stamp.width = stamp.height = 2 * Math.ceil(reach) + 2;
  const ink = stamp.getContext("2d");
  ink.translate(stamp.width / 2, stamp.width / 2);
  paint(ink);
  return stamp;
}

function makeDot(colour, r, square = false) {
  return makeStamp(r, (ink) => { ink.fillStyle = colour; ink.beginPath(); if (square) ink.rect(-.8 * r, -.8 * r, 1.6 * r, 1.6 * r); else ink.arc(0, 0, r, 0, 7); ink.fill(); });
}

function makeCross(colour, r) {
  return makeStamp(1.3 * r, (ink) => {
    ink.strokeStyle = colour; ink.lineWidth = r * .75;
    ink.beginPath(); ink.moveTo(-r, -r); ink.lineTo(r, r); ink.moveTo(r, -r); ink.lineTo(-r, r); ink.stroke();
  });
}

function wilsonInterval(k, n, z = 1.959964) {
  const p = k / n;
  const shrink = 1 + z * z / n;
  const centre = (p + z * z / (2 * n)) / shrink;
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrink;
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}

function showFailure(box, error) {
  const words = box.querySelector(".fallback");
  box.querySelector(".placing").hidden = true;
  words.hidden = false; words.dataset.failed = ""; words.querySelector("span").textContent = `Its numbers are on this page. ${error.message}`;
}

// What a saved page has of a row beside its outcome: its image, and of a held-out row its label and prediction.
function describeSaved(row) {
  const own = readSaved();
  const j = own.rows ? own.rows.indexOf(row) : -1;
  const value = (name) => (j < 0 ? null : own.columns[name]?.values[j] ?? null);
  const id = value("id") ?? String(row);
  const columns = Object.keys(own.columns).filter((name) => !["id", "label", "prediction", "text"].includes(name));
  return { row, id, label: value("label"), prediction: value("prediction"), wrong: j < 0 || own.wrong[j] > WRONG ? null : own.wrong[j] === WRONG, text: value("text")?.slice(0, 320) ?? null, columns: columns.slice(0, 4).map((name) => [name, value(name)]) };
}

let savedRows = null;
function readSaved() {
  if (savedRows) return savedRows;
  const read = (id) => { const element = document.getElementById(id); return element ? JSON.parse(element.textContent) : null; };
  const rows = read("rows-data"), held = read("held-out-data");
  savedRows = { rows: rows && new Int32Array(bytes(rows.rows).buffer), columns: held?.columns ?? {}, wrong: held ? bytes(held.wrong) : [] };
  return savedRows;
}

// A point of a slice's own map leads to its row; where rows are listed, they open beside it.
addEventListener("errata-open", (event) => {
  const { row, slice } = event.detail;
  if (!slice || isSaved) return;
  askServer(`/api/at/${row}`).then((line) => { location.href = `/slice/${encodeURIComponent(slice)}/row/${encodeURIComponent(line.id)}`; });
});

// A map starts when it is first seen: a page of twenty slices draws one.
const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) {
    observer.unobserve(entry.target);
    loadPoints(entry.target).then((data) => { entry.target.errataChart = new Chart(entry.target, data); entry.target.errataChart.draw(); })
      .catch((error) => showFailure(entry.target, error));
  }
});
for (const box of document.querySelectorAll("[data-map]")) observer.observe(box);
