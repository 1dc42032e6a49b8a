# From uncategorized to a rule, as rules/README.md teaches it.
make_profile $DATA/node.fake p.rowprof
rowprof report --uncategorized p.rowprof | tee mine.yaml
rowprof rules check mine.yaml
echo "check: $?"
rowprof report --rules mine.yaml p.rowprof --no-tree
rowprof report --uncategorized p.rowprof --format json
rowprof report --uncategorized p.rowprof --format csv
# Nothing of the kind: what is printed is a rule file all the same.
cat >all.yaml <<'Y'
categories:
  - {id: all, name: "all", kind: cost}
rules:
  - {id: everything, category: all, symbol: "*"}
Y
grep -v '\[truncated\|\[kernel\]' $DATA/node.fake >x.fake; make_profile x.fake x.rowprof
rowprof report --uncategorized --no-default-rules --rules all.yaml x.rowprof | tee none.yaml
rowprof rules check none.yaml; echo "check: $?"
rowprof report --uncategorized p.rowprof --min-samples 1000 | tee none.yaml
rowprof rules check none.yaml; echo "check: $?"
# Without any other rules: kernel functions, names that several functions share, names too long for a pattern, letters that no pattern holds. What is printed
# claims all of it, `rules check` has nothing to say on it, and next to rules of the same name it takes another.
cat >shared.fake <<'F'
.run seconds=1 hz=997 source=cpu-clock
libc.so.6!malloc;run;main 50
libsqlite3.so!malloc@plt;run;main 30
[kernel]!clear_page;[kernel]!do_fault;main 40
app!clear_page;main 5
esc\x1b[31mred;main 6
escx[31mred;main 20
F
cat shared.fake $DATA/hostile.fake | awk '!/^\.run/ || !n++' >all.fake
make_profile all.fake s.rowprof
rowprof report --no-default-rules --uncategorized --min-samples 1 s.rowprof >mine.yaml; cut -c-120 mine.yaml
rowprof rules check mine.yaml; echo "check: $?"
rowprof rules check --no-default-rules --profile s.rowprof mine.yaml; echo "check: $?"
rowprof report --no-default-rules --rules mine.yaml s.rowprof --no-tree --format csv | tail -n 1
rowprof report --uncategorized --rules mine.yaml p.rowprof >more.yaml; sed -n 4p more.yaml
rowprof rules check mine.yaml more.yaml; echo "check: $?"
