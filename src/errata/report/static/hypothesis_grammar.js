// The grammar of hypothesis/grammar.py for a page without a server. The two are tested with the same cases
// (tests/hypothesis/*_cases.json), sentences of errors included.
//
// columns: {name: {kind: "number" | "text" | "words", values: [value or null, one a row]}}, as hypothesis.to_columns
// gives them; "words" are the rows' own texts.

const OWN = ["label", "prediction", "id"]; // words are not looked for in these
const NO_TEXTS = "This page does not hold the texts of the rows, so words cannot be found in them; “errata serve” can.";
const LONGEST = 1000;
const DEEPEST = 50;
const MOST_NAMED = 8;
const MOST_COMPARED = 2000;
const LARGEST_WHOLE = 2 ** 53;
const WORD = /[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*/gu;
const NUMBER = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const TOKEN =
  /\s+|(?<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*'|“[^”]*”)|(?<op><=|>=|!=|==|<>|[=<>≠≤≥])|(?<mark>[(),])|(?<word>(?:(?!!=)[^\s(),<>=≠≤≥])+)/gu;
const SPELLINGS = new Map([["==", "="], ["<>", "!="], ["≠", "!="], ["≤", "<="], ["≥", ">="]]);
const ORDER = new Map([
  ["<", (a, b) => a < b],
  ["<=", (a, b) => a <= b],
  [">", (a, b) => a > b],
  [">=", (a, b) => a >= b],
]);

/** A mistake of the writer's, in one sentence. */
export class HypothesisError extends Error {}

/**
 * The rows that a text means: {condition: true, or false for words; columns: names it reads, or looks for words in;
 * mask(): booleans}. media: "text" or "image" where rows have such; words in images, and in texts that are no column,
 * cannot be found here.
 */
export function parse(text, columns, media = null) {
  const written = text.trim();
  if (written.length > LONGEST) {
    fail(`The hypothesis has ${grouped(written.length)} characters; at most ${grouped(LONGEST)} are read.`);
  }
  const table = new Map(Object.entries(columns).map(([name, column]) => [name, new Column(name, column)]));
  const tokens = tokenise(written);
  if (tokens.some((token, i) => token.kind === "op" || (i > 0 && startsOperator(tokens, i)))) {
    const parser = new Parser(tokens, table, media);
    const ask = parser.parse();
    return { condition: true, columns: [...parser.read], mask: () => ask().map((answer) => answer === true) };
  }
  const words = [...new Set(wordsOf(written))];
  if (!words.length) fail("Nothing to test. Write words, or a condition, such as “column = value”.");
  const searched = wordColumns(table, media);
  return { condition: false, columns: searched.map((column) => column.name), mask: () => matchWords(words, searched) };
}

/** The usual interval of a single rate, for drawing. Never for a verdict. */
export function wilson(k, n, z = 1.959963984540054) {
  if (n <= 0) return [0, 1];
  const rate = k / n;
  const shrink = 1 + (z * z) / n;
  const centre = (rate + (z * z) / (2 * n)) / shrink;
  const half = (z / shrink) * Math.sqrt((rate * (1 - rate)) / n + (z * z) / (4 * n * n));
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}

function fail(sentence) {
  throw new HypothesisError(sentence);
}

function wordsOf(text) {
  return text.toLowerCase().match(WORD) ?? [];
}

function wordColumns(table, media) {
  const cure = "Write a condition, such as “column = value”.";
  const texts = [...table.values()].filter((column) => column.kind === "words");
  if (texts.length) return texts;
  if (media === "text") fail(`${NO_TEXTS} ${cure}`);
  const columns = [...table.values()].filter((column) => column.kind === "text" && !OWN.includes(column.name));
  if (columns.length) return columns;
  if (media === "image") fail(`No column holds text to find words in, and to find words in images takes a text encoder. ${cure}`);
  return fail(`No row has text to find words in. ${cure}`);
}

function matchWords(words, columns) {
  return columns[0].values.map((_, i) => {
    const held = new Set(columns.flatMap((column) => wordsOf(column.values[i] ?? "")));
    return words.every((word) => held.has(word));
  });
}

/** Where words were looked for, as a sentence. */
export function lookedIn(names, media) {
  const images = media === "image" ? "; to find them in images takes a text encoder" : "";
  return `Words were looked for in ${listed(names)}${images}.`;
}

// --- columns and values

class Column {
  constructor(name, { kind, values }) {
    this.name = name;
    this.kind = kind;
    this.values = values.map((value) => present(kind, value));
  }

  distinct() {
    const values = [...new Set(this.values.filter((value) => value !== null))];
    if (this.kind === "number") return values.sort((a, b) => a - b);
    const first = new Map();
    for (const value of values.sort(byFolded)) {
      if (!first.has(value.toLowerCase())) first.set(value.toLowerCase(), value);
    }
    return [...first.values()];
  }

  /** true, false, or null where the row has no value. */
  answers(op, values) {
    const wanted = new Set(values);
    const test = (held) => {
      if (op === "in" || op === "=") return wanted.has(held);
      if (op === "!=") return !wanted.has(held);
      if (op === "contains") return values.some((value) => held.includes(this.kind === "words" ? ` ${value} ` : value));
      return ORDER.get(op)(held, values[0]);
    };
    return this.values.map((value) => (value === null ? null : test(this.folded(value))));
  }

  folded(value) {
    if (this.kind === "number") return value;
    return this.kind === "words" ? ` ${wordsOf(value).join(" ")} ` : value.toLowerCase();
  }
}

function present(kind, value) {
  if (value === null || value === undefined) return null;
  if (kind === "number") return Number.isFinite(value) ? value : null;
  const text = String(value).trim();
  return text === "" ? null : text;
}

function byFolded(a, b) {
  const [x, y] = [[a.toLowerCase(), a], [b.toLowerCase(), b]];
  const i = x[0] === y[0] ? 1 : 0;
  return x[i] < y[i] ? -1 : x[i] > y[i] ? 1 : 0;
}

function parseNumber(text) {
  const plain = text.replaceAll("−", "-");
  return NUMBER.test(plain) ? Number(plain) : null;
}

/** A value as its column holds it; refused where it can match nothing. */
function checked(column, op, value, quoted) {
  if (column.kind === "words") return checkedWords(column, op, value);
  const number = parseNumber(value);
  if (column.kind === "number") {
    if (op === "contains") fail(`Column “${column.name}” holds numbers; “contains” looks in text.`);
    if (number === null) fail(`Column “${column.name}” holds numbers; “${value}” is not one.`);
    if (["=", "!=", "in"].includes(op) && !column.values.includes(number)) {
      neverOccurs(column, value, nearestNumber(number, column.distinct()));
    }
    return number;
  }
  if (ORDER.has(op) && number !== null && !quoted) {
    fail(`Column “${column.name}” holds text; “${value}” is a number. Quote it to compare it as text.`);
  }
  const folded = value.toLowerCase();
  if (!ORDER.has(op) && !column.answers(op === "!=" ? "=" : op, [folded]).includes(true)) {
    const known = column.distinct();
    const pieces = op === "contains" ? [...new Set(known.flatMap((text) => text.match(WORD) ?? []))] : known;
    neverOccurs(column, value, nearestWord(value, pieces));
  }
  return folded;
}

/** Words to look for in texts, in lower case with one space between them. */
function checkedWords(column, op, value) {
  const words = wordsOf(value);
  if (op !== "contains") fail("“text” is what the rows say; write “text contains” and words.");
  if (!words.length) fail(`“${value}” has no word to look for.`);
  const phrase = words.join(" ");
  if (!column.answers(op, [phrase]).includes(true)) {
    const known = new Set(column.values.flatMap((text) => wordsOf(text ?? "")));
    const missing = words.find((word) => !known.has(word));
    const near = missing === undefined ? null : nearestWord(missing, [...known]);
    fail(`“${value}” never occurs in “text”.${near === null ? "" : ` Did you mean “${near}”?`}`);
  }
  return phrase;
}

function neverOccurs(column, value, near) {
  const sentence = `“${value}” never occurs in “${column.name}”.`;
  const known = column.distinct();
  if (near !== null) fail(`${sentence} ${typeof near === "string" ? `Did you mean “${near}”?` : `The nearest is ${format(near)}.`}`);
  fail(known.length ? `${sentence} It holds ${listed(known.map(format))}.` : `${sentence} It is empty.`);
}

function findColumn(name, table) {
  if (table.has(name)) return table.get(name);
  const known = [...table.keys()];
  const loosely = (text) => text.toLowerCase().trim().split(/\s+/u).join(" ");
  const alike = known.filter((column) => loosely(column) === loosely(name));
  if (alike.length > 1) {
    fail(`“${name}” may be ${alike.map((column) => `“${column}”`).join(" or ")}; write it exactly.`);
  }
  if (alike.length) return table.get(alike[0]);
  const near = nearestWord(name, known);
  return fail(`Unknown column “${name}”. ${near === null ? `Known: ${listed(known.sort())}.` : `Did you mean “${near}”?`}`);
}

function format(value) {
  return typeof value === "number" && Number.isInteger(value) && Math.abs(value) < LARGEST_WHOLE
    ? value.toFixed(0)
    : String(value);
}

function grouped(count) {
  return String(count).replace(/\B(?=(?:[0-9]{3})+$)/g, ",");
}

function listed(values) {
  const named = values.slice(0, MOST_NAMED).map((value) => `“${value}”`).join(", ");
  const others = values.length - MOST_NAMED;
  return others < 1 ? named : `${named} and ${grouped(others)} more`;
}

/** The word with the fewest slips of a finger between, case counting among equals; null beyond half of the letters. */
function nearestWord(got, known) {
  let words = [...known].sort(byFolded);
  if (words.length > MOST_COMPARED) {
    const at = words.findIndex((word) => word.toLowerCase() >= got.toLowerCase());
    const middle = at < 0 ? words.length : at;
    const start = Math.max(0, Math.min(middle - MOST_COMPARED / 2, words.length - MOST_COMPARED));
    words = words.slice(start, start + MOST_COMPARED);
  }
  const longest = (word) => Math.max(word.length, got.length);
  const able = words
    .filter((word) => 2 * Math.abs(word.length - got.length) <= longest(word))
    .map((word) => ({ word, count: slips(got.toLowerCase(), word.toLowerCase()) }))
    .filter(({ word, count }) => 2 * count <= longest(word));
  const fewest = able.reduce((least, { count }) => Math.min(least, count), Infinity);
  let best = null;
  for (const { word } of able.filter(({ count }) => count === fewest)) {
    if (best === null || slips(got, word) < slips(got, best)) best = word;
  }
  return best;
}

/** Letters changed, left out, put in, or swapped with the next (optimal string alignment). */
function slips(a, b) {
  let before = [];
  let last = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    [before, last, row] = [last, row, [i]];
    for (let j = 1; j <= b.length; j += 1) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.length];
}

/** The smaller of two that are as near. */
function nearestNumber(got, known) {
  return known.reduce((best, value) => (best === null || Math.abs(value - got) < Math.abs(best - got) ? value : best), null);
}

// --- the grammar

function tokenise(text) {
  const tokens = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = ["quoted", "op", "mark", "word"].find((name) => match.groups[name] !== undefined);
    if (kind) tokens.push({ kind, text: match[0] });
  }
  return tokens;
}

