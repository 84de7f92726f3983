// Renews what a page shows, tells what is being said, and knows the keys. Pages work without it, but stand still.
"use strict";

// As longhaul/agent/plain/text.py has it: what would steer or reorder is shown by its number. With the flag `u` two
// surrogates that belong together are one character, which stays.
const OBEYED = /[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const SETTLE_MILLISECONDS = 150;
const TYPING_MILLISECONDS = 500;
const LONG_SECONDS = 3600;
const MOST_OUTPUT_CHARS = 20_000;
const MOST_OUTPUT_LINES = 20;

const harmless = (text) => text.replace(OBEYED, (char) => {
  const number = char.charCodeAt(0).toString(16);
  return number.length > 2 ? `\\u${number.padStart(4, "0")}` : `\\x${number.padStart(2, "0")}`;
});

const tell = (text) => {
  const place = document.getElementById("meanwhile");
  if (place.textContent === text) return;
  place.textContent = text;
  place.hidden = false;
};

const NAMES = ["id", "data-message", "data-call", "href", "action", "name", "aria-label"];
const namesOf = (node) => NAMES.map((name) => node.getAttribute?.(name) ?? "").join("\n");

// Makes the one like the other and keeps each node that is there already: focus, selection, what was opened and how far
// it was scrolled stay with whoever reads.
const become = (part, fresh) => {
  let at = part.firstChild;
  for (const one of [...fresh.childNodes]) {
    const names = namesOf(one), isSame = (other) => other.nodeName === one.nodeName && namesOf(other) === names;
    let found = at;
    // What has no name is what stood in its place, or new: to look further for it would cost others their place.
    while (found && !isSame(found)) found = names.trim() ? found.nextSibling : null;
    if (!found) { part.insertBefore(one, at); continue; }
    while (at !== found) { const gone = at; at = at.nextSibling; gone.remove(); }
    at = found.nextSibling;
    if (found.nodeType !== Node.ELEMENT_NODE) { if (found.data !== one.data) found.data = one.data; continue; }
    for (const { name, value } of one.attributes) if (found.getAttribute(name) !== value) found.setAttribute(name, value);
    for (const { name } of [...found.attributes]) if (name !== "open" && !one.hasAttribute(name)) found.removeAttribute(name);
    become(found, one);
  }
  while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
};

const take = (fresh) => {
  const state = document.body.dataset.state;
  if (state !== undefined && state !== fresh.body.dataset.state) {
    const decided = fresh.querySelector(".made");
    // What can be decided no more has no button that a click in flight could reach: it is shown at once.
    if (!fresh.querySelector(".decide") && decided) {
      for (const root of [fresh]) tick(root);
      document.querySelector(".call-page").replaceChildren(...fresh.querySelector(".call-page").childNodes);
      document.title = fresh.title;
      document.body.dataset.state = fresh.body.dataset.state;
      return tell(decided.textContent.trim().replace(/\s+/g, " "));
    }
    tell("This call has changed since it was shown. Load the page again to see it as it is now.");
    for (const button of document.querySelectorAll(".decide button")) button.disabled = true;
    return;
  }
  document.title = fresh.title;
  const icon = (root) => root.querySelector("link[rel=icon]");
  if (icon(document).getAttribute("href") !== icon(fresh).getAttribute("href")) icon(document).replaceWith(icon(fresh));
  notify(fresh);
  for (const root of [document, fresh]) tick(root);
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other || part.contains(document.activeElement?.closest?.("input, textarea"))) continue;
    become(part, other);
  }
};

// Whoever looks at another page or window is told of what has come to wait, if they have asked for it.
const waitingIn = (root) => [...root.querySelectorAll("#waiting .rows [data-row]")];
const mayNotify = () => "Notification" in window && Notification.permission === "granted";

const notify = (fresh) => {
  if (!mayNotify() || (document.hasFocus() && !document.hidden)) return;
  const known = new Set(waitingIn(document).map((one) => one.getAttribute("href")));
  for (const row of waitingIn(fresh)) {
    const address = row.getAttribute("href");
    if (known.has(address)) continue;
    const body = row.querySelector(".what").textContent.trim();
    const told = new Notification(fresh.title, { body, tag: address });
    told.onclick = () => { window.focus(); location.assign(address); };
  }
};

const offerToNotify = (button) => {
  if (!("Notification" in window) || Notification.permission !== "default") return;
  button.hidden = false;
  button.addEventListener("click", async () => { await Notification.requestPermission(); button.hidden = true; });
};

const renew = async () => {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.redirected) return tell("You are not signed in any more.");
    if (!answer.ok) return tell(`The server answered ${answer.status}; what is shown here may be old.`);
    take(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    tell("The server does not answer; what is shown here may be old.");
  }
};

// Of a session that does nothing the stream tells all: nothing can come to wait in its queue unheard.
const isAtRest = () => document.querySelector("#head .state")?.textContent.trim() === "idle";

