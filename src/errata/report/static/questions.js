// Barlow's questionnaire: one thing shown at a time, one form, a number for every choice, Enter to save.
// "Saved" only after the server has answered; an answer that it refuses stays in the form.
const sheet = document.querySelector("[data-questions]");
const find = (selector) => sheet.querySelector(selector);
const state = { done: {}, others: {}, order: [], entries: [], shownAt: 0 };
const post = sheet && new Outbox(sheet, send);
const form = sheet && find("form");
const all = sheet ? [...sheet.querySelectorAll("[data-about]")] : [];
const STATEMENT = "statement "; // begins the name of a field that is about the method
const makeKey = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;
const currentSection = () => all.find((section) => section.dataset.about === state.order[0]);

// While answers load there is nobody to answer as: a key would be about what is about to go.
async function load() {
  const now = state.load = Symbol();
  state.order = []; find(".who").textContent = "";
  const address = `/api/questionnaire/${encodeURIComponent(sheet.dataset.questions)}?${new URLSearchParams({ person: personName() })}`;
  try {
    const answer = await fetch(address);
    const result = await answer.json();
    if (now !== state.load) return;
    if (!answer.ok) throw new Error(result.detail);
    Object.assign(state, { done: result.done, others: result.others, entries: [] });
  } catch (error) { if (now !== state.load) return; find(".saved").textContent = `Your earlier answers could not be loaded: ${error.message}. Load the page again.`; }
  state.order = all.map((section) => section.dataset.about).filter((about) => !(about in state.done));
  find(".who").textContent = personWords();
  show(); showAnswers();
}

function show(filled = null) {
  const now = currentSection();
  const n = all.length - state.order.length;
  for (const section of all) section.hidden = section !== now;
  find(".count").textContent = `${n} of ${all.length} done`;
  find(".progress .done").setAttribute("width", `${all.length ? (100 * n) / all.length : 0}%`);
  find('[data-do="undo"]').disabled = state.entries.length === 0;
  find(".empty").hidden = Boolean(now); find(".empty").textContent = `All ${all.length} have your answer.`;
  form.hidden = !now; showRefusal("");
  for (const question of form.querySelectorAll("[data-if]")) question.hidden = question.disabled = !now || !(question.dataset.if in now.dataset);
  fill(filled ?? {}); state.shownAt = performance.now();
}

// The form as an answer: what is empty was not answered.
function read() {
  const fields = new FormData(form);
  const readText = (name) => (fields.get(name) ?? "").trim() || null;
  const readNumber = (name) => (readText(name) === null ? null : Number(readText(name)));
  return {
    description3: readText("description3"),
    description15: readText("description15"),
    ease: readNumber("ease"),
    confidence: readNumber("confidence"),
    view: readText("view"),
    necessity: readText("necessity"),
    actions: fields.getAll("actions"),
    statements: Object.fromEntries([...fields].filter(([name]) => name.startsWith(STATEMENT)).map(([name, value]) => [name.slice(STATEMENT.length), Number(value)])),
  };
}

function fill(answer) {
  for (const input of form.querySelectorAll("input")) {
    const value = input.name.startsWith(STATEMENT) ? answer.statements?.[input.name.slice(STATEMENT.length)] : answer[input.name];
    if (input.type === "radio") input.checked = String(value) === input.value;
    else if (input.type === "checkbox") input.checked = (value ?? []).includes(input.value);
    else input.value = value ?? "";
  }
  countWords();
}

function countWords() {
  for (const words of form.querySelectorAll("[data-words]")) {
    const n = form.elements[words.dataset.words].value.trim().split(/\s+/).filter(Boolean).length;
    const most = Number(words.dataset.most);
    words.textContent = n ? `${n} of ${most}${n > most ? ": too many" : ""}` : "";
  }
}

function showRefusal(words) { const bad = find(".bad"); bad.hidden = !words; bad.textContent = words; }

async function save() {
  if (!currentSection() || state.busy || lacksName()) return;
  const about = state.order[0];
  const answer = read();
  const seconds = (performance.now() - state.shownAt) / 1000;
  const annotation = { queue: sheet.dataset.questions, item: about, person: personName(), task: "questionnaire", answer, seconds, key: makeKey() };
  const entry = { about, annotation };
  state.busy = true; showRefusal("");
  await send(entry);
  state.busy = false;
  if (entry.refused) return;
  state.entries.push(entry); state.done[about] = answer;
  state.order = state.order.filter((other) => other !== about);
  show(); if (entry.saved) refresh(); form.querySelector("[data-if]:not([hidden]) input")?.focus();
}