/** `contains`, `in (` or `is [not] missing`: elsewhere "in" and "is" are words like others. */
function startsOperator(tokens, i) {
  const { kind, text } = tokens[i];
  if (kind !== "word") return false;
  if (text.toLowerCase() === "is") return lengthOfMissing(tokens, i) > 0;
  return text.toLowerCase() === "contains" || (text.toLowerCase() === "in" && tokens[i + 1]?.text === "(");
}

/** How many words of `is missing` or `is not missing` start here; 0 where neither does. */
function lengthOfMissing(tokens, i) {
  const isWord = (word, j) => tokens[i + j]?.kind === "word" && tokens[i + j].text.toLowerCase() === word;
  return [["is", "missing"], ["is", "not", "missing"]].find((words) => words.every(isWord))?.length ?? 0;
}

const not = (answer) => (answer === null ? null : !answer);
const and = (a, b) => (a === false || b === false ? false : a === null || b === null ? null : true);
const or = (a, b) => (a === true || b === true ? true : a === null || b === null ? null : false);

/** One pass over the tokens; every part becomes a function that gives true, false or null (missing) for each row. */
class Parser {
  constructor(tokens, table, media) {
    this.tokens = tokens;
    this.table = table;
    this.media = media;
    this.at = 0;
    this.depth = 0;
    this.read = new Set();
  }

