// Rows, map and columns as one view: a form says what is listed, a loop or a bar changes the form, and the address has all.
const PAGE_SIZE = matchMedia("(max-width: 46rem)").matches ? 24 : 60; // beneath the list of a phone are map and columns
const NAMES = ["slice", "side", "where", "outcome", "order", "up", "verdict", "role", "moved", "px", "beside", "pictured"];
const PLAIN = { side: "in", order: "random", px: "128", pictured: "true" }; // what an address need not say
const inEnglish = (n) => n.toLocaleString("en");

class ServedRows {
  async read(query, start, count) { return askServer(`/api/rows?${this.address(query)}&start=${start}&count=${count}`); }
  async view(query) { return askServer(`/api/view?${this.address(query)}`); }
  async open(line) { return askServer(`/api/near/${encodeURIComponent(line.id)}`); }
  address(query) {
    const named = Object.entries(query).filter(([name, value]) => value && !["px", "pictured"].includes(name));
    return new URLSearchParams(named).toString();
  }
}

class RowList {
  constructor(form) {
    this.form = form;
    this.page = form.closest(".view") ?? document;
    this.source = form.dataset.api ? new ServedRows() : new SavedRows();
    this.cards = this.page.querySelector(".cards");
    this.box = this.page.querySelector("[data-map]");
    this.more = { loop: "", like: "", seed: "" };
    this.start = 0;
    this.viewer = new RowViewer(this.source, (step) => this.follow(step), (line) => this.actions(line));
    this.recall();
    this.listen();
    this.show();
  }

  // ---- what is asked, and the address that says so

  get query() {
    const query = { ...this.more };
    for (const name of NAMES) {
      const field = this.form.elements[name];
      if (field) query[name] = field.type === "checkbox" ? (field.checked ? "true" : "") : field.value;
    }
    if (!query.slice) query.side = "";
    if (query.order === "depth" && !query.slice) query.order = "";
    return query;
  }

  recall() {
    const text = isSaved ? location.hash.split("?")[1] ?? "" : location.search;
    const given = new URLSearchParams(text);
    for (const name of NAMES) {
      const field = this.form.elements[name];
      if (!field) continue;
      const value = given.get(name) ?? PLAIN[name] ?? "";
      if (field.type === "checkbox") field.checked = value === "true"; else field.value = value;
      if (field.tagName === "SELECT" && field.selectedIndex < 0) field.selectedIndex = 0;
    }
    for (const name of Object.keys(this.more)) this.more[name] = given.get(name) ?? "";
    this.start = Math.max(0, Number(given.get("start")) || 0);
    this.offerNear();
  }

  remember() {
    const named = Object.entries({ ...this.query, start: this.start || "" }).filter(([name, value]) => value && value !== PLAIN[name]);
    if (this.query.pictured === "" && this.form.elements.pictured) named.push(["pictured", "false"]);
    const text = new URLSearchParams(named).toString();
    const base = isSaved ? "#rows" : location.pathname;
    if (!isSaved || location.hash.startsWith("#rows")) history.replaceState(null, "", text ? `${base}?${text}` : base);
  }

  ask(change = {}) {
    Object.assign(this.more, change);
    this.start = 0;
    this.offerNear();
    return this.show();
  }

  offerNear() {
    const order = this.form.elements.order;
    const near = order.querySelector("[value=near]");
    near.hidden = !this.more.like;
    if (this.more.like) order.value = "near"; else if (order.value === "near") order.value = "random";
    this.form.elements.side.closest("label").hidden = !this.form.elements.slice.value;
  }

  // ---- what is shown

  async show() {
    const asked = this.asked = Symbol("asked"); // an answer that comes after a later question is not shown
    const query = this.query;
    this.remember();
    this.showChips(query);
    try {
      const [list, view] = await Promise.all([this.source.read(query, this.start, PAGE_SIZE), this.source.view(query)]);
      if (this.asked !== asked) return;
      this.showRows(list);
      this.showNumbers(view, list);
      this.showColumns(view);
      this.light(view.lit);
    } catch (error) { if (this.asked === asked) this.fail(error.message); }
  }

