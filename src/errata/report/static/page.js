// Every page: theme, key dialog, single keys declared in the markup with data-key, and one view at a time of a saved page.
const root = document.documentElement;
const themes = ["auto", "light", "dark"];
const byId = (id) => document.getElementById(id);

function recall(name) { try { return localStorage.getItem(name); } catch { return null; } }
function remember(name, value) { try { localStorage.setItem(name, value); } catch { /* private mode: it lasts for this page */ } }

function setTheme(wanted) {
  const name = themes.includes(wanted) ? wanted : "auto";
  if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
  remember("errata-theme", name);
  const button = byId("theme");
  if (button) { button.textContent = name[0].toUpperCase() + name.slice(1); button.setAttribute("aria-label", `Colour theme: ${name}`); }
}

const isTyping = (target) => target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]") != null;
const isVisible = (element) => element.getClientRects().length > 0;

const keysRest = () => !byId("single-keys").checked || document.querySelector("dialog[open]") != null;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || event.defaultPrevented) return;
  if (keysRest()) return;
  if (event.key === "?") { byId("keys").showModal(); return; }
  if (event.key === "j" || event.key === "k") return walk(event.key === "j" ? 1 : -1);
  if (/^[A-Z]$/.test(event.key) && !event.shiftKey) return; // Caps Lock: whoever meant `a` does not leave the page
  const target = targetOf(event.key);
  if (!target) return;
  event.preventDefault();
  if (target.matches("input:not([type=radio]), textarea")) target.focus(); else target.click();
}

// A key of the line that has the focus comes before that of the whole page.
function targetOf(key) {
  const name = CSS.escape(key);
  const ofLine = document.activeElement?.closest("[data-walk] > *")?.querySelector(`[data-line-key="${name}"]`);
  if (ofLine) return ofLine;
  return [...document.querySelectorAll(`[data-key="${name}"]:not(:disabled)`)].find((e) => isVisible(e) || e.matches("input[type=radio]") && isVisible(e.parentElement));
}

function walk(step) {
  const lists = [...document.querySelectorAll("[data-walk]")].filter(isVisible);
  if (!lists.length && step > 0) [...document.querySelectorAll("[data-next]")].find(isVisible)?.click();
  const all = lists.flatMap((list) => [...list.querySelectorAll(list.dataset.walk)]).filter(isVisible);
  const at = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus();
}

// What an address names: `#map` and, in a saved page, `#slice/s2/map`, `#slice/s2#map`, or the nearest place above it.
function namedPlace() {
  let name = "";
  try { name = decodeURIComponent(location.hash.slice(1).split("?")[0]).replace("#", "/"); } catch { /* a broken address shows the start */ }
  const old = name.match(/^(.+)-([a-z]+)$/); // as links were before 0.7
  const place = byId(name) ?? (old && (byId(`slice/${old[1]}/${old[2]}`) ?? byId(old[2])));
  const above = name.match(/^slice\/[^/]+/);
  return place ?? (above && byId(above[0]));
}

// A saved page holds all views; the address says which one is shown, and where in it.
function showView() {
  const views = [...document.querySelectorAll(".view")];
  if (views.length === 0) return;
  const target = namedPlace();
  const current = target?.closest(".view") ?? views[0];
  for (const view of views) view.classList.toggle("shown", view === current);
  document.title = `${current.dataset.title} · Errata`;
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.getAttribute("href") === `#${current.id}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  document.dispatchEvent(new CustomEvent("errata-shown", { detail: current.id })); // folds open before the page scrolls
  if (target && target !== current) target.scrollIntoView(); else scrollTo(0, 0);
}

// ---- filter and folds are in the address, so that a link shows what its sender saw: `?show=wrong&open=rows-1`

const isSavedPage = () => document.querySelector("[data-paged]") != null;
const shownView = () => document.querySelector(".view.shown") ?? byId("main") ?? document.body;
const addressParts = () => new URLSearchParams(isSavedPage() ? location.hash.split("?")[1] ?? "" : location.search);

function writeAddress(name, value) {
  const parts = addressParts();
  if ((parts.get(name) ?? "") === value) return;
  if (value) parts.set(name, value); else parts.delete(name);
  const query = parts.size ? `?${parts}` : "";
  const place = isSavedPage() ? (location.hash.split("?")[0] || `#${shownView().id}`) + query : location.pathname + query + location.hash;
  history.replaceState(history.state, "", place);
}

// A fold by its own name, or by its section and its number there: the same in every copy of a page.
function nameFolds(view) {
  const numbers = new Map();
  for (const fold of view.querySelectorAll("details:not([data-fold])")) {
    const heading = fold.closest("[aria-labelledby]")?.getAttribute("aria-labelledby") ?? "";
    const section = heading.replace(/^h-/, "").split("/").pop() || "fold";
    numbers.set(section, (numbers.get(section) ?? 0) + 1);
    fold.dataset.fold = `${section}-${numbers.get(section)}`;
  }
}

const foldsOf = (view) => [...view.querySelectorAll("details[data-fold]")].filter((fold) => !fold.closest("form")); // a form keeps its own

function recallAddress() {
  const view = shownView();
  const open = (addressParts().get("open") ?? "").split(",");
  for (const fold of foldsOf(view)) fold.open = open.includes(fold.dataset.fold);
  const show = addressParts().get("show") ?? "mixed";
  const radio = view.querySelector(`[data-show][value="${CSS.escape(show)}"]`);
  if (radio && !radio.checked) radio.click();
}

function rememberFolds(event) {
  const view = shownView();
  if (!event.target.matches?.("details[data-fold]") || !view.contains(event.target)) return;
  writeAddress("open", foldsOf(view).filter((fold) => fold.open).map((fold) => fold.dataset.fold).join(","));
}

root.classList.add("scripted");
setTheme(new URLSearchParams(location.search).get("theme") || recall("errata-theme") || "auto");
byId("theme").addEventListener("click", () => setTheme(themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length]));
byId("help").addEventListener("click", () => byId("keys").showModal());
for (const button of document.querySelectorAll("[data-glossary]")) button.addEventListener("click", () => byId("glossary").showModal());
byId("single-keys").checked = recall("errata-keys") !== "off";
byId("single-keys").addEventListener("change", (event) => remember("errata-keys", event.target.checked ? "on" : "off"));
document.addEventListener("keydown", onKey);
for (const view of document.querySelectorAll(isSavedPage() ? ".view" : "body")) nameFolds(view);
document.addEventListener("toggle", rememberFolds, true); // it does not bubble
document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-show]")) writeAddress("show", event.target.value === "mixed" ? "" : event.target.value);
});
if (document.querySelector("[data-paged]")) {
  document.body.classList.add("paged");
  addEventListener("hashchange", showView);
  showView();
}
// The scripts of all parts have run by then; who comes back is where they were.
addEventListener("DOMContentLoaded", () => {
  recallAddress();
  document.addEventListener("errata-shown", recallAddress);
  const place = namedPlace();
  const comesBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (place && !comesBack && !place.matches(".view")) place.scrollIntoView();
});
