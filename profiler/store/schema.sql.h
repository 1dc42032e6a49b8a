/* SPDX-License-Identifier: MIT */
/* The schema of a profile file, version 2, as `sqlite3 FILE .schema` shows it. Loading insists on these very texts, so that a file cannot put
 * something else (a view, a virtual table, a generated column) in the place of a table.
 *
 * Ids count from 0 without gaps and are positions in memory, see model/profile.h. 64-bit addresses, devices and inodes are stored as signed numbers:
 * printf('%x', addr) shows them. */
#ifndef RP_STORE_SCHEMA_SQL_H
#define RP_STORE_SCHEMA_SQL_H

#define RP_SCHEMA_STRINGS                                                                                              \
    "CREATE TABLE strings (\n"                                                                                         \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  text TEXT NOT NULL -- 0 is the empty text, which stands for: none\n"                                            \
    ") STRICT"

#define RP_SCHEMA_IMAGES                                                                                               \
    "CREATE TABLE images ( -- mapped files, the kernel, JIT code\n"                                                    \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  kind INTEGER NOT NULL, -- 0 marks, 1 kernel, 2 ELF, 3 vDSO, 4 JIT, 5 other file\n"                              \
    "  path INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  name INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  build_id INTEGER NOT NULL REFERENCES strings,\n"                                                                \
    "  dev INTEGER NOT NULL,\n"                                                                                        \
    "  ino INTEGER NOT NULL,\n"                                                                                        \
    "  note INTEGER NOT NULL REFERENCES strings, -- what is wrong with it\n"                                           \
    "  remedy INTEGER NOT NULL REFERENCES strings -- what would name its code\n"                                       \
    ") STRICT"

#define RP_SCHEMA_ALIASES                                                                                              \
    "CREATE TABLE aliases ( -- other names of functions\n"                                                             \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  name INTEGER NOT NULL REFERENCES strings\n"                                                                     \
    ") STRICT"

#define RP_SCHEMA_FUNCTIONS                                                                                            \
    "CREATE TABLE functions (\n"                                                                                       \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  name INTEGER NOT NULL REFERENCES strings, -- as shown\n"                                                        \
    "  raw INTEGER NOT NULL REFERENCES strings, -- as in the symbol table\n"                                           \
    "  image INTEGER NOT NULL REFERENCES images,\n"                                                                    \
    "  module INTEGER NOT NULL REFERENCES strings,\n"                                                                  \
    "  start INTEGER NOT NULL, -- first address; 0: inlined, or a mark\n"                                              \
    "  file INTEGER NOT NULL REFERENCES strings, -- source file\n"                                                     \
    "  first_alias INTEGER NOT NULL, -- its aliases are [first_alias, first_alias + naliases)\n"                       \
    "  naliases INTEGER NOT NULL,\n"                                                                                   \
    "  how INTEGER NOT NULL -- name from: 0 symbol, 1 inlined, 2 PLT, 3 JIT map, 4 kernel, 5 local stub, 6 none, 7 mark\n" \
    ") STRICT"

#define RP_SCHEMA_LINES                                                                                                \
    "CREATE TABLE lines ( -- functions at a location, inlined ones first\n"                                            \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  function INTEGER NOT NULL REFERENCES functions,\n"                                                              \
    "  file INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  line INTEGER NOT NULL\n"                                                                                        \
    ") STRICT"

#define RP_SCHEMA_LOCATIONS                                                                                            \
    "CREATE TABLE locations ( -- addresses\n"                                                                          \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  image INTEGER NOT NULL REFERENCES images,\n"                                                                    \
    "  flags INTEGER NOT NULL, -- 1 return address, 2 kernel, 4 found by frame pointer, 8 mark\n"                      \
    "  addr INTEGER NOT NULL, -- in the ELF file; of a mark: its string\n"                                             \
    "  epoch INTEGER NOT NULL, -- JIT: which code lived there\n"                                                       \
    "  first_line INTEGER NOT NULL, -- its lines are [first_line, first_line + nlines)\n"                              \
    "  nlines INTEGER NOT NULL\n"                                                                                      \
    ") STRICT"

#define RP_SCHEMA_NODES                                                                                                \
    "CREATE TABLE nodes ( -- a stack is its innermost node; parents lead to the root, 0\n"                             \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  parent INTEGER NOT NULL REFERENCES nodes,\n"                                                                    \
    "  location INTEGER REFERENCES locations -- NULL for the root\n"                                                   \
    ") STRICT"

