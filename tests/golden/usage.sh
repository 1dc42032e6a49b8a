# What is refused, with which sentence and status; nothing of it reaches standard output.
try() { rowprof "$@"; echo "= $? =" >&2; }
try
try --pid node
try --pid 0
try --seconds 0 --pid 1
try --freq 1000000 --pid 1
try --secnds 5 --pid 1
try -p 1 -- true
try --ready -p 1
try --force -p 1
try 1234
try reprot x
try report
try report a b
try report missing.rowprof
try report ''
: >data.rowprof; try data.rowprof
try record data.rowprof -p 1
try version
try --pid "12
13"
try rules explain ' < '
try report --pid 3
try rules
try rules check
try rules explain
try help nothing
try help exit
sleep 9 & target=$!
try -p $target -d 9 -t 1
try record -p $target -d 9 -t 1
try -p $target -d 9 -t MainThreadOfTheServer
kill $target
try --from-snapshots d --save-snapshots e
try --from-snapshots nosuch
cat >few.yaml <<'Y'
categories:
  - {id: a.one, name: "First", kind: cost}
  - {id: a.two, name: "Second", kind: cost}
rules:
  - {id: r1, category: a.one, symbol: x}
  - {id: r2, category: a.two, symbol: y}
Y
try --no-default-rules --rules few.yaml --category nosuch -p 1
try --no-default-rules --rules few.yaml --category a. -p 1
try --category V8 --no-tree -p 1
try --clock wall --by thread -p 1
try --clock wall --by function -p 1
try --clock wall --format csv -p 1
try --category sqlite.stpe -p 1
try --category vdbee -p 1
try --pid 4194305 -d 0.1
touch there.rowprof
try -p $$ -d 0.1 -o there.rowprof
try -p $$ -d 0.1 -o missing/there.rowprof
try -p $$ -d 0.1 -o .
mkfifo pipe; try -p $$ -d 0.1 --force -o pipe
echo text >broken.rowprof
try report broken.rowprof
try -- /no/such/program
try --ready -d 0.1 -- sh -c 'echo hello >&2; exit 3'
try --ready --end-child -d 0.1 -- sh -c 'exec >/dev/null 2>&1; exec sleep 100'
make_profile $DATA/node.fake p.rowprof; rowprof report p.rowprof >/dev/full; echo "= $? =" >&2
try report p.rowprof -t nobody
echo done
