# Waiting as text: the table under the shares, idle groups, locks, threads, the wall clock, one function; what --no-waiting and --idle change.
make_profile $DATA/waits.fake p.rowprof
rowprof report p.rowprof --width 100
echo ===
rowprof report p.rowprof --clock wall --no-tree --width 100
echo ===
rowprof locks p.rowprof --width 100
# of one thread, in a file that does not tell whose waits its holders are of, and in one that does
rowprof locks p.rowprof --thread request-2 --no-tree --width 100
sed -e 's/ 420 \(wait.*holds=1\)$/ 210 \1 waiter=request-1\/91/' -e 's/ 150 \(wait.*holds=1\)$/ 150 \1 waiter=request-2\/92/' \
  -e 's/ 290 \(wait.*holds=2\)$/ 290 \1 waiter=request-1\/91/' $DATA/waits.fake >w.fake
make_profile w.fake w.rowprof
rowprof locks w.rowprof --thread request-1 --no-tree --width 100
# few holders known, and none: why, and parts of the known ones only; in a replay nobody looked
sed -e 's/ 420 \(wait.*holds=1\)$/ 14 \1/' -e 's/ 150 \(wait.*holds=1\)$/ 5 \1/' -e '/holds=2$/d' $DATA/waits.fake >f.fake
echo 'nobody 121 wait=120us free=1 thread=request-1/91 pid=77' >>f.fake
make_profile f.fake f.rowprof
rowprof locks f.rowprof --width 100 | sed '/^Waiting/,/^$/d'
sed 's/source=cpu-clock/source=replay/;/holds=/d;/free=/d' f.fake >n.fake
make_profile n.fake n.rowprof
rowprof locks n.rowprof --no-tree --width 100
echo ===
rowprof report p.rowprof --by thread --no-tree --width 110
echo ===
rowprof report p.rowprof --function version_check --width 100
rowprof report p.rowprof --function version; echo "= $? ="
echo ===
rowprof report p.rowprof --idle --by wait --no-tree --width 100
rowprof report p.rowprof --no-waiting --no-tree --width 100
rowprof report p.rowprof --category 'disk write' --width 100 -t request-2 | grep -A 9 'Call tree'
rowprof locks p.rowprof --no-waiting; echo "= $? ="
rowprof report p.rowprof --no-waiting --clock wall; echo "= $? ="
# a target that only slept: nothing kept is said, and what was dropped
cat >sleep.fake <<'F'
.process 5 comm=sleep command="sleep 60"
.thread sleep/5 pid=5 wall=2 waiting=2
.run seconds=2 hz=997 source=cpu-clock waits=1 cpus=2
libc.so.6!clock_nanosleep;sleep!main 1 wait=2s thread=sleep/5 pid=5 syscall=230
F
make_profile sleep.fake s.rowprof
rowprof report s.rowprof; echo "= $? ="
rowprof report s.rowprof --idle --no-tree; echo "= $? ="
# the kernel not seen: its time has a row, and the shares one denominator
cat >hidden.fake <<'F'
.thread main/1234 wall=2 cpu=1.5 waiting=0.5
.run seconds=2 hz=1000 source=cpu-clock waits=1 cpus=2
work;main 600 thread=main/1234 weight=1000000
read;main 300 thread=main/1234 weight=1000000
[kernel: not visible at this permission] 600 thread=main/1234 weight=1000000
recv;main 100 wait=5ms thread=main/1234
F
make_profile hidden.fake h.rowprof
rowprof report h.rowprof --no-tree
rowprof report h.rowprof --by function --no-tree | head -n 9
