// Answers until the server has them. What could not be sent waits in this tab, is sent again, and can be downloaded as a
// file that `errata annotations import` reads; sent and imported both, it is one answer, by its key.
const FINAL = new Set([400, 404, 409, 413, 415, 422]); // the answer itself is wrong: sending it again is no use
const PATIENCE = 10_000; // a server that does not answer has not saved

class Outbox {
  constructor(box, resend) {
    this.box = box;
    this.waiting = [];
    this.filed = new Set();
    this.button = box.querySelector('[data-do="file"]');
    this.button.addEventListener("click", () => this.download());
    setInterval(() => { for (const entry of this.waiting.filter((entry) => !entry.underway)) resend(entry); }, 3000);
    addEventListener("beforeunload", (event) => { if (this.waiting.some((entry) => !this.filed.has(entry))) event.preventDefault(); });
  }

  async send(entry) {
    entry.at ??= new Date().toISOString();
    entry.underway = true;
    if (!this.waiting.includes(entry)) this.waiting.push(entry);
    try {
      const saved = await this.post(entry);
      this.drop(entry);
      return saved;
    } catch (error) {
      entry.failed = true;
      if (entry.refused) this.drop(entry);
      throw error;
    } finally { entry.underway = false; this.showUnsaved(); }
  }

  async post(entry) {
    const answer = await fetch("/api/annotations", {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(entry.annotation), signal: AbortSignal.timeout(PATIENCE),
    });
    const result = await answer.json().catch(() => ({ detail: answer.statusText }));
    entry.refused = FINAL.has(answer.status);
    if (!answer.ok) throw new Error(result.detail);
    return result;
  }

  drop(entry) { this.waiting = this.waiting.filter((other) => other !== entry); this.showUnsaved(); }

  // An answer that is underway for the first time is no trouble yet; once one has failed, those behind it are not saved either.
  showUnsaved() {
    const n = this.waiting.some((entry) => entry.failed) ? this.waiting.length : 0;
    this.box.querySelector(".unsaved").textContent = n ? `${n} ${n === 1 ? "answer is" : "answers are"} not saved. They stay in this tab and are sent again.` : "";
    this.button.hidden = n === 0;
  }

  download() {
    const annotations = this.waiting.map((entry) => ({ ...entry.annotation, at: entry.at }));
    const link = document.createElement("a");
    const file = { schema: "errata.annotations/1", fingerprint: this.box.dataset.fingerprint, annotations };
    link.href = `data:application/json;charset=utf-8,${encodeURIComponent(JSON.stringify(file, null, 1))}`;
    link.download = "errata-answers.json";
    link.click();
    for (const entry of this.waiting) this.filed.add(entry);
  }
}
