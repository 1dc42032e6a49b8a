# JSON, read by another reader; two runs give the same bytes.
make_profile $DATA/node.fake p.rowprof
rowprof report p.rowprof --format json >a.json
rowprof report p.rowprof --format=json >b.json
cmp a.json b.json && cat a.json
/usr/bin/python3 - <<'PY'
import json
report = json.load(open("a.json"))
assert report["schema"] == 1
assert sum(c["samples"] for c in report["categories"]) == report["quality"]["samples"] == 1458
assert abs(sum(c["share"] for c in report["categories"]) - 1) < 1e-4
assert sum(f["self"] for f in report["functions"]) == 1458
for tree in report["tree"]:
    assert sum(n["samples"] for n in tree["nodes"] if n["depth"] == 0) <= tree["samples"]
print("consistent")
PY
