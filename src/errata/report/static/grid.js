// Slice: all rows or the wrong ones only, and one key that puts the focused row in or out.
const of = (name, id) => document.querySelector(`[data-${name}="${CSS.escape(id)}"]`);

for (const radio of document.querySelectorAll("[data-show]")) radio.addEventListener("change", () => {
  const id = radio.dataset.show, wrongOnly = radio.value === "wrong", mixed = of("mixed", id);
  for (const row of mixed.querySelectorAll("[data-row], .thumb")) row.hidden = wrongOnly && !row.classList.contains("wrong");
  for (const group of mixed.querySelectorAll(".group")) group.hidden = ![...group.querySelectorAll("[data-row], .thumb")].some((row) => !row.hidden);
  of("one-sided", id).hidden = !wrongOnly;
});

for (const row of document.querySelectorAll("[data-mixed] [data-row]")) if (!row.querySelector("a")) row.tabIndex = 0;

document.addEventListener("keydown", (event) => {
  const row = event.target.closest?.("[data-mixed] [data-row]");
  if (!row || !["i", "x"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const mixed = row.closest("[data-mixed]"), id = mixed.dataset.mixed;
  row.classList.toggle("out", event.key === "x");
  const out = mixed.querySelectorAll(".out").length, said = of("moved", id);
  said.hidden = out === 0;
  said.textContent = `You put ${out} ${out === 1 ? "row" : "rows"} out. The numbers above are those of the unchanged slice until you refit.`;
  mixed.dispatchEvent(new CustomEvent("errata-moved", { bubbles: true, detail: { slice: id, row: row.dataset.row, inside: event.key === "i" } }));
});
