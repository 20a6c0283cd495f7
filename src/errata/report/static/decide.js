// What a person makes of a slice: accept, reject, merge, rename, note; rows in or out; a loop kept as a slice.
// Shown as saved only after the server has said so.
async function post(address, body) {
  const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const told = await answer.json().catch(() => ({ detail: answer.statusText }));
  if (!answer.ok) throw Object.assign(new Error(typeof told.detail === "string" ? told.detail : answer.statusText), { told, status: answer.status });
  return told;
}

class Bar {
  constructor(element) {
    Object.assign(this, { element, id: element.dataset.decide, version: Number(element.dataset.version), form: element.querySelector("form"), what: element.querySelector(".what") });
    this.now = { decision: element.dataset.decision, name: element.dataset.name || null, note: element.dataset.note, into: element.dataset.into || null };
    for (const button of element.querySelectorAll("[data-do]")) button.addEventListener("click", () => this.act(button.dataset.do));
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    this.form.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
    this.form.elements.into?.addEventListener("change", () => this.unlook());
  }

  act(what) {
    if (what === "cancel") return this.close();
    if (what === "accepted" || what === "rejected") return this.save({ decision: this.now.decision === what ? "undecided" : what, into: null });
    this.open(what);
  }

  open(what) {
    const field = this.form.elements.text, into = this.form.elements.into;
    this.asked = what; this.form.hidden = false; this.expanded(what);
    this.form.querySelector("label").textContent = { rename: "Name", note: "Note", merge: "Merge into" }[what];
    field.hidden = what === "merge"; if (into) into.hidden = what !== "merge";
    field.value = what === "rename" ? this.now.name ?? "" : this.now.note;
    this.unlook();
    (what === "merge" ? into : field).focus();
  }

  expanded(what) { for (const button of this.element.querySelectorAll("[aria-expanded]")) button.setAttribute("aria-expanded", String(button.dataset.do === what)); }

  close() { this.form.hidden = true; this.expanded(null); this.element.querySelector(`[data-do="${this.asked}"]`)?.focus(); }

  // A merge has two steps: what the two share is shown first, and nothing is merged before it was.
  unlook() {
    const box = this.form.querySelector(".overlap");
    this.looked = null;
    if (box) { box.hidden = true; box.querySelector(".told").textContent = ""; }
    this.form.querySelector(".primary").textContent = this.asked === "merge" ? "Show overlap" : "Save";
  }

  async look(into) {
    const box = this.form.querySelector(".overlap"), said = box.querySelector(".told");
    box.hidden = false; said.textContent = "Counting shared rows …";
    try {
      const answer = await fetch(`/api/overlap?${new URLSearchParams({ slice: this.id, into })}`), told = await answer.json();
      if (!answer.ok) throw new Error(told.detail);
      if (this.form.elements.into.value !== into) return;
      this.looked = into; said.textContent = `${told.sentence} Nothing is merged yet.`; this.bars(box, told);
      this.form.querySelector(".primary").textContent = `Merge into ${into}`;
    } catch (error) { said.textContent = `The overlap is not known: ${error.message}. Nothing was merged.`; }
  }

  // This slice alone, both, the other alone: one line as long as the rows of either.
  bars(box, { n, other_n, both }) {
    const either = Math.max(1, n + other_n - both), parts = [n - both, both, other_n - both];
    [...box.querySelectorAll("rect")].forEach((rect, i) => {
      const before = parts.slice(0, i).reduce((sum, part) => sum + part, 0);
      rect.setAttribute("x", `${100 * before / either}%`); rect.setAttribute("width", `${100 * parts[i] / either}%`);
    });
  }

  submit() {
    const into = this.form.elements.into?.value;
    if (this.asked === "merge" && this.looked !== into) { this.look(into); return; }
    const text = this.form.elements.text.value.trim();
    const change = { rename: { name: text || null }, note: { note: text }, merge: { decision: "merged", into } }[this.asked];
    this.close(); this.save(change);
  }

  async save(change) {
    const next = { ...this.now, ...change };
    if (next.decision !== "merged") next.into = null;
    this.what.textContent = "Saving …";
    try {
      const told = await post("/api/decisions", { given: { slice: this.id, person: personName(), ...next }, seen: this.version });
      this.version = told.version; this.now = next; this.show(told);
    } catch (error) { this.fail(error); }
  }

  show(told) {
    for (const name of ["accepted", "rejected"]) this.element.querySelector(`[data-do="${name}"]`).setAttribute("aria-pressed", String(told.decision === name));
    const at = new Date(told.at).toLocaleTimeString("en-GB"), into = told.into ? ` into ${told.into}` : "";
    const words = { accepted: "Accepted", rejected: "Rejected", merged: "Merged", undecided: "Not decided" }[told.decision];
    this.what.textContent = `${words}${into} by ${told.person}, saved ${at}.${told.note ? ` “${told.note}”` : ""}`;
    const title = document.querySelector("h1");
    if (title && told.title) title.textContent = told.title;
    for (const made of document.querySelectorAll(".head .made")) made.hidden = Boolean(told.name);
  }

  fail(error) {
    if (error.status !== 409) { this.what.textContent = `Not saved: ${error.message}`; return; }
    const theirs = error.told.theirs, mine = error.told.mine;
    const say = (one) => `${one.decision}${one.name ? `, named “${one.name}”` : ""}${one.note ? `, “${one.note}”` : ""}`;
    this.version = theirs.version;
    this.now = { decision: theirs.decision, name: theirs.name, note: theirs.note, into: theirs.into };
    this.what.textContent = `Changed in another tab by ${theirs.person}: ${say(theirs)}. Yours, not saved: ${say(mine)}. Decide again to replace it.`;
  }
}

for (const element of document.querySelectorAll("[data-decide]")) element.errataBar = new Bar(element);

document.addEventListener("errata-moved", async (event) => {
  if (!document.querySelector("[data-decide]")) return;
  const { slice, row, inside } = event.detail, said = document.querySelector(`[data-moved="${CSS.escape(slice)}"]`);
  try { await post("/api/edits", { slice, item: row, inside, person: personName() }); } catch (error) { said.hidden = false; said.textContent = `Not saved: ${error.message}`; }
});

document.addEventListener("errata-keep", async (event) => {
  const said = event.target.querySelector(".hand"), { loop } = event.detail;
  try {
    const kept = await post("/api/drawn", { loop, name: `Loop of ${new Date().toLocaleString("en-GB")}`, person: personName() });
    const link = document.createElement("a");
    link.href = `/slice/${encodeURIComponent(kept.slice)}`; link.textContent = "Name it, accept it or reject it";
    said.textContent = `Kept as ${kept.slice}, ${kept.items} rows, drawn by hand. It is a guess until it is measured on new rows. `;
    said.append(link, ".");
  } catch (error) { said.textContent = `Not kept: ${error.message}`; }
});
