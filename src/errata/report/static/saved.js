// A saved page has no server: which rows belong to a slice stays in this tab, and can be downloaded as a file that
// `errata annotations import` reads.
const bar = document.getElementById("answers");
const answers = new Map();

function toJson() {
  const person = personName();
  return JSON.stringify({ schema: "errata.annotations/1", fingerprint: bar.dataset.fingerprint, annotations: [...answers.values()].map((answer) => ({ ...answer, person })) }, null, 1);
}

function download() {
  const link = document.createElement("a");
  link.href = `data:application/json;charset=utf-8,${encodeURIComponent(toJson())}`;
  link.download = "errata-answers.json";
  link.click();
}

if (bar) {
  document.addEventListener("errata-moved", (event) => {
    const { slice, row, inside } = event.detail;
    const key = globalThis.crypto?.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;
    answers.set(`${slice} ${row}`, { key, queue: slice, item: row, task: "member", answer: inside ? "in" : "out", at: new Date().toISOString() });
    bar.hidden = false;
    bar.querySelector("button").textContent = `Download ${answers.size} ${answers.size === 1 ? "answer" : "answers"}`;
  });
  bar.querySelector("button").addEventListener("click", download);
  addEventListener("beforeunload", (event) => { if (answers.size) event.preventDefault(); });
}
