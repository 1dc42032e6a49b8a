# Every form of text fits the width that was asked for, down to the least; with -v command lines and signatures are whole, which is what it is for.
for name in node waits one_row hundred_rows hostile; do make_profile $DATA/$name.fake $name.rowprof; done
/usr/bin/python3 - <<'PY'
import subprocess, unicodedata

def columns(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)

names = ["node", "waits", "one_row", "hundred_rows", "hostile"]
by = [f"--by {what}" for what in ("function", "function --total", "module", "thread", "process", "wait", "idle", "lock")]
forms = [f"report {name}.rowprof {form}" for name in names
         for form in ("", *by, "--clock wall", "--locks", "--idle", "--tree", "--tree --callers", "--full-stacks", "--total", "--function main")]
forms += [f"diff one_row.rowprof hundred_rows.rowprof {form}" for form in ("", "--by function", "--by path", "--by module", "--by thread")]
forms += ["diff one_row.rowprof node.rowprof --by path", "shapes one_row.rowprof hundred_rows.rowprof"]
for width in (60, 80, 120):
    lines = widest = 0
    for form in forms:
        run = subprocess.run(["rowprof", *form.split(), "--width", str(width)], capture_output=True, text=True)
        assert run.returncode in (0, 1), (form, run.stderr)  # 1: no function main
        for line in run.stdout.splitlines():
            lines += 1
            widest = max(widest, columns(line))
            if columns(line) > width:
                print(f"{form} --width {width}: {columns(line)} columns: {line}")
    assert lines > 1000 and widest > width - 3, (width, lines, widest)
print("all lines fit")
PY
rowprof report waits.rowprof --width 60 --no-tree | sed -n '/waiting  /,/^$/p'
rowprof report waits.rowprof --width 80 --no-tree | sed -n '/waiting  /,/^$/p'
rowprof diff one_row.rowprof hundred_rows.rowprof --width 60 | head -9
