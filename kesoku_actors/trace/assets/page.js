// The page: which turn and which item are chosen, what is searched for, and the keys.

const LABELS = { person: "message", notice: "notice", inference: "model", thought: "thought", text: "text", call: "call", answer: "answer", stop: "stop", interruption: "interrupted" };
const FILTERS = [
  ["messages", (item) => ["person", "notice", "stop", "interruption"].includes(item.kind)],
  ["model", (item) => item.kind === "inference"],
  ["thoughts", (item) => item.kind === "thought" || item.kind === "text"],
  ["calls", (item) => item.kind === "call"],
  ["answers", (item) => item.kind === "answer"],
  ["trouble", (item) => ["failed", "interrupted", "unknown"].includes(item.state)],
];
const KEYS = [
  ["j  k", "next, previous step"], ["J  K", "next, previous turn"], ["Enter", "open the step, then its reply or request"],
  ["/", "search in every turn"], ["f", "only what went wrong"], ["Esc", "close, then take back search and filter"], ["?", "these keys"],
];
const MOST_FOUND = 400;

const trace = JSON.parse(document.getElementById("trace").textContent);
const turns = [...trace.turns];
if (trace.outside.length) {
  const times = trace.outside.map((item) => item.begin);
  turns.push({ number: "", title: "Outside of turns", status: "processing", reason: null, failure: null, began: Math.min(...times), ended: Math.max(...times), attempts: 0, tokens: null, cost: null, items: trace.outside });
}
const at = (id) => document.getElementById(id);
const state = { turn: 0, item: -1, tab: "request", words: "", filters: new Set(), shown: [] };

function button(className, ...content) {
  const made = element("button", className, ...content);
  made.type = "button";
  return made;
}

function drawTop() {
  const { session, tokens } = trace;
  at("session-title").append(quoted(session.title || "Untitled session"));
  fillText(at("session-facts"), `${session.channel}  ·  ${session.id}  ·  ${moment(session.created)}${session.state === "open" ? "" : `  ·  ${session.state}`}`);
  const items = trace.turns.flatMap((turn) => turn.items);
  const of = (kind) => items.filter((item) => item.kind === kind);
  const costs = trace.turns.map((turn) => turn.cost).filter((cost) => cost !== null);
  const worked = trace.turns.reduce((sum, turn) => sum + turn.ended - turn.began, 0);
  const part = trace.turns.length < session.turns ? ` of ${session.turns}` : "";
  const totals = [
    [`${trace.turns.length}${part}`, trace.turns.length === 1 && !part ? "turn" : "turns"],
    [of("inference").length.toLocaleString("en"), "model calls"], [of("call").length.toLocaleString("en"), "tool calls"],
    [tokens.is_known ? `${count(tokens.input)} → ${count(tokens.output)}` : "unknown", "tokens in → out"],
    [costs.length ? `$${costs.reduce((sum, cost) => sum + cost, 0).toFixed(4)}` : "unknown", "cost"],
    [duration(worked) || "0 ms", "in turns"],
  ];
  for (const [number, name] of totals) at("totals").append(element("span", "", element("b", "", number), ` ${name}`));
  for (const [name] of FILTERS) {
    const chip = button("", name);
    chip.dataset.name = name;
    chip.addEventListener("click", () => toggleFilter(name));
    at("filters").append(chip);
  }
  const failed = turns.map((turn, index) => [turn, index]).filter(([turn]) => turn.failure);
  for (const [turn, index] of failed.slice(-3).reverse()) {
    const line = button("", element("b", "", `Turn ${turn.number} failed`), quoted(turn.failure));
    line.addEventListener("click", () => { clear(); choose(index, -1); });
    at("failures").append(line);
  }
  if (failed.length > 3) at("failures").append(element("span", "dim", `and ${failed.length - 3} more`));
  at("search").addEventListener("input", later(() => { state.words = at("search").value.trim().toLowerCase(); draw(); }));
  at("help-button").addEventListener("click", help);
  at("help").append(element("h2", "", "Keys"), element("dl", "", ...KEYS.flatMap(([keys, what]) => [element("dt", "", ...keys.split("  ").flatMap((key) => [element("kbd", "", key), " "])), element("dd", "", what)])));
  turns.forEach((turn, index) => {
    const line = button("", element("span", "number", String(turn.number)), quoted(turn.title || "(no text)", "title"), element("span", `dot ${turn.status}`));
    const below = [duration(turn.ended - turn.began), tokenText(turn.tokens), turn.failure ? "failed" : turn.status === "interrupted" ? "interrupted" : ""];
    line.append(element("span", "below", ...below.filter(Boolean).map((text) => element("span", "", text))));
    line.title = turn.title;
    line.addEventListener("click", () => { clear(); choose(index, -1); });
    at("turns").append(line);
  });
}

