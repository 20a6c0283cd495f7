// What a person decides of a slice: accept, reject, merge, rename, note; rows in or out; a loop saved as a slice.
// Shown as saved only after the server has answered.
async function post(address, body) {
  // `keepalive`: what is on its way arrives although the person has gone on. Browsers refuse it for more than 64 KiB.
  const text = JSON.stringify(body);
  const answer = await fetch(address, { method: "POST", keepalive: text.length < 60_000, headers: { "content-type": "application/json" }, body: text });
  const result = await answer.json().catch(() => ({ detail: answer.statusText }));
  if (!answer.ok) throw Object.assign(new Error(typeof result.detail === "string" ? result.detail : answer.statusText), { result, status: answer.status });
  return result;
}

// A person is faster than a server: what they do is sent in their order, one after the other's answer.
const queue = { last: Promise.resolve(), length: 0 };

function sendInTurn(send) {
  queue.length += 1;
  queue.last = queue.last.then(send).finally(() => { queue.length -= 1; });
}

addEventListener("beforeunload", (event) => { if (queue.length > 1) event.preventDefault(); });

class Bar {
  constructor(element) {
    this.element = element;
    this.failures = 0;
    this.id = element.dataset.decide;
    this.version = Number(element.dataset.version);
    this.form = element.querySelector("form");
    this.what = element.querySelector(".what");
    this.now = { decision: element.dataset.decision, name: element.dataset.name || null, note: element.dataset.note, into: element.dataset.into || null };
    for (const button of element.querySelectorAll("[data-do]")) button.addEventListener("click", () => this.act(button.dataset.do));
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    this.form.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
    this.form.elements.into?.addEventListener("change", () => this.hideOverlap());
  }

  act(what) {
    if (what === "cancel") return this.close();
    if (what === "rows") return this.toggleMoving();
    if (what === "more") return this.toggleAll();
    if (what === "accepted" || what === "rejected") return this.save(() => ({ decision: this.now.decision === what ? "undecided" : what, into: null }));
    this.open(what);
  }

  // A phone has room for three buttons beside the page.
  toggleAll() {
    const button = this.element.querySelector('[data-do="more"]');
    const all = this.element.classList.toggle("all");
    button.setAttribute("aria-expanded", String(all)); button.textContent = all ? "Less" : "More";
  }