#define RP_SCHEMA_PROCESSES                                                                                            \
    "CREATE TABLE processes (\n"                                                                                       \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  pid INTEGER NOT NULL,\n"                                                                                        \
    "  generation INTEGER NOT NULL, -- counts exec\n"                                                                  \
    "  command INTEGER NOT NULL REFERENCES strings,\n"                                                                 \
    "  comm INTEGER NOT NULL REFERENCES strings\n"                                                                     \
    ") STRICT"

#define RP_SCHEMA_THREADS                                                                                              \
    "CREATE TABLE threads (\n"                                                                                         \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  process INTEGER NOT NULL REFERENCES processes,\n"                                                               \
    "  tid INTEGER NOT NULL,\n"                                                                                        \
    "  comm INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  wall_ns INTEGER NOT NULL, -- how long it was watched; with waits measured: cpu + preempted + waiting\n"         \
    "  cpu_ns INTEGER NOT NULL, -- how long it was on a CPU in that time\n"                                            \
    "  preempted_ns INTEGER NOT NULL, -- off the CPU while it could have run\n"                                        \
    "  preemptions INTEGER NOT NULL,\n"                                                                                \
    "  waiting_ns INTEGER NOT NULL, -- off the CPU of its own will\n"                                                  \
    "  waits INTEGER NOT NULL,\n"                                                                                      \
    "  run_delay_ns INTEGER NOT NULL -- waiting for a CPU, whether preempted or just woken\n"                          \
    ") STRICT"

#define RP_SCHEMA_RUN                                                                                                  \
    "CREATE TABLE run ( -- one row\n"                                                                                  \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  started_unix_ns INTEGER NOT NULL,\n"                                                                            \
    "  seconds_ns INTEGER NOT NULL, -- how long sampling lasted\n"                                                     \
    "  hz INTEGER NOT NULL,\n"                                                                                         \
    "  source INTEGER NOT NULL REFERENCES strings,\n"                                                                  \
    "  host INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  kernel_visible INTEGER NOT NULL,\n"                                                                             \
    "  stack_bytes INTEGER NOT NULL,\n"                                                                                \
    "  stack_grown INTEGER NOT NULL,\n"                                                                                \
    "  lost INTEGER NOT NULL,\n"                                                                                       \
    "  throttled INTEGER NOT NULL,\n"                                                                                  \
    "  vanished INTEGER NOT NULL,\n"                                                                                   \
    "  threads_unsampled INTEGER NOT NULL,\n"                                                                          \
    "  note INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  map_lines INTEGER NOT NULL,\n"                                                                                  \
    "  map_rejected INTEGER NOT NULL,\n"                                                                               \
    "  nblocks INTEGER NOT NULL,\n"                                                                                    \
    "  block_ns INTEGER NOT NULL, -- length of one block of time\n"                                                    \
    "  waits INTEGER NOT NULL, -- 0 not measured, 1 exact, 2 sampled\n"                                                \
    "  sampler INTEGER NOT NULL REFERENCES strings,\n"                                                                 \
    "  switches INTEGER NOT NULL,\n"                                                                                   \
    "  wait_stacks INTEGER NOT NULL, -- waits whose stack was seen\n"                                                  \
    "  cpus INTEGER NOT NULL -- that the processes might use\n"                                                        \
    ") STRICT"

#define RP_SCHEMA_COUNTS                                                                                               \
    "CREATE TABLE counts (\n"                                                                                          \
    "  thread INTEGER NOT NULL REFERENCES threads,\n"                                                                  \
    "  node INTEGER NOT NULL REFERENCES nodes,\n"                                                                      \
    "  tag INTEGER NOT NULL,\n"                                                                                        \
    "  block INTEGER NOT NULL,\n"                                                                                      \
    "  state INTEGER NOT NULL, -- 0 running, 1 blocked\n"                                                              \
    "  n INTEGER NOT NULL, -- samples\n"                                                                               \
    "  weight_ns INTEGER NOT NULL\n"                                                                                   \
    ") STRICT"

#define RP_SCHEMA_WAIT_TOTALS                                                                                          \
    "CREATE TABLE wait_totals ( -- all waits, by how long they took\n"                                                 \
    "  thread INTEGER NOT NULL REFERENCES threads,\n"                                                                  \
    "  wait_class INTEGER NOT NULL, -- c: [2^(c/4), 2^((c+1)/4)) ns, linear in between\n"                              \
    "  n INTEGER NOT NULL,\n"                                                                                          \
    "  ns INTEGER NOT NULL,\n"                                                                                         \
    "  max_ns INTEGER NOT NULL\n"                                                                                      \
    ") STRICT"

