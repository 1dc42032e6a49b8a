# A message quotes names of files and what stands in them; what would drive the terminal is made visible.
rowprof report "$(printf 'no\033[31mred.rowprof')"
echo "= $? ="
make_profile $DATA/one_row.fake p.rowprof
/usr/bin/python3 - <<'PY'
import sqlite3
db = sqlite3.connect("p.rowprof")
db.execute("PRAGMA writable_schema=ON")
db.execute("UPDATE sqlite_schema SET sql='CREATE TABLE x(', name=char(27)||'[32mgreen' WHERE name='nodes'")
db.commit()
PY
rowprof report p.rowprof
echo "= $? ="