  async turn(start) {
    this.start = start;
    this.remember();
    try { this.showRows(await this.source.read(this.query, start, PAGE_SIZE)); } catch (error) { this.fail(error.message); }
    this.page.querySelector(".listed").scrollIntoView({ block: "start" });
  }

  fail(words) {
    const said = this.page.querySelector(".rows-said");
    said.classList.add("bad"); said.textContent = words;
  }

  showRows(list) {
    this.list = list;
    const px = Number(this.form.elements.px?.value ?? 128);
    this.cards.className = hasImages ? `cards s${px}` : "cards lines-list";
    this.cards.replaceChildren(...list.rows.map((line, i) => this.makeCard(line, i, px)));
    const last = Math.min(list.total, list.start + list.rows.length);
    this.page.querySelector(".pager .q").textContent = list.total ? `${inEnglish(list.start + 1)} to ${inEnglish(last)} of ${inEnglish(list.total)}` : "";
    this.page.querySelector(".pager").hidden = false;
    this.page.querySelector("[data-do=previous]").disabled = list.start === 0;
    this.page.querySelector("[data-do=next]").disabled = last >= list.total;
    this.page.querySelector("[data-do=draw]").hidden = list.order !== "random" && list.order !== "";
  }

  makeCard(line, i, px) {
    const card = document.createElement("li");
    const button = document.createElement("button");
    card.className = `thumb ${kindOf(line)}`; card.dataset.row = line.id;
    button.type = "button";
    fillCard(button, line, Math.min(px, 256));
    button.addEventListener("click", () => this.viewer.show(line, button));
    card.append(button);
    for (const other of line.beside ?? []) { const box = document.createElement("div"); box.className = `beside-one ${kindOf(other)}`; fillCard(box, other, 112); card.append(box); }
    return card;
  }

  showNumbers(view, list) {
    const said = this.page.querySelector(".rows-said");
    const rows = `${inEnglish(view.n)} ${isSaved ? "held-out " : ""}${view.n === 1 ? "row" : "rows"} ${this.verb(view.n)}.`;
    const rate = (k, n) => (n < 20 ? `${k} of ${n}` : `${inEnglish(k)} of ${inEnglish(n)}: ${(100 * k / n).toFixed(1)}%`);
    const rest = view.others ? `; of the ${inEnglish(view.others)} others, ${view.others < 20 ? `${view.others_wrong}` : `${(100 * view.others_wrong / view.others).toFixed(1)}%`}` : "";
    said.classList.remove("bad");
    said.textContent = view.n === 0 ? "No row matches." : `${rows}${view.known ? ` Wrong: ${rate(view.wrong, view.n)}${rest}.` : ""}${this.heldWords(view, list)}`;
  }

  verb(n) {
    if (!isSaved) return "listed";
    return n === 1 ? "matches" : "match";
  }

  // What a saved page lists of the rows that match, where it does not list all.
  heldWords(view, list) {
    if (list.total === view.n) return "";
    if (list.total === 0) return " This page holds the image of none of them; under “More filters” you can list them without.";
    return ` Listed: the ${inEnglish(list.total)} whose image this page holds. They were chosen to show the slices, not at random, so no rate of them is given.`;
  }

  showChips(query) {
    const words = { loop: "inside your loop", like: `near to row ${query.like}`, where: query.where };
    const chips = Object.entries(words).filter(([name]) => query[name]).map(([name, text]) => {
      const chip = makeText("button", "btn chip", `${text} `);
      chip.type = "button"; chip.append(makeText("span", "", "×")); chip.setAttribute("aria-label", `Remove: ${text}`);
      chip.addEventListener("click", () => { if (name === "where") this.form.elements.where.value = ""; if (name === "loop") this.box?.errataChart?.clearLoop(); this.ask(name === "where" ? {} : { [name]: "" }); });
      return chip;
    });
    const only = query.where && !query.loop && !query.like;
    if (only && !isSaved) { const link = makeText("a", "btn", "Test it as a hypothesis"); link.href = `/hypothesis?q=${encodeURIComponent(query.where)}`; chips.push(link); }
    this.page.querySelector(".chips").replaceChildren(...chips);
    for (const link of this.page.querySelectorAll("a[data-file]")) link.href = `/api/export/rows.${link.dataset.file}?${this.source.address(query)}`;
  }

