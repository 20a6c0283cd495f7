// A hypothesis of the reader's, tested on held-out rows: in a saved page here, with a server there.
const dataElement = document.getElementById("held-out-data");
const heldOut = dataElement ? JSON.parse(dataElement.textContent) : null;
const outcomes = heldOut ? Uint8Array.from(atob(heldOut.wrong), (c) => c.charCodeAt(0)) : null;
const testedTexts = new Map(); // slice -> texts: each hypothesis on the same rows widens the interval of the next

const READ_BY_OUTCOME = ["label", "prediction"];
const READS_OUTCOME = "It reads the outcome of a row, so a high error is by construction.";

function testHere(slice, text) {
  const parsed = parse(text, heldOut.columns, heldOut.media);
  const mask = parsed.mask();
  const texts = testedTexts.get(slice) ?? new Set();
  texts.add(text.trim()); testedTexts.set(slice, texts);
  const count = { n: 0, errors: 0, rest_n: 0, rest_errors: 0 };
  mask.forEach((inside, i) => {
    const wrong = outcomes[i] === 1 ? 1 : 0;
    if (inside) { count.n += 1; count.errors += wrong; } else { count.rest_n += 1; count.rest_errors += wrong; }
  });
  if (READ_BY_OUTCOME.every((name) => parsed.columns.includes(name))) return { ...count, hypotheses: texts.size, interval: null, sentence: READS_OUTCOME };
  const looked = parsed.condition ? "" : ` ${lookedIn(parsed.columns, heldOut.media)}`;
  return { ...count, hypotheses: texts.size, looked };
}

const formatPercent = (k, n) => `${(100 * k / n).toFixed(1)}%`;
const formatCount = (n) => n.toLocaleString("en");

function writeSentence({ n, errors, rest_n, rest_errors, interval, looked = "" }) {
  if (n === 0) return `No held-out row matches.${looked}`;
  if (n < 20) return `${formatCount(n)} held-out ${n === 1 ? "row matches" : "rows match"}. ${errors} of ${n} are wrong; at least 20 are needed.`;
  if (!interval) return `${formatCount(n)} held-out rows match; their error is not measured.`; // the outcome defines them
  const [low, high] = interval;
  const rest = rest_n ? `, against ${formatPercent(rest_errors, rest_n)} of the other held-out rows` : "";
  return `${formatCount(n)} held-out rows match. ${formatCount(errors)} are wrong: ${formatPercent(errors, n)} (95% interval ${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})${rest}.`;
}

function normalQuantile(hypotheses) { // the interval allows for all hypotheses (Bonferroni)
  const p = 1 - .025 / hypotheses;
  const t = Math.sqrt(-2 * Math.log(1 - p));
  return t - (2.515517 + .802853 * t + .010328 * t * t) / (1 + 1.432788 * t + .189269 * t * t + .001308 * t ** 3);
}

function makeMark(svg, kind, at) {
  const mark = document.createElementNS(svg.namespaceURI, at.cx ? "circle" : "line");
  mark.setAttribute("class", kind);
  for (const [name, value] of Object.entries(at)) mark.setAttribute(name, value);
  return mark;
}

function drawWhisker(svg, result) {
  svg.replaceChildren();
  svg.setAttribute("aria-label", writeSentence(result));
  if (result.n < 20 || !result.interval) return;
  const top = Math.max(.6, result.interval[1]) > .6 ? 1 : .6;
  const at = (v) => `${(100 * Math.min(v / top, 1)).toFixed(2)}%`;
  for (const tick of [0, .25, .5, .75, 1]) svg.append(makeMark(svg, "grid", { x1: at(tick * top), x2: at(tick * top), y1: "0", y2: "100%" }));
  if (result.rest_n) svg.append(makeMark(svg, "rest", { cx: at(result.rest_errors / result.rest_n), cy: "50%", r: 4 }));
  svg.append(makeMark(svg, "whisker", { x1: at(result.interval[0]), x2: at(result.interval[1]), y1: "50%", y2: "50%" }));
  svg.append(makeMark(svg, "dot", { cx: at(result.errors / result.n), cy: "50%", r: 5 }));
}

async function runTest(form, text) {
  if (!form.dataset.api) {
    const counts = testHere(form.dataset.hypothesis, text);
    if (counts.interval === null) return counts;
    return { ...counts, interval: wilson(counts.errors, counts.n, normalQuantile(counts.hypotheses)) };
  }
  if (lacksName(() => form.requestSubmit())) throw new Error("Not tested yet: it needs your name.");
  const body = JSON.stringify({ text, slice: form.dataset.hypothesis || null, person: personName() });
  const answer = await fetch(form.dataset.api, { method: "POST", headers: { "content-type": "application/json" }, body });
  const result = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(result.detail ?? answer.statusText);
  return result;
}