#define RP_SCHEMA_WAITS                                                                                                \
    "CREATE TABLE waits ( -- those of them whose stack was seen\n"                                                     \
    "  thread INTEGER NOT NULL REFERENCES threads,\n"                                                                  \
    "  node INTEGER NOT NULL REFERENCES nodes,\n"                                                                      \
    "  tag INTEGER NOT NULL, -- lock + 1; 0 none\n"                                                                    \
    "  wait_class INTEGER NOT NULL,\n"                                                                                 \
    "  syscall INTEGER, -- NULL unknown\n"                                                                             \
    "  n INTEGER NOT NULL,\n"                                                                                          \
    "  ns INTEGER NOT NULL,\n"                                                                                         \
    "  max_ns INTEGER NOT NULL\n"                                                                                      \
    ") STRICT"

#define RP_SCHEMA_LOCKS                                                                                                \
    "CREATE TABLE locks (\n"                                                                                           \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  process INTEGER NOT NULL REFERENCES processes,\n"                                                               \
    "  address INTEGER NOT NULL, -- in the process\n"                                                                  \
    "  image INTEGER NOT NULL REFERENCES images, -- of a static lock; 0 on a heap or stack\n"                          \
    "  addr INTEGER NOT NULL, -- in the ELF file\n"                                                                    \
    "  symbol INTEGER NOT NULL REFERENCES strings,\n"                                                                  \
    "  database INTEGER NOT NULL REFERENCES strings -- whose connection it guards\n"                                   \
    ") STRICT"

#define RP_SCHEMA_HOLDERS                                                                                              \
    "CREATE TABLE holders ( -- who held a lock while another waited\n"                                                 \
    "  lock INTEGER NOT NULL REFERENCES locks,\n"                                                                      \
    "  thread INTEGER REFERENCES threads, -- NULL: nobody held it any more when it was looked at\n"                     \
    "  node INTEGER NOT NULL REFERENCES nodes, -- what it did; 0 unknown\n"                                            \
    "  state INTEGER NOT NULL, -- 0 running, 1 blocked\n"                                                              \
    "  n INTEGER NOT NULL, -- waits\n"                                                                                 \
    "  ns INTEGER NOT NULL\n"                                                                                          \
    ") STRICT"

/* Files that older programs of this version wrote are without it. */
#define RP_SCHEMA_HOLDER_WAITERS                                                                                       \
    "CREATE TABLE holder_waiters ( -- whose waits the rows of holders count\n"                                          \
    "  id INTEGER PRIMARY KEY, -- rowid of holders\n"                                                                   \
    "  thread INTEGER REFERENCES threads -- NULL unknown\n"                                                             \
    ") STRICT"

/* As version 1 had them. */
#define RP_SCHEMA_THREADS_1                                                                                            \
    "CREATE TABLE threads (\n"                                                                                         \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  process INTEGER NOT NULL REFERENCES processes,\n"                                                               \
    "  tid INTEGER NOT NULL,\n"                                                                                        \
    "  comm INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  wall_ns INTEGER NOT NULL, -- how long it was watched\n"                                                         \
    "  cpu_ns INTEGER NOT NULL -- how long it was on a CPU in that time\n"                                             \
    ") STRICT"

#define RP_SCHEMA_RUN_1                                                                                                \
    "CREATE TABLE run ( -- one row\n"                                                                                  \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  started_unix_ns INTEGER NOT NULL,\n"                                                                            \
    "  seconds_ns INTEGER NOT NULL, -- how long sampling lasted\n"                                                     \
    "  hz INTEGER NOT NULL,\n"                                                                                         \
    "  source INTEGER NOT NULL REFERENCES strings,\n"                                                                  \
    "  host INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  kernel_visible INTEGER NOT NULL,\n"                                                                             \
    "  stack_bytes INTEGER NOT NULL,\n"                                                                                \
    "  stack_grown INTEGER NOT NULL,\n"                                                                                \
    "  lost INTEGER NOT NULL,\n"                                                                                       \
    "  throttled INTEGER NOT NULL,\n"                                                                                  \
    "  vanished INTEGER NOT NULL,\n"                                                                                   \
    "  threads_unsampled INTEGER NOT NULL,\n"                                                                          \
    "  note INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  map_lines INTEGER NOT NULL,\n"                                                                                  \
    "  map_rejected INTEGER NOT NULL,\n"                                                                               \
    "  nblocks INTEGER NOT NULL,\n"                                                                                    \
    "  block_ns INTEGER NOT NULL -- length of one block of time\n"                                                     \
    ") STRICT"

