# What a category takes along from another library is told with the rule that keeps it apart; with the rule it is, to the sample: 700 of 1000.
make_profile $DATA/inherited.fake p.rowprof
cat >query.yaml <<'Y'
categories:
  - {id: query, name: "query", kind: cost}
rules:
  - {id: query, category: query, symbol: "query_step"}
Y
rowprof report --rules query.yaml p.rowprof --no-tree
rowprof report --rules query.yaml p.rowprof --format json | sed -n '/"notes"/,$p'
rowprof report --rules query.yaml p.rowprof --uncategorized
(echo 'categories: [{id: mine, name: "mine", kind: cost}]'; echo 'rules:'
 rowprof report --rules query.yaml p.rowprof --no-tree --width 1000 --format json | sed -n 's/.*apart: \({.*}\)\. .*/  - \1/p' | sed 's/\\"/"/g') | tee apart.yaml
rowprof report --rules apart.yaml --rules query.yaml p.rowprof --no-tree
# Its own library's functions, the kernel and the C library are no other place.
grep -v 'libplug\|libz' $DATA/inherited.fake >own.fake; make_profile own.fake own.rowprof
rowprof report --rules query.yaml own.rowprof --no-tree; rowprof report --no-kernel --rules query.yaml own.rowprof --no-tree | grep query