  parse() {
    if (this.tokens.some(({ kind, text }) => kind === "word" && "\"'“".includes(text[0]))) {
      fail("A quotation mark is not closed.");
    }
    const ask = this.any();
    if (this.isMark(")")) fail("A parenthesis is closed that was never opened.");
    if (this.at < this.tokens.length) this.missingJoint();
    return ask;
  }

  any() {
    return this.joined("or", or, () => this.joined("and", and, () => this.factor()));
  }

  joined(word, join, part) {
    let ask = part();
    while (this.isWord(word)) {
      this.at += 1;
      const [first, second] = [ask, part()];
      ask = () => {
        const others = second();
        return first().map((answer, i) => join(answer, others[i]));
      };
    }
    return ask;
  }

  factor() {
    if (!this.isWord("not") && !this.isMark("(")) return this.comparison();
    this.depth += 1;
    if (this.depth > DEEPEST) fail(`Parentheses and “not” are nested more than ${DEEPEST} deep.`);
    const negated = this.isWord("not");
    this.at += 1;
    const ask = negated ? this.negated(this.factor()) : this.closed();
    this.depth -= 1;
    return ask;
  }

  negated(ask) {
    return () => ask().map(not);
  }

  closed() {
    const ask = this.any();
    if (this.at === this.tokens.length) fail("A parenthesis is not closed.");
    if (!this.isMark(")")) this.missingJoint();
    this.at += 1;
    return ask;
  }

