# Case A18: names that break reports, in each format, through an independent reader each.
make_profile $DATA/hostile.fake p.rowprof
rowprof report p.rowprof --by function --width 80
rowprof report p.rowprof --by function --format csv >f.csv
rowprof report p.rowprof --format json >f.json
rowprof report p.rowprof --by function >f.txt
/usr/bin/python3 - <<'PY'
import csv, json
names = [f["symbol"] for f in json.load(open("f.json", encoding="utf-8"))["functions"]]
for wanted in ("a</script><b>&\"'", "x;y z", "tab\there", "esc\x1b[31mred", "bad\ufffdbyte", "line\nfeed", "\U0001f600", 'comma,quote"', "L" + "o" * 4998 + "g"):
    assert wanted in names, wanted
rows = list(csv.reader(open("f.csv", encoding="utf-8", newline="")))
assert all(len(row) == len(rows[0]) for row in rows)
seen = [row[0] for row in rows]
for wanted in ("a</script><b>&\"'", "tab\ufffdhere", "esc\ufffd[31mred", "bad\ufffdbyte", "line\ufffdfeed", 'comma,quote"', "L" + "o" * 4998 + "g"):
    assert wanted in seen, wanted
text = open("f.txt", encoding="utf-8").read()
assert not any(ord(c) < 32 and c != "\n" for c in text)
print("all names are there")
PY
