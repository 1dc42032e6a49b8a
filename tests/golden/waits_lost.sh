make_profile $DATA/waits_lost.fake p.rowprof
rowprof report p.rowprof
rowprof report p.rowprof --format json | grep -e '"quality"' -e '"time"' -e '"tid"' -e '"id": "lost"'
for by in thread wait; do rowprof report p.rowprof --format csv --by $by; done
