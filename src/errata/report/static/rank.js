// Overview: the confirmed slices in another order. What to sort by sits in data-* attributes; the first order is the audit's own.
const lists = [document.getElementById("finds"), document.getElementById("more-finds")].filter(Boolean);
const first = lists.flatMap((list) => [...list.children]);
const shown = lists.length ? lists[0].children.length : 0; // the others are folded away

function order(radio) {
  const key = radio.value;
  const rows = key === "excess" ? first : [...first].sort((a, b) => Number(b.dataset[key]) - Number(a.dataset[key]));
  lists[0].append(...rows.slice(0, shown));
  lists[1]?.append(...rows.slice(shown));
  document.getElementById("ordered").textContent = `Ordered by ${radio.dataset.words}.`;
}

for (const radio of document.querySelectorAll("input[name=order]")) radio.addEventListener("change", () => order(radio));

// A browser that comes back lights the order that was chosen; the list must follow it.
addEventListener("pageshow", () => {
  const radio = document.querySelector("input[name=order]:checked");
  if (radio && radio.value !== "excess") order(radio);
});
