make_profile $DATA/node.fake p.rowprof
rowprof report p.rowprof --format csv
rowprof report p.rowprof --format csv --by module
rowprof report p.rowprof --format csv --by thread