  // While it is pressed, a click on a row puts it out of the slice, or back, and does not open it.
  toggleMoving() {
    const button = this.element.querySelector('[data-do="rows"]');
    const moving = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(moving));
    this.what.textContent = moving ? "Click on rows to put them out, or back in." : "Rows open again.";
  }

  open(what) {
    const field = this.form.elements.text;
    const into = this.form.elements.into;
    this.action = what; this.form.hidden = false; this.setExpanded(what);
    this.form.querySelector("label").textContent = { rename: "Name", note: "Note", merge: "Merge into" }[what];
    field.hidden = what === "merge"; if (into) into.hidden = what !== "merge";
    field.value = what === "rename" ? this.now.name ?? "" : this.now.note;
    this.hideOverlap();
    (what === "merge" ? into : field).focus();
  }

  setExpanded(what) { for (const button of this.element.querySelectorAll("[aria-expanded]:not(.unfold)")) button.setAttribute("aria-expanded", String(button.dataset.do === what)); }

  close() { this.form.hidden = true; this.setExpanded(null); this.element.querySelector(`[data-do="${this.action}"]`)?.focus(); }

  // A merge has two steps: what the two share is shown first, and nothing is merged before it was.
  hideOverlap() {
    const box = this.form.querySelector(".overlap");
    this.shownInto = null;
    if (box) { box.hidden = true; box.querySelector(".sentence").textContent = ""; }
    this.form.querySelector(".primary").textContent = this.action === "merge" ? "Show overlap" : "Save";
  }

  async showOverlap(into) {
    const box = this.form.querySelector(".overlap");
    const sentence = box.querySelector(".sentence");
    box.hidden = false; sentence.textContent = "Counting shared rows …";
    try {
      const answer = await fetch(`/api/overlap?${new URLSearchParams({ slice: this.id, into })}`);
      const overlap = await answer.json();
      if (!answer.ok) throw new Error(overlap.detail);
      if (this.form.elements.into.value !== into) return;
      this.shownInto = into; sentence.textContent = `${overlap.sentence} Nothing is merged yet.`; this.drawOverlap(box, overlap);
      this.form.querySelector(".primary").textContent = `Merge into ${into}`;
    } catch (error) { sentence.textContent = `The overlap is not known: ${error.message}. Nothing was merged.`; }
  }

  // This slice alone, both, the other alone: one line as long as the rows of either.
  drawOverlap(box, { n, other_n, both }) {
    const either = Math.max(1, n + other_n - both);
    const parts = [n - both, both, other_n - both];
    [...box.querySelectorAll("rect")].forEach((rect, i) => {
      const before = parts.slice(0, i).reduce((sum, part) => sum + part, 0);
      rect.setAttribute("x", `${100 * before / either}%`); rect.setAttribute("width", `${100 * parts[i] / either}%`);
    });
  }

  submit() {
    const into = this.form.elements.into?.value;
    if (this.action === "merge" && this.shownInto !== into) { this.showOverlap(into); return; }
    const text = this.form.elements.text.value.trim();
    const change = { rename: { name: text || null }, note: { note: text }, merge: { decision: "merged", into } }[this.action];
    this.close(); this.save(() => change);
  }

  // After a refusal, what was decided before it was known is dropped: it would replace what nobody has read.
  save(makeChange) {
    if (lacksName(() => this.save(makeChange))) { this.what.textContent = "Not saved yet: it needs your name."; return; }
    const failures = this.failures;
    const person = personName();
    sendInTurn(() => {
      if (failures === this.failures) return this.send({ person, ...makeChange() });
      this.what.textContent += " What you decided after it was not saved either.";
    });
  }

  async send({ person, ...change }) {
    const next = { ...this.now, ...change };
    if (next.decision !== "merged") next.into = null;
    this.what.textContent = "Saving …";
    try {
      const standing = await post("/api/decisions", { given: { slice: this.id, person, ...next }, seen: this.version });
      this.version = standing.version; this.now = next; this.show(standing);
    } catch (error) { this.fail(error); }
  }

  show(standing) {
    for (const name of ["accepted", "rejected"]) this.element.querySelector(`[data-do="${name}"]`).setAttribute("aria-pressed", String(standing.decision === name));
    const at = new Date(standing.at).toLocaleTimeString("en-GB");
    const into = standing.into ? ` into ${standing.into}` : "";
    const word = { accepted: "Accepted", rejected: "Rejected", merged: "Merged", undecided: "Not decided" }[standing.decision];
    this.what.textContent = `${word}${into} by ${standing.person}, saved ${at}.${standing.note ? ` “${standing.note}”` : ""}`;
    const title = document.querySelector("h1");
    if (title && standing.title) title.textContent = standing.title;
    for (const made of document.querySelectorAll(".head .machine")) made.hidden = Boolean(standing.name);
  }

  fail(error) {
    this.failures += 1;
    if (error.status !== 409) { this.what.textContent = `Not saved: ${error.message}`; return; }
    const theirs = error.result.theirs;
    const mine = error.result.mine;
    const describe = (d) => `${d.decision}${d.name ? `, named “${d.name}”` : ""}${d.note ? `, “${d.note}”` : ""}`;
    this.version = theirs.version;
    this.now = { decision: theirs.decision, name: theirs.name, note: theirs.note, into: theirs.into };
    this.what.textContent = `Changed in another tab by ${theirs.person}: ${describe(theirs)}. Yours, not saved: ${describe(mine)}. Decide again to replace it.`;
  }
}

for (const element of document.querySelectorAll("[data-decide]")) element.errataBar = new Bar(element);

document.addEventListener("errata-move", (event) => { if (document.querySelector("[data-decide]") && lacksName(event.detail.again)) event.preventDefault(); });

async function saveMove({ slice, row, inside }, person) {
  const sentence = document.querySelector(`[data-moved="${CSS.escape(slice)}"]`);
  try {
    await post("/api/edits", { slice, item: row, inside, person });
  } catch (error) {
    sentence.hidden = false;
    sentence.textContent = `Not saved: ${error.message}`;
  }
}

document.addEventListener("errata-moved", (event) => {
  if (!document.querySelector("[data-decide]")) return;
  const person = personName();
  sendInTurn(() => saveMove(event.detail, person));
});

async function saveLoop(map, loop) {
  const sentence = map.querySelector(".hand");
  if (lacksName(() => saveLoop(map, loop))) return;
  try {
    const drawing = await post("/api/drawn", { loop, name: `Loop of ${new Date().toLocaleString("en-GB")}`, person: personName() });
    const link = document.createElement("a");
    link.href = `/slice/${encodeURIComponent(drawing.slice)}`; link.textContent = "Name it, accept it or reject it";
    sentence.textContent = `Saved as ${drawing.slice}, ${drawing.items} rows, drawn by hand. It is a hypothesis until it is measured on new rows. `;
    sentence.append(link, ".");
  } catch (error) { sentence.textContent = `Not saved: ${error.message}`; }
}

document.addEventListener("errata-save-loop", (event) => saveLoop(event.target, event.detail.loop));
