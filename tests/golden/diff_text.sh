make_profile $DATA/one_row.fake a.rowprof
make_profile $DATA/hundred_rows.fake b.rowprof
rowprof diff a.rowprof b.rowprof --width 130
echo "=== per row"; rowprof diff a.rowprof b.rowprof --rows 1,100 --width 130
echo "=== functions"; rowprof diff a.rowprof b.rowprof --by function --calls-per-second 850000,13000 --width 130
echo "=== itself"; rowprof diff a.rowprof a.rowprof --by module
echo "=== path"; rowprof diff a.rowprof --b b.rowprof --by path -t MainThread --width 120
for i in 1 2 3 4; do
  sed "s/main 1323 /main 13${i}3 /" $DATA/one_row.fake > x.fake; make_profile x.fake a$i.rowprof
  sed "s/main 1140 /main 11${i}0 /" $DATA/hundred_rows.fake > x.fake; make_profile x.fake b$i.rowprof
done
echo "=== several"; rowprof diff a1.rowprof,a2.rowprof,a3.rowprof,a4.rowprof --b b1.rowprof --b b2.rowprof --b b3.rowprof --b b4.rowprof --width 130
echo "=== two"; rowprof diff a1.rowprof,a2.rowprof --b b1.rowprof --width 130 | tail -n 4
echo "=== rare"
for n in 3 4; do printf '.run seconds=1 hz=1000\nf;main 900\ng;main 90\nrare;main %d\n' $n > x.fake; make_profile x.fake r$n.rowprof; done
rowprof diff r3.rowprof r4.rowprof --by function
echo "=== ci"; rowprof diff a.rowprof b.rowprof --fail-above 5 > /dev/null; echo "exit $?"
rowprof diff a.rowprof b.rowprof --rows 1,100 --fail-above 0 > /dev/null; echo "exit $?"
rowprof diff b.rowprof a.rowprof --rows 100,1 --fail-above 5 > /dev/null; echo "exit $?"
rowprof diff a.rowprof a.rowprof --fail-above 0 > /dev/null; echo "exit $?"
# One program, runs that cost 1 000 to 1 030 ns, each of them steady in itself. A pair of them is no conviction.
run() {
  printf '.run seconds=4 hz=1000\n'
  for k in 1 2 3; do echo ".rate end=$((k + 1)) wall=1 cpu=$1$k calls=1000000 rows=1000000"; done
  printf 'f;main 2000\ng;main 2000\n'
}
for i in 0 1 2 3; do run 1.0${i}0 > x.fake; make_profile x.fake p$i.rowprof; run 1.0$((3 - i))0 > x.fake; make_profile x.fake q$i.rowprof; done
echo "=== runs"; rowprof diff p0.rowprof q0.rowprof --fail-above 2 | sed -n 1,3p
rowprof diff p0.rowprof,p1.rowprof,p2.rowprof,p3.rowprof q0.rowprof,q1.rowprof,q2.rowprof,q3.rowprof --fail-above 2 | sed -n 1,3p
