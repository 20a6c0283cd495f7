// The image of a row and what is known of it: a server has every row, a saved page what was put into it.
const isSaved = document.querySelector("[data-paged]") !== null;
const hasImages = document.body.dataset.media === "image";
const HARD = 40; // an image with fewer pixels across is drawn with hard edges, so that they can be seen

async function askServer(address) {
  let answer;
  try { answer = await fetch(address); } catch { throw new Error("The server did not answer. Try again."); }
  const result = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(typeof result.detail === "string" ? result.detail : answer.statusText);
  return result;
}

const holdsImage = (row) => document.getElementById(`p${row}`) !== null;

function makeImage(row, id, px) {
  if (!hasImages) return null;
  if (isSaved) return holdsImage(row) ? makeUse(row, id) : makeText("span", "pic none", "image not in this page");
  const image = document.createElement("img");
  image.className = "pic"; image.alt = `row ${id}`; image.loading = "lazy";
  image.addEventListener("load", () => image.classList.toggle("hard", image.naturalWidth < HARD));
  image.addEventListener("error", () => image.replaceWith(makeText("span", "pic none", "no image")));
  image.src = `/thumb/${row}?px=${px}&v=${document.body.dataset.version}`;
  return image;
}

function makeUse(row, id) {
  const svg = makeDrawing("svg");
  const use = makeDrawing("use");
  svg.setAttribute("class", "pic"); svg.setAttribute("role", "img"); svg.setAttribute("aria-label", `row ${id}`);
  use.setAttribute("href", `#p${row}`);
  svg.append(use);
  return svg;
}

// Every page that needs one has an svg element, whose kind need not be spelled out.
function makeDrawing(tag) { return document.createElementNS(document.querySelector("svg").namespaceURI, tag); }

function makeText(tag, kind, text) {
  const element = document.createElement(tag);
  element.className = kind; element.textContent = text;
  return element;
}
