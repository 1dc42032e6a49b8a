// SPDX-License-Identifier: MIT
//
// The parallelism benchmark in Node: the six published programs in one. Processes (cluster) times threads (worker_threads) each
// scan a table for one value, and the published report is printed to the byte. rowload scan is the same in C, and
// workloads/python/parallel.py in Python.
//
// usage: node parallel.mjs [--cli cli|cli-2|...|cli-6] [--library NAME] [--processes P] [--threads T] [--queries N] [--rows N]
//                          [--x-range N] [--tuned on|off] [--draw before|loop] [--pin-cpus] [--db-path FILE]
//                          [--steady S | --seconds S | --calls N] [--seed N]
//
// --processes 0 is no cluster, --threads 0 no worker threads. --cli sets the library, the shape and the pragmas of one of the
// published programs; options beside it win. Without --steady (or --seconds, --calls) each worker does --queries and starting and
// ending are inside the time, as published; with it all workers warm up and hold together.
//
// Two traps. A short run mostly measures the start of processes and threads. And sqlite3 aborts when a worker thread ends with a
// connection that is being closed: workers report first, and the process then ends without unloading them.
import cluster from 'node:cluster';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import * as protocol from './lib/protocol.mjs';
import { libraries, open } from './lib/libraries.mjs';

const shapes = {
  cli: { library: 'better-sqlite3', processes: 2, threads: 16, queries: 50000, tuned: 'off', draw: 'loop' },
  'cli-2': { library: 'better-sqlite3', processes: 2, threads: 3, queries: 50000, tuned: 'on', draw: 'before' },
  'cli-3': { library: 'sqlite3', processes: 2, threads: 3, queries: 50000, tuned: 'on', draw: 'before' },
  'cli-4': { library: 'sqlite3', processes: 2, threads: 0, queries: 2800, tuned: 'on', draw: 'before' },
  'cli-5': { library: 'better-sqlite3', processes: 2, threads: 0, queries: 2800, tuned: 'on', draw: 'before' },
  'cli-6': { library: 'better-sqlite3', processes: 0, threads: 32, queries: 175, tuned: 'on', draw: 'before' },
};

const tuning = ['PRAGMA cache_size = -256000', 'PRAGMA mmap_size = 1073741824', 'PRAGMA temp_store = MEMORY', 'PRAGMA query_only = ON'];
const query = 'SELECT a, b, c, d FROM table1 WHERE x = ?';
const WARM_QUERIES = 3000;
const WARM_NS = 500000000n;
const BATCH = 20; // queries between two looks at the clock: about a millisecond
const self = fileURLToPath(import.meta.url);

function options() {
  const value = protocol.parse({
    ...protocol.common,
    cli: { default: 'cli', choices: Object.keys(shapes) },
    library: { choices: libraries },
    processes: { low: 0, high: 64 },
    threads: { low: 0, high: 256 },
    queries: { low: 1, high: 2 ** 32 - 1 },
    rows: { default: 2000, low: 1, high: 1e8 },
    'x-range': { default: 1000, low: 1, high: 2 ** 32 - 1 },
    tuned: { choices: ['on', 'off'] },
    draw: { choices: ['before', 'loop'] },
    'pin-cpus': { flag: true },
    'db-path': {},
    steady: { low: 0, high: 864000, fraction: true },
  });
  const given = Object.fromEntries(Object.entries(value).filter(([, given_]) => given_ !== undefined));
  const option = { ...shapes[value.cli], ...given };
  if (option.steady !== undefined) option.seconds = option.steady;
  option.held = option.steady !== undefined || option.seconds > 0 || option.calls > 0;
  option.workers = Math.max(1, option.processes) * Math.max(1, option.threads);
  return option;
}

// ---- one worker: a thread, or the main thread of a process without threads ----

function fold(sum, rows) {
  for (const row of rows) sum = (sum + row.a.length * 31 + row.d.charCodeAt(row.d.length - 1)) | 0;
  return sum;
}

function xs(option, index) {
  const random = protocol.generator(option.seed * 1000003 + index);
  const next = () => Math.floor(random() * option['x-range']);
  if (option.draw === 'loop' || option.held) return next;
  const drawn = new Uint32Array(option.queries).map(next);
  let at = 0;
  return () => drawn[at++];
}

