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
  const list = [...document.querySelectorAll("[data-walk]")].find(isVisible);
  if (!list && step > 0) [...document.querySelectorAll("[data-next]")].find(isVisible)?.click();
  if (!list) return;
  const all = [...list.querySelectorAll(list.dataset.walk)].filter(isVisible);
  const at = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus();
}

// A saved page holds all views; the address says which one is shown, and where in it.
function showView() {
  const views = [...document.querySelectorAll(".view")];
  if (views.length === 0) return;
  let target = null;
  try { target = document.getElementById(decodeURIComponent(location.hash.slice(1).split("?")[0])); } catch { /* a broken address shows the start */ }
  const current = target?.closest(".view") ?? views[0];
  for (const view of views) view.classList.toggle("shown", view === current);
  document.title = `${current.dataset.title} · Errata`;
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.getAttribute("href") === `#${current.id}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (target && target !== current) target.scrollIntoView(); else scrollTo(0, 0);
  document.dispatchEvent(new CustomEvent("errata-shown", { detail: current.id }));
}

root.classList.add("scripted");
setTheme(new URLSearchParams(location.search).get("theme") || recall("errata-theme") || "auto");
byId("theme").addEventListener("click", () => setTheme(themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length]));
byId("help").addEventListener("click", () => byId("keys").showModal());
for (const button of document.querySelectorAll("[data-glossary]")) button.addEventListener("click", () => byId("glossary").showModal());
byId("single-keys").checked = recall("errata-keys") !== "off";
byId("single-keys").addEventListener("change", (event) => remember("errata-keys", event.target.checked ? "on" : "off"));
document.addEventListener("keydown", onKey);
if (document.querySelector("[data-paged]")) {
  document.body.classList.add("paged");
  addEventListener("hashchange", showView);
  showView();
}