for (const form of document.querySelectorAll("[data-hypothesis]")) form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const box = form.querySelector(".answer");
  const sentence = box.querySelector(".said");
  const more = box.querySelector(".more");
  const svg = box.querySelector("svg");
  box.hidden = false; box.removeAttribute("data-bad"); sentence.textContent = "Testing on the held-out rows."; more.textContent = "";
  try {
    const result = await runTest(form, form.elements.text.value);
    sentence.textContent = result.sentence ?? writeSentence(result);
    more.textContent = !result.sentence && result.hypotheses > 3 ? `${result.hypotheses} hypotheses tested here; the interval allows for all of them.` : "";
    if (form.dataset.api) offerToKeep(more, result);
    drawWhisker(svg, result);
    showMatches(form, result.shown ?? []);
    if (form.dataset.api) await refreshHistory(form.dataset.hypothesis);
  } catch (error) {
    box.dataset.bad = "";
    sentence.textContent = error.message;
    svg.replaceChildren();
    svg.setAttribute("aria-label", "Nothing is drawn.");
    showMatches(form, []);
  }
  if (form.dataset.api && !form.dataset.hypothesis) history.replaceState(null, "", `/hypothesis?${new URLSearchParams({ q: form.elements.text.value })}`);
});

// A hypothesis that holds may become a slice of the audit; one that is a slice already leads to it.
function offerToKeep(place, result) {
  if (result.kept) return place.append(makeSliceLink("This is slice ", result.kept));
  if (!result.can_keep) return undefined;
  const button = document.createElement("button");
  button.type = "button"; button.className = "btn"; button.textContent = "Keep as a slice";
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const kept = await keepAsSlice(result.text);
      return place.replaceChildren(makeSliceLink("Kept as ", kept.id, `: ${kept.verdict} among all slices and hypotheses.`));
    } catch (error) {
      button.disabled = false;
      return place.replaceChildren(button, ` Not kept: ${error.message}`);
    }
  });
  return place.append(button);
}

async function keepAsSlice(text) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ text }) };
  const answer = await fetch("/api/slices", options).catch(() => { throw new Error("the server did not answer. Try again."); });
  const kept = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(kept.detail ?? answer.statusText);
  return kept;
}

function makeSliceLink(before, id, after = ".") {
  const text = document.createElement("span");
  const link = document.createElement("a");
  link.href = `/slice/${encodeURIComponent(id)}`; link.textContent = id;
  text.append(before, link, after);
  return text;
}

// Some of the rows that match, right and wrong as they come.
function showMatches(form, rows) {
  const list = form.querySelector(".matches");
  list?.classList.toggle("texts", !rows.some((row) => row.picture));
  list?.replaceChildren(...rows.map((row) => {
    const line = document.createElement("div");
    const cap = document.createElement("span");
    line.className = row.wrong ? "thumb wrong" : "thumb right"; cap.className = "cap";
    if (row.picture) { const image = document.createElement("img"); image.src = row.picture; image.alt = `row ${row.id}`; line.append(image); }
    const prediction = document.createElement("b");
    const text = row.text == null ? "" : `: ${row.text.slice(0, 200)}`;
    prediction.textContent = row.wrong ? row.prediction : "";
    cap.append(row.wrong ? `× ${row.label} → ` : `● ${row.label}`, prediction, text);
    line.append(cap);
    return line;
  }));
}

// One more hypothesis: all earlier ones are judged again.
async function refreshHistory(slice) {
  const box = document.querySelector(`[data-history="${CSS.escape(slice)}"]`);
  if (!box) return;
  const answer = await fetch(`/api/hypotheses?${new URLSearchParams({ slice })}`);
  if (!answer.ok) return;
  const { summary, lines } = await answer.json();
  box.querySelector(".summary").textContent = summary;
  box.querySelector(".scroll").hidden = lines.length === 0;
  box.querySelector("tbody").replaceChildren(...lines.map(makeHistoryRow));
}

function makeHistoryRow(line) {
  const row = document.createElement("tr");
  const link = document.createElement("a");
  const verdict = document.createElement("span");
  const note = document.createElement("span");
  link.href = `/hypothesis?q=${encodeURIComponent(line.text)}`; link.textContent = line.text;
  verdict.className = `verdict ${line.form}`; verdict.textContent = line.verdict;
  note.className = "q"; note.textContent = line.note;
  const cells = [[link], [verdict, " ", note], [line.rate], [line.interval], [line.rest], [line.count], [line.person]];
  row.append(...cells.map((parts, i) => {
    const cell = document.createElement("td");
    if (i > 1 && i < 6) cell.className = "num";
    cell.append(...parts);
    return cell;
  }));
  return row;
}

for (const form of document.querySelectorAll("[data-hypothesis][data-now]")) form.requestSubmit();