function later(action) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(action, 120); };
}

function textsOf(item) {
  item.lower ??= [item.title, item.error || "", ...(item.parts || []).map((part) => part[1])].join("\n").toLowerCase();
  return item.lower;
}

function wanted(item) {
  const kinds = FILTERS.filter(([name]) => state.filters.has(name) && name !== "trouble");
  if (state.filters.has("trouble") && !FILTERS[FILTERS.length - 1][1](item)) return false;
  if (kinds.length && !kinds.some(([, test]) => test(item))) return false;
  return !state.words || textsOf(item).includes(state.words);
}

const isSearching = () => Boolean(state.words || state.filters.size);

function draw() {
  [...at("turns").children].forEach((line, index) => line.setAttribute("aria-current", String(index === state.turn && !isSearching())));
  for (const chip of at("filters").children) chip.setAttribute("aria-pressed", String(state.filters.has(chip.dataset.name)));
  state.shown = [];
  const section = at("turn");
  section.replaceChildren(...(isSearching() ? drawFound() : drawTurn(turns[state.turn])));
  section.scrollTop = 0;
  mark();
}

function drawTurn(turn) {
  if (!turn) return [element("p", "empty", "There is nothing in this session yet.")];
  const facts = [element("span", `pill ${turn.status}`, turn.status.replace("_", " ")), element("span", "", moment(turn.began)), element("span", "", duration(turn.ended - turn.began))];
  if (turn.reason) facts.push(element("span", "", `reason: ${turn.reason}`));
  if (tokenText(turn.tokens)) facts.push(element("span", "", `${tokenText(turn.tokens)} tokens`));
  facts.push(element("span", "", turn.cost === null ? "cost unknown" : `$${turn.cost.toFixed(4)}`));
  const drawn = [quoted(turn.number === "" ? turn.title : `${turn.number}. ${turn.title}`, "", "h2"), element("div", "facts", ...facts)];
  if (turn.failure) drawn.push(element("div", "banner", element("b", "", "Failed. "), quoted(turn.failure)));
  if (turn.attempts) drawn.push(element("div", "banner calm", element("b", "", "Taken up again. "), `The program ended under this turn ${plural(turn.attempts, "time")}; it went on from its stored steps.`));
  drawn.push(drawTimeline(turn, (index) => choose(state.turn, index)));
  turn.items.forEach((item, index) => drawn.push(drawItem(turn, state.turn, item, index)));
  return drawn;
}

function drawFound() {
  const drawn = [];
  let found = 0;
  turns.forEach((turn, number) => {
    const hits = turn.items.map((item, index) => [item, index]).filter(([item]) => wanted(item));
    found += hits.length;
    if (!hits.length || state.shown.length >= MOST_FOUND) return;
    drawn.push(quoted(turn.number === "" ? turn.title : `${turn.number}. ${turn.title}`, "group", "p"));
    for (const [item, index] of hits.slice(0, MOST_FOUND - state.shown.length)) drawn.push(drawItem(turn, number, item, index));
  });
  const shown = found > MOST_FOUND ? `, the first ${MOST_FOUND} are shown` : "";
  return [element("p", "dim", `${plural(found, "step")} found${shown}`), ...drawn];
}

function drawItem(turn, turnIndex, item, index) {
  const offset = item.begin - turn.began;
  const title = element("span", "title", highlighted(titleOf(item), state.words));
  if (item.error) title.append(highlighted(item.error, state.words, "why"));
  const line = button(`item k-${item.kind} s-${item.state}`, element("span", "at", `${item.guessed ? "~" : ""}${offset < 0 ? "−" : "+"}${duration(Math.abs(offset))}`),
    element("span", "kind", item.kind === "thought" || item.kind === "text" ? `↳ ${LABELS[item.kind]}` : LABELS[item.kind]), title,
    element("span", "spent", tokenText(item.tokens)), element("span", "took", item.end === null ? "open" : item.end > item.begin ? duration(item.end - item.begin) : ""));
  line.dataset.turn = turnIndex;
  line.dataset.index = index;
  line.addEventListener("click", () => choose(turnIndex, index));
  state.shown.push([turnIndex, index]);
  return line;
}

