// Slice: all rows or the wrong ones only, and one key that puts the focused row in or out.
const findByData = (name, id) => document.querySelector(`[data-${name}="${CSS.escape(id)}"]`);

for (const radio of document.querySelectorAll("[data-show]")) radio.addEventListener("change", () => {
  const id = radio.dataset.show;
  const wrongOnly = radio.value === "wrong";
  const mixed = findByData("mixed", id);
  for (const row of mixed.querySelectorAll("[data-row], .thumb")) row.hidden = wrongOnly && !row.classList.contains("wrong");
  for (const group of mixed.querySelectorAll(".group")) group.hidden = ![...group.querySelectorAll("[data-row], .thumb")].some((row) => !row.hidden);
  findByData("one-sided", id).hidden = !wrongOnly;
});

// A server measures the slice as it was left whenever a page is loaded; a saved page measures nothing.
function showMoved(mixed, edits, loaded = false) {
  const sentence = findByData("moved", mixed.dataset.mixed);
  const count = (inside) => Object.values(edits).filter((value) => value === inside).length;
  const parts = [[count(false), "out"], [count(true), "in"]].filter(([n]) => n > 0).map(([n, where]) => `${n} ${n === 1 ? "row" : "rows"} ${where}`);
  sentence.hidden = parts.length === 0;
  const served = document.querySelector("[data-decide]");
  const numbers = !served ? "The numbers above are those of the unchanged slice." : loaded ? "The numbers above are those of the slice as people left it." : "The numbers above follow when the page is loaded again.";
  sentence.textContent = `People put ${parts.join(" and ")}. ${numbers}`;
}

for (const mixed of document.querySelectorAll("[data-mixed]")) {
  mixed.errataEdits = JSON.parse(mixed.dataset.edits ?? "{}");
  for (const row of mixed.querySelectorAll("[data-row]")) {
    if (!row.querySelector("a")) row.tabIndex = 0;
    row.classList.toggle("out", mixed.errataEdits[row.dataset.row] === false);
  }
  showMoved(mixed, mixed.errataEdits, true);
}

document.addEventListener("keydown", (event) => {
  const row = event.target.closest?.("[data-mixed] [data-row]");
  if (!row || !["i", "x"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!document.getElementById("single-keys").checked || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  move(row, event.key === "i");
});

document.addEventListener("click", (event) => {
  const row = event.target.closest?.("[data-mixed] [data-row]");
  if (!row || !document.querySelector('[data-do="rows"][aria-pressed="true"]')) return;
  event.preventDefault();
  move(row, row.classList.contains("out"));
});

function move(row, inside) {
  const mixed = row.closest("[data-mixed]");
  if (!mixed.dispatchEvent(new CustomEvent("errata-move", { bubbles: true, cancelable: true, detail: { again: () => move(row, inside) } }))) return;
  const edits = mixed.errataEdits;
  const found = !("outside" in row.dataset);
  if (inside === found) delete edits[row.dataset.row]; else edits[row.dataset.row] = inside; // back where it was
  for (const same of mixed.querySelectorAll("[data-row]")) if (same.dataset.row === row.dataset.row) same.classList.toggle("out", !inside);
  showMoved(mixed, mixed.errataEdits);
  mixed.dispatchEvent(new CustomEvent("errata-moved", { bubbles: true, detail: { slice: mixed.dataset.mixed, row: row.dataset.row, inside } }));
}