/* The last two may be missing: files made before there were any. */
#define RP_SCHEMA_FACTS                                                                                                \
    "CREATE TABLE facts ( -- what the target said of itself when it was ready\n"                                       \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  name INTEGER NOT NULL REFERENCES strings,\n"                                                                    \
    "  value INTEGER NOT NULL REFERENCES strings\n"                                                                    \
    ") STRICT"

#define RP_SCHEMA_RATES                                                                                                \
    "CREATE TABLE rates ( -- what the target counted while it was sampled\n"                                           \
    "  id INTEGER PRIMARY KEY,\n"                                                                                      \
    "  end_ns INTEGER NOT NULL, -- since the start of sampling\n"                                                      \
    "  wall_ns INTEGER NOT NULL, -- the time that is covered\n"                                                        \
    "  calls INTEGER NOT NULL,\n"                                                                                      \
    "  rows INTEGER NOT NULL,\n"                                                                                       \
    "  cpu_ns INTEGER NOT NULL -- of the process in that time\n"                                                       \
    ") STRICT"

/* For first questions. In stacks_text names are parted by `;`, so one in a name reads `:`, and a newline reads as a blank. */
#define RP_SCHEMA_VIEWS                                                                                                \
    "CREATE VIEW frames AS -- every function of every location, inlined ones first\n"                                  \
    "SELECT o.id AS location, l.id AS line_id, f.id AS function, n.text AS name, m.text AS module, s.text AS file, l.line AS line\n" \
    "FROM locations o JOIN lines l ON l.id >= o.first_line AND l.id < o.first_line + o.nlines\n"                       \
    "JOIN functions f ON f.id = l.function JOIN strings n ON n.id = f.name JOIN strings m ON m.id = f.module\n"        \
    "JOIN strings s ON s.id = l.file;\n"                                                                               \
    "CREATE VIEW stacks_text AS -- distinct stacks as leaf;…;root with their running samples\n"                        \
    "WITH RECURSIVE leaves(stack, samples) AS (SELECT node, sum(n) FROM counts WHERE state = 0 GROUP BY node),\n"      \
    "texts(location, text) AS MATERIALIZED (\n"                                                                        \
    "  SELECT location, group_concat(replace(replace(name, ';', ':'), char(10), ' '), ';')\n"                          \
    "  FROM (SELECT location, name FROM frames ORDER BY location, line_id) GROUP BY location),\n"                      \
    "walk(stack, node, text, samples) AS (\n"                                                                          \
    "  SELECT stack, stack, '', samples FROM leaves\n"                                                                 \
    "  UNION ALL\n"                                                                                                    \
    "  SELECT w.stack, n.parent, CASE w.text WHEN '' THEN t.text ELSE w.text || ';' || t.text END, w.samples\n"        \
    "  FROM walk w JOIN nodes n ON n.id = w.node JOIN texts t ON t.location = n.location WHERE w.node <> 0)\n"         \
    "SELECT stack, text, samples FROM walk WHERE node = 0;\n"                                                          \
    "CREATE VIEW samples_by_function AS -- self: it was the leaf; total: it was on the stack, once per sample\n"       \
    "WITH RECURSIVE leaves(stack, samples) AS (SELECT node, sum(n) FROM counts WHERE state = 0 GROUP BY node),\n"      \
    "walk(stack, node, samples) AS (\n"                                                                                \
    "  SELECT stack, stack, samples FROM leaves\n"                                                                     \
    "  UNION ALL SELECT w.stack, n.parent, w.samples FROM walk w JOIN nodes n ON n.id = w.node WHERE w.node <> 0),\n"  \
    "seen(stack, name, module, samples, self) AS (\n"                                                                  \
    "  SELECT w.stack, f.name, f.module, w.samples, max(w.node = w.stack AND l.id = o.first_line)\n"                   \
    "  FROM walk w JOIN nodes n ON n.id = w.node JOIN locations o ON o.id = n.location\n"                              \
    "  JOIN lines l ON l.id >= o.first_line AND l.id < o.first_line + o.nlines JOIN functions f ON f.id = l.function\n" \
    "  GROUP BY w.stack, f.name, f.module)\n"                                                                          \
    "SELECT n.text AS name, m.text AS module, sum(s.samples * s.self) AS self, sum(s.samples) AS total\n"              \
    "FROM seen s JOIN strings n ON n.id = s.name JOIN strings m ON m.id = s.module\n"                                  \
    "GROUP BY s.name, s.module ORDER BY self DESC, total DESC;\n"

#endif
