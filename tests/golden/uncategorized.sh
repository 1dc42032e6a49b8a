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
