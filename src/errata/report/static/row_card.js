// One row of many: its image, its text or its columns, and below it what the model said.
const OUTCOMES = new Map([[true, ["wrong", "×"]], [false, ["right", "●"]]]);

function makeCaption(line) {
  const cap = makeText("span", "cap", "");
  const [kind, sign] = OUTCOMES.get(line.wrong) ?? ["", ""];
  if (sign) { const mark = makeText("i", `sign ${kind}`, sign); mark.append(makeText("span", "vh", ` ${kind} `)); cap.append(mark, " "); }
  if (line.wrong && line.prediction != null) cap.append(`${line.label} → `, makeText("b", "", line.prediction));
  else if (line.label != null) cap.append(line.label, line.wrong === null && line.prediction != null ? `, predicted ${line.prediction}` : "");
  else cap.append(line.prediction == null ? `row ${line.id}` : `predicted ${line.prediction}`);
  return cap;
}

function fillCard(place, line, px) {
  const image = makeImage(line.row, line.id, px);
  if (image) return place.append(image, makeCaption(line));
  place.append(makeCaption(line));
  if (line.text != null) return place.append(makeText("span", "text", line.text));
  const values = (line.columns ?? []).map(([name, value]) => `${name} ${value}`).join(" · ");
  return place.append(makeText("span", "text", values || `row ${line.id}`));
}

function kindOf(line) { return (OUTCOMES.get(line.wrong) ?? [""])[0]; }
