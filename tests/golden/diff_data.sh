make_profile $DATA/one_row.fake a.rowprof
make_profile $DATA/hundred_rows.fake b.rowprof
rowprof diff a.rowprof b.rowprof --format json
rowprof diff a.rowprof b.rowprof --format csv --by function
rowprof diff a.rowprof b.rowprof --format markdown
