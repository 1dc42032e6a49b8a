// SPDX-License-Identifier: MIT
//
// node:sqlite reading rows, with the protocol of rowload (workloads/README.md): READY on stderr, RATE and SUM on stdout.
//
// usage: node read.mjs [--op get|all|iterate] [--columns 1|2|3|4|*|8kb|const] [--limit N] [--seconds S] [--calls N]
//                      [--seed N] [--rows N] [--progress] [--counter FILE]
//
// The trap is the timer: INT and TERM reach JavaScript only when the event loop turns, so the loop yields to it about
// every ten milliseconds with setImmediate, which costs nothing that a profile could see.
import { DatabaseSync } from 'node:sqlite';
import { closeSync, openSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import process from 'node:process';

const lists = {
  1: 'text_column',
  2: 'text_column, integer_column',
  3: 'text_column, integer_column, real_column',
  4: 'text_column, integer_column, real_column, blob_column',
  '*': '*',
  '8kb': 'text_8kb_column',
  const: '1',
};
const ops = ['get', 'all', 'iterate'];

function refuse(sentence) {
  process.stderr.write(`read.mjs: ${sentence}\n`);
  process.exit(2);
}

function number(name, text, low, high) {
  const value = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= low && value <= high)) refuse(`--${name} takes a number from ${low} to ${high}, not '${text}'.`);
  return value;
}

function options() {
  const string = (value) => ({ type: 'string', default: value });
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        op: string('get'), columns: string('*'), limit: string('1'), seconds: string('0'), calls: string('0'),
        seed: string('1'), rows: string('10000'), progress: { type: 'boolean', default: false }, counter: { type: 'string' },
      },
    }));
  } catch (error) {
    refuse(error.message);
  }
  if (!ops.includes(values.op)) refuse(`--op takes one of ${ops.join(', ')}, not '${values.op}'.`);
  if (!Object.hasOwn(lists, values.columns)) {
    refuse(`--columns takes one of ${Object.keys(lists).join(', ')}, not '${values.columns}'.`);
  }
  return {
    ...values,
    limit: number('limit', values.limit, 1, 1000000),
    seconds: number('seconds', values.seconds, 0, 864000),
    calls: number('calls', values.calls, 0, Number.MAX_SAFE_INTEGER),
    seed: number('seed', values.seed, 0, 2 ** 32 - 1),
    rows: number('rows', values.rows, 1, 1000000),
  };
}

// A small seeded generator (mulberry32): Math.random cannot be seeded.
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function seedDatabase(option) {
  const database = new DatabaseSync(':memory:');
  const random = generator(option.seed);
  database.exec('BEGIN');
  if (option.columns === '8kb') {
    database.exec('CREATE TABLE foo_large(text_8kb_column TEXT)');
    const insert = database.prepare('INSERT INTO foo_large VALUES(?)');
    for (let i = 0; i < 200; i++) insert.run('a'.repeat(8192));
  } else {
    database.exec('CREATE TABLE foo(text_column TEXT, integer_column INTEGER, real_column REAL, blob_column BLOB)');
    const insert = database.prepare('INSERT INTO foo VALUES(?, ?, ?, ?)');
    const blob = Buffer.from('example blob data');
    const hex = (digits) => Math.floor(random() * 16 ** digits).toString(16).padStart(digits, '0');
    for (let i = 0; i < option.rows; i++) {
      insert.run(`${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(8)}${hex(4)}`, Math.floor(random() * 100), random(), blob);
    }
  }
  database.exec('COMMIT');
  return database;
}

function select(option) {
  if (option.columns === 'const') return 'SELECT 1 AS one';
  return `SELECT ${lists[option.columns]} FROM ${option.columns === '8kb' ? 'foo_large' : 'foo'} LIMIT ${option.limit}`;
}

// A checksum of the last row of a call: enough to see that two variants did equal work, too little to cost anything.
function fold(sum, row, rows) {
  let value = rows;
  for (const key in row) {
    const cell = row[key];
    if (typeof cell === 'number') value += Math.floor(cell * 1024);
    else if (typeof cell === 'string') value += cell.length + cell.charCodeAt(0) * 7 + cell.charCodeAt(cell.length - 1);
    else if (cell !== null) value += cell.length * 31 + cell[0];
  }
  return (Math.imul(sum, 31) + value) | 0;
}

// Does `calls` calls; one function per operation, so that each stays monomorphic.
const batches = {
  get(statement, calls, run) {
    for (let i = 0; i < calls; i++) {
      run.last = statement.get();
      run.rows += 1;
    }
  },
  all(statement, calls, run) {
    for (let i = 0; i < calls; i++) {
      const rows = statement.all();
      run.last = rows[rows.length - 1];
      run.rows += rows.length;
    }
  },
  iterate(statement, calls, run) {
    for (let i = 0; i < calls; i++) {
      for (const row of statement.iterate()) {
        run.last = row;
        run.rows += 1;
      }
    }
  },
};

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function threadSeconds() {
  if (typeof process.threadCpuUsage !== 'function') return NaN;
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1e6;
}

