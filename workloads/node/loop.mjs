// SPDX-License-Identifier: MIT
//
// The event loop beside a thread pool: statements of one sqlite3 connection read 2000 rows in 500 groups each, and every result
// is turned into JSON on the loop. Prints what the loop and the pool did besides the protocol's lines (workloads/README.md):
//
//   LOOP queries= ms_per_query= elu= cpu_per_wall= loop_cpu_per_wall= queue_us=
//
// elu is performance.eventLoopUtilization() over the hold; queue_us is the median time that a small job waited for a thread of
// the pool (with --probe-ms only). rowload evloop is the same in C.
//
// usage: node loop.mjs [--library sqlite3|sqlite3-eager] [--statements S] [--depth N] [--probe-ms MS] [--seconds S] [--calls N]
//                      [--progress]
//
// The trap is the depth: a statement that is given its next query from the callback has none queued, so starting it early
// could change nothing. Each statement has --depth queries waiting, as in the published script, which queues all at once.
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import zlib from 'node:zlib';
import * as protocol from './lib/protocol.mjs';
import { open } from './lib/libraries.mjs';

const option = protocol.parse({
  ...protocol.common,
  library: { default: 'sqlite3', choices: ['sqlite3', 'sqlite3-eager'] },
  statements: { default: 1, low: 1, high: 1000 },
  depth: { default: 4, low: 1, high: 1000 },
  'probe-ms': { default: 0, low: 0, high: 60000 },
  counter: {},
});

const TABLE_ROWS = 2000;
const GROUPS = 500;

const database = await open(option.library, ':memory:');
await database.exec('CREATE TABLE events(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, size INTEGER NOT NULL)');
await database.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${TABLE_ROWS})
  INSERT INTO events SELECT i, (i * 7919) % ${GROUPS}, (i * 104729) % 1000 FROM n`);
const sql = `SELECT kind, sum(size) + ${option.seed} AS total, count(*) AS number FROM events GROUP BY kind ORDER BY 2 DESC`;
const statements = Array.from({ length: option.statements }, () => database.prepare(sql));

const run = { calls: 0, rows: 0 };
const count = protocol.counterOpen(option.counter);
const stopped = protocol.stopOnSignals();
const latencies = [];
let sum = 0;
let issued = 0;
let open_ = 0;
let state = 'warming';
let begin;
let used;
let progress;

function use(rows) {
  const text = JSON.stringify(rows);
  sum = (sum + text.length * 31 + text.charCodeAt(text.length >> 1)) | 0;
  run.calls += 1;
  run.rows += rows.length;
}

// Starts a query of this statement unless the hold is over or --calls are out.
function issue(statement) {
  if (state === 'over' || (state === 'holding' && option.calls > 0 && issued >= option.calls)) return;
  issued += 1;
  open_ += 1;
  statement.all((error, rows) => {
    if (error) throw error;
    open_ -= 1;
    if (state !== 'over') use(rows);
    look();
    issue(statement);
    if (open_ === 0) drained();
  });
}

function look() {
  if (state !== 'holding') {
    if (state === 'warming' && run.calls >= 300 && performance.now() > 1000) state = 'over';
    return;
  }
  count(run);
  const now = progress.look(run);
  const over = option.seconds > 0 && Number(now - begin.wall) / 1e9 >= option.seconds;
  if (stopped.yes || over || (option.calls > 0 && run.calls >= option.calls)) finish();
}

function fillQueues() {
  for (const statement of statements) {
    for (let i = 0; i < option.depth; i++) issue(statement);
  }
}

// All queries are back: after the warm-up the hold begins, after the hold the end.
let warm = true;
function drained() {
  if (!warm) {
    for (const statement of statements) statement.finalize();
    database.close();
    return;
  }
  warm = false;
  run.calls = run.rows = issued = sum = 0;
  protocol.ready({
    workload: 'loop', op: option.library, limit: 0, statements: option.statements, depth: option.depth,
    pool: process.env.UV_THREADPOOL_SIZE ?? 4, node: process.version, sqlite: database.version, seed: option.seed,
  });
  state = 'holding';
  begin = protocol.mark(run);
  used = performance.eventLoopUtilization();
  progress = new protocol.Progress(begin, option.progress);
  if (option['probe-ms'] > 0) setInterval(probe, option['probe-ms']).unref();
  fillQueues();
}

const probed = Buffer.alloc(64);
function probe() {
  const from = process.hrtime.bigint();
  zlib.deflate(probed, () => { if (latencies.length < 1000000) latencies.push(Number(process.hrtime.bigint() - from)); });
}

function finish() {
  state = 'over';
  const end = protocol.mark(run);
  const { utilization } = performance.eventLoopUtilization(used);
  const secs = Number(end.wall - begin.wall) / 1e9;
  protocol.rate(begin, end, 'run');
  latencies.sort((a, b) => a - b);
  const queue = latencies.length ? latencies[latencies.length >> 1] / 1000 : 0;
  process.stdout.write(`LOOP queries=${run.calls} ms_per_query=${((secs * 1000) / run.calls).toFixed(4)} elu=${utilization.toFixed(4)}` +
    ` cpu_per_wall=${((end.cpu - begin.cpu) / secs).toFixed(4)} loop_cpu_per_wall=${((end.thread - begin.thread) / secs).toFixed(4)}` +
    ` queue_us=${queue.toFixed(1)}\n`);
  protocol.sumPrint(sum);
  progress.driftWarn();
}

fillQueues();
