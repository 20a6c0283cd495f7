// Overview: the confirmed slices in another order. What to sort by sits in data-* attributes; the first order is the audit's own.
const list = document.getElementById("finds");
const first = list ? [...list.children] : [];

for (const radio of document.querySelectorAll("input[name=order]")) radio.addEventListener("change", () => {
  const key = radio.value;
  const rows = key === "excess" ? first : [...first].sort((a, b) => Number(b.dataset[key]) - Number(a.dataset[key]));
  list.append(...rows);
  document.getElementById("ordered").textContent = `Ordered by ${radio.dataset.words}.`;
});