async function send(entry) {
  find(".saved").textContent = `Saving: ${entry.about} …`;
  try {
    const saved = await post.send(entry);
    entry.saved = true;
    find(".saved").textContent = `Saved: ${entry.about}, ${new Date(saved.at).toLocaleTimeString("en-GB")}.`;
  } catch (error) {
    find(".saved").textContent = `Not saved: ${entry.about}.`;
    if (entry.refused) showRefusal(error.message);
  }
}

async function undo() {
  const entry = state.entries.pop();
  if (!entry) return;
  post.drop(entry);
  try {
    if (entry.saved) await takeBack(entry);
    delete state.done[entry.about]; state.order.unshift(entry.about);
    find(".saved").textContent = `Taken back: ${entry.about}.`;
    show(entry.annotation.answer); showAnswers();
  } catch (error) { state.entries.push(entry); find(".saved").textContent = `Not taken back: ${error.message}`; }
}

async function takeBack(entry) {
  const address = `/api/annotations/${encodeURIComponent(entry.annotation.key)}/undo`;
  const body = JSON.stringify({ person: entry.annotation.person });
  const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({ detail: answer.statusText }))).detail);
}

function skip() { if (state.order.length > 1) { state.order.push(state.order.shift()); show(); } }

// Others' words on what has one's own.
async function refresh() {
  const address = `/api/questionnaire/${encodeURIComponent(sheet.dataset.questions)}?${new URLSearchParams({ person: personName() })}`;
  try { state.others = (await (await fetch(address)).json()).others ?? {}; } catch { /* it says so where it matters: at saving */ }
  showAnswers();
}

function showAnswers() {
  const makeLine = (words, kind) => {
    const item = document.createElement("li");
    item.textContent = words;
    if (kind) item.className = kind;
    return item;
  };
  const lines = [];
  for (const [about, mine] of Object.entries(state.done)) {
    const answers = [{ person: personName(), answer: mine }, ...(state.others[about] ?? [])];
    for (const { person, answer } of answers) lines.push(makeLine(`${about}, ${person}: ${describe(answer)}`));
  }
  if (lines.length === 0) lines.push(makeLine("Nothing yet.", "q"));
  find(".said-list").replaceChildren(...lines);
}

function describe(answer) {
  const parts = [answer.description3, answer.description15].filter(Boolean).map((text) => `“${text}”`);
  for (const name of ["ease", "confidence"]) if (answer[name] != null) parts.push(`${name} ${answer[name]}`);
  for (const name of ["view", "necessity"]) if (answer[name] != null) parts.push(answer[name]);
  const statements = Object.entries(answer.statements ?? {}).map(([name, score]) => `${name} ${score}`);
  return [...parts, ...(answer.actions ?? []), ...statements].join(", ");
}

function handleKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { document.activeElement?.blur(); return; }
  if (event.key === "Enter" && event.target.name === "description3") { // the first field: on to the next, nothing is saved half
    event.preventDefault(); form.elements.description15.focus(); return;
  }
  if (event.key === "Enter" && event.target.matches("input")) { event.preventDefault(); save(); return; }
  const question = event.target.closest("fieldset");
  const option = question?.querySelectorAll("input")[Number(event.key) - 1];
  if (!/^[1-9]$/.test(event.key) || !option || !document.getElementById("single-keys").checked) return;
  event.preventDefault(); event.stopPropagation();
  option.click(); option.focus();
  if (option.type === "radio") nextQuestion(question)?.focus(); // one number a question, and on
}

function nextQuestion(question) {
  const questions = [...form.querySelectorAll("fieldset")].filter((other) => !other.hidden);
  return questions[questions.indexOf(question) + 1]?.querySelector("input") ?? form.querySelector(".primary");
}

if (sheet) {
  form.addEventListener("submit", (event) => { event.preventDefault(); save(); });
  form.addEventListener("keydown", handleKey);
  form.addEventListener("input", countWords);
  find('[data-do="undo"]').addEventListener("click", undo);
  find('[data-do="skip"]').addEventListener("click", skip);
  document.getElementById("person")?.addEventListener("change", load);
  load();
}
