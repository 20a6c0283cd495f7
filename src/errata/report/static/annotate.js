// One item, big; a key for every answer; undo. "Saved" only after the server has answered; what is not saved is retried.
const box = document.querySelector("[data-annotate]");
const find = (selector) => box.querySelector(selector);
const state = { items: [], at: 0, done: 0, of: 0, entries: [], shownAt: 0, later: 0 };
const outbox = box && new Outbox(box, save);

const makeKey = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;

async function fetchQueue() {
  const query = new URLSearchParams({ person: personName(), task: box.dataset.task });
  const answer = await fetch(`/api/queues/${encodeURIComponent(box.dataset.annotate)}?${query}`);
  const queue = await answer.json().catch(() => ({ detail: answer.statusText }));
  if (!answer.ok) throw new Error(queue.detail);
  return queue;
}

// An answer given before the rows have come would be about rows that are about to go.
async function load() {
  const now = state.load = Symbol();
  Object.assign(state, { items: [], at: 0, entries: [] });
  box.classList.add("loading");
  show(); find(".count").textContent = ""; find(".who").textContent = ""; find(".empty").textContent = "Loading."; find("[data-next]")?.setAttribute("hidden", "");
  let queue;
  try {
    queue = await fetchQueue();
    if (now !== state.load) return;
  } catch (error) {
    box.classList.remove("loading");
    find(".empty").textContent = `The rows could not be loaded: ${error.message}. Load the page again.`;
    find(".empty").hidden = false;
    return;
  }
  Object.assign(state, { items: queue.items, at: 0, done: queue.done, of: queue.of, entries: [] });
  find(".recent").replaceChildren();
  find(".who").textContent = personWords();
  show(); showAgreement(queue);
  box.classList.remove("loading");
}

function show() {
  const item = state.items[state.at];
  const image = find(".item img");
  const text = find(".item .measure");
  const empty = find(".item .empty");
  find(".count").textContent = `${state.done} of ${state.of} done`;
  find(".progress .done").setAttribute("width", `${state.of ? (100 * state.done) / state.of : 0}%`);
  find('[data-do="undo"]').disabled = state.entries.length === 0;
  image.hidden = !item?.picture; text.hidden = item?.text == null;
  empty.hidden = Boolean(item?.picture || item?.text != null || item?.metadata?.length);
  showColumns(item?.metadata ?? []);
  for (const button of box.querySelectorAll("[data-answer]")) button.disabled = !item;
  if (find("[data-next]")) find("[data-next]").hidden = Boolean(item);
  if (!item) { empty.hidden = false; empty.textContent = `All ${state.of} rows have your answer.`; return; }
  if (item.picture) { image.src = item.picture; image.alt = `Item ${state.done + 1} of ${state.of}, not yet labelled`; }
  if (item.text != null) text.textContent = item.text;
  if (!empty.hidden) empty.textContent = `Row ${item.id} has no image and no text.`;
  const next = state.items[state.at + 1];
  if (next?.picture) new Image().src = next.picture;
  state.shownAt = performance.now();
}

function showColumns(columns) {
  const list = find(".item .facts-list");
  list.hidden = columns.length === 0;
  list.replaceChildren(...columns.flatMap(([name, value]) => {
    const term = document.createElement("dt");
    const detail = document.createElement("dd");
    term.textContent = name; detail.textContent = value;
    return [term, detail];
  }));
}

function save(entry) { entry.saving = saveNow(entry); return entry.saving; }

async function saveNow(entry) {
  find(".saved").textContent = `Saving: ${entry.name} …`;
  try {
    const saved = await outbox.send(entry);
    entry.saved = true;
    find(".saved").textContent = `Saved: ${entry.name}, ${new Date(saved.at).toLocaleTimeString("en-GB")}.`;
  } catch (error) { find(".saved").textContent = `Not saved: ${entry.name}. ${error.message}`; }
}

function giveAnswer(button) {
  const item = state.items[state.at];
  if (!item || lacksName()) return;
  const answer = JSON.parse(button.dataset.answer);
  const seconds = (performance.now() - state.shownAt) / 1000;
  const annotation = { queue: box.dataset.annotate, item: item.id, person: personName(), task: box.dataset.task, answer, seconds, key: makeKey() };
  const entry = { name: button.dataset.name, item, annotation };
  state.entries.push(entry); state.at += 1; state.done += 1;
  addRecent(entry); show(); save(entry).then(refreshSoon);
}

function addRecent(entry) {
  const line = document.createElement("li");
  const caption = document.createElement("span");
  line.className = "thumb"; caption.className = "cap"; caption.textContent = entry.name;
  if (entry.item.picture) { const image = document.createElement("img"); image.src = entry.item.picture; image.alt = ""; line.append(image); }
  line.append(caption); find(".recent").prepend(line);
  while (find(".recent").children.length > 5) find(".recent").lastElementChild.remove();
}

