// Texts into the page. Nothing here, or anywhere else, makes markup of a text: only text nodes are made of it.

// Signs that cannot be seen, or that make a text look like another one, are shown by their number.
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const LONGEST = 200000;

function element(name, className, ...content) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...content.filter((part) => part !== null && part !== undefined));
  return made;
}

function fillText(into, text) {
  let begin = 0;
  for (const found of text.matchAll(INVISIBLE)) {
    into.append(text.slice(begin, found.index));
    const number = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    into.append(element("span", "control", `U+${number}`));
    begin = found.index + 1;
  }
  into.append(text.slice(begin));
  return into;
}

// A text of somebody: it stays within its own direction of writing.
function quoted(text, className = "", name = "span") {
  return fillText(element(name, `user-text ${className}`.trim()), text.replaceAll("\r\n", "\n"));
}

function highlighted(text, words, className = "") {
  const made = element("span", `user-text ${className}`.trim());
  const lower = text.toLowerCase();
  let begin = 0;
  for (let at = words ? lower.indexOf(words) : -1; at >= 0; at = lower.indexOf(words, begin)) {
    fillText(made, text.slice(begin, at));
    made.append(fillText(element("mark"), text.slice(at, at + words.length)));
    begin = at + words.length;
  }
  return fillText(made, text.slice(begin));
}

function textBlock(text, className = "") {
  if (text.length <= LONGEST) return quoted(text, className, "pre");
  const block = quoted(text.slice(0, LONGEST), className, "pre");
  const rest = element("button", "more", `show ${(text.length - LONGEST).toLocaleString("en")} more characters`);
  rest.type = "button";
  rest.addEventListener("click", () => { fillText(block, text.slice(LONGEST)); rest.remove(); });
  return element("div", "", block, rest);
}

const KEY = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|[A-Za-z_][\w .-]*)(:)(?= |$)/;

// YAML with its keys in a colour of their own; without it where that would take long.
function yamlBlock(text) {
  if (text.length > 60000) return textBlock(text);
  const block = element("pre", "user-text");
  let verbatim = null;
  for (const line of text.split("\n")) {
    if (block.childNodes.length) block.append("\n");
    const indent = line.length - line.trimStart().length;
    if (verbatim !== null && (indent > verbatim || !line.trim())) { fillText(block, line); continue; }
    verbatim = null;
    const found = KEY.exec(line);
    if (!found) { fillText(block, line); continue; }
    const rest = line.slice(found[0].length);
    block.append(found[1]);
    block.append(fillText(element("span", "key"), found[2]), element("span", "punctuation", ":"));
    fillText(block, rest);
    if (/^ \|\d?[-+]?$/.test(rest)) verbatim = found[1].length;
  }
  return block;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${seconds.toFixed(0)} s`;
  if (seconds < 5400) return `${Math.floor(seconds / 60)} min ${String(Math.round(seconds % 60)).padStart(2, "0")}`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

function count(number) {
  if (number < 10000) return number.toLocaleString("en");
  return number < 999500 ? `${(number / 1000).toFixed(number < 99950 ? 1 : 0)}K` : `${(number / 1e6).toFixed(1)}M`;
}

function tokenText(tokens) {
  return tokens && tokens.is_known ? `${count(tokens.input)} → ${count(tokens.output)}` : "";
}

function moment(seconds) {
  const when = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
  return `${day} ${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
}

function plural(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}
