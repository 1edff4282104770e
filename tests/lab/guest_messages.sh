#!/bin/sh
# In one machine with two RDMA devices: ibrc with atomics by message. $1: shmemctl; the others:
# OpenSHMEM programs. Leaves reports, messages and exit codes of all jobs in $LAB_OUT.
shmemctl=$1
shift
export SHMEMCTL_IB_ATOMICS=message SHMEMCTL_SYMMETRIC_SIZE=64M SHMEMCTL_TIMEOUT=60

# job NAME ARGUMENTS...: variables come before it.
job() {
  name=$1
  shift
  "$shmemctl" "$@" >"$LAB_OUT/$name.text" 2>"$LAB_OUT/$name.errors"
  echo $? >"$LAB_OUT/$name"
}

job bringup run -n 3 bringup --transport ibrc --json "$LAB_OUT/bringup.json"
job nodes run -n 4 --nodes 2 bringup --json "$LAB_OUT/nodes.json"
job bench run -n 2 bench atomic-fetch-add put -e 4K --quick --transport ibrc \
  --json "$LAB_OUT/bench.json"
for program in "$@"; do
  SHMEMCTL_TRANSPORT=ibrc job "$(basename "$program")" run -n 3 "$program"
done
SHMEMCTL_SRQ_DEPTH=3 job few run -n 2 bringup --transport ibrc
SHMEMCTL_FAULT=kill:1:pair-check job killed run -n 3 bringup --transport ibrc --timeout 20 \
  --json "$LAB_OUT/killed.json"
exit 0
