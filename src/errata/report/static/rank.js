// Overview: slices in another order. What to sort by sits in data-* attributes, and the order in the address, so that Back
// and a shared link show it: `?order=gap`, in a saved page `#overview?order=gap`.
const isSaved = document.querySelector("[data-paged]") != null;
const radios = [...document.querySelectorAll("input[name=order]")];
const START = radios[0]?.value;

// Lists of one kind are one list, of which the end may be folded away.
const kinds = new Map();
for (const list of document.querySelectorAll("[data-ranked]")) kinds.set(list.dataset.ranked, [...(kinds.get(list.dataset.ranked) ?? []), list]);

function sortLists(key) {
  const compare = (a, b) => b.dataset[key] - a.dataset[key] || b.dataset.priority - a.dataset.priority;
  for (const lists of kinds.values()) {
    const sizes = lists.map((list) => list.children.length);
    const rows = lists.flatMap((list) => [...list.children]).sort(compare);
    lists.forEach((list, i) => list.append(...rows.splice(0, sizes[i])));
  }
}

const addressParts = () => new URLSearchParams(isSaved ? location.hash.split("?")[1] ?? "" : location.search);

function orderInAddress() {
  const wanted = addressParts().get("order");
  return radios.some((radio) => radio.value === wanted) ? wanted : START;
}

// Open folds are in the address too, and stay there.
function writeAddress(order) {
  const parts = addressParts();
  if (order === START) parts.delete("order"); else parts.set("order", order);
  const query = parts.size ? `?${parts}` : "";
  history.replaceState(null, "", isSaved ? `#overview${query}` : location.pathname + query + location.hash);
}

function show(order) {
  const radio = radios.find((one) => one.value === order);
  radio.checked = true;
  sortLists(order);
  document.getElementById("ordered").textContent = radio.dataset.words;
}

for (const radio of radios) radio.addEventListener("change", () => { writeAddress(radio.value); show(radio.value); });

if (radios.length) {
  // A browser that comes back lights the order that was lit; the address says which one it is.
  addEventListener("pageshow", () => show(orderInAddress()));
  document.addEventListener("errata-shown", (event) => { if (event.detail === "overview") show(orderInAddress()); });
}