// Runs `count` queries one after the other (direct bindings) and returns.
function batchDirect(statement, next, count, run) {
  for (let i = 0; i < count; i++) {
    const rows = statement.all(next());
    run.sum = fold(run.sum, rows);
    run.rows += rows.length;
  }
  run.calls += count;
}

// Queues `count` queries at once, and resolves when all are back.
function batchQueued(statement, next, count, run) {
  return new Promise((resolve, reject) => {
    let left = count;
    for (let i = 0; i < count; i++) {
      statement.all(next(), (error, rows) => {
        if (error) {
          reject(error);
          return;
        }
        run.sum = fold(run.sum, rows);
        run.rows += rows.length;
        run.calls += 1;
        if (--left === 0) resolve();
      });
    }
  });
}

class Line {
  constructor(option, index) {
    this.option = option;
    this.next = xs(option, index);
    this.index = index;
  }

  async open() {
    this.database = await open(this.option.library, this.option.path, { readonly: this.option.tuned === 'on' });
    if (this.option.tuned === 'on') for (const sql of tuning) await this.database.exec(sql);
    if (this.database.raw.parallelize) this.database.raw.parallelize();
    this.statement = this.database.prepare(query);
    this.direct = !this.database.raw.parallelize;
  }

  async batch(count, run) {
    if (this.direct) batchDirect(this.statement, this.next, count, run);
    else await batchQueued(this.statement, this.next, count, run);
  }

  async warm() {
    const begin = process.hrtime.bigint();
    const run = { calls: 0, rows: 0, sum: 0 };
    while (run.calls < WARM_QUERIES || process.hrtime.bigint() - begin < WARM_NS) await this.batch(100, run);
    this.next = xs(this.option, this.index);
  }

  // The published run: all queries of this worker. The held one: until told to stop, or its part of --calls is done.
  async run(stop) {
    const { option } = this;
    const run = { calls: 0, rows: 0, sum: 0 };
    const begin = process.hrtime.bigint();
    if (!option.held) {
      await this.batch(option.queries, run);
    } else {
      const part = Math.floor(option.calls / option.workers) + (this.index < option.calls % option.workers ? 1 : 0);
      while (!stop() && (option.calls === 0 || run.calls < part)) {
        await this.batch(option.calls > 0 ? Math.min(BATCH, part - run.calls) : BATCH, run);
        if (isMainThread) await new Promise((turn) => { setImmediate(turn); });
      }
    }
    return { ...run, index: this.index, secs: Number(process.hrtime.bigint() - begin) / 1e9 };
  }
}

// ---- a process: its threads, or itself ----

// Starts the workers of process `which`. `shared` is a flag that ends a hold in threads; `tell` takes their messages.
async function startLines(option, which, tell) {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const first = which * Math.max(1, option.threads);
  const stop = () => Atomics.store(flag, 0, 1);
  if (option.threads === 0) {
    const line = new Line(option, first);
    await line.open();
    if (option.held) await line.warm();
    const go = async () => tell({ done: await line.run(() => Atomics.load(flag, 0) === 1) });
    return { stop, go, opened: true };
  }
  const threads = Array.from({ length: option.threads }, (_, i) => {
    const thread = new Worker(self, { workerData: { option, index: first + i, flag } });
    thread.on('message', tell);
    thread.on('error', (error) => { throw error; });
    return thread;
  });
  return { stop, go: () => threads.forEach((thread) => thread.postMessage('go')) };
}

async function threadMain() {
  const { option, index, flag } = workerData;
  const line = new Line(option, index);
  await line.open();
  if (option.held) await line.warm();
  const run = async () => parentPort.postMessage({ done: await line.run(() => Atomics.load(flag, 0) === 1) });
  parentPort.on('message', run);
  parentPort.postMessage({ opened: 1 });
  if (!option.held) await run();
  // Stays until the process ends: see the second trap above.
}

function usage() {
  const { voluntaryContextSwitches: voluntary, involuntaryContextSwitches: involuntary } = process.resourceUsage();
  return { cpu: protocol.cpuSeconds(), voluntary, involuntary };
}

