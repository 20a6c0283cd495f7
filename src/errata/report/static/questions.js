// Barlow's questionnaire: one thing shown at a time, one form, a number for every choice, Enter to save.
// "Saved" only after the server has said so; an answer that it refuses stays in the form.
const sheet = document.querySelector("[data-questions]");
const find = (selector) => sheet.querySelector(selector);
const kept = { done: {}, others: {}, order: [], given: [], shownAt: 0 };
const post = sheet && new Outbox(sheet, again);
const form = sheet && find("form");
const all = sheet ? [...sheet.querySelectorAll("[data-about]")] : [];
const newKey = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;
const at = () => all.find((section) => section.dataset.about === kept.order[0]);

async function load() {
  const asked = `/api/questionnaire/${encodeURIComponent(sheet.dataset.questions)}?${new URLSearchParams({ person: personName() })}`;
  try {
    const answer = await fetch(asked), told = await answer.json();
    if (!answer.ok) throw new Error(told.detail);
    Object.assign(kept, { done: told.done, others: told.others, given: [] });
  } catch (error) { find(".saved").textContent = `What you said before did not come: ${error.message}. Load the page again.`; }
  kept.order = all.map((section) => section.dataset.about).filter((about) => !(about in kept.done));
  find(".who").textContent = `as ${personName()}`;
  show(); said();
}

function show(filled = null) {
  const now = at(), n = all.length - kept.order.length;
  for (const section of all) section.hidden = section !== now;
  find(".count").textContent = `${n} of ${all.length} done`;
  find(".progress .done").setAttribute("width", `${all.length ? (100 * n) / all.length : 0}%`);
  find('[data-do="undo"]').disabled = kept.given.length === 0;
  find(".empty").hidden = Boolean(now); find(".empty").textContent = `All ${all.length} have your answer.`;
  form.hidden = !now; refused("");
  for (const question of form.querySelectorAll("[data-if]")) question.hidden = question.disabled = !now || !(question.dataset.if in now.dataset);
  fill(filled ?? {}); kept.shownAt = performance.now();
}

// The form as an answer: what is empty was not said.
function read() {
  const given = new FormData(form), one = (name) => { const text = (given.get(name) ?? "").trim(); return text === "" ? null : text; };
  const number = (name) => (one(name) === null ? null : Number(one(name)));
  return { description3: one("description3"), description15: one("description15"), ease: number("ease"), confidence: number("confidence"), view: one("view"), necessity: one("necessity"), actions: given.getAll("actions") };
}

function fill(answer) {
  for (const input of form.querySelectorAll("input")) {
    const value = answer[input.name];
    if (input.type === "radio") input.checked = String(value) === input.value;
    else if (input.type === "checkbox") input.checked = (value ?? []).includes(input.value);
    else input.value = value ?? "";
  }
  count();
}

function count() {
  for (const words of form.querySelectorAll("[data-words]")) {
    const n = form.elements[words.dataset.words].value.trim().split(/\s+/).filter(Boolean).length, most = Number(words.dataset.most);
    words.textContent = n ? `${n} of ${most}${n > most ? ": too many" : ""}` : "";
  }
}

function refused(words) { const bad = find(".bad"); bad.hidden = !words; bad.textContent = words; }

async function save() {
  if (!at() || kept.busy) return;
  const about = kept.order[0], answer = read();
  const entry = { about, given: { queue: sheet.dataset.questions, item: about, person: personName(), task: "questionnaire", answer, seconds: (performance.now() - kept.shownAt) / 1000, key: newKey() } };
  kept.busy = true; refused("");
  await again(entry);
  kept.busy = false;
  if (entry.refused) return;
  kept.given.push(entry); kept.done[about] = answer;
  kept.order = kept.order.filter((other) => other !== about);
  show(); if (entry.saved) refresh(); form.querySelector("input")?.focus();
}

async function again(entry) {
  find(".saved").textContent = `Saving: ${entry.about} …`;
  try {
    const told = await post.send(entry);
    entry.saved = true;
    find(".saved").textContent = `Saved: ${entry.about}, ${new Date(told.at).toLocaleTimeString("en-GB")}.`;
  } catch (error) {
    find(".saved").textContent = `Not saved: ${entry.about}.`;
    if (entry.refused) refused(error.message);
  }
}

async function undo() {
  const entry = kept.given.pop();
  if (!entry) return;
  post.drop(entry);
  try {
    if (entry.saved) await takenBack(entry);
    delete kept.done[entry.about]; kept.order.unshift(entry.about);
    find(".saved").textContent = `Taken back: ${entry.about}.`;
    show(entry.given.answer); said();
  } catch (error) { kept.given.push(entry); find(".saved").textContent = `Not taken back: ${error.message}`; }
}

async function takenBack(entry) {
  const answer = await fetch(`/api/annotations/${encodeURIComponent(entry.given.key)}/undo`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ person: entry.given.person }) });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({ detail: answer.statusText }))).detail);
}

function skip() { if (kept.order.length > 1) { kept.order.push(kept.order.shift()); show(); } }

// Others' words on what has one's own.
async function refresh() {
  const asked = `/api/questionnaire/${encodeURIComponent(sheet.dataset.questions)}?${new URLSearchParams({ person: personName() })}`;
  try { kept.others = (await (await fetch(asked)).json()).others ?? {}; } catch { /* it says so where it matters: at saving */ }
  said();
}

function said() {
  const line = (words, kind) => { const item = document.createElement("li"); item.textContent = words; if (kind) item.className = kind; return item; };
  const lines = Object.entries(kept.done).flatMap(([about, mine]) => [[personName(), mine], ...(kept.others[about] ?? []).map((one) => [one.person, one.answer])].map(([name, answer]) => line(`${about}, ${name}: ${words(answer)}`)));
  find(".said-list").replaceChildren(...(lines.length ? lines : [line("Nothing yet.", "q")]));
}

function words(answer) {
  const parts = [answer.description3, answer.description15].filter(Boolean).map((text) => `“${text}”`);
  for (const name of ["ease", "confidence"]) if (answer[name] != null) parts.push(`${name} ${answer[name]}`);
  for (const name of ["view", "necessity"]) if (answer[name] != null) parts.push(answer[name]);
  return [...parts, ...(answer.actions ?? [])].join(", ");
}

function onKeys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { document.activeElement?.blur(); return; }
  if (event.key === "Enter" && event.target.matches("input")) { event.preventDefault(); save(); return; }
  const question = event.target.closest("fieldset"), option = question?.querySelectorAll("input")[Number(event.key) - 1];
  if (!/^[1-9]$/.test(event.key) || !option || !document.getElementById("single-keys").checked) return;
  event.preventDefault(); event.stopPropagation();
  option.click(); option.focus();
  if (option.type === "radio") next(question)?.focus(); // one number a question, and on
}

function next(question) {
  const asked = [...form.querySelectorAll("fieldset")].filter((other) => !other.hidden);
  return asked[asked.indexOf(question) + 1]?.querySelector("input") ?? form.querySelector(".primary");
}

if (sheet) {
  form.addEventListener("submit", (event) => { event.preventDefault(); save(); });
  form.addEventListener("keydown", onKeys);
  form.addEventListener("input", count);
  find('[data-do="undo"]').addEventListener("click", undo);
  find('[data-do="skip"]').addEventListener("click", skip);
  document.getElementById("person")?.addEventListener("change", load);
  load();
}
