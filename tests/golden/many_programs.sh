# A process that executes one program after the other is one line, and told by its last program.
step() { echo ".process 77 comm=step command=\"/bin/step $1 of 40\" generation=$1"; echo "work;main 5 pid=77 thread=step/77"; }
{ echo '.run seconds=2 hz=997 source=cpu-clock'; echo '.process 77 comm=sh command="/bin/sh loop.sh"'; echo 'work;main 5 pid=77 thread=sh/77'; } >loop.fake
for i in $(seq 40); do step $i; done >>loop.fake
make_profile loop.fake p.rowprof
rowprof report p.rowprof --no-tree
echo ===
{ echo '.process 78 comm=other command=./other'; echo 'work;main 9 pid=78 thread=other/78'; } >>loop.fake
make_profile loop.fake p.rowprof
rowprof report p.rowprof --no-tree | head -n 3
rowprof report p.rowprof -t sh --no-tree | head -n 2
rowprof report p.rowprof -t nobody; echo "= $? ="