  // ---- columns: a bar adds its condition

  showColumns(view) {
    const open = new Set([...this.page.querySelectorAll(".bars details[open]")].map((one) => one.dataset.column));
    const first = this.page.querySelector(".bars").children.length === 0;
    this.page.querySelector(".bars").replaceChildren(...view.columns.map((column, i) => this.makeColumn(column, view, first ? i < 6 : open.has(column.name))));
  }

  makeColumn(column, view, open) {
    const box = document.createElement("details");
    box.dataset.column = column.name; box.open = open;
    box.append(makeText("summary", "", column.name));
    const list = document.createElement("ul");
    const share = (n, of) => (of ? n / of : 0);
    const top = Math.max(...column.bars.flatMap((bar) => [share(bar.in, view.n), share(bar.out, view.others)]), 1e-9);
    list.append(...column.bars.map((bar) => this.makeBar(bar, share(bar.in, view.n), share(bar.out, view.others), top)));
    box.append(list);
    if (column.others) box.append(makeText("p", "q", `${inEnglish(column.others)} more values`));
    return box;
  }

  makeBar(bar, inside, outside, top) {
    const line = document.createElement("li");
    const button = makeText("button", "column-bar", "");
    const svg = makeDrawing("svg");
    svg.setAttribute("aria-hidden", "true");
    for (const [kind, share, y] of [["b-s", inside, 1], ["b-r", outside, 8]]) {
      const rect = makeDrawing("rect");
      const at = { class: kind, width: `${100 * share / top}%`, height: "6", y };
      for (const [name, value] of Object.entries(at)) rect.setAttribute(name, value);
      svg.append(rect);
    }
    button.type = "button";
    button.append(makeText("span", "name", bar.label), svg, makeText("span", "v", inEnglish(bar.in)));
    button.setAttribute("aria-label", `${bar.label}: ${(100 * inside).toFixed(0)}% of the ${isSaved ? "rows that match" : "listed rows"}, ${(100 * outside).toFixed(0)}% of the others. List only these.`);
    button.addEventListener("click", () => this.addCondition(bar.condition));
    line.append(button);
    return line;
  }

  addCondition(condition) {
    const field = this.form.elements.where;
    const before = field.value.trim();
    const several = / or /i.test(before);
    if (!before) field.value = condition; else if (!before.includes(condition)) field.value = `${several ? `(${before})` : before} and ${condition}`;
    this.ask();
  }

  // ---- the map

  light(lit) {
    if (!this.box || lit === null) return;
    const bits = typeof lit === "string" ? Uint8Array.from(atob(lit), (c) => c.charCodeAt(0)) : lit;
    this.box.errataLit = bits;
    this.box.errataChart?.light(bits);
  }

  // ---- one row, large

  async follow(step) {
    const at = this.list.rows.findIndex((line) => line.id === this.viewer.line.id) + step;
    if (at >= 0 && at < this.list.rows.length) return this.list.rows[at];
    const start = this.list.start + step * PAGE_SIZE;
    if (start < 0 || start >= this.list.total) return null;
    await this.turn(start);
    return this.list.rows[step > 0 ? 0 : this.list.rows.length - 1];
  }

  actions(line) {
    if (isSaved) return [];
    const slice = this.form.elements.slice.value;
    const acts = [["like", "More like this", () => { this.ask({ like: line.id }); }]];
    if (slice) acts.push(["out", "Put out of the slice", () => this.move(line, slice, false)], ["in", "Put in", () => this.move(line, slice, true)]);
    return acts;
  }

