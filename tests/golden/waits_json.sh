# Waiting as JSON, read by another reader: its sums are those of the wall clock.
make_profile $DATA/waits.fake p.rowprof
rowprof report p.rowprof --format json --clock wall --function version_check >a.json
rowprof report p.rowprof --format json --clock wall --function version_check >b.json
cmp a.json b.json
rowprof report p.rowprof --format json --no-tree
/usr/bin/python3 - <<'PY'
import json
r = json.load(open("a.json"))
near = lambda a, b: abs(a - b) <= 2e-5 * max(1, abs(b))
t = r["time"]
assert near(t["cpu_s"] + t["preempted_s"] + t["waiting_s"] + t["idle_s"], t["wall_s"]), t
assert near(sum(w["seconds"] for w in r["waiting"]), t["waiting_s"])
assert near(sum(g["seconds"] for g in r["idle"]["groups"]), r["idle"]["seconds"])
assert near(sum(w["share"] for w in r["wall"]), 1)
for row in r["threads"]:
    assert near(row["cpu_s"] + row["preempted_s"] + row["waiting_s"] + row["idle_s"], row["wall_s"]), row
for w in r["waiting"]:
    assert near(w["seconds"] / w["waits"], w["mean_s"]) and w["p50_s"] <= w["p99_s"] <= w["max_s"], w
assert [l["database"] for l in r["locks"]] == ["", "app.db"]
assert {k for w in r["waiting"] for k in w} >= {"id", "name", "kind", "waits", "seconds", "share_of_wall", "mean_s", "p50_s", "p99_s", "max_s"}
assert r["function"]["total"]["samples"] == 4000 and r["function"]["self"]["samples"] == 0
assert [x["of"] for x in r["tree"]] == ["callers", "callees"]
print("consistent")
PY
