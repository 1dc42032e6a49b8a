// SPDX-License-Identifier: MIT
//
// A binding of SQLite reading rows, with the protocol of rowload (workloads/README.md): READY on stderr, RATE and SUM on stdout.
//
// usage: node read.mjs [--library node:sqlite|better-sqlite3|sqlite3] [--op get|all|iterate] [--columns 1|2|3|4|*|8kb|const]
//                      [--limit N] [--seconds S] [--calls N] [--seed N] [--rows N] [--progress] [--counter FILE]
//
// The trap is the timer: INT and TERM reach JavaScript only when the event loop turns, so the loop yields to it about
// every ten milliseconds with setImmediate, which costs nothing that a profile could see.
import process from 'node:process';
import * as protocol from './lib/protocol.mjs';
import * as foo from './lib/foo.mjs';
import { libraries, open } from './lib/libraries.mjs';

const option = protocol.parse({
  ...protocol.common,
  library: { default: 'node:sqlite', choices: libraries },
  op: { default: 'get', choices: ['get', 'all', 'iterate'] },
  columns: { default: '*', choices: Object.keys(foo.lists) },
  limit: { default: 1, low: 1, high: 1000000 },
  rows: { default: 10000, low: 1, high: 1000000 },
  counter: {},
});

// Warms up for half a second and the calls the protocol asks for; returns the calls that take about ten milliseconds.
async function warmUp(some, limit) {
  const least = limit <= 10 ? 20000 : 3000;
  const begin = process.hrtime.bigint();
  let calls = 0;
  while (calls < least || process.hrtime.bigint() - begin < 500000000n) {
    await new Promise((done) => { some(100, done); });
    calls += 100;
  }
  const perCall = Number(process.hrtime.bigint() - begin) / calls;
  return Math.max(1, Math.round(1e7 / perCall));
}

const database = await open(option.library, ':memory:');
await foo.fill(database, option);
const statement = database.prepare(foo.select(option, database.binds));
const work = database.work[option.op];
const run = { calls: 0, rows: 0, last: undefined, limit: option.limit };
const count = protocol.counterOpen(option.counter);
const stopped = protocol.stopOnSignals();

const size = await warmUp((calls, done) => work(statement, calls, run, done), option.limit);
run.rows = 0;
protocol.ready({
  workload: option.library, op: option.op, limit: option.limit, cols: option.columns, columns: foo.widths[option.columns],
  rows: option.rows, node: process.version,
  sqlite: database.version, seed: option.seed,
});

const begin = protocol.mark(run);
const progress = new protocol.Progress(begin, option.progress);

function turn() {
  const calls = option.calls > 0 ? Math.min(size, option.calls - run.calls) : size;
  work(statement, calls, run, () => {
    run.calls += calls;
    count(run);
    const now = progress.look(run);
    const over = option.seconds > 0 && Number(now - begin.wall) / 1e9 >= option.seconds;
    if (stopped.yes || over || (option.calls > 0 && run.calls >= option.calls)) finish();
    else setImmediate(turn);
  });
}

function finish() {
  protocol.rate(begin, protocol.mark(run), 'run');
  protocol.sumPrint(foo.fold(0, run.last, run.rows));
  progress.driftWarn();
  if (statement.finalize) statement.finalize();
  database.close();
}

turn();
