make_profile $DATA/one_row.fake a.rowprof
make_profile $DATA/hundred_rows.fake b.rowprof
make_profile $DATA/node.fake plain.rowprof
try() { rowprof "$@"; echo "exit $?"; }
try diff
try diff a.rowprof
try diff a.rowprof b.rowprof c.rowprof
try diff a.rowprof missing.rowprof
try diff a.rowprof b.rowprof --b b.rowprof
try diff a.rowprof b.rowprof --by line
try diff a.rowprof b.rowprof --by path --total
try diff a.rowprof b.rowprof --rows 1
try diff a.rowprof b.rowprof --rows 1,zero
try diff a.rowprof b.rowprof --fail-above much
try diff a.rowprof b.rowprof --format yaml
try diff a.rowprof b.rowprof -t Worker
try diff a.rowprof,,b.rowprof b.rowprof
try diff a.rowprof,a.rowprof b.rowprof
try shapes
try shapes a.rowprof
try shapes a.rowprof plain.rowprof
try shapes a.rowprof plain.rowprof --calls-per-second 1000,10
try shapes a.rowprof b.rowprof --per columns
try shapes a.rowprof b.rowprof --rows 1
try shapes a.rowprof b.rowprof --rows 100,100
try shapes a.rowprof plain.rowprof --calls-per-second 1000,10 --rows 1,100 --per columns
try shapes a.rowprof b.rowprof --per pages
try shapes a.rowprof b.rowprof --sort name