function titleOf(item) {
  return item.title || "(no text)";
}

// Shows which item is chosen, in the list, in the timeline and on the right.
function mark() {
  for (const line of document.querySelectorAll("#turn .item, #turn .bar")) {
    const isChosen = Number(line.dataset.index) === state.item && (line.dataset.turn === undefined || Number(line.dataset.turn) === state.turn);
    line.classList.toggle("selected", isChosen);
    if (isChosen && line.classList.contains("item")) line.scrollIntoView({ block: "nearest" });
  }
  const turn = turns[state.turn];
  const item = turn && turn.items[state.item];
  const hint = element("p", "hint", "Choose a step to see what was sent and what came back: ", element("kbd", "", "j"), " ", element("kbd", "", "k"), " walk, ", element("kbd", "", "?"), " shows all keys.");
  const drawn = item ? drawDetail(trace, turn, item, state.tab, (name) => { state.tab = name; }) : [hint];
  at("detail").replaceChildren(...drawn.filter(Boolean));
  at("detail").scrollTop = 0;
  try {
    history.replaceState(null, "", `#${state.turn + 1}.${state.item + 1}`);
  } catch { /* a page from a file may not keep its place */ }
}

function choose(turn, item) {
  const isOther = turn !== state.turn;
  state.turn = turn;
  state.item = item;
  if (isSearching() || (!isOther && at("turn").childNodes.length)) mark();
  else draw();
  if (isOther && !isSearching()) at("turns").children[turn]?.scrollIntoView({ block: "nearest" });
}

function move(steps) {
  if (!state.shown.length) return;
  const now = state.shown.findIndex(([turn, item]) => turn === state.turn && item === state.item);
  const next = now < 0 ? (steps > 0 ? 0 : state.shown.length - 1) : Math.min(Math.max(now + steps, 0), state.shown.length - 1);
  choose(...state.shown[next]);
}

function moveTurn(steps) {
  clear();
  const next = Math.min(Math.max(state.turn + steps, 0), turns.length - 1);
  if (next !== state.turn) choose(next, -1);
}

function clear() {
  if (!isSearching()) return;
  state.words = at("search").value = "";
  state.filters.clear();
  draw();
}

function toggleFilter(name) {
  if (!state.filters.delete(name)) state.filters.add(name);
  draw();
}

function help() {
  if (at("help").open) at("help").close();
  else at("help").showModal();
}

function enter() {
  if (state.item < 0) return move(1);
  state.tab = state.tab === "request" ? "reply" : "request";
  mark();
}

function escape() {
  if (at("help").open) at("help").close();
  else if (document.activeElement === at("search") && !state.words) at("search").blur();
  else if (state.item >= 0 && !isSearching()) choose(state.turn, -1);
  else clear();
}

const ACTIONS = { j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), J: () => moveTurn(1), K: () => moveTurn(-1), "/": () => at("search").focus(), f: () => toggleFilter("trouble"), "?": help, Enter: enter, Escape: escape };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = document.activeElement === at("search");
  if (isTyping && event.key === "Enter") at("search").blur();
  else if (isTyping && event.key !== "Escape") return;
  const isOnControl = event.key === "Enter" && document.activeElement?.matches("summary, .tabs button, .more, header button, #turns button");
  const action = isOnControl || (isTyping && event.key === "Enter") ? undefined : ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

function begin() {
  const place = /^#(\d{1,6})\.(\d{1,6})$/.exec(location.hash);
  const failed = turns.map((turn) => Boolean(turn.failure)).lastIndexOf(true);
  const last = trace.turns.length - 1;
  state.turn = Math.min(place ? Number(place[1]) - 1 : failed >= 0 ? failed : Math.max(last, 0), Math.max(turns.length - 1, 0));
  const turn = turns[state.turn];
  const wrong = turn ? turn.items.map((item) => item.state === "failed").lastIndexOf(true) : -1;
  state.item = place ? Number(place[2]) - 1 : wrong;
  drawTop();
  draw();
  at("turns").children[state.turn]?.scrollIntoView({ block: "nearest" });
}

begin();
