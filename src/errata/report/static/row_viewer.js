// One row, large, over the list: the one before and the next by arrow keys, and beside it rows of its label that are right.
class RowViewer {
  // source: gives a row in full. follow: (step) -> the line before or after the one that is open, or null.
  constructor(source, follow, act) {
    Object.assign(this, { source, follow, act, walk: Promise.resolve(), asked: Promise.resolve() });
    this.dialog = document.createElement("dialog");
    this.dialog.className = "viewer"; this.dialog.setAttribute("aria-labelledby", "h-viewer");
    this.dialog.addEventListener("keydown", (event) => this.onKey(event));
    this.dialog.addEventListener("close", () => { const last = this.from; this.from = null; last?.focus(); });
    document.body.append(this.dialog);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) { event.preventDefault(); this.go(step); }
  }

  // A person is faster than a server: steps are taken one after the other, and what is passed is not asked for.
  go(step) {
    const take = () => this.step(step);
    this.walk = this.walk.then(take, take); // after one that failed, too
  }

  async step(step) {
    const line = await this.follow(step);
    if (line && this.dialog.open) this.show(line);
  }

  show(line, from = null) {
    this.line = line;
    this.from ??= from;
    this.draw(line, null);
    if (!this.dialog.open) this.dialog.showModal();
    const ask = () => this.complete(line);
    this.asked = this.asked.then(ask, ask);
  }

  async complete(line) {
    if (this.line !== line) return;
    try {
      const whole = await this.source.open(line);
      if (this.line === line) this.draw(line, whole);
    } catch (error) { if (this.line === line) this.dialog.querySelector(".near").replaceChildren(makeText("p", "q", error.message)); }
  }

  draw(line, whole) {
    const focused = this.dialog.contains(document.activeElement) ? document.activeElement.dataset.do : null;
    const title = makeText("h2", "", `Row ${line.id}`);
    title.id = "h-viewer";
    const item = document.createElement("div");
    item.className = "item";
    const image = makeImage(line.row, line.id, 640);
    item.append(image ?? makeText("p", "measure", whole?.text ?? line.text ?? "This row has no image and no text."));
    this.dialog.replaceChildren(this.makeTools(title), this.makeBody(item, line, whole));
    this.dialog.querySelector(`[data-do="${focused ?? "next"}"]`)?.focus();
  }

  makeTools(title) {
    const bar = document.createElement("header");
    const button = (name, words, key, does) => {
      const one = makeText("button", "btn", words);
      one.type = "button"; one.dataset.do = name;
      if (key) one.append(" ", makeText("kbd", "", key));
      one.addEventListener("click", does);
      return one;
    };
    bar.append(title, button("previous", "Previous", "←", () => this.go(-1)), button("next", "Next", "→", () => this.go(1)));
    for (const [name, words, does] of this.act(this.line)) bar.append(button(name, words, "", () => { if (does() !== false) this.dialog.close(); }));
    bar.append(button("close", "Close", "Esc", () => this.dialog.close()));
    return bar;
  }

  makeBody(item, line, whole) {
    const body = document.createElement("div");
    const side = document.createElement("div");
    body.className = "cols cols-53"; side.className = "stack";
    const said = document.createElement("p");
    said.className = kindOf(line); said.append(makeCaption(line));
    const facts = [line.loss == null ? "" : `Loss ${line.loss}`, line.confidence == null ? "" : `confidence ${(100 * line.confidence).toFixed(1)}%`, `${line.role} row`];
    side.append(said, makeText("p", "q", facts.filter(Boolean).join(", ")));
    const pairs = (whole?.metadata ?? []).map(([name, value]) => [makeText("dt", "", name), makeText("dd", "", value)]);
    if (pairs.length) { const list = makeText("dl", "facts-list", ""); list.append(...pairs.flat()); side.append(list); }
    if (whole?.slices?.length) side.append(this.makeSlices(whole.slices));
    side.append(this.makeNear(whole));
    body.append(item, side);
    return body;
  }

  makeSlices(ids) {
    const line = makeText("p", "q", "In ");
    ids.forEach((id, i) => {
      const link = makeText("a", "", id);
      link.href = isSaved ? `#slice/${id}` : `/slice/${encodeURIComponent(id)}`;
      link.addEventListener("click", () => this.dialog.close());
      line.append(i ? ", " : "", link);
    });
    return line;
  }

  makeNear(whole) {
    const box = document.createElement("div");
    box.className = "near";
    if (whole === null) box.append(makeText("p", "q", "Looking for near rows."));
    else if (whole.near === null) box.append(makeText("p", "q", "Near rows take the data: “errata serve” shows them."));
    else if (!whole.near.length) box.append(makeText("p", "q", "No other row of its label is right."));
    else box.append(makeText("h3", "", "Nearest rows of its label that are right"), this.makeStrip(whole.near));
    return box;
  }

  makeStrip(lines) {
    const list = document.createElement("ul");
    list.className = hasImages ? "thumbs" : "lines";
    for (const line of lines) { const one = document.createElement("li"); one.className = `thumb ${kindOf(line)}`; fillCard(one, line, 112); list.append(one); }
    return list;
  }
}
