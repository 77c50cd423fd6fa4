// The dashboard: takes the documents of /v1/live (docs/http.md) and shows them. It computes no figure: the server
// does. Whatever comes is put in as text, never as markup.
'use strict';

const SCHEMA = 'quorumwire-live-1';
const POINTS_MAX = 300; // of a chart: five minutes
const CHART_SECONDS_MIN = 60; // that it spans from the beginning
const SILENCE_MS_MAX = 5000; // then the connection counts as lost
const PAUSES_MS = [1000, 2000, 4000, 8000, 15000]; // between tries to connect, the last one for ever
const LINE_CHARS_MAX = 4 << 20; // of what one document may take

const by = (id) => document.getElementById(id);
const NONE = '–';

// --- numbers as people read them

const scaled = (value, step, units) => {
  let unit = 0;
  while (value >= step * 0.9995 && unit < units.length - 1) {
    value /= step;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + units[unit];
};
const known = (value, write) => (value === null || value === undefined ? NONE : write(value));
const rate = (value) => known(value, (it) => (it > 0 && it < 10 ? it.toFixed(1) : scaled(it, 1000, ['', ' k', ' M'])) + '/s');
const bytes = (value) => scaled(value, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB']);
const count = (value) => known(value, (it) => it.toLocaleString('en'));
const micros = (value) => known(value, (it) => (it < 1000 ? Math.round(it) + ' µs' : scaled(it, 1000, [' µs', ' ms', ' s'])));
const percent = (value) => known(value, (it) => (100 * it).toFixed(0) + ' %');
const lasting = (ms) => {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return seconds + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min ' + (seconds % 60) + ' s';
  if (seconds < 86400) return Math.floor(seconds / 3600) + ' h ' + Math.floor((seconds % 3600) / 60) + ' min';
  return Math.floor(seconds / 86400) + ' d ' + Math.floor((seconds % 86400) / 3600) + ' h';
};

const put = (element, text) => {
  if (element.textContent !== text) element.textContent = text; // so that nothing is announced again
};

// --- charts

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Chart {
  constructor(place, names, write, isLogarithmic) {
    this.place = place;
    this.isLogarithmic = isLogarithmic;
    this.width = place.clientWidth;
    this.names = names;
    this.write = write;
    this.data = [[], ...names.map(() => [])];
    this.plot = null; // until there is something to draw with
    new ResizeObserver(() => requestAnimationFrame(() => this.fit())).observe(place);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    this.draw();
  }

  size() {
    return { width: Math.max(this.width, 200), height: 210 };
  }

  fit() {
    if (!this.plot || this.place.clientWidth === this.width) return;
    this.width = this.place.clientWidth;
    this.plot.setSize(this.size());
  }

  draw() {
    if (typeof uPlot !== 'function') {
      this.place.textContent = 'What draws here was lost on the way; it is asked for again.';
      return;
    }
    if (this.plot) this.plot.destroy();
    this.place.textContent = '';
    const line = { stroke: colour('--quiet'), grid: { stroke: colour('--grid'), width: 1 }, ticks: { show: false } };
    const strokes = [colour('--first'), colour('--second')];
    const series = this.names.map((label, index) => ({
      label,
      stroke: strokes[index],
      width: 2,
      dash: index === 0 ? [] : [6, 3], // told apart without colours, too
      points: { size: 5 }, // shown while there are few
      value: (_, value) => this.write(value),
    }));
    const axes = [
      { ...line, size: 32, space: 70, values: [[3600, '{HH}:{mm}'], [60, '{HH}:{mm}'], [1, '{HH}:{mm}:{ss}']].map(([step, form]) => [step, form, null, null, null, null, null, null, 1]) },
      { ...line, size: 72, values: (_, ticks) => ticks.map((it) => (it === null ? '' : this.write(it))) },
    ];
    const scales = {
      x: { range: (_, from, to) => [Math.min(from, to - CHART_SECONDS_MIN), to] },
      y: this.isLogarithmic ? { distr: 3 } : { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] },
    };
    const options = { ...this.size(), series: [{ value: '{HH}:{mm}:{ss}' }, ...series], axes, scales, cursor: { y: false } };
    this.plot = new uPlot(options, this.data, this.place);
    requestAnimationFrame(() => this.showNewest()); // the plot clears its legend before
  }

  // In the legend, unless somebody points at something else.
  showNewest() {
    const { length } = this.data[0];
    if (this.plot && length > 0 && this.plot.cursor.left < 0) this.plot.setLegend({ idx: length - 1 });
  }

  add(seconds, values) {
    const times = this.data[0];
    if (times.length > 0 && seconds <= times[times.length - 1]) return; // the clock was put back
    [seconds, ...values].forEach((value, index) => {
      this.data[index].push(value ?? null);
      if (this.data[index].length > POINTS_MAX) this.data[index].shift();
    });
    this.plot?.setData(this.data);
    this.showNewest();
    const told = this.names.map((name, index) => name + ' ' + this.write(values[index]));
    this.place.setAttribute('aria-label', 'Chart of the last minutes; now: ' + told.join(', '));
  }

  // Nothing is known of the time since.
  pause(seconds) {
    this.add(seconds, this.names.map(() => null));
  }
}

// --- the cluster

const protocols = (all, what) =>
  all.filter((it) => it[what] > 0).map((it) => it.name + ' ' + rate(it[what])).join(' · ');

const showTotals = (live) => {
  const { totals } = live;
  put(by('cluster'), live.cluster);
  put(by('leader'), live.leader === null ? 'none' : 'replica ' + live.leader);
  put(by('leader-more'), `term ${live.term} · ${live.durability}, ${live.quorum}`);
  put(by('writes'), rate(totals.writes_per_s));
  put(by('writes-more'), protocols(totals.protocols, 'writes_per_s'));
  put(by('reads'), rate(totals.reads_per_s));
  put(by('reads-more'), protocols(totals.protocols, 'reads_per_s'));
  put(by('p50'), micros(totals.write_latency?.p50_us));
  put(by('p50-more'), totals.write_latency ? count(totals.write_latency.count) + ' measured' : 'no writes');
  put(by('p99'), micros(totals.write_latency?.p99_us));
  put(by('items'), count(totals.items));
  put(by('items-more'), `${bytes(totals.items_bytes)} · ${count(totals.connections)} clients`);
  put(by('made-by'), 'as seen by replica ' + live.made_by);
  document.title = `${live.cluster}: ${live.leader === null ? 'no leader' : 'replica ' + live.leader + ' leads'} · Quorumwire`;
};

const showWarnings = (live) => {
  const told = live.warnings.map((it) => (it.replica === null ? '' : `Replica ${it.replica}: `) + it.text);
  const list = by('warning-list');
  while (list.children.length > told.length) list.lastChild.remove();
  told.forEach((text, index) => put(list.children[index] ?? list.appendChild(document.createElement('li')), text));
  by('warnings').hidden = told.length === 0;
};

const plane = (it) => {
  if (it.plane_for_ms !== null) return `${it.plane}, for ${lasting(it.plane_for_ms)}`;
  const ended = it.plane_ended === null ? '' : ` (last ended: ${it.plane_ended.replaceAll('_', ' ')})`;
  return it.plane === 'none' ? 'none' : `${it.plane}, not running${ended}`;
};

const snapshot = (it) => {
  if (it.snapshot_index === 0) return 'none yet';
  const age = it.snapshot_age_ms === null ? 'older than the process' : lasting(it.snapshot_age_ms) + ' ago';
  return `to ${count(it.snapshot_index)} · ${age}`;
};

const disk = (it) => {
  if (it === null) return 'not used';
  return `${micros(it.sync_mean_us)} a sync · ${rate(it.syncs_per_s)} · ${percent(it.busy)} busy`;
};

const leaderSees = (replica, live) => {
  if (replica.follower === null) return replica.id === live.leader ? 'leads' : NONE;
  const heard = replica.follower.active ? 'heard' : 'not heard';
  const engaged = replica.follower.engaged ? ', plane takes part' : '';
  const it = replica.follower;
  const snapshot = it.in_snapshot ? `, is sent a snapshot: ${bytes(it.snapshot_sent_bytes)} of ${bytes(it.snapshot_bytes)}` : '';
  return `${heard}, has ${count(it.match_index)}${engaged}${snapshot}`;
};

// What a card shows, in this order: heading, and text.
const rows = (replica, live) => {
  const it = replica.figures;
  return [
    ['Term', `${count(it.term)}${it.leader === null ? '' : ', led by ' + it.leader}`],
    ['Commit · applied', `${count(it.commit_index)} · ${count(it.applied_index)}`],
    ['Behind the leader', replica.lag === null ? NONE : count(replica.lag) + (replica.lag === 1 ? ' entry' : ' entries')],
    ['The leader sees', leaderSees(replica, live)],
    ['Data plane', plane(it)],
    ['Writes', rate(it.writes_per_s)],
    ['Reads', rate(it.reads_per_s)],
    ['Entries carried out', rate(it.entries_per_s)],
    ['Write p50 · p99', it.write_latency ? `${micros(it.write_latency.p50_us)} · ${micros(it.write_latency.p99_us)}` : NONE],
    ['Event loop p99', micros(it.turn?.p99_us)],
    ['Clients', count(it.connections)],
    ['Items', `${count(it.items)} · ${bytes(it.items_bytes)}`],
    ['Log', `${count(Math.max(0, it.log.last_index - it.log.first_index + 1))} entries · ${bytes(it.log.memory_bytes)} in memory · ${it.log.segments} file${it.log.segments === 1 ? '' : 's'}`],
    ['Disk', disk(it.disk)],
    ['Snapshot', snapshot(it)],
    ['Elections', `${count(it.elections_started)} started, ${count(it.elections_won)} won`],
    ['Up', lasting(it.uptime_ms)],
  ];
};

const make = (name, parent, properties) => parent.appendChild(Object.assign(document.createElement(name), properties));

const newCard = (id) => {
  const card = make('article', by('replicas'), { className: 'card' });
  card.dataset.replica = id;
  const title = make('h3', card, {});
  make('span', title, { textContent: 'Replica ' + id });
  make('span', title, { className: 'role' });
  make('a', title, { textContent: 'its own page' });
  make('p', card, { className: 'error' });
  make('dl', card, {});
  return card;
};

const showCard = (card, replica, live) => {
  const role = replica.reachable ? replica.figures.role : 'unreachable';
  card.dataset.role = role;
  card.dataset.reachable = replica.reachable;
  const badge = card.querySelector('.role');
  badge.dataset.role = role;
  put(badge, replica.member === 'learner' ? role + ', no voter' : role);
  const link = card.querySelector('a');
  link.hidden = replica.http === null || replica.id === live.made_by;
  if (!link.hidden) link.href = `${location.protocol}//${replica.http}/`;
  const error = card.querySelector('.error');
  const silent = replica.silent_ms === null ? 'never heard' : `silent for ${lasting(replica.silent_ms)}`;
  error.hidden = replica.reachable;
  put(error, replica.reachable ? '' : `${silent}: ${replica.error}`);
  const list = card.querySelector('dl');
  const told = replica.figures ? rows(replica, live) : [];
  while (list.children.length > told.length) list.lastChild.remove();
  told.forEach(([heading, text], index) => {
    let row = list.children[index];
    if (!row) {
      row = make('div', list, {});
      make('dt', row, {});
      make('dd', row, {});
    }
    put(row.firstChild, heading);
    put(row.lastChild, text);
  });
};

const showReplicas = (live) => {
  const cards = new Map([...by('replicas').children].map((card) => [Number(card.dataset.replica), card]));
  for (const replica of live.replicas) {
    showCard(cards.get(replica.id) ?? newCard(replica.id), replica, live);
    cards.delete(replica.id);
  }
  for (const gone of cards.values()) gone.remove();
};

// --- the connection

let throughput;
let latency;
let last = null; // the newest document
let tries = 0;

const show = (live) => {
  if (live.schema !== SCHEMA) throw new Error(`the replica speaks ${live.schema}: load this page again`);
  last = live;
  tries = 0;
  put(by('connection'), 'live');
  by('connection').dataset.state = 'live';
  by('lost').hidden = true;
  document.body.classList.remove('stale');
  showTotals(live);
  showWarnings(live);
  showReplicas(live);
  throughput.add(live.time_ms / 1000, [live.totals.writes_per_s, live.totals.reads_per_s]);
  latency.add(live.time_ms / 1000, [live.totals.write_latency?.p50_us, live.totals.write_latency?.p99_us]);
};

const showLost = (why, pauseMs) => {
  put(by('connection'), 'connection lost');
  by('connection').dataset.state = 'lost';
  document.body.classList.add('stale');
  const now = last === null ? 0 : last.time_ms / 1000 + 1;
  if (last !== null) [throughput, latency].forEach((chart) => chart.pause(now));
  const notice = by('lost');
  const what = last === null ? 'Nothing is known yet.' : 'What is shown is from before.';
  notice.textContent = `This replica does not answer: ${why}. ${what} Trying again in ${lasting(pauseMs)}. `;
  const others = last === null ? [] : last.replicas.filter((it) => it.id !== last.made_by && it.http !== null);
  for (const other of others) {
    make('a', notice, { textContent: 'Replica ' + other.id, href: `${location.protocol}//${other.http}/` });
    notice.append(' ');
  }
  notice.hidden = false;
};

const refused = async (response) => {
  const said = await response.json().catch(() => ({}));
  return new Error(said.error ?? `HTTP status ${response.status}`);
};

// Takes documents until the connection ends, which it always does with an error.
const listen = async () => {
  const end = new AbortController();
  let watch;
  const heard = () => {
    clearTimeout(watch);
    watch = setTimeout(() => end.abort(new Error(`nothing was heard for ${SILENCE_MS_MAX / 1000} s`)), SILENCE_MS_MAX);
  };
  try {
    heard();
    const response = await fetch('/v1/live', { signal: end.signal, cache: 'no-store' });
    if (!response.ok) throw await refused(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error('it has closed the connection');
      text += value;
      if (text.length > LINE_CHARS_MAX) throw new Error('it says too much at a time');
      const events = text.split('\n\n');
      text = events.pop();
      for (const event of events) {
        const data = event.split('\n').filter((line) => line.startsWith('data: '));
        if (data.length === 0) continue;
        heard();
        show(JSON.parse(data.map((line) => line.slice(6)).join('\n')));
      }
    }
  } finally {
    clearTimeout(watch);
    end.abort();
  }
};

const run = async () => {
  for (;;) {
    try {
      await listen();
    } catch (error) {
      const pauseMs = PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)];
      tries += 1;
      showLost(error.message, pauseMs);
      await new Promise((resume) => setTimeout(resume, pauseMs * (0.8 + 0.4 * Math.random())));
    }
  }
};

throughput = new Chart(by('throughput'), ['writes', 'reads'], rate, false);
latency = new Chart(by('latency'), ['p50', 'p99'], micros, true);

// What draws is a file of its own. The page goes on without it.
const loadPlot = (tried) => {
  const script = make('script', document.head, { src: '/dashboard/uplot.js' });
  script.onload = () => [throughput, latency].forEach((chart) => chart.draw());
  script.onerror = () => {
    script.remove();
    setTimeout(loadPlot, PAUSES_MS[Math.min(tried, PAUSES_MS.length - 1)], tried + 1);
  };
};
if (typeof uPlot !== 'function') loadPlot(0);

run();
