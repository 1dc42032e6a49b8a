# A reader that has seen enough, as `head` has: rowprof ends by SIGPIPE without a word, as other programs do; where that is ignored, it says what it could not do.
make_profile $DATA/node.fake p.rowprof
mkfifo pipe; exec 3<>pipe 4>pipe 3<&- # what is written to 4 has no reader any more
for command in "report p.rowprof" "report p.rowprof --format json" "diff p.rowprof p.rowprof" "help"; do
  rowprof $command >&4; echo "$command: $?"
  (trap "" PIPE; rowprof $command >&4; echo "$command, SIGPIPE ignored: $?")
done
