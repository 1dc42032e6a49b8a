/* SPDX-License-Identifier: MIT */
/* A profile file out of a text, and what people ask of it and do to it with SQL. One file is open at a time; what does not work fails the running
 * test. */
#ifndef TESTS_STORE_DB_H
#define TESTS_STORE_DB_H

/* For fake_profile: a profile with something in every table but those of waits. */
extern const char store_text[];

/* Saves the fake profile of `content` at `path`, over what is there. */
void store_fake(const char *content, const char *path);

void store_db_open(const char *path);
void store_db_close(void);

/* Statements without an answer, parted by semicolons. */
void store_db_change(const char *statement);

/* `want` is the rows as text, columns parted by |, rows by newlines. */
void store_db_answers(const char *query, const char *want);

#endif
