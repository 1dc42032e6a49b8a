make_profile $DATA/one_row.fake a.rowprof
make_profile $DATA/hundred_rows.fake b.rowprof
rowprof shapes a.rowprof b.rowprof --width 130
echo "=== by row"; rowprof shapes a.rowprof b.rowprof --by category --sort row --rows 1,100 --calls-per-second 850000,13000 --width 110
echo "=== values"; rowprof shapes a.rowprof b.rowprof --by category --per values --format markdown
echo "=== csv"; rowprof shapes a.rowprof b.rowprof --by function --format csv
echo "=== json"; rowprof shapes a.rowprof b.rowprof --by category --format json
# 36 functions: what is paid per row costs nothing per call, and is the heaviest of all at a hundred rows; f1 is dearer with one row than with a hundred.
many() {
  echo ".run seconds=10 hz=1000"
  echo ".rate end=2 wall=1 cpu=$1 calls=$2 rows=$3"
  for i in $(seq 5 36); do echo "f$i;main $4"; done
  echo "f1;main $5"; echo "f2;main $6"; echo "f3;main $7"; echo "tiny1;main $8"; echo "tiny2;main 6"
}
many 1 1000000 1000000 200 3000 50 500 190 > x.fake; make_profile x.fake one.rowprof
many 2.08 100000 10000000 30 14 5000 2700 1 > x.fake; make_profile x.fake hundred.rowprof
echo "=== many"; rowprof shapes one.rowprof hundred.rowprof --by function --width 120