// Runs the workers of one process; `report` is told { opened }, and at the end { results, wall, used }.
async function processRun(option, which, report, orders) {
  const begin = process.hrtime.bigint();
  const results = [];
  let opened = 0;
  // The published run counts everything from the start of the process on.
  let before = { cpu: 0, voluntary: 0, involuntary: 0 };
  const wanted = Math.max(1, option.threads);
  const tell = (message) => {
    if (message.opened && ++opened === wanted) {
      if (option.held) before = usage();
      report({ opened: true });
      if (!option.held && message.go) message.go();
    }
    if (message.done && results.push(message.done) === wanted) {
      const after = usage();
      const used = { cpu: after.cpu - before.cpu, voluntary: after.voluntary - before.voluntary, involuntary: after.involuntary - before.involuntary };
      report({ results, used, wall: Number(process.hrtime.bigint() - begin) / 1e9 });
    }
  };
  const lines = await startLines(option, which, tell);
  orders.go = lines.go;
  orders.stop = lines.stop;
  // Said only now: without a cluster the order to go comes back at once.
  if (lines.opened) tell({ opened: 1, go: lines.go });
}

async function clusterMain() {
  const option = JSON.parse(process.env.ROWPROF_PARALLEL);
  const orders = {};
  const end = new Promise((resolve) => {
    process.on('message', (message) => (message === 'end' ? resolve() : orders[message]()));
  });
  // The parent says when: a signal to the whole group is the parent's to answer.
  protocol.stopOnSignals();
  await processRun(option, Number(process.env.ROWPROF_WHICH), (message) => process.send(message), orders);
  await end;
  process.reallyExit(0);
}

// ---- the parent ----

async function seed(option) {
  rmSync(option.path, { force: true });
  const database = await open(option.library, option.path);
  await database.exec('PRAGMA journal_mode = WAL');
  await database.exec('CREATE TABLE table1(id INTEGER PRIMARY KEY, x INTEGER NOT NULL, a TEXT, b TEXT, c TEXT, d TEXT)');
  await database.exec('BEGIN');
  const random = protocol.generator(option.seed);
  const rows = function* rows() {
    for (let i = 0; i < option.rows; i++) yield [Math.floor(random() * option['x-range']), ...Array(4).fill(`v${i}`)];
  };
  await database.fill('INSERT INTO table1 (x, a, b, c, d) VALUES (?, ?, ?, ?, ?)', rows());
  await database.exec('COMMIT');
  await database.close();
}

function header(option) {
  const processes = Math.max(1, option.processes);
  const threads = Math.max(1, option.threads);
  process.stdout.write(`Creating DB at ${option.path} with ${option.rows} rows (x in [0,${option['x-range']}))\n`);
  let text = `Running benchmark with ${processes} processes × ${threads} threads\nTotal threads: ${option.workers}\n`;
  if (!option.held) text += `Queries per thread: ${option.queries}\nTotal queries: ${option.workers * option.queries}\n`;
  if (option['pin-cpus']) {
    text += `Attempting to pin processes to CPUs: [${Array.from({ length: processes }, (_, i) => i).join(', ')}]\n`;
  }
  return text;
}

function pin(pid, cpu) {
  try {
    execFileSync('taskset', ['-cp', String(cpu), String(pid)], { stdio: 'ignore' });
  } catch (error) {
    process.stderr.write(`${protocol.program}: process ${pid} is not pinned to CPU ${cpu}: ${String(error.message).split('\n')[0]}\n`);
  }
}

function published(ends, secs) {
  let text = '\n--- Per-process stats ---\n';
  ends.forEach(({ results, wall }, i) => {
    const queries = results.reduce((all, line) => all + line.calls, 0);
    text += `Process ${i}:\n  Wall time: ${wall.toFixed(4)} s\n  Queries:   ${queries}\n  QPS:       ${(queries / wall).toFixed(2)}\n`;
  });
  const qps = ends.flatMap(({ results }) => results.map((line) => line.calls / line.secs)).sort((a, b) => a - b);
  const middle = (qps[(qps.length - 1) >> 1] + qps[qps.length >> 1]) / 2;
  const mean = qps.reduce((a, b) => a + b, 0) / qps.length;
  text += `\n--- Per-thread QPS (over all processes) ---\nThreads total: ${qps.length}\n`;
  text += `Min QPS:   ${qps[0].toFixed(2)}\nMedian QPS:${middle.toFixed(2)}\nMean QPS:  ${mean.toFixed(2)}\nMax QPS:   ${qps.at(-1).toFixed(2)}\n`;
  const total = ends.reduce((all, { results }) => all + results.reduce((sum, line) => sum + line.calls, 0), 0);
  text += `\n--- Global stats ---\nTotal queries:      ${total}\n`;
  text += `Global wall time:   ${secs.toFixed(4)} s (includes process startup/teardown)\n`;
  text += `Global effective QPS: ${(total / secs).toFixed(2)}\n`;
  return text;
}

