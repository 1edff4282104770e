#!/usr/bin/env bash
# An example of a Slurm prolog (slurm.conf: Prolog=/etc/slurm/prolog.d/shmemctl.sh): before a job
# starts, `shmemctl doctor` looks at the node's preconditions. If something is wrong (exit code 1),
# the node is drained with the reason, and the job goes elsewhere. If that cannot be told (a deadline
# passed, the program is missing, ...), the job starts: a slow file system must not drain a cluster.
#   SHMEMCTL_PROLOG_SECONDS   seconds that doctor may take (default 10)
#   SHMEMCTL_PROLOG_DRAIN_ON  exit codes that drain the node (default "1"; "1 3 124" also drains
#                             nodes of which nothing can be told)
# Slurm's own commands load the controller, so scontrol is called for a bad node only.
set -u
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
seconds=${SHMEMCTL_PROLOG_SECONDS:-10}
drain_on=${SHMEMCTL_PROLOG_DRAIN_ON:-1}
node=${SLURMD_NODENAME:-$(hostname -s)}

tell() {
  echo "shmemctl prolog: $*" >&2 # in slurmd's log
}

folder=$(mktemp -d) || exit 0
trap 'rm -rf "$folder"' EXIT
code=0
# The report and this script's own limit: a hung driver call ignores the former.
timeout --kill-after=1 "$((seconds + 1))" shmemctl doctor --timeout "$seconds" --color never \
  --json "$folder/doctor.json" >"$folder/text" 2>"$folder/errors" || code=$?
[ "$code" -eq 137 ] && code=124 # it had to be killed
[ "$code" -eq 0 ] && exit 0

# The first thing that is wrong, in one line that Slurm can show.
reason=$(sed -n 's/^\[FAIL\] *//p; s/^shmemctl: error: //p' "$folder/text" "$folder/errors" |
  head -n 1 | tr -cd '[:alnum:] .,:;_/()=+-' | tr -s ' ' | cut -c 1-160)
reason="shmemctl doctor: exit code $code${reason:+: $reason}"
case " $drain_on " in
*" $code "*) ;;
*)
  tell "$reason; the job starts all the same"
  exit 0
  ;;
esac
tell "draining $node: $reason"
timeout 10 scontrol update NodeName="$node" State=DRAIN Reason="$reason" ||
  tell "scontrol failed with exit code $?" # Slurm drains the node by itself for the exit code below
exit 1
