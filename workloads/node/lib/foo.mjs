// SPDX-License-Identifier: MIT
//
// The tables that read.mjs reads: those of Node's own benchmark, made with a seed.
import { generator } from './protocol.mjs';

export const lists = {
  1: 'text_column',
  2: 'text_column, integer_column',
  3: 'text_column, integer_column, real_column',
  4: 'text_column, integer_column, real_column, blob_column',
  '*': '*',
  '8kb': 'text_8kb_column',
  const: '1',
};

// Columns of each, for what is paid per value.
export const widths = { 1: 1, 2: 2, 3: 3, 4: 4, '*': 4, '8kb': 1, const: 1 };

function* rows(seed, count) {
  const random = generator(seed);
  const blob = Buffer.from('example blob data');
  const hex = (digits) => Math.floor(random() * 16 ** digits).toString(16).padStart(digits, '0');
  for (let i = 0; i < count; i++) {
    yield [`${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(8)}${hex(4)}`, Math.floor(random() * 100), random(), blob];
  }
}

function* large(count) {
  for (let i = 0; i < count; i++) yield ['a'.repeat(8192)];
}

export async function fill(database, option) {
  await database.exec('BEGIN');
  if (option.columns === '8kb') {
    await database.exec('CREATE TABLE foo_large(text_8kb_column TEXT)');
    await database.fill('INSERT INTO foo_large VALUES(?)', large(200));
  } else {
    await database.exec('CREATE TABLE foo(text_column TEXT, integer_column INTEGER, real_column REAL, blob_column BLOB)');
    await database.fill('INSERT INTO foo VALUES(?, ?, ?, ?)', rows(option.seed, option.rows));
  }
  await database.exec('COMMIT');
}

// The statement, with its limit written out or, if `binds`, to be bound.
export function select(option, binds) {
  const limit = binds ? '?' : option.limit;
  if (option.columns === 'const') return binds ? `SELECT 1 AS one LIMIT ${limit}` : 'SELECT 1 AS one';
  return `SELECT ${lists[option.columns]} FROM ${option.columns === '8kb' ? 'foo_large' : 'foo'} LIMIT ${limit}`;
}

// A checksum of a call's last row: enough to see that two variants did equal work, too little to cost anything.
export function fold(sum, row, count) {
  let value = count;
  for (const key in row) {
    const cell = row[key];
    if (typeof cell === 'number') value += Math.floor(cell * 1024);
    else if (typeof cell === 'string') value += cell.length + cell.charCodeAt(0) * 7 + cell.charCodeAt(cell.length - 1);
    else if (cell !== null) value += cell.length * 31 + cell[0];
  }
  return (Math.imul(sum, 31) + value) | 0;
}
