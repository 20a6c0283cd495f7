// The map of a slice: every row a point on a canvas; pan, zoom, and a loop that becomes a group with its numbers.
// A saved page has all its numbers in it; a served one asks for the points it draws and for the numbers of a loop.
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const bit = (packed, i) => (packed[i >> 3] >> (i & 7)) & 1;
const WRONG = 1;
const UNKNOWN = 2;
const FEWEST = 20;

function decode(data) {
  const positions = new Int16Array(bytes(data.xy).buffer), outcome = bytes(data.outcome), members = {};
  for (const [id, packed] of Object.entries(data.members)) members[id] = bytes(packed);
  return { n: data.n, of: data.of, x: (i) => positions[2 * i] / 32767, y: (i) => positions[2 * i + 1] / 32767, outcome, members };
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
    Object.assign(this, { box, data, id: box.dataset.map, canvas: box.querySelector("canvas"), view: { x: 0, y: 0, k: 1 }, loop: [], drag: null, lassoing: false });
    this.ink = this.canvas.getContext("2d");
    this.lit = data.members[this.id] ?? new Uint8Array(Math.ceil(data.n / 8));
    box.querySelector(".fallback").hidden = true;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  scale() { return Math.min(this.canvas.width, this.canvas.height) * .47 * this.view.k; }
  toScreen(x, y) { const s = this.scale(); return [this.canvas.width / 2 + (x + this.view.x) * s, this.canvas.height / 2 - (y + this.view.y) * s]; }
  toMap(event) {
    const edge = this.canvas.getBoundingClientRect(), dpr = devicePixelRatio || 1, s = this.scale();
    return [((event.clientX - edge.left) * dpr - this.canvas.width / 2) / s - this.view.x, -((event.clientY - edge.top) * dpr - this.canvas.height / 2) / s - this.view.y];
  }

  draw() {
    const home = this.canvas.parentElement;
    const dpr = devicePixelRatio || 1;
    this.canvas.width = home.clientWidth * dpr; this.canvas.height = home.clientHeight * dpr;
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    this.drawLayer(false, colour("--rest"), colour("--rest"), .55, 1.6 * dpr);
    this.drawLayer(true, colour("--correct"), colour("--error"), 1, 2.7 * dpr, colour("--slice"));
    if (this.loop.length > 2) this.drawOutline(colour("--slice"), dpr);
  }

  drawLayer(lit, right, wrong, alpha, r, unknown = right) {
    const { ink, data } = this;
    const crosses = new Path2D();
    const dots = new Path2D();
    for (let i = 0; i < data.n; i++) {
      if (Boolean(bit(this.lit, i)) !== lit) continue;
      const [x, y] = this.toScreen(data.x(i), data.y(i));
      if (data.outcome[i] === WRONG) { crosses.moveTo(x - r, y - r); crosses.lineTo(x + r, y + r); crosses.moveTo(x + r, y - r); crosses.lineTo(x - r, y + r); }
      else if (lit) { dots.moveTo(x + r, y); dots.arc(x, y, r * .9, 0, 7); }
      else dots.rect(x - .8 * r, y - .8 * r, 1.6 * r, 1.6 * r); // twenty thousand circles take long, and look the same
    }
    ink.globalAlpha = alpha;
    ink.fillStyle = data.outcome[0] === UNKNOWN ? unknown : right; ink.fill(dots);
    ink.strokeStyle = wrong; ink.lineWidth = r * .75; ink.stroke(crosses);
    ink.globalAlpha = 1;
  }

  drawOutline(colour, dpr) {
    const { ink } = this;
    ink.beginPath();
    this.loop.forEach(([x, y], i) => { const at = this.toScreen(x, y); if (i) ink.lineTo(...at); else ink.moveTo(...at); });
    ink.closePath(); ink.strokeStyle = colour; ink.lineWidth = 2 * dpr; ink.setLineDash([6 * dpr, 4 * dpr]); ink.stroke(); ink.setLineDash([]);
  }

  zoom(factor) { this.view.k = Math.min(40, Math.max(.8, this.view.k * factor)); this.draw(); }
  reset() { Object.assign(this.view, { x: 0, y: 0, k: 1 }); this.loop = []; this.showCounts(null); this.draw(); }
  pan(x, y) { this.view.x += x; this.view.y += y; this.drawSoon(); }
  drawSoon() { this.due ??= requestAnimationFrame(() => { this.due = null; this.draw(); }); }
  setLasso(on) { this.lassoing = on; this.canvas.classList.toggle("lasso", on); this.findTool("lasso").setAttribute("aria-pressed", String(on)); }
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
    if (this.loop.length < 4) { this.loop = []; return this.draw(); }
    this.draw();
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
      const detail = `${counts.wrong} of ${counts.n.toLocaleString("en")} rows in your loop. ${interval}. ${rest}`;
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
      this.drag = this.toMap(e);
      this.looping = this.lassoing || e.shiftKey;
      if (this.looping) this.loop = [this.drag];
    });
    canvas.addEventListener("pointermove", (e) => {
      if (!this.drag) return;
      const at = this.toMap(e);
      if (this.looping) { this.extendLoop(at); this.drawSoon(); } else this.pan(at[0] - this.drag[0], at[1] - this.drag[1]);
    });
    canvas.addEventListener("pointercancel", () => { this.drag = null; });
    canvas.addEventListener("pointerup", () => { const looping = this.drag && this.looping; this.drag = null; if (looping) this.finishLoop(); });
    canvas.addEventListener("wheel", (e) => {
      if (document.activeElement !== canvas && !e.ctrlKey) return;
      e.preventDefault();
      this.zoom(e.deltaY < 0 ? 1.15 : 1 / 1.15);
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

function wilsonInterval(k, n, z = 1.959964) {
  const p = k / n;
  const shrink = 1 + z * z / n;
  const centre = (p + z * z / (2 * n)) / shrink;
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrink;
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}

// A map starts when it is first seen: a page of twenty slices draws one.
const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) {
    observer.unobserve(entry.target);
    loadPoints(entry.target).then((data) => { entry.target.errataChart = new Chart(entry.target, data); entry.target.errataChart.draw(); })
      .catch((error) => { entry.target.querySelector(".fallback").append(` ${error.message}`); });
  }
});
for (const box of document.querySelectorAll("[data-map]")) observer.observe(box);
