// The page of demo-network: asks for the state some times a second, draws it, and asks for what its reader clicks on.
"use strict";

const PAUSE_MS = 300;
const SAMPLES = 120;
const byId = (id) => document.getElementById(id);
const rates = new Map();
let drawn = new Map();

function svg(kind, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/// Text of what was asked for, or an error with the words of the answer.
async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await fetch(path, options);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

/// Whether a key or click means a part of the picture: does it.
async function act(event) {
  const part = event.target.closest?.("[data-part]");
  if (!part || (event.type === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  const state = part.dataset.state;
  const change = { running: "stop", stopped: "start", up: "cut", cut: "join" }[state];
  try {
    await ask("machine", { name: part.dataset.machine, change });
    byId("said").textContent = "";
    await refresh();
  } catch (error) {
    byId("said").textContent = error.message;
  }
}

/// Two rows of machines, and the network between them. Made once: what is focused stays.
function make(machines) {
  const picture = byId("network");
  picture.append(svg("rect", { x: 10, y: 152, width: 940, height: 26 }));
  picture.append(svg("text", { x: 480, y: 170 }, "network"));
  const switches = machines.filter((it) => it.role !== "host");
  for (const [row, y] of [[switches, 10], [machines.filter((it) => it.role === "host"), 236]]) {
    row.forEach((machine, place) => {
      const x = (place + 0.5) * 960 / row.length;
      const [from, to] = y < 150 ? [94, 152] : [178, 236];
      const ends = { x1: x, y1: from, x2: x, y2: to };
      const button = { role: "button", tabindex: 0, "data-machine": machine.name };
      const link = svg("g", { ...button, "data-part": "link" });
      link.append(svg("line", ends), svg("line", { ...ends, class: "hit" }));
      const box = svg("g", { ...button, "data-part": "machine" });
      const lines = [machine.name, machine.address, "", ""].map((text, line) =>
        svg("text", { x, y: y + 19 + 19 * line, class: ["name", "small", "", "small"][line] }, text));
      box.append(svg("rect", { x: x - 88, y, width: 176, height: 84 }), ...lines);
      picture.append(link, box);
      drawn.set(machine.name, { link, box, does: lines[2], round: lines[3] });
    });
  }
}

function draw(state) {
  if (drawn.size === 0) make(state.machines);
  for (const machine of state.machines) {
    const { link, box, does, round } = drawn.get(machine.name);
    box.dataset.state = machine.running ? "running" : "stopped";
    box.dataset.coordinates = machine.coordinates;
    box.setAttribute("aria-label", `${machine.name} ${machine.does}: ${machine.running ? "stop" : "start"} it`);
    link.dataset.state = machine.linked ? "up" : "cut";
    link.setAttribute("aria-label", `${machine.linked ? "cut" : "join"} the link of ${machine.name}`);
    does.textContent = machine.linked ? machine.does : `${machine.does}, cut off`;
    const known = [["round", machine.round], ["instance", machine.instance]].filter(([, number]) => number !== null);
    round.textContent = known.map(([what, number]) => `${what} ${number}`).join(", ");
  }
  byId("coordinates").textContent = state.coordinates
    ? `${state.coordinates} coordinates, in round ${state.round}.` : "Nobody coordinates.";
  byId("coordinates").dataset.machine = state.coordinates ?? "";
  byId("plane").textContent = `${state.plane}.`;
  byId("durability").textContent = state.durability;
  byId("room").textContent = state.free === null ? "" : `${state.free} of ${state.window} instances are free.`;
  byId("load").textContent = state.load ? "Switch the load off" : "Switch a load on";
  byId("load").setAttribute("aria-pressed", state.load);
  drawHosts(state.machines.filter((it) => it.report));
}

function drawHosts(hosts) {
  byId("hosts").replaceChildren(...hosts.map(({ name, report }) => {
    const median = report.median_micros === null ? "" : `${(report.median_micros / 1000).toFixed(2)} ms`;
    const cells = [name, report.instance, report.values, Math.round(report.values_per_second), median, report.keys];
    const row = document.createElement("tr");
    row.dataset.machine = name;
    for (const cell of cells) row.insertCell().textContent = cell;
    return row;
  }));
  let most = 10;
  for (const { name, report } of hosts) {
    const all = rates.get(name) ?? [];
    all.push(report.values_per_second);
    rates.set(name, all.slice(-SAMPLES));
    most = Math.max(most, ...rates.get(name));
  }
  byId("rates").replaceChildren(...hosts.map(({ name }) => {
    const points = rates.get(name).map((rate, at) => `${at * 240 / SAMPLES},${58 - rate * 56 / most}`);
    return svg("polyline", { points: points.join(" ") });
  }));
}

async function refresh() {
  try {
    const state = await ask("state");
    if (state.machines) draw(state);
    byId("lost").hidden = true;
  } catch {
    byId("lost").hidden = false;
  }
}

/// Shows below a form what came of it.
function answerForm(form, words) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { host, ...given } = Object.fromEntries(new FormData(form));
    const output = form.querySelector("output");
    output.className = "";
    output.textContent = "...";
    try {
      output.textContent = words(await ask(form.id, { host: Number(host), ...given }), `host-${host}`);
    } catch (error) {
      output.className = "error";
      output.textContent = error.message;
    }
  });
}

answerForm(byId("put"), (said) => `decided in instance ${said.instance}, after ${(said.micros / 1000).toFixed(2)} ms`);
answerForm(byId("get"), (said, host) => said.value === null
  ? `${host} has no such key, as of instance ${said.instance}`
  : `"${said.value}", as of instance ${said.instance}`);
byId("network").addEventListener("click", act);
byId("network").addEventListener("keydown", act);
byId("load").addEventListener("click", async () => {
  const on = byId("load").getAttribute("aria-pressed") !== "true";
  await ask("load", { on }).catch((error) => { byId("said").textContent = error.message; });
  await refresh();
});
(async () => {
  for (;;) {
    await refresh();
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
})();
