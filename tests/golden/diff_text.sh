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
echo "=== ci"; rowprof diff a.rowprof b.rowprof --fail-above 5 > /dev/null; echo "exit $?"
rowprof diff a.rowprof b.rowprof --rows 1,100 --fail-above 0 > /dev/null; echo "exit $?"
rowprof diff b.rowprof a.rowprof --rows 100,1 --fail-above 5 > /dev/null; echo "exit $?"
rowprof diff a.rowprof a.rowprof --fail-above 0 > /dev/null; echo "exit $?"
