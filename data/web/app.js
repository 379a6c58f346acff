// SPDX-License-Identifier: LGPL-2.1-or-later
// Names come from sandboxes: text goes into the page by textContent only.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  Object.assign(node, properties);
  node.append(...children);
  return node;
}

function size(bytes) {
  if (bytes === null || bytes === undefined) return "no limit";
  let value = bytes, unit = 0;
  while (value >= 1024 && unit < 4) { value /= 1024; unit++; }
  return `${unit ? value.toFixed(1) : value} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

function age(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60]])
    if (seconds >= length) return `${Math.floor(seconds / length)}${unit}`;
  return `${Math.floor(seconds)}s`;
}

// What a name's text stands for, with control characters visible.
function visible(name) {
  return (name ?? "").replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function bar(used, limit) {
  if (limit === null) return element("span", { textContent: "no limit" });
  const part = limit ? used / limit : 1;
  return element("progress", { max: 1, value: Math.min(1, part), className: part > 0.8 ? "high" : "",
    title: `${Math.round(part * 100)}%` });
}

function plot(points, className) {
  const svg = document.createElementNS(SVG, "svg"), line = document.createElementNS(SVG, "polyline");
  const most = Math.max(1, ...points), step = 100 / Math.max(1, points.length - 1);
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", className);
  line.setAttribute("points", points.map((y, i) => `${i * step},${98 - 96 * y / most}`).join(" "));
  svg.append(line);
  return svg;
}

// titles: "name" or ">number"
function table(titles, rows) {
  const head = element("tr"), body = element("tbody");
  for (const title of titles)
    head.append(element("th", { textContent: title.replace(">", ""), className: title[0] === ">" ? "number" : "" }));
  for (const cells of rows) {
    const row = element("tr");
    cells.forEach((cell, i) => row.append(element("td",
      { className: titles[i][0] === ">" ? "number" : titles[i] === "name" ? "name" : "" }, cell ?? "")));
    body.append(row);
  }
  return element("table", {}, element("thead", {}, head), body);
}

async function get(path) {
  const response = await fetch(path);
  const value = await response.json();
  if (!response.ok) throw new Error(value.error ?? response.statusText);
  return value;
}

async function list() {
  const { nests } = await get("/api/nests");
  nests.sort((a, b) => b.bytes_used - a.bytes_used);
  document.getElementById("summary").textContent =
    `${nests.length} nests, ${size(nests.reduce((sum, nest) => sum + nest.bytes_used, 0))}`;
  return [table(["name", ">owner", "state", ">runs", ">used", ">limit", "use", "history", ">inodes", ">denied", ">full", ">used last"],
    nests.map((nest) => [element("a", { href: `#/nest/${nest.id}`, textContent: nest.name }),
      `${nest.owner_uid}`, nest.state, `${nest.attachments}`, size(nest.bytes_used), size(nest.bytes_limit),
      bar(nest.bytes_used, nest.bytes_limit), plot(nest.history, "small"), `${nest.inodes_used}`,
      `${nest.denied_total}`, `${nest.quota_hits_total}`, age(nest.last_used)]))];
}

const usages = new Map(); // id to { time, usage }

async function usageOf(id) {
  const known = usages.get(id);
  if (known && Date.now() - known.time < 10000) return known.usage;
  const usage = await get(`/api/usage/${id}`);
  usages.set(id, { time: Date.now(), usage });
  return usage;
}

async function nestPage(id) {
  const { nest, history } = await get(`/api/nest/${id}`);
  const usage = await usageOf(id);
  const { events } = await get(`/api/events/${id}`);
  const parts = [element("h1", { textContent: nest.name }),
    table(["what", "value"], [["state", `${nest.state}, ${nest.attachments} sandboxes`], ["owner", `${nest.owner_uid}`],
      ["bytes", `${size(nest.bytes_used)} of ${size(nest.bytes_limit)}`], ["inodes", `${nest.inodes_used} of ${nest.inodes_limit ?? "no limit"}`],
      ["created", nest.created], ["last used", nest.last_used], ["store", nest.store],
      ["denied, full", `${nest.denied_total}, ${nest.quota_hits_total}`]]),
    element("h2", { textContent: "growth" }), plot(history, "")];
  if (usage.held_inodes)
    parts.push(element("p", { textContent: `${size(usage.held_bytes)} in ${usage.held_inodes} deleted files that are still in use` }));
  parts.push(element("h2", { textContent: "largest files" }),
    table(["name", ">bytes"], usage.files.map((file) => [visible(file.path), size(file.bytes)])),
    element("h2", { textContent: "events" }),
    table(["time", "event", "operation", "name", "process", "rule"], events.reverse().slice(0, 100).map((event) =>
      [event.time, event.event, event.operation ?? "", visible(event.path), event.process ? `${visible(event.process)}[${event.pid}]` : "",
        visible(event.rule)])));
  return parts;
}

let shown = 0;
async function show() {
  const mine = ++shown, found = /^#\/nest\/([0-9a-f]{16})$/.exec(location.hash);
  let parts;
  try {
    parts = found ? await nestPage(found[1]) : await list();
  } catch (error) {
    parts = [element("p", { className: "error", textContent: error.message })];
  }
  if (mine === shown) document.getElementById("main").replaceChildren(...parts);
}

window.addEventListener("hashchange", show);
setInterval(show, 2000);
show();