async function undo() {
  const entry = state.entries.pop();
  const now = state.load;
  if (!entry) return;
  try {
    await entry.saving;
    outbox.drop(entry); // what was never saved is only forgotten
    if (entry.saved) await takeBack(entry);
    if (now !== state.load) return; // somebody else's rows by now
    state.at -= 1; state.done -= 1; find(".recent").firstElementChild?.remove();
    find(".saved").textContent = `Taken back: ${entry.name}.`; show(); refreshSoon();
  } catch (error) { if (now === state.load) state.entries.push(entry); find(".saved").textContent = `Not taken back: ${error.message}`; }
}

async function takeBack(entry) {
  const address = `/api/annotations/${encodeURIComponent(entry.annotation.key)}/undo`;
  const body = JSON.stringify({ person: entry.annotation.person });
  const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({ detail: answer.statusText }))).detail);
}

function skip() {
  const [item] = state.items.splice(state.at, 1);
  if (item) { state.items.push(item); show(); }
}

// Agreement, once a person pauses.
function refreshSoon() {
  clearTimeout(state.later);
  state.later = setTimeout(() => fetchQueue().then(showAgreement).catch(() => { /* it says so where it matters: at saving */ }), 500);
}

function showAgreement(queue) {
  const agreement = queue.agreement;
  const sentence = find(".agreement");
  const list = find(".settle");
  if (agreement.items) {
    const [low, high] = agreement.interval;
    const kappa = agreement.kappa == null ? "" : ` Cohen's kappa ${agreement.kappa.toFixed(2)}.`;
    const rate = agreement.items >= 20 ? `: ${(100 * agreement.same / agreement.items).toFixed(1)}% (95% interval ${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})` : "";
    sentence.textContent = `${agreement.same} of ${agreement.items} answers are the same${rate}.${kappa}`;
  } else sentence.textContent = "Not measured: one person so far.";
  list.replaceChildren();
  if (queue.settle.length === 0) { const line = document.createElement("li"); line.className = "q none"; line.textContent = "None among the rows that you answered."; list.append(line); }
  for (const dispute of queue.settle) {
    const line = document.createElement("li");
    const what = document.createElement("span");
    const link = document.createElement("a");
    what.textContent = `Row ${dispute.item}: ${Object.entries(dispute.answers).map(([name, answer]) => `${name} says ${nameAnswer(answer)}`).join(", ")}`;
    link.href = box.dataset.rows.endsWith("/") ? box.dataset.rows + encodeURIComponent(dispute.item) : box.dataset.rows; link.textContent = "open";
    line.append(document.createElement("span"), what, makeSettleButtons(dispute), link); list.append(line);
  }
}

// One button for each answer that somebody gave: it ends the dispute, and is not one more opinion.
function makeSettleButtons(dispute) {
  const buttons = document.createElement("span");
  for (const text of new Set(Object.values(dispute.answers).map((answer) => JSON.stringify(answer)))) {
    const answer = JSON.parse(text);
    const button = document.createElement("button");
    button.type = "button"; button.className = "btn"; button.textContent = `Settle as ${nameAnswer(answer)}`;
    button.addEventListener("click", () => {
      if (lacksName()) return;
      const annotation = { queue: box.dataset.annotate, item: dispute.item, person: personName(), task: box.dataset.task, answer, settles: true, key: makeKey() };
      save({ name: `settled as ${nameAnswer(answer)}`, annotation }).then(refreshSoon);
    });
    buttons.append(button);
  }
  return buttons;
}

function nameAnswer(answer) {
  const button = [...box.querySelectorAll("[data-answer]")].find((b) => b.dataset.answer === JSON.stringify(answer));
  return button?.dataset.name ?? JSON.stringify(answer);
}

// The list of queues: in which of them a person has been.
async function showOwnCounts() {
  const person = personName();
  const counts = await fetch(`/api/answered?${new URLSearchParams({ person })}`).then((answer) => answer.ok ? answer.json() : {}).catch(() => ({}));
  if (person !== personName()) return;
  for (const element of document.querySelectorAll("[data-mine]")) {
    const count = counts[element.dataset.mine];
    element.textContent = count ? `, ${count} ${count === 1 ? "answer" : "answers"} of yours` : "";
  }
}

if (document.querySelector("[data-mine]")) {
  document.getElementById("person")?.addEventListener("change", showOwnCounts);
  showOwnCounts();
}

if (box) {
  for (const button of box.querySelectorAll("[data-answer]")) button.addEventListener("click", () => giveAnswer(button));
  find('[data-do="undo"]').addEventListener("click", undo);
  find('[data-do="skip"]').addEventListener("click", skip);
  document.getElementById("person")?.addEventListener("change", load);
  const filter = document.getElementById("filter");
  filter?.addEventListener("input", () => {
    const part = filter.value.trim().toLowerCase();
    for (const b of box.querySelectorAll("[data-answer]")) b.hidden = !b.dataset.name.toLowerCase().includes(part);
  });
  filter?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const first = [...box.querySelectorAll("[data-answer]")].find((b) => !b.hidden);
    if (!first) return;
    giveAnswer(first);
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
  });
  load();
}