async function parentMain() {
  const option = options();
  const stopped = protocol.stopOnSignals();
  const scratch = option['db-path'] ? undefined : mkdtempSync(path.join(os.tmpdir(), 'rowprof-parallel-'));
  option.path = option['db-path'] ?? path.join(scratch, 'parallel.db');
  await seed(option);
  process.stdout.write(header(option));

  const processes = Math.max(1, option.processes);
  const ends = Array(processes);
  let from = protocol.mark({ calls: 0, rows: 0 });
  const begin = from.wall;
  let opened = 0;
  let clock;
  const children = [];
  let all;
  const finished = new Promise((resolve) => { all = resolve; });

  const order = (word) => children.forEach((child) => child(word));
  const take = (which) => (message) => {
    if (message.opened && ++opened === processes) begun();
    if (message.results) {
      ends[which] = message;
      if (Object.keys(ends).length === processes) all();
    }
  };
  function begun() {
    const pids = option.processes ? Object.values(cluster.workers).map((child) => child.process.pid) : [process.pid];
    protocol.ready({
      workload: 'parallel', processes, threads: option.threads, pids: pids.join(','), op: option.library, limit: 0, cli: option.cli,
      queries: option.queries, rows: option.rows, x_range: option['x-range'], tuned: option.tuned, draw: option.draw,
      pin: Number(option['pin-cpus']), steady: Number(option.held), node: process.version, seed: option.seed,
    });
    if (!option.held) return;
    from = protocol.mark({ calls: 0, rows: 0 });
    order('go');
    clock = setInterval(() => {
      const over = option.seconds > 0 && Number(process.hrtime.bigint() - from.wall) / 1e9 >= option.seconds;
      if (over || stopped.yes) order('stop');
    }, 10);
  }

  if (option.processes === 0) {
    if (option['pin-cpus']) pin(process.pid, 0);
    const orders = {};
    children.push((word) => word !== 'end' && orders[word]());
    await processRun(option, 0, take(0), orders);
  } else {
    cluster.setupPrimary({ exec: self, args: [] });
    for (let i = 0; i < processes; i++) {
      const child = cluster.fork({ ROWPROF_PARALLEL: JSON.stringify(option), ROWPROF_WHICH: i });
      child.on('message', take(i));
      child.on('exit', (code, signal) => {
        if (ends[i]) return;
        process.stderr.write(`${protocol.program}: process ${i} ended early (${signal ?? code}).\n`);
        process.exit(1);
      });
      children.push((word) => child.send(word));
      if (option['pin-cpus']) pin(child.process.pid, i);
    }
  }
  await finished;
  clearInterval(clock);
  const end = protocol.mark({ calls: 0, rows: 0 });
  const exits = Object.values(cluster.workers ?? {}).map((child) => new Promise((resolve) => { child.on('exit', resolve); }));
  order('end');
  await Promise.all(exits);
  const secs = Number(process.hrtime.bigint() - begin) / 1e9;

  const lines = ends.flatMap(({ results }) => results);
  const more = { cpu: 0, voluntary: 0, involuntary: 0 };
  // Without a cluster the only process is this one, which mark() has counted already.
  if (option.processes) for (const { used } of ends) for (const key of Object.keys(more)) more[key] += used[key];
  const last = { ...end, thread: NaN, calls: lines.reduce((n, line) => n + line.calls, 0), rows: lines.reduce((n, line) => n + line.rows, 0) };
  protocol.rate(from, last, 'run', more);
  if (!option.held) process.stdout.write(published(ends, secs));
  protocol.sumPrint(lines.reduce((sum, line) => (sum + line.sum) | 0, 0));
  if (scratch) rmSync(scratch, { recursive: true, force: true });
  process.reallyExit(0);
}

if (!isMainThread) await threadMain();
else if (cluster.isPrimary) await parentMain();
else await clusterMain();