const renewOften = (milliseconds) => {
  let busy = false;
  setInterval(async () => {
    if (busy || (document.hidden && !mayNotify()) || isAtRest()) return;
    busy = true;
    await renew();
    busy = false;
  }, milliseconds);
};

// What is being said, thought and answered by calls is shown until the record has it; then the page is renewed, and the
// record wins. What a call prints is not in the record before its end.
const follow = (address) => {
  const said = document.getElementById("said"), thought = document.getElementById("thought");
  const blocks = new Map(), thoughts = new Map(), runs = new Map();
  // A call that began before this page was opened: the server has written down when.
  for (const call of document.querySelectorAll("#transcript details[data-started]")) {
    runs.set(call.dataset.call, { at: Date.parse(call.dataset.started), text: "" });
  }
  let last = 0, due = 0;
  const show = () => {
    said.textContent = [...blocks.values()].map(harmless).join("\n\n");
    said.hidden = !said.textContent;
    thought.lastElementChild.textContent = [...thoughts.values()].map(harmless).join("\n\n");
    thought.hidden = !thoughts.size;
    showRuns(runs);
  };
  const forget = () => { blocks.clear(); thoughts.clear(); };
  const settle = () => {
    clearTimeout(due);
    due = setTimeout(async () => { await renew(); forget(); show(); }, SETTLE_MILLISECONDS);
  };
  const add = (to, id, delta) => to.set(id, (to.get(id) ?? "") + delta);
  const source = new EventSource(address);
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    if (event.seq) {
      if (event.seq <= last) return;
      last = event.seq;
      if (event.type === "TOOL_RESULT_START") runs.set(event.tool_call_id, { at: Date.parse(event.created_at), text: "" });
      if (event.type === "TOOL_RESULT_END") runs.delete(event.tool_call_id);
      if (event.type === "REPLY_END") runs.clear();
      return settle();
    }
    if (event.name === "restarted" && event.live?.call?.startsWith("tool:")) {
      const id = event.live.call.slice("tool:".length);
      if (runs.has(id)) runs.set(id, { ...runs.get(id), text: "" });
    } else if (event.type === "MODEL_CALL_START" || event.name === "restarted") forget();
    if (event.type === "TEXT_BLOCK_DELTA") add(blocks, event.block_id, event.delta);
    if (event.type === "THINKING_BLOCK_DELTA") add(thoughts, event.block_id, event.delta);
    if (event.type === "TOOL_RESULT_TEXT_DELTA") {
      const run = runs.get(event.tool_call_id) ?? { at: NaN, text: "" };
      runs.set(event.tool_call_id, { ...run, text: (run.text + event.delta).slice(-MOST_OUTPUT_CHARS) });
    }
    show();
  };
  setInterval(() => showRuns(runs), 1000);
  source.addEventListener("end", (message) => {
    const { why } = JSON.parse(message.data);
    if (why === "shutdown") return;
    source.close();
    if (why !== "finished") tell(why === "unauthorized" ? "You are not signed in any more." : `Nothing more is told: ${why}.`);
  });
};

// Each call that runs: what it is as the transcript names it, how long it takes, and the end of what it prints.
const showRuns = (runs) => {
  const shown = [...runs].map(([id, { at, text }]) => {
    const call = [...document.querySelectorAll("#transcript details[data-call]")].find((one) => one.dataset.call === id);
    const title = document.createElement("p"), output = document.createElement("pre");
    const seconds = Math.max(Math.floor((Date.now() - ahead - at) / 1000), 0);
    title.textContent = `${call?.querySelector("summary").textContent.trim() ?? "a call"}${seconds ? ` · ${seconds} s` : ""}`;
    output.textContent = harmless(text.split("\n").slice(-MOST_OUTPUT_LINES).join("\n"));
    output.hidden = !text.trim();
    return [title, output];
  });
  document.getElementById("runs").replaceChildren(...shown.flat());
};

// How long something may still wait, by the server's clock: this machine's own may be wrong.
const ahead = Date.now() - Number(document.body.dataset.now);

// As `ago` of starter/render_session.py has it.
const UNITS = [["d", 86_400], ["h", 3_600], ["min", 60]];
const brief = (seconds) => {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(Math.max(seconds, 0) / size)} ${unit}`;
};
const ZONED = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" };
const zoned = new Intl.DateTimeFormat(undefined, { ...ZONED, timeZoneName: "short" });
const today = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

const tick = (root) => {
  const now = Date.now() - ahead;
  for (const place of root.querySelectorAll("time[data-age], time[data-at], time[data-until]")) {
    const moment = Date.parse(place.dateTime);
    if (Number.isNaN(moment)) continue;
    const exact = zoned.format(moment);
    if (place.title !== exact) place.title = exact;
    let text = place.textContent;
    if ("age" in place.dataset) text = `${brief((now - moment) / 1000)} ago`;
    if ("at" in place.dataset) text = new Date(moment).toDateString() === new Date(now).toDateString() ? today.format(moment) : exact;
    if (place.textContent !== text) place.textContent = text;
  }
  for (const place of root.querySelectorAll("time[data-until]")) {
    const seconds = Math.ceil((Date.parse(place.dateTime) - now) / 1000);
    if (seconds <= 0 || seconds > LONG_SECONDS) continue;
    place.textContent = `in ${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  }
};

