# The whole report as text; the same for one category; rows by function, module and thread.
make_profile $DATA/node.fake p.rowprof
rowprof report p.rowprof --width 100
echo ===
rowprof report p.rowprof --category column --no-kernel
echo ===
rowprof report p.rowprof --by function --total --no-tree --width 100
rowprof report p.rowprof --by module -q
rowprof report p.rowprof --by thread
echo ===
rowprof report p.rowprof --category 'malloc/free' --callers --min-samples 1
rowprof report p.rowprof --category 'V8 garbage' | grep -A 1 'Call tree'