function mark(run) {
  const usage = process.resourceUsage();
  return {
    wall: process.hrtime.bigint(), cpu: cpuSeconds(), thread: threadSeconds(), calls: run.calls, rows: run.rows,
    voluntary: usage.voluntaryContextSwitches, involuntary: usage.involuntaryContextSwitches,
  };
}

function rate(from, to, span) {
  const secs = Number(to.wall - from.wall) / 1e9;
  const cpu = to.cpu - from.cpu;
  const calls = to.calls - from.calls;
  const per = (a, b) => (b > 0 ? a / b : 0).toFixed(1);
  let line = `RATE calls=${calls} rows=${to.rows - from.rows} secs=${secs.toFixed(6)} rate=${per(calls, secs)}`;
  line += ` cpu_secs=${cpu.toFixed(6)} cpu_rate=${per(calls, cpu)} ns_per_call=${per(cpu * 1e9, calls)}`;
  line += ` nvcsw=${to.voluntary - from.voluntary} nivcsw=${to.involuntary - from.involuntary} span=${span}`;
  if (!Number.isNaN(to.thread)) line += ` thread_cpu_secs=${(to.thread - from.thread).toFixed(6)}`;
  process.stdout.write(`${line}\n`);
}

function driftWarn(slices) {
  const window = Math.floor(slices.length / 10);
  if (window === 0) return;
  const speed = (part) => {
    const cpu = part.reduce((sum, slice) => sum + slice.cpu, 0);
    return cpu > 0 ? part.reduce((sum, slice) => sum + slice.calls, 0) / cpu : 0;
  };
  const used = slices.slice(0, window * 10);
  const off = (100 * (speed(used.slice(window * 7)) - speed(used.slice(0, window * 3)))) / speed(used);
  if (Math.abs(off) > 2) {
    process.stderr.write(`read.mjs: not stationary: the last three of ten windows ran ${off.toFixed(1)} % against the first three.\n`);
  }
}

// Warms up for half a second and the calls the protocol asks for; returns the calls that take about ten milliseconds.
function warmUp(statement, batch, run, limit) {
  const least = limit <= 10 ? 20000 : 3000;
  const begin = process.hrtime.bigint();
  let calls = 0;
  while (calls < least || process.hrtime.bigint() - begin < 500000000n) {
    batch(statement, 100, run);
    calls += 100;
  }
  const perCall = Number(process.hrtime.bigint() - begin) / calls;
  return Math.max(1, Math.round(1e7 / perCall));
}

function counterOpen(path) {
  if (path === undefined) return () => {};
  const file = openSync(path, 'w');
  const words = new BigUint64Array(2);
  process.on('exit', () => closeSync(file));
  return (run) => {
    words[0] = BigInt(run.calls);
    words[1] = BigInt(Math.round(cpuSeconds() * 1e9));
    writeSync(file, words, 0, 16, 0);
  };
}

const option = options();
const database = seedDatabase(option);
const statement = database.prepare(select(option));
const batch = batches[option.op];
const run = { calls: 0, rows: 0, last: undefined };
const count = counterOpen(option.counter);
let stop = false;
process.on('SIGINT', () => { stop = true; });
process.on('SIGTERM', () => { stop = true; });

const size = warmUp(statement, batch, run, option.limit);
run.rows = 0;
let sum = 0;
process.stderr.write(`READY pid=${process.pid} tid=${process.pid} workload=node:sqlite op=${option.op} limit=${option.limit}` +
  ` cols=${option.columns} rows=${option.rows} node=${process.version} sqlite=${process.versions.sqlite} seed=${option.seed}\n`);

const begin = mark(run);
let second = begin;
let slice = begin;
const slices = [];

function turn() {
  let calls = size;
  if (option.calls > 0) calls = Math.min(calls, option.calls - run.calls);
  batch(statement, calls, run);
  run.calls += calls;
  count(run);
  const now = process.hrtime.bigint();
  if (now - slice.wall >= 100000000n && slices.length < 100000) {
    const next = { wall: now, cpu: cpuSeconds(), calls: run.calls };
    slices.push({ cpu: next.cpu - slice.cpu, calls: next.calls - slice.calls });
    slice = next;
  }
  if (option.progress && now - second.wall >= 1000000000n) {
    const next = mark(run);
    rate(second, next, 'second');
    second = next;
  }
  const over = option.seconds > 0 && Number(now - begin.wall) / 1e9 >= option.seconds;
  if (stop || over || (option.calls > 0 && run.calls >= option.calls)) finish();
  else setImmediate(turn);
}

function finish() {
  const end = mark(run);
  rate(begin, end, 'run');
  sum = fold(sum, run.last, run.rows);
  process.stdout.write(`SUM ${(sum >>> 0).toString(16).padStart(8, '0')}\n`);
  driftWarn(slices);
  database.close();
}

turn();
