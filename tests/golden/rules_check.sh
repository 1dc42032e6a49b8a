# Errors come all at once, with place; then rules that cannot win, rules that a profile does not know, failing cases.
make_profile $DATA/node.fake p.rowprof
cat >bad.yaml <<'Y'
categories:
  - {id: Bad Id, name: "x", kind: cost}
rules:
  - id: a
    category: nowhere
    symbol: "/(/"
    colour: red
Y
rowprof rules check bad.yaml; echo "= $? ="
rowprof report --rules bad.yaml p.rowprof; echo "= $? ="
cat >mine.yaml <<'Y'
categories:
  - {id: app.json, name: "JSON rendering", kind: cost, color: orange}
rules:
  - {id: all-json, category: app.json, symbol: "json_*"}
  - {id: never, category: app.json, symbol: "json_escape"}
  - {id: other, category: app.json, symbol: "no_such_function"}
Y
rowprof rules check mine.yaml; echo "= $? ="
rowprof rules check mine.yaml --profile p.rowprof; echo "= $? ="
sed -i '/never/d; /other/d' mine.yaml
echo 'memcpy < app!json_escape < main -> app.json all-json' >mine.cases
rowprof rules check mine.yaml --profile p.rowprof; echo "= $? ="
echo 'strlen < main -> app.json all-json' >mine.cases
rowprof rules check mine.yaml; echo "= $? ="
rowprof report --rules mine.yaml p.rowprof --no-tree
rowprof rules explain --rules mine.yaml 'memcpy < app!json_escape < main'
rowprof rules explain --rules mine.yaml 'memcpy;app!json_escape;main' | head -n 1
rowprof rules explain 'libc.so.6!pthread_mutex_lock < sqlite3_column_name < main'
rowprof rules explain 'libc.so.6!pthread_mutex_lock < sqlite3_column_name < main' -v | grep -c 'blocked threads only'
rowprof rules explain --no-default-rules --rules mine.yaml 'json_write' | grep -E '^=>|wins'
rowprof rules check missing.yaml; echo "= $? ="
echo 'rules: [{id: slow, category: app.json, symbol: "/^(a+)+$/"}, {id: j, category: app.json, symbol: json_write}]' >slow.yaml
rowprof rules explain --no-default-rules --rules mine.yaml --rules slow.yaml 'aaaaaaaaaaaaaaaaaaaaaaaaab < json_write' | head -n 2
