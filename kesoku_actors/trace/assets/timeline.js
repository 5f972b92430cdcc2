// A turn as lanes over time. A time in which nothing happens is drawn short, so that what happened can be seen.

const LANES = { person: "people", notice: "people", stop: "people", interruption: "people", inference: "model", thought: "model", text: "model", answer: "model", call: "tools" };
const SHORT = 0.035;

// Returns a function from a time to a place from 0 to 1, and the gaps that are drawn short.
function timeScale(spans, begin, end) {
  const busy = [];
  for (const [from, to] of spans.map(([a, b]) => [Math.max(a, begin), Math.min(b, end)]).sort((a, b) => a[0] - b[0])) {
    const last = busy[busy.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else busy.push([from, to]);
  }
  busy.push([end, end]);
  const worked = busy.reduce((sum, [from, to]) => sum + to - from, 0);
  const gaps = [];
  let at = begin;
  for (const [from, to] of busy) {
    if (from - at > Math.max(2, worked * 0.3)) gaps.push([at, from]);
    at = Math.max(at, to);
  }
  const idle = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  const drawn = Math.max(end - begin - idle, 1e-6) / Math.max(1 - gaps.length * SHORT, 0.2);
  const width = gaps.length ? Math.min(SHORT, 0.8 / gaps.length) : 0;
  const place = (time) => {
    let left = Math.min(Math.max(time, begin), end) - begin;
    let extra = 0;
    for (const [from, to] of gaps) {
      if (time <= from) break;
      const inside = Math.min(time, to) - from;
      left -= inside;
      extra += width * (inside / (to - from));
    }
    return Math.min(left / drawn + extra, 1);
  };
  return { place, gaps };
}

function niceStep(span) {
  const wanted = span / 6;
  for (const step of [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600]) {
    if (step >= wanted) return step;
  }
  return 86400;
}

// Puts bars that overlap into rows of their own; returns each row's bars.
function stacked(bars) {
  const rows = [];
  for (const bar of bars) {
    const row = rows.find((each) => each[each.length - 1].to <= bar.from);
    if (row) row.push(bar);
    else rows.push([bar]);
  }
  return rows;
}

function drawTimeline(turn, select) {
  const finish = (item) => (item.end === null ? turn.ended : item.end);
  const spans = [];
  for (const item of turn.items) {
    if (item.end !== item.begin) spans.push([item.begin, finish(item)]);
    for (const wait of item.waits || []) spans.push([wait.begin, wait.end === null ? turn.ended : wait.end]);
  }
  const end = Math.max(turn.ended, turn.began + 0.001, ...spans.map((span) => span[1]));
  const { place, gaps } = timeScale(spans, turn.began, end);
  const plot = element("div", "plot");
  const step = niceStep(end - turn.began - gaps.reduce((sum, [from, to]) => sum + to - from, 0));
  let last = -1;
  for (let time = 0; time <= end - turn.began && plot.childNodes.length < 60; time += step) {
    const absolute = turn.began + time;
    const inGap = gaps.find(([from, to]) => absolute > from && absolute < to);
    if (inGap) { time += Math.floor((inGap[1] - absolute) / step) * step; continue; }
    const at = place(absolute);
    if (at - last < 0.07 || at > 0.965) continue;
    last = at;
    const tick = element("div", "tick", time === 0 ? "0" : duration(time));
    tick.style.left = `${at * 100}%`;
    plot.append(tick);
  }
  for (const [from, to] of gaps) {
    const gap = element("div", "gap", element("span", "", duration(to - from)));
    gap.style.left = `${place(from) * 100}%`;
    gap.style.width = `${(place(to) - place(from)) * 100}%`;
    plot.append(gap);
  }
  const lanes = { people: [], model: [], tools: [], waiting: [] };
  turn.items.forEach((item, index) => {
    const lane = LANES[item.kind];
    const isMark = item.end === item.begin;
    if (item.kind === "thought" || item.kind === "text") return;
    lanes[lane].push({ item, index, isMark, from: place(item.begin), to: isMark ? place(item.begin) : place(finish(item)) });
    for (const wait of item.waits || []) {
      lanes.waiting.push({ item, index, wait, from: place(wait.begin), to: place(wait.end === null ? end : wait.end) });
    }
  });
  for (const [name, bars] of Object.entries(lanes)) {
    if (!bars.length) continue;
    const marks = bars.filter((bar) => bar.isMark);
    const rows = stacked(bars.filter((bar) => !bar.isMark).sort((a, b) => a.from - b.from));
    if (!rows.length) rows.push([]);
    rows[0] = [...rows[0], ...marks];
    rows.forEach((row, number) => plot.append(drawLane(number ? "" : name, row, select)));
  }
  return element("div", "timeline", plot);
}

function drawLane(name, bars, select) {
  const lane = element("div", "lane", element("span", "name", name));
  for (const { item, index, wait, isMark, from, to } of bars) {
    const shape = wait ? "wait" : item.kind === "stop" || item.kind === "interruption" ? "flag" : isMark ? "mark" : "";
    const bar = element("button", `bar k-${item.kind} s-${item.state} ${shape}`);
    bar.type = "button";
    bar.tabIndex = -1;
    bar.dataset.index = index;
    bar.title = wait ? `${wait.name}, ${duration(wait.end === null ? null : wait.end - wait.begin)}` : `${LABELS[item.kind]}: ${item.title}`.slice(0, 200);
    bar.style.left = `${from * 100}%`;
    if (!isMark) bar.style.width = `${Math.max(to - from, 0.001) * 100}%`;
    if (!isMark && to - from > 0.09) bar.append(quoted(wait ? "" : item.title));
    bar.addEventListener("click", () => select(index));
    lane.append(bar);
  }
  return lane;
}
