// A guess of the reader's, tested on rows nobody searched: in a saved page here, with a server there.
const given = document.getElementById("guess-data");
const told = given ? JSON.parse(given.textContent) : null;
const wrongs = told ? Uint8Array.from(atob(told.wrong), (c) => c.charCodeAt(0)) : null;
const tested = new Map(); // slice -> texts: each guess at the same rows widens the interval of the next

function here(slice, text) {
  const mask = parse(text, told.columns).mask();
  const asked = tested.get(slice) ?? new Set();
  asked.add(text.trim()); tested.set(slice, asked);
  const count = { n: 0, errors: 0, rest_n: 0, rest_errors: 0 };
  mask.forEach((inside, i) => { const wrong = wrongs[i] === 1 ? 1 : 0; if (inside) { count.n += 1; count.errors += wrong; } else { count.rest_n += 1; count.rest_errors += wrong; } });
  return { ...count, hypotheses: asked.size };
}

const percent = (k, n) => `${(100 * k / n).toFixed(1)}%`;
const many = (n) => n.toLocaleString("en");

function sentence({ n, errors, rest_n, rest_errors, interval }) {
  if (n === 0) return "No held-out row matches.";
  if (n < 20) return `${many(n)} held-out ${n === 1 ? "row matches" : "rows match"}. ${errors} of ${n} are wrong; at least 20 are needed.`;
  const [low, high] = interval, rest = rest_n ? `, against ${percent(rest_errors, rest_n)} of the other held-out rows` : "";
  return `${many(n)} held-out rows match. ${many(errors)} are wrong: ${percent(errors, n)} (95% interval ${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})${rest}.`;
}

function quantile(guesses) { // of the normal distribution: the interval allows for all guesses (Bonferroni)
  const p = 1 - .025 / guesses, t = Math.sqrt(-2 * Math.log(1 - p));
  return t - (2.515517 + .802853 * t + .010328 * t * t) / (1 + 1.432788 * t + .189269 * t * t + .001308 * t ** 3);
}

function line(svg, kind, at) {
  const drawn = document.createElementNS(svg.namespaceURI, at.cx ? "circle" : "line");
  drawn.setAttribute("class", kind);
  for (const [name, value] of Object.entries(at)) drawn.setAttribute(name, value);
  return drawn;
}

function draw(svg, found) {
  svg.replaceChildren();
  svg.setAttribute("aria-label", sentence(found));
  if (found.n < 20) return;
  const top = Math.max(.6, found.interval[1]) > .6 ? 1 : .6, at = (v) => `${(100 * Math.min(v / top, 1)).toFixed(2)}%`;
  for (const tick of [0, .25, .5, .75, 1]) svg.append(line(svg, "grid", { x1: at(tick * top), x2: at(tick * top), y1: "0", y2: "100%" }));
  if (found.rest_n) svg.append(line(svg, "rest", { cx: at(found.rest_errors / found.rest_n), cy: "50%", r: 4 }));
  svg.append(line(svg, "whisker", { x1: at(found.interval[0]), x2: at(found.interval[1]), y1: "50%", y2: "50%" }), line(svg, "dot", { cx: at(found.errors / found.n), cy: "50%", r: 5 }));
}

async function answer(form, text) {
  if (!form.dataset.api) {
    const found = here(form.dataset.guess, text);
    return { ...found, interval: wilson(found.errors, found.n, quantile(found.hypotheses)) };
  }
  const asked = await fetch(form.dataset.api, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ text, slice: form.dataset.guess || null, person: personName() }) });
  const found = await asked.json().catch(() => ({}));
  if (!asked.ok) throw new Error(found.detail ?? asked.statusText);
  return found;
}

for (const form of document.querySelectorAll("[data-guess]")) form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const box = form.querySelector(".answer"), said = box.querySelector(".said"), more = box.querySelector(".more"), svg = box.querySelector("svg");
  box.hidden = false; box.removeAttribute("data-bad"); said.textContent = "Testing on the held-out rows."; more.textContent = "";
  try {
    const found = await answer(form, form.elements.text.value);
    said.textContent = found.sentence ?? sentence(found);
    more.textContent = !found.sentence && found.hypotheses > 3 ? `${found.hypotheses} hypotheses tested here; the interval allows for all of them.` : "";
    draw(svg, found);
    matches(form, found.shown ?? []);
    if (form.dataset.api) await again(form.dataset.guess);
  } catch (error) {
    box.dataset.bad = ""; said.textContent = error.message; svg.replaceChildren(); svg.setAttribute("aria-label", "Nothing is drawn."); matches(form, []);
  }
  if (form.dataset.api && !form.dataset.guess) history.replaceState(null, "", `/hypothesis?q=${encodeURIComponent(form.elements.text.value)}`);
});

// Some of the rows that match, right and wrong as they come.
function matches(form, rows) {
  const list = form.querySelector(".matches");
  list?.replaceChildren(...rows.map((row) => {
    const line = document.createElement("div"), cap = document.createElement("span");
    line.className = row.wrong ? "thumb wrong" : "thumb right"; cap.className = "cap";
    if (row.picture) { const image = document.createElement("img"); image.src = row.picture; image.alt = `row ${row.id}`; line.append(image); }
    const said = document.createElement("b"), text = row.text == null ? "" : `: ${row.text.slice(0, 200)}`;
    said.textContent = row.wrong ? row.prediction : "";
    cap.append(row.wrong ? `× ${row.label} → ` : `● ${row.label}`, said, text);
    line.append(cap);
    return line;
  }));
}

// One more guess: all earlier ones are judged again.
async function again(slice) {
  const box = document.querySelector(`[data-history="${CSS.escape(slice)}"]`);
  if (!box) return;
  const asked = await fetch(`/api/guesses?${new URLSearchParams({ slice })}`);
  if (!asked.ok) return;
  const { summary, lines } = await asked.json();
  box.querySelector(".summary").textContent = summary;
  box.querySelector(".scroll").hidden = lines.length === 0;
  box.querySelector("tbody").replaceChildren(...lines.map(testedLine));
}

function testedLine(one) {
  const row = document.createElement("tr"), link = document.createElement("a"), verdict = document.createElement("span"), note = document.createElement("span");
  link.href = `/hypothesis?q=${encodeURIComponent(one.text)}`; link.textContent = one.text;
  verdict.className = `verdict ${one.form}`; verdict.textContent = one.verdict;
  note.className = "q"; note.textContent = one.note;
  const cells = [[link], [verdict, " ", note], [one.rate], [one.interval], [one.rest], [one.count], [one.person]];
  row.append(...cells.map((parts, i) => { const cell = document.createElement("td"); if (i > 1 && i < 6) cell.className = "num"; cell.append(...parts); return cell; }));
  return row;
}

for (const form of document.querySelectorAll("[data-guess][data-now]")) form.requestSubmit();
