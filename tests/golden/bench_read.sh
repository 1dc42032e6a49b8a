# Runs that were recorded once: Node 26.7.0, a copy of it and 26.8.2, on a quiet and on a busy machine. The figures are those of R.
runs=$DATA/../fixtures/bench
rowprof bench --read $runs/ab_node267_268_quiet.csv
echo ---
rowprof bench --read $runs/ab_node267_268_contended.csv -v
echo ---
rowprof bench --read $runs/ab_node267_268_contended.csv --rate wall --filter 'get SELECT *'
echo ---
rowprof bench --read $runs/ab_node267_268_quiet.csv --fdr --filter 'all' --exclude 'LIMIT 1' --format markdown
echo ---
rowprof bench --read $runs/ab_node267_268_quiet.csv --filter 8kb --format csv
echo ---
rowprof bench --read $runs/ab_node267_268_quiet.csv --filter 'get SELECT 1' --format json
echo --- node
cat >node.csv <<'C'
"binary", "filename", "configuration", "rate", "time"
"old", "sqlite/get.js", "statement='SELECT 1' n=5", 1480, 1
"new", "sqlite/get.js", "statement='SELECT 1' n=5", 1731, 1
"old", "sqlite/get.js", "statement='SELECT 1' n=5", 1495, 1
"new", "sqlite/get.js", "statement='SELECT 1' n=5", 1722, 1
C
rowprof bench --read node.csv
echo --- shape
make_profile $DATA/one_row.fake one.rowprof
make_profile $DATA/hundred_rows.fake hundred.rowprof
rowprof bench --read $runs/ab_node267_268_quiet.csv --filter 'all SELECT *' --shape-check one.rowprof hundred.rowprof
rowprof bench --read $runs/ab_node267_268_quiet.csv --filter 'get SELECT 1' --shape-check one.rowprof hundred.rowprof
# Too few samples of anything: no category is known to cost something.
for n in one_row hundred_rows; do sed -E 's/ [0-9]+ (thread=)/ 3 \1/' $DATA/$n.fake >few.fake; make_profile few.fake $n.rowprof; done
rowprof bench --read $runs/ab_node267_268_quiet.csv --filter 'all SELECT *' --shape-check one_row.rowprof hundred_rows.rowprof | tail -n 2
sed 's/^old,/new,/;t;s/^new,/old,/' $runs/ab_node267_268_quiet.csv >swapped.csv
rowprof bench --read swapped.csv --filter 'all SELECT' --exclude 8kb --shape-check one.rowprof hundred.rowprof | tail -n 4
rowprof bench --read $runs/ab_node267_268_quiet.csv --shape-check one.rowprof; echo "= $? =" >&2
rowprof bench --read one.rowprof; echo "= $? =" >&2
rowprof bench --read $runs/ab_node267_268_quiet.csv --filter nothing; echo "= $? =" >&2