const rows = () => [...document.querySelectorAll("[data-row]")];

const step = (by) => {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  all[Math.min(Math.max(at < 0 ? 0 : at + by, 0), all.length - 1)]?.focus();
};

// Several calls: a box may be ticked once its call is open, and the bar counts those that are.
const choices = [...document.querySelectorAll("details[data-choice]")];

const count = () => {
  let ticked = 0;
  for (const one of choices) {
    const isTicked = one.querySelector("input[type=checkbox]")?.checked ?? false;
    one.querySelector("[data-ticked]").hidden = !isTicked;
    ticked += isTicked;
  }
  const allow = document.querySelector("[data-allow]");
  if (allow) allow.textContent = ticked ? `Allow ${ticked === 1 ? "this call" : `these ${ticked} calls`}` : "Allow the ticked calls";
  for (const button of document.querySelectorAll(".bar button[value=allow], .bar button[value=deny]")) button.disabled = !ticked;
};

// Ticks the call that is open and looked at, and opens the next one that can be ticked.
const tickAndGoOn = () => {
  const at = Math.max(choices.indexOf(document.activeElement?.closest("details[data-choice]")), 0);
  const here = choices.findIndex((one, place) => place >= at && one.open && one.querySelector("input[type=checkbox]:not(:checked)"));
  if (here < 0) return step(1);
  choices[here].querySelector("input[type=checkbox]").checked = true;
  choices[here].open = false;
  count();
  const next = choices.slice(here + 1).find((one) => one.querySelector("input[type=checkbox]:not(:checked)"));
  if (!next) return document.querySelector(".bar button[value=allow]")?.focus();
  next.open = true;
  next.querySelector("summary").focus();
  next.scrollIntoView({ block: "start" });
};

// A key goes to the button, and Enter presses it. Who types a sentence beside the field must not allow anything by it:
// so what follows another key at once does not count, and a further key leaves the button.
const go = (key) => {
  const meant = document.querySelector(`[data-key="${key}"]`);
  if (!meant || meant.disabled || pressedBefore < TYPING_MILLISECONDS) return;
  meant.focus();
};

let lastPressed = -Infinity, pressedBefore = Infinity;
const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  a: () => go("a"),
  d: () => go("d"),
  r: () => go("r"),
  e: () => go("e"),
  x: () => tickAndGoOn(),
  "?": () => document.getElementById("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  // A dialog that has been closed keeps the focus until the next picture: who types on meant the page.
  if (event.target.closest("input, textarea, select, dialog[open]")) return;
  pressedBefore = event.timeStamp - lastPressed;
  lastPressed = event.timeStamp;
  if (event.key.length === 1) document.activeElement?.closest?.("button[data-key], a[data-key]")?.blur();
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

// A run: one stop for Tab; arrow keys go from mark to mark.
const points = [...document.querySelectorAll("svg.run [data-point]")];
for (const [place, one] of points.entries()) {
  one.setAttribute("tabindex", place ? "-1" : "0");
  one.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    points[Math.min(Math.max(place + by, 0), points.length - 1)].focus();
  });
}

// Other arguments: a field that has another value than the call is marked as it is typed, and the bar names all of them.
const compared = [...document.querySelectorAll(".compared")];

const mark = () => {
  for (const one of compared) {
    const input = one.querySelector("input, textarea, select"), was = one.querySelector("[data-was]");
    // A value that is too long is not on the page as a whole: until it is typed in, the server's mark stands.
    if (was?.dataset.was === "cut" && input.value === input.defaultValue) continue;
    one.classList.toggle("changed", input.value !== (was?.textContent ?? ""));
  }
  const names = compared.filter((one) => one.classList.contains("changed")).map((one) => one.dataset.name);
  const place = document.querySelector("[data-changed]");
  place.textContent = names.length ? `Changed: ${names.join(", ")}.` : "Nothing is changed yet.";
  place.hidden = false;
};

if (compared.length) {
  mark();
  document.addEventListener("input", mark);
}
if (choices.length) {
  count();
  document.addEventListener("change", count);
}
const notifyButton = document.getElementById("notify");
if (notifyButton) offerToNotify(notifyButton);
setInterval(() => tick(document), 1000);
tick(document);
if (document.body.dataset.renew) renewOften(Number(document.body.dataset.renew));
if (document.body.dataset.events) follow(document.body.dataset.events);