  move(line, slice, inside) {
    if (!person.value.trim()) { setTimeout(() => lacksName(() => this.move(line, slice, inside)), 50); return; } // behind the viewer, which closes first
    const body = JSON.stringify({ slice, item: line.id, inside, person: personName() });
    const said = this.page.querySelector(".rows-said");
    fetch("/api/edits", { method: "POST", headers: { "content-type": "application/json" }, body })
      .then(async (answer) => { if (!answer.ok) throw new Error((await answer.json()).detail); said.textContent = `Row ${line.id} was put ${inside ? "in" : "out"}. “Moved by people” lists all that were.`; this.cards.querySelector(`[data-row="${CSS.escape(line.id)}"]`)?.classList.toggle("out", !inside); })
      .catch((error) => this.fail(`Not saved: ${error.message}`));
  }

  // ---- files of a saved page

  download(kind) {
    const found = this.source.find(this.query).map((j) => this.source.line(j));
    // A spreadsheet would run a text that begins so as a formula; a number is as it was.
    const isFormula = (text) => /^[=+\-@\t\r]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
    const safe = (value) => (isFormula(String(value ?? "")) ? `'${value}` : String(value ?? ""));
    const cell = (value) => (/[",\n\r]/.test(safe(value)) ? `"${safe(value).replaceAll('"', '""')}"` : safe(value));
    const names = ["id", "label", "prediction", "wrong", "loss"];
    const columns = found.length ? found[0].metadata.map(([name]) => name) : [];
    const lines = found.map((line) => [...names.map((name) => line[name]), ...line.metadata.map(([, value]) => value)].map(cell).join(","));
    const text = kind === "ids" ? found.map((line) => line.id).join("\n") : [[...names, ...columns].map(cell).join(","), ...lines].join("\r\n");
    const link = document.createElement("a");
    link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(`${text}\n`)}`;
    link.download = kind === "ids" ? "errata-rows.txt" : "errata-rows.csv";
    link.click();
  }

  listen() {
    const { form, page } = this;
    form.addEventListener("submit", (event) => { event.preventDefault(); this.ask(); });
    form.addEventListener("change", (event) => {
      if (event.target.name === "px") { this.remember(); return this.showRows(this.list); }
      if (event.target.name === "order" && event.target.value !== "near") this.more.like = "";
      return this.ask();
    });
    page.querySelector("[data-do=draw]").addEventListener("click", () => this.ask({ seed: String(Number(this.more.seed || 0) + 1) }));
    page.querySelector("[data-do=previous]").addEventListener("click", () => this.turn(Math.max(0, this.start - PAGE_SIZE)));
    page.querySelector("[data-do=next]").addEventListener("click", () => this.turn(this.start + PAGE_SIZE));
    for (const button of page.querySelectorAll("button[data-file]")) button.addEventListener("click", () => this.download(button.dataset.file));
    this.box?.addEventListener("errata-loop", (event) => this.ask({ loop: event.detail.loop }));
    this.box?.addEventListener("errata-open", (event) => this.openRow(event.detail.row));
    if (isSaved) addEventListener("hashchange", () => { if (location.hash.startsWith("#rows")) { this.recall(); this.show(); } });
    else addEventListener("popstate", () => { this.recall(); this.show(); });
  }

  async openRow(row) {
    const line = isSaved ? this.source.atRow(row) : await askServer(`/api/at/${row}`);
    if (line) this.viewer.show(line); else this.fail("This page holds nothing but the outcome of that row: it is a search row.");
  }
}

// A saved page reads its rows when they are first looked at.
function startRows() {
  if (isSaved && !location.hash.startsWith("#rows")) return;
  for (const form of document.querySelectorAll("form[data-rows]")) form.errataRows ??= new RowList(form);
}
if (isSaved) addEventListener("hashchange", startRows);
startRows();
