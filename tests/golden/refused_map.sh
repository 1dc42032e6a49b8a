# A map that is there and was not believed: the report says why, not that there should be one.
with_note() { sed "/^.module node /i .module [jit] kind=jit $1" $DATA/node.fake >x.fake; make_profile x.fake p.rowprof; rowprof report p.rowprof --no-tree --width 100 | grep -A 3 'generated code'; }
with_note 'note="/tmp/perf-4242.map is there, but belongs to user 65534 and process 4242 to user 0, so it was not believed" remedy="if it is the map of this process, `chown 0 /tmp/perf-4242.map`"'
echo ===
with_note 'note="/tmp/perf-4242.map is there, but was last written before process 4242 began: an earlier process of this number left it"'
