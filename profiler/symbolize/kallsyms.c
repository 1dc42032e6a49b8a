/* SPDX-License-Identifier: MIT */
/* See kallsyms.h. One line is
 *
 *   ffffffff81000000 T _stext
 *   ffffffffc0421000 t ext4_sync_file	[ext4]
 *
 * The traps: lines are not sorted; several names share an address; data symbols bound the functions before them, so they are kept as ends; and at
 * kptr_restrict all addresses read zero, which must not make everything the first function. */
#include "symbolize/kallsyms.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"
#include "symbolize/radix.h"

enum { READ_AT_ONCE = 1 << 16 };

static bool take_word(struct rp_cursor *c, const char **word, size_t *length)
{
    rp_cursor_skip_blanks(c);
    *word = c->at;
    while (c->at < c->end && *c->at != ' ' && *c->at != '\t')
        c->at++;
    *length = (size_t)(c->at - *word);
    return *length > 0;
}

/* The number of a module; lines of one module follow each other, so only the last few are compared. */
static bool module_number(struct rp_kallsyms *k, const char *name, size_t length, uint16_t *number)
{
    uint32_t *added;

    for (size_t i = k->modules.n; i-- > 0;) {
        const char *known = k->text.data + k->modules.at[i];

        if (strncmp(known, name, length) == 0 && !known[length]) {
            *number = (uint16_t)i;
            return true;
        }
    }
    if (k->modules.n >= UINT16_MAX) {
        *number = 0;
        return true;
    }
    added = rp_vec_add(&k->modules);
    if (!added)
        return false;
    *added = (uint32_t)k->text.length;
    rp_buf_append(&k->text, name, length);
    rp_buf_putc(&k->text, '\0');
    *number = (uint16_t)(k->modules.n - 1);
    return !k->text.failed;
}

static bool take_line(struct rp_kallsyms *k, const char *line, size_t length)
{
    struct rp_cursor c = rp_cursor_of(line, length);
    const char *type, *name, *module;
    size_t type_length, name_length, module_length;
    struct rp_kallsym *symbol, add = {0};

    if (!rp_cursor_hex(&c, &add.addr) || !add.addr || !take_word(&c, &type, &type_length) || !take_word(&c, &name, &name_length) ||
        k->symbols.n >= RP_KALLSYMS_MAX || k->text.length > UINT32_MAX / 2)
        return true;
    if (take_word(&c, &module, &module_length) && !module_number(k, module, module_length, &add.module))
        return false;
    add.code = memchr("tTwW", *type, 4) != NULL;
    add.global = *type == 'T';
    if (add.code) {
        add.name = (uint32_t)k->text.length;
        rp_buf_append(&k->text, name, name_length);
        rp_buf_putc(&k->text, '\0');
    }
    symbol = rp_vec_add(&k->symbols);
    if (symbol)
        *symbol = add;
    return symbol && !k->text.failed;
}

/* Reads by pieces: the whole text is 10 MB and is not wanted. */
static bool read_lines(struct rp_kallsyms *k, int fd)
{
    char *piece = rp_reallocarray(NULL, READ_AT_ONCE, 1);
    size_t have = 0;
    ssize_t got = 0;
    bool ok = piece != NULL;

    while (ok && (got = read(fd, piece + have, READ_AT_ONCE - have)) > 0) {
        size_t done = 0;
        char *end;

        have += (size_t)got;
        while (ok && (end = memchr(piece + done, '\n', have - done))) {
            ok = take_line(k, piece + done, (size_t)(end - piece) - done);
            done = (size_t)(end - piece) + 1;
        }
        if (!done && have == READ_AT_ONCE)
            done = have; /* no kernel writes such a line */
        memmove(piece, piece + done, have - done);
        have -= done;
    }
    if (ok && have)
        ok = take_line(k, piece, have);
    rp_free(piece);
    return ok;
}

enum rp_status rp_kallsyms_read(struct rp_kallsyms *k, const char *path, struct rp_err *err)
{
    static const char kernel[] = "[kernel]";
    int fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    uint16_t number;
    bool ok = module_number(k, kernel, sizeof kernel - 1, &number);

    if (fd >= 0) {
        ok = ok && read_lines(k, fd) && rp_radix_sort(k->symbols.at, k->symbols.n, sizeof *k->symbols.at);
        close(fd);
    }
    k->hidden = !k->symbols.n;
    return ok ? RP_OK : rp_fail_nomem(err);
}

/* The same order as for ELF symbols. */
static bool is_better(const struct rp_kallsyms *k, const struct rp_kallsym *a, const struct rp_kallsym *b)
{
    const char *x = k->text.data + a->name, *y = k->text.data + b->name;
    size_t x_bars = strspn(x, "_"), y_bars = strspn(y, "_");

    if (a->global != b->global)
        return a->global;
    if (x_bars != y_bars)
        return x_bars < y_bars;
    if (strlen(x) != strlen(y))
        return strlen(x) < strlen(y);
    return strcmp(x, y) < 0;
}

bool rp_kallsyms_find(const struct rp_kallsyms *k, uint64_t addr, uint64_t *start, const char **name, const char **module)
{
    const struct rp_kallsym *best = NULL;
    size_t low = 0, high = k->symbols.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (k->symbols.at[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || low == k->symbols.n) /* nothing bounds the last symbol */
        return false;
    *start = k->symbols.at[low - 1].addr;
    for (size_t i = low; i-- > 0 && k->symbols.at[i].addr == *start;) {
        if (k->symbols.at[i].code && (!best || is_better(k, &k->symbols.at[i], best)))
            best = &k->symbols.at[i];
    }
    if (!best)
        return false;
    *name = k->text.data + best->name;
    *module = k->text.data + k->modules.at[best->module];
    return true;
}

void rp_kallsyms_release(struct rp_kallsyms *k)
{
    rp_vec_release(&k->symbols);
    rp_vec_release(&k->modules);
    rp_buf_release(&k->text);
}
