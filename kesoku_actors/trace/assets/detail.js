// What the column on the right shows of one item: its facts and texts, and of an inference the request and the reply.

function factList(facts) {
  const list = element("dl", "");
  for (const [name, value] of facts) list.append(element("dt", "", name), quoted(String(value), "", "dd"));
  return list;
}

function drawDetail(trace, turn, item, chosenTab, chooseTab) {
  const facts = [];
  const at = turn ? `+${duration(Math.max(0, item.begin - turn.began)) || "0 ms"}  ·  ` : "";
  facts.push(["at", `${at}${moment(item.begin)}${item.guessed ? " (about)" : ""}`]);
  if (item.end === null) facts.push(["took", "not over"]);
  else if (item.end !== item.begin) facts.push(["took", duration(item.end - item.begin)]);
  for (const wait of item.waits || []) {
    facts.push([wait.name, wait.end === null ? "not over" : duration(wait.end - wait.begin)]);
  }
  if (item.tokens) facts.push(["tokens", tokenFacts(item.tokens)]);
  const head = element("div", "head", quoted(item.kind === "inference" || item.kind === "call" ? item.title : LABELS[item.kind], "", "h2"), element("span", `pill ${item.state}`, item.state));
  const banner = item.error ? element("div", `banner${item.state === "failed" ? "" : " calm"}`, quoted(item.error)) : null;
  const all = factList([...facts, ...(item.facts || [])]);
  if (item.exchange === undefined) {
    const parts = (item.parts || []).flatMap(([name, text]) => [element("h3", "", name), name === "arguments" ? yamlBlock(text.replace(/\n$/, "")) : textBlock(text, item.kind === "call" ? "" : "prose")]);
    return [head, banner, ...(item.kind === "call" || !parts.length ? [all, ...parts] : [...parts, element("h3", "", "facts"), all])];
  }
  const exchange = trace.exchanges[item.exchange];
  const pages = {
    request: () => drawRequest(trace, exchange),
    reply: () => [yamlBlock(outdented(trace.pool[exchange.response]))],
  };
  const tabs = element("div", "tabs");
  tabs.setAttribute("role", "tablist");
  const body = element("div", "");
  const open = (name) => {
    for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.dataset.name === name));
    body.replaceChildren(...pages[name]());
  };
  for (const name of Object.keys(pages)) {
    const tab = element("button", "", name);
    tab.type = "button";
    tab.dataset.name = name;
    tab.setAttribute("role", "tab");
    tab.addEventListener("click", () => { chooseTab(name); open(name); });
    tabs.append(tab);
  }
  open(chosenTab);
  const source = exchange.source === "log"
    ? element("div", "source", "as sent and received, by ", quoted(exchange.name, "mono"), " in the session's folder, where its tools can write too")
    : element("div", "source rows", "rebuilt from the stored rows: the turn log does not have this inference");
  return [head, banner, all, tabs, source, body];
}

function tokenFacts(tokens) {
  if (!tokens.is_known) return "not told by the provider";
  const extra = [tokens.cached ? `${count(tokens.cached)} cached` : "", tokens.thinking ? `${count(tokens.thinking)} thinking` : ""].filter(Boolean);
  return `${count(tokens.input)} in, ${count(tokens.output)} out${extra.length ? ` (${extra.join(", ")})` : ""}`;
}

// The messages of a request: those of an earlier one that come first, then its own.
function messagesOf(trace, exchange) {
  const parts = [];
  let upto = Infinity;
  for (let one = exchange; one; one = one.base === null ? null : trace.exchanges[one.base]) {
    const own = one.messages.slice(0, Math.max(0, upto - one.same));
    parts.unshift(own);
    upto = Math.min(upto, one.same);
  }
  return parts.flat();
}

// A part of the log without the column that it stands in there.
function outdented(text) {
  const clean = text.replace(/^\n+|\s+$/g, "");
  return clean.startsWith("  ") ? clean.replace(/^ {2}/gm, "") : clean;
}

function drawRequest(trace, exchange) {
  const messages = messagesOf(trace, exchange);
  const drawn = element("div", "");
  const before = Math.min(exchange.same, messages.length);
  const folded = before > 6 ? before : 0;
  if (folded) {
    const more = element("button", "more", `▸ ${plural(folded, "message")} as in the request before`);
    more.type = "button";
    more.addEventListener("click", () => more.replaceWith(...drawMessages(trace, messages.slice(0, folded), 0, before)));
    drawn.append(more);
  }
  drawn.append(...drawMessages(trace, messages.slice(folded), folded, before));
  const rest = [["the rest of the body", trace.pool[exchange.request]], ["tools offered", trace.pool[exchange.tools]]];
  const blocks = rest.flatMap(([name, text]) => {
    const clean = outdented(text).replace(/^(\w+): \*history$/m, "$1: (the messages above)");
    if (!clean.trim() || clean.trim() === "[]") return [];
    return [element("h3", "", name), yamlBlock(clean)];
  });
  return [element("h3", "", plural(messages.length, "message")), drawn, ...blocks];
}

function drawMessages(trace, indices, first, before) {
  return indices.map((index, number) => {
    const text = trace.pool[index];
    const { role, peek } = peekAt(text);
    const isNew = first + number >= before;
    const summary = element("summary", "", quoted(role, `role ${/^(user|tool|system)$/.test(role) ? role : ""}`), quoted(peek, "peek"), isNew && before ? element("span", "new", "NEW") : null);
    const one = element("details", "", summary);
    one.addEventListener("toggle", () => {
      if (one.open && one.childNodes.length === 1) one.append(yamlBlock(text.replace(/^ {2}- /, "    ").replace(/^ {4}/gm, "")));
    });
    return one;
  });
}

function peekAt(text) {
  const role = /^ {2}- (?:role|type): "?([\w-]+)/m.exec(text) || /^ {4}role: "?([\w-]+)/m.exec(text);
  const lines = text.split("\n").slice(role ? 1 : 0).filter((line) => !/^ {4}(?:id|tool_call_id|type): /.test(line));
  const peek = lines.map((line) => line.replace(/^\s*(?:- )*(?:(?:content|parts|text|type|tool_calls|id|tool_call_id):)?\s*(?:\|\d[-+]?)?\s*/, "").trim());
  return { role: role ? role[1] : "", peek: peek.filter(Boolean).join("  ").slice(0, 240) };
}
