rowprof help
for topic in record report diff shapes "rules check" "rules explain" help exit-status; do echo "=== $topic"; rowprof help $topic; done
rowprof --version
rowprof report --help | head -n 1
rowprof rules --help | head -n 1
