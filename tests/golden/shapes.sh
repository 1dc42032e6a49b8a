make_profile $DATA/one_row.fake a.rowprof
make_profile $DATA/hundred_rows.fake b.rowprof
rowprof shapes a.rowprof b.rowprof --width 130
echo "=== by row"; rowprof shapes a.rowprof b.rowprof --by category --sort row --rows 1,100 --calls-per-second 850000,13000 --width 110
echo "=== values"; rowprof shapes a.rowprof b.rowprof --by category --per values --format markdown
echo "=== csv"; rowprof shapes a.rowprof b.rowprof --by function --format csv
echo "=== json"; rowprof shapes a.rowprof b.rowprof --by category --format json
