# A profile without samples, in every form: no figure is made up, no NaN; status 5 with the reason.
make_profile $DATA/empty.fake p.rowprof
for form in text json csv; do rowprof report p.rowprof --format $form; echo "= $? ="; done
rowprof report p.rowprof --by function --tree
rowprof report p.rowprof --category malloc
rowprof report p.rowprof --uncategorized
# A table of what was not measured is not just left out.
make_profile $DATA/node.fake node.rowprof
rowprof locks node.rowprof --no-tree | grep 'Nothing is known'
rowprof report node.rowprof --clock wall --no-tree | grep -c 'Nothing is known of waiting' || true
rowprof report node.rowprof --no-tree | grep -c 'Nothing is known of waiting' || true
