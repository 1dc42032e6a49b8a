// SPDX-License-Identifier: MIT
//
// What every workload in Node does alike (workloads/README.md, Protocol): options, READY, RATE, SUM, the stationarity warning.
//
// A workload reads its options with parse(), calls ready() when nothing is left to seed or warm, takes a mark() at both ends
// of its hold and prints rate() of them.
import { parseArgs } from 'node:util';
import { closeSync, openSync, writeSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';

export const program = path.basename(process.argv[1] ?? 'node');

export function refuse(sentence) {
  process.stderr.write(`${program}: ${sentence}\n`);
  process.exit(2);
}

// Options as a table: name -> { default, choices } or { default, low, high } (a number) or { flag: true } or {} (a text).
export function parse(table) {
  const options = {};
  for (const [name, row] of Object.entries(table)) {
    options[name] = row.flag ? { type: 'boolean', default: false } : { type: 'string' };
    if (!row.flag && row.default !== undefined) options[name].default = String(row.default);
  }
  let values;
  try {
    ({ values } = parseArgs({ options }));
  } catch (error) {
    // Node's own sentence, of which the lines after the first are advice.
    refuse(String(error.message).split('\n')[0]);
  }
  for (const [name, row] of Object.entries(table)) {
    const text = values[name];
    if (text === undefined || row.flag) continue;
    if (row.choices && !row.choices.includes(text)) {
      refuse(`--${name} takes one of ${row.choices.join(', ')}, not '${text}'.`);
    }
    if (row.low === undefined) continue;
    const value = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : NaN;
    const whole = row.fraction || Number.isInteger(value);
    if (!(whole && value >= row.low && value <= row.high)) {
      refuse(`--${name} takes a ${row.fraction ? '' : 'whole '}number from ${row.low} to ${row.high}, not '${text}'.`);
    }
    values[name] = value;
  }
  return values;
}

export const common = {
  seconds: { default: 0, low: 0, high: 864000, fraction: true },
  calls: { default: 0, low: 0, high: Number.MAX_SAFE_INTEGER },
  seed: { default: 1, low: 0, high: 2 ** 32 - 1 },
  progress: { flag: true },
};

// A small seeded generator (mulberry32): Math.random cannot be seeded.
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function ready(words) {
  const text = Object.entries(words).map(([key, value]) => `${key}=${value}`).join(' ');
  process.stderr.write(`READY pid=${process.pid} tid=${process.pid} ${text}\n`);
}

export function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

// CPU time of the calling thread; NaN where Node cannot tell.
export function threadSeconds() {
  if (typeof process.threadCpuUsage !== 'function') return NaN;
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1e6;
}

// An instant: what the process had done and used by then.
export function mark(run) {
  const usage = process.resourceUsage();
  return {
    wall: process.hrtime.bigint(), cpu: cpuSeconds(), thread: threadSeconds(), calls: run.calls, rows: run.rows,
    voluntary: usage.voluntaryContextSwitches, involuntary: usage.involuntaryContextSwitches,
  };
}

// The RATE line of what happened between two marks. `more` is added by other processes: { cpu, voluntary, involuntary }.
export function rate(from, to, span, more = { cpu: 0, voluntary: 0, involuntary: 0 }) {
  const secs = Number(to.wall - from.wall) / 1e9;
  const cpu = to.cpu - from.cpu + more.cpu;
  const calls = to.calls - from.calls;
  const per = (a, b) => (b > 0 ? a / b : 0).toFixed(1);
  let line = `RATE calls=${calls} rows=${to.rows - from.rows} secs=${secs.toFixed(6)} rate=${per(calls, secs)}`;
  line += ` cpu_secs=${cpu.toFixed(6)} cpu_rate=${per(calls, cpu)} ns_per_call=${per(cpu * 1e9, calls)}`;
  line += ` nvcsw=${to.voluntary - from.voluntary + more.voluntary}`;
  line += ` nivcsw=${to.involuntary - from.involuntary + more.involuntary} span=${span}`;
  if (!Number.isNaN(to.thread)) line += ` thread_cpu_secs=${(to.thread - from.thread).toFixed(6)}`;
  process.stdout.write(`${line}\n`);
}

export function sumPrint(sum) {
  process.stdout.write(`SUM ${(sum >>> 0).toString(16).padStart(8, '0')}\n`);
}

// Collects slices of about a tenth of a second, and the RATE lines of --progress.
export class Progress {
  constructor(begin, every) {
    this.slice = begin;
    this.second = begin;
    this.every = every;
    this.slices = [];
  }

  look(run) {
    const now = process.hrtime.bigint();
    if (now - this.slice.wall >= 100000000n && this.slices.length < 100000) {
      const next = { wall: now, cpu: cpuSeconds(), calls: run.calls };
      this.slices.push({ cpu: next.cpu - this.slice.cpu, calls: next.calls - this.slice.calls });
      this.slice = next;
    }
    if (this.every && now - this.second.wall >= 1000000000n) {
      const next = mark(run);
      rate(this.second, next, 'second');
      this.second = next;
    }
    return now;
  }

  driftWarn() {
    const window = Math.floor(this.slices.length / 10);
    if (window === 0) return;
    const speed = (part) => {
      const cpu = part.reduce((sum, slice) => sum + slice.cpu, 0);
      return cpu > 0 ? part.reduce((sum, slice) => sum + slice.calls, 0) / cpu : 0;
    };
    const used = this.slices.slice(0, window * 10);
    const off = (100 * (speed(used.slice(window * 7)) - speed(used.slice(0, window * 3)))) / speed(used);
    if (Math.abs(off) > 2) {
      process.stderr.write(`${program}: not stationary: the last three of ten windows ran ${off.toFixed(1)} % against the first three.\n`);
    }
  }
}

// Keeps two 64-bit words in a file, calls done and the process's CPU nanoseconds. Returns what writes them.
export function counterOpen(name) {
  if (name === undefined) return () => {};
  const file = openSync(name, 'w');
  const words = new BigUint64Array(2);
  process.on('exit', () => closeSync(file));
  return (run) => {
    words[0] = BigInt(run.calls);
    words[1] = BigInt(Math.round(cpuSeconds() * 1e9));
    writeSync(file, words, 0, 16, 0);
  };
}

// INT and TERM end the hold; the flag is looked at whenever the event loop turns.
export function stopOnSignals() {
  const stopped = { yes: false };
  process.on('SIGINT', () => { stopped.yes = true; });
  process.on('SIGTERM', () => { stopped.yes = true; });
  return stopped;
}
