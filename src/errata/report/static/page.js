// Every page: theme, key dialog, single keys declared in the markup with data-key, and one view at a time of a saved page.
const root = document.documentElement;
const themes = ["auto", "light", "dark"];
const by = (id) => document.getElementById(id);

function remembered(name) { try { return localStorage.getItem(name); } catch { return null; } }
function remember(name, value) { try { localStorage.setItem(name, value); } catch { /* private mode: it lasts for this page */ } }

function setTheme(asked) {
  const name = themes.includes(asked) ? asked : "auto";
  if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
  remember("errata-theme", name);
  const button = by("theme");
  if (button) { button.textContent = name[0].toUpperCase() + name.slice(1); button.setAttribute("aria-label", `Colour theme: ${name}`); }
}

const isTyping = (target) => target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]") != null;
const visible = (element) => element.getClientRects().length > 0;

const resting = () => !by("single-keys").checked || document.querySelector("dialog[open]") != null;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || event.defaultPrevented) return;
  if (resting()) return;
  if (event.key === "?") { by("keys").showModal(); return; }
  if (event.key === "j" || event.key === "k") return walk(event.key === "j" ? 1 : -1);
  const target = [...document.querySelectorAll(`[data-key="${CSS.escape(event.key)}"]:not(:disabled)`)].find((e) => visible(e) || e.matches("input[type=radio]") && visible(e.parentElement));
  if (!target) return;
  event.preventDefault();
  if (target.matches("input:not([type=radio]), textarea")) target.focus(); else target.click();
}

function walk(step) {
  const list = [...document.querySelectorAll("[data-walk]")].find(visible);
  if (!list && step > 0) [...document.querySelectorAll("[data-next]")].find(visible)?.click();
  if (!list) return;
  const all = [...list.querySelectorAll(list.dataset.walk)].filter(visible);
  const at = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus();
}

// A saved page holds all views; the address says which one is shown, and where in it.
function showView() {
  const views = [...document.querySelectorAll(".view")];
  if (views.length === 0) return;
  let asked = null;
  try { asked = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* a broken address shows the start */ }
  const shown = asked?.closest(".view") ?? views[0];
  for (const view of views) view.classList.toggle("shown", view === shown);
  document.title = `${shown.dataset.title} · Errata`;
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.getAttribute("href") === `#${shown.id}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (asked && asked !== shown) asked.scrollIntoView(); else scrollTo(0, 0);
  document.dispatchEvent(new CustomEvent("errata-shown", { detail: shown.id }));
}

root.classList.add("scripted");
setTheme(new URLSearchParams(location.search).get("theme") || remembered("errata-theme") || "auto");
by("theme").addEventListener("click", () => setTheme(themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length]));
by("help").addEventListener("click", () => by("keys").showModal());
by("single-keys").checked = remembered("errata-keys") !== "off";
by("single-keys").addEventListener("change", (event) => remember("errata-keys", event.target.checked ? "on" : "off"));
document.addEventListener("keydown", onKey);
if (document.querySelector("[data-paged]")) {
  document.body.classList.add("paged");
  addEventListener("hashchange", showView);
  showView();
}