  comparison() {
    const { name, negated } = this.name();
    if (this.media === "text" && name.toLowerCase() === "text" && !this.table.has("text")) fail(NO_TEXTS);
    const column = findColumn(name, this.table);
    this.read.add(column.name);
    const missing = lengthOfMissing(this.tokens, this.at);
    if (missing) {
      this.at += missing;
      const absent = () => column.values.map((value) => value === null);
      return negated === (missing === 3) ? absent : this.negated(absent);
    }
    const written = this.tokens[this.at].text;
    const op = SPELLINGS.get(written) ?? written.toLowerCase();
    this.at += 1;
    const operands = this.operands(op);
    const values = operands.map(({ text, quoted }) => checked(column, op, text, quoted));
    const ask = () => column.answers(op, values);
    return negated ? this.negated(ask) : ask;
  }

  name() {
    let words = [];
    while (this.at < this.tokens.length && !this.atOperator() && !this.isWord("and", "or") && !this.isKind("mark")) {
      words.push(this.unquoted());
    }
    const negated = words.length > 1 && words.at(-1).toLowerCase() === "not" && !this.isKind("op");
    words = negated ? words.slice(0, -1) : words;
    if (!words.length) {
      const here = this.tokens[this.at];
      fail(here ? `A column is missing before “${here.text}”.` : `A condition is missing after “${this.tokens.at(-1).text}”.`);
    }
    if (!this.atOperator()) fail(`“${words.join(" ")}” is not compared with anything; write “column = value”.`);
    return { name: words.join(" "), negated };
  }

  value(op) {
    if (this.isKind("quoted")) return { text: this.unquoted(), quoted: true };
    const words = [];
    while (this.isKind("word") && !this.isWord("and", "or") && !this.atOperator()) words.push(this.unquoted());
    if (!words.length) fail(`A value is missing after “${op}”.`);
    if (this.atOperator()) this.missingJoint();
    return { text: words.join(" "), quoted: false };
  }

  list() {
    this.at += 1; // the parenthesis that made it an operator
    const values = [this.value("(")];
    while (this.isMark(",")) {
      this.at += 1;
      values.push(this.value(","));
    }
    if (!this.isMark(")")) fail("A parenthesis is not closed.");
    this.at += 1;
    return values;
  }

  operands(op) {
    if (op === "in") return this.list();
    const values = [this.value(op)];
    while (op === "contains" && values.at(-1).quoted && this.isWord("or") && this.isWholeValue(this.at + 1)) {
      this.at += 1;
      values.push(this.value("or"));
    }
    return values;
  }

  /** Whether a quoted text stands there that is no part of a column's name. */
  isWholeValue(i) {
    const after = this.tokens[i + 1];
    if (this.tokens[i]?.kind !== "quoted") return false;
    return !after || after.text === ")" || (after.kind === "word" && ["and", "or"].includes(after.text.toLowerCase()));
  }

  missingJoint() {
    fail(`“and” or “or” is missing before “${this.tokens[this.at].text}”.`);
  }

  unquoted() {
    const { kind, text } = this.tokens[this.at];
    this.at += 1;
    return kind === "quoted" ? text.slice(1, -1).replaceAll(text[0] + text[0], text[0]).trim() : text;
  }

  atOperator() {
    return this.isKind("op") || (this.at < this.tokens.length && startsOperator(this.tokens, this.at));
  }

  isKind(kind) {
    return this.tokens[this.at]?.kind === kind;
  }

  isWord(...words) {
    return this.isKind("word") && words.includes(this.tokens[this.at].text.toLowerCase());
  }

  isMark(mark) {
    return this.isKind("mark") && this.tokens[this.at].text === mark;
  }
}
