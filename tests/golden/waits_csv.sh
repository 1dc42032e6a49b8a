make_profile $DATA/waits.fake p.rowprof
for by in wait idle lock thread; do echo "= $by"; rowprof report p.rowprof --format csv --by $by; done
make_profile $DATA/node.fake n.rowprof
rowprof report n.rowprof --format csv --by wait
