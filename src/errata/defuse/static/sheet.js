// The samples of one region, and one answer for all of them. "Saved" only after the server has answered.
const sheet = document.querySelector("[data-sheet]");
const find = (selector) => sheet.querySelector(selector);
const post = sheet && new Outbox(sheet, send);
const state = { mine: null, startedAt: performance.now() };
const makeKey = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;

async function load() {
  find(".who").textContent = personWords();
  try {
    const answer = await fetch(`/api/regions/${encodeURIComponent(sheet.dataset.sheet)}?${new URLSearchParams({ person: personName() })}`);
    const result = await answer.json();
    if (!answer.ok) throw new Error(result.detail);
    showAnswers(result);
  } catch (error) { find(".saved").textContent = `Earlier answers could not be loaded: ${error.message}. Load the page again.`; }
}

function showAnswers(result) {
  state.mine = result.mine;
  find(".count").textContent = `${result.done} of ${result.of} regions have your answer`;
  find(".progress .done").setAttribute("width", `${result.of ? (100 * result.done) / result.of : 0}%`);
  find('[data-do="undo"]').disabled = !state.mine;
  for (const button of sheet.querySelectorAll("[data-label]")) button.setAttribute("aria-pressed", String(Boolean(state.mine) && nameAnswer(state.mine.answer) === button.dataset.name));
  // Who has not answered is not to be swayed.
  let lines = ["Nothing yet."];
  if (state.mine) lines = result.answers.map(([person, answer]) => `${person}: ${nameAnswer(answer)}`);
  else if (result.answers.length) lines = [`${result.answers.length} said something. It is shown after your answer.`];
  find(".said-list").replaceChildren(...lines.map((text) => {
    const line = document.createElement("li");
    line.textContent = text;
    return line;
  }));
}

function nameAnswer(answer) {
  const label = answer.failure ? JSON.stringify(answer.label) : "well";
  return [...sheet.querySelectorAll("[data-label]")].find((button) => button.dataset.label === label)?.dataset.name ?? label;
}

async function giveAnswer(button) {
  if (lacksName()) return;
  const label = button.dataset.label;
  const well = label === "well";
  const answer = { failure: !well, label: well ? null : JSON.parse(label) };
  const seconds = (performance.now() - state.startedAt) / 1000;
  const annotation = { queue: sheet.dataset.sheet, item: "all", person: personName(), task: "region", answer, seconds, key: makeKey() };
  const entry = { name: button.dataset.name, annotation };
  await send(entry);
  if (entry.saved && sheet.dataset.after) location.assign(sheet.dataset.after); else load();
}

async function send(entry) {
  find(".saved").textContent = `Saving: ${entry.name} …`;
  try {
    const saved = await post.send(entry);
    entry.saved = true;
    find(".saved").textContent = `Saved: ${entry.name}, ${new Date(saved.at).toLocaleTimeString("en-GB")}.`;
  } catch (error) { find(".saved").textContent = `Not saved: ${entry.name}. ${error.message}`; }
}

async function undo() {
  if (!state.mine) return;
  const address = `/api/annotations/${encodeURIComponent(state.mine.key)}/undo`;
  const body = JSON.stringify({ person: personName() });
  const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body });
  find(".saved").textContent = answer.ok ? "Taken back." : "Not taken back.";
  load();
}

if (sheet) {
  for (const button of sheet.querySelectorAll("[data-label]")) button.addEventListener("click", () => giveAnswer(button));
  find('[data-do="undo"]').addEventListener("click", undo);
  document.getElementById("person")?.addEventListener("change", load);
  const filter = document.getElementById("filter");
  filter?.addEventListener("input", () => {
    const part = filter.value.trim().toLowerCase();
    for (const b of sheet.querySelectorAll("[data-label]")) b.hidden = !b.dataset.name.toLowerCase().includes(part);
  });
  filter?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const first = [...sheet.querySelectorAll("[data-label]")].find((b) => !b.hidden);
    if (first) giveAnswer(first);
  });
  load();
}
