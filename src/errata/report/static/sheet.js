// The samples of one region, and one answer for all of them. "Saved" only after the server has said so.
const sheet = document.querySelector("[data-sheet]");
const find = (selector) => sheet.querySelector(selector);
const post = sheet && new Outbox(sheet, send);
const now = { mine: null, began: performance.now() };
const fresh = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;

async function load() {
  find(".who").textContent = `as ${personName()}`;
  try {
    const answer = await fetch(`/api/regions/${encodeURIComponent(sheet.dataset.sheet)}?${new URLSearchParams({ person: personName() })}`), told = await answer.json();
    if (!answer.ok) throw new Error(told.detail);
    tell(told);
  } catch (error) { find(".saved").textContent = `What was said before did not come: ${error.message}. Load the page again.`; }
}

function tell(told) {
  now.mine = told.mine;
  find(".count").textContent = `${told.done} of ${told.of} regions have your answer`;
  find(".progress .done").setAttribute("width", `${told.of ? (100 * told.done) / told.of : 0}%`);
  find('[data-do="undo"]').disabled = !now.mine;
  for (const button of sheet.querySelectorAll("[data-label]")) button.setAttribute("aria-pressed", String(Boolean(now.mine) && words(now.mine.answer) === button.dataset.said));
  // Who has not answered is not to be swayed.
  const lines = now.mine ? told.answers.map(([person, answer]) => `${person}: ${words(answer)}`) : [told.answers.length ? `${told.answers.length} said something. It is shown after your answer.` : "Nothing yet."];
  find(".said-list").replaceChildren(...lines.map((text) => { const line = document.createElement("li"); line.textContent = text; return line; }));
}

function words(answer) {
  const label = answer.failure ? JSON.stringify(answer.label) : "well";
  return [...sheet.querySelectorAll("[data-label]")].find((button) => button.dataset.label === label)?.dataset.said ?? label;
}

async function answered(button) {
  const label = button.dataset.label, well = label === "well";
  const entry = { said: button.dataset.said, given: { queue: sheet.dataset.sheet, item: "all", person: personName(), task: "region", answer: { failure: !well, label: well ? null : JSON.parse(label) }, seconds: (performance.now() - now.began) / 1000, key: fresh() } };
  await send(entry);
  if (entry.saved && sheet.dataset.after) location.assign(sheet.dataset.after); else load();
}

async function send(entry) {
  find(".saved").textContent = `Saving: ${entry.said} …`;
  try {
    const told = await post.send(entry);
    entry.saved = true;
    find(".saved").textContent = `Saved: ${entry.said}, ${new Date(told.at).toLocaleTimeString("en-GB")}.`;
  } catch (error) { find(".saved").textContent = `Not saved: ${entry.said}. ${error.message}`; }
}

async function undo() {
  if (!now.mine) return;
  const answer = await fetch(`/api/annotations/${encodeURIComponent(now.mine.key)}/undo`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ person: personName() }) });
  find(".saved").textContent = answer.ok ? "Taken back." : "Not taken back.";
  load();
}

if (sheet) {
  for (const button of sheet.querySelectorAll("[data-label]")) button.addEventListener("click", () => answered(button));
  find('[data-do="undo"]').addEventListener("click", undo);
  document.getElementById("person")?.addEventListener("change", load);
  const filter = document.getElementById("filter");
  filter?.addEventListener("input", () => { for (const b of sheet.querySelectorAll("[data-label]")) b.hidden = !b.dataset.said.toLowerCase().includes(filter.value.trim().toLowerCase()); });
  filter?.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); const first = [...sheet.querySelectorAll("[data-label]")].find((b) => !b.hidden); if (first) answered(first); } });
  load();
}
