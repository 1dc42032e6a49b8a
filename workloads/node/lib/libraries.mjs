// SPDX-License-Identifier: MIT
//
// The bindings behind one face, so that each workload is written once.
//
// open() gives a connection with exec, fill, prepare and close, which may be waited for, and with `work`, the inner loops that a
// profile is about: one function per operation and kind of binding, so that each stays monomorphic. The trap is sqlite3, which
// answers through callbacks from a thread pool: its work is a chain of calls, each started when the one before is done.
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { refuse } from './protocol.mjs';

export const libraries = ['node:sqlite', 'better-sqlite3', 'sqlite3', 'sqlite3-eager'];

const runtimes = process.env.ROWPROF_RUNTIMES ?? fileURLToPath(new URL('../../../.runtimes', import.meta.url));

function addon(name, folder = name) {
  const place = path.join(runtimes, folder, 'node_modules', name);
  if (!existsSync(place)) refuse(`${folder} is not here; run scripts/runtimes ${folder}.`);
  try {
    return createRequire(import.meta.url)(place);
  } catch (error) {
    return refuse(`${folder} cannot be loaded into Node ${process.version}: ${String(error.message).split('\n')[0]}.`);
  }
}

// The loops of bindings that return their rows. `run` counts rows and keeps the last one.
const direct = {
  get(statement, calls, run, done) {
    for (let i = 0; i < calls; i++) {
      run.last = statement.get();
      run.rows += 1;
    }
    done();
  },
  all(statement, calls, run, done) {
    for (let i = 0; i < calls; i++) {
      const rows = statement.all();
      run.last = rows[rows.length - 1];
      run.rows += rows.length;
    }
    done();
  },
  iterate(statement, calls, run, done) {
    for (let i = 0; i < calls; i++) {
      for (const row of statement.iterate()) {
        run.last = row;
        run.rows += 1;
      }
    }
    done();
  },
};

function must(error) {
  if (error) throw error;
}

// The same of the binding that calls back. Its get() goes on to the next row of a statement unless it binds something, so the
// limit is bound.
const queued = {
  get(statement, calls, run, done) {
    let left = calls;
    const next = (error, row) => {
      must(error);
      run.last = row;
      run.rows += 1;
      if (--left > 0) statement.get(run.limit, next);
      else done();
    };
    statement.get(run.limit, next);
  },
  all(statement, calls, run, done) {
    let left = calls;
    const next = (error, rows) => {
      must(error);
      run.last = rows[rows.length - 1];
      run.rows += rows.length;
      if (--left > 0) statement.all(run.limit, next);
      else done();
    };
    statement.all(run.limit, next);
  },
  iterate(statement, calls, run, done) {
    let left = calls;
    const row = (error, value) => {
      must(error);
      run.last = value;
      run.rows += 1;
    };
    const next = (error) => {
      must(error);
      if (--left > 0) statement.each(run.limit, row, next);
      else done();
    };
    statement.each(run.limit, row, next);
  },
};

function connection(database, make, version) {
  return {
    raw: database,
    version,
    work: direct,
    binds: false,
    exec: (sql) => database.exec(sql),
    fill(sql, rows) {
      const insert = make(sql);
      for (const row of rows) insert.run(...row);
    },
    prepare: make,
    close: () => database.close(),
  };
}

async function openNode(file, { readonly }) {
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file, { readOnly: readonly });
  return connection(database, (sql) => database.prepare(sql), process.versions.sqlite);
}

// Everything that better-sqlite3 made, kept for ever: up to version 12 a statement that is collected while no JavaScript runs aborts
// Node from 24.19 on (node::ObjectWrap in its headers asks for the current environment, and there is none).
const kept = [];

function keep(object) {
  kept.push(object);
  return object;
}

// An iterator is such an object, too, and there is one per call, too many to keep: so none that is dead is left where JavaScript ends. Living
// a few microseconds, none gets old.
function leavingNoIterator() {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  return {
    ...direct,
    iterate(statement, calls, run, done) {
      direct.iterate(statement, calls, run, () => collect({ type: 'minor' }));
      done();
    },
  };
}

function openBetter(file, { readonly }) {
  const Database = addon('better-sqlite3');
  const database = keep(new Database(file, { readonly }));
  const make = (sql) => keep(database.prepare(sql));
  return { ...connection(database, make, make('SELECT sqlite_version() v').get().v), work: leavingNoIterator() };
}

async function openQueued(file, { readonly }, folder) {
  const sqlite3 = addon('sqlite3', folder);
  const mode = readonly ? sqlite3.OPEN_READONLY | sqlite3.OPEN_PRIVATECACHE : sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE;
  const database = await new Promise((resolve, reject) => {
    const opened = new sqlite3.Database(file, mode, (error) => (error ? reject(error) : resolve(opened)));
  });
  const settle = (start) => new Promise((resolve, reject) => { start((error) => (error ? reject(error) : resolve())); });
  return {
    raw: database,
    version: sqlite3.VERSION,
    work: queued,
    binds: true,
    exec: (sql) => settle((done) => database.exec(sql, done)),
    async fill(sql, rows) {
      const insert = database.prepare(sql);
      for (const row of rows) insert.run(...row);
      await settle((done) => insert.finalize(done));
    },
    prepare: (sql) => database.prepare(sql),
    close: () => settle((done) => database.close(done)),
  };
}

// Opens `file` with the library of that name. Settings: readonly.
export async function open(name, file, settings = {}) {
  const options = { readonly: false, ...settings };
  if (name === 'node:sqlite') return openNode(file, options);
  if (name === 'better-sqlite3') return openBetter(file, options);
  return openQueued(file, options, name);
}
