# From uncategorized to a rule, as rules/README.md teaches it.
make_profile $DATA/node.fake p.rowprof
rowprof report --uncategorized p.rowprof | tee mine.yaml
rowprof rules check mine.yaml
echo "check: $?"
rowprof report --rules mine.yaml p.rowprof --no-tree
rowprof report --uncategorized p.rowprof --format json
rowprof report --uncategorized p.rowprof --format csv
