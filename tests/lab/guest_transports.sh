#!/bin/sh
# shellcheck shell=dash
# In one machine: every transport over its RDMA device. $1: shmemctl.
# Leaves a report, an exit code and what was left behind of each job in $LAB_OUT.
# shellcheck source=tests/lab/guest_functions.sh
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1

# job NAME ARGUMENTS...: variables come before it.
job() {
  name=$1
  shift
  "$shmemctl" "$@" --symmetric-size 64M --json "$LAB_OUT/$name.json" \
    >"$LAB_OUT/$name.text" 2>"$LAB_OUT/$name.errors"
  echo $? >"$LAB_OUT/$name"
  left_behind >"$LAB_OUT/$name.left"
}

job ibrc run -n 3 bringup --transport ibrc
job nodes run -n 4 --nodes 2 bringup
UCX_TLS=rc_verbs,ud_verbs,self UCX_IB_GID_INDEX=0 job ucx run -n 2 bringup --transport ucx
FI_UNIVERSE_SIZE=8 job libfabric run -n 2 bringup --transport libfabric --libfabric-provider verbs
job bench run -n 2 bench put get atomic-fetch-add -e 4K --quick --transport ibrc
job ladder run -n 2 bench --ladder --quick --transport ibrc
job writes run -n 2 bench verbs-write verbs-write-latency -e 64K --bidir --quick --transport ibrc

# What cannot work: each says what and where.
job gid run -n 2 bringup --transport ibrc --ib-gid-index 77
job class run -n 2 bringup --transport ibrc --ib-traffic-class 104
SHMEMCTL_FAULT=kill:1:pair-check job killed run -n 3 bringup --transport ibrc --timeout 20
(
  ulimit -l 64
  setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$shmemctl" run -n 2 bringup \
    --transport ibrc --symmetric-size 64M >"$LAB_OUT/memlock.text" 2>"$LAB_OUT/memlock.errors"
  echo $? >"$LAB_OUT/memlock"
)
exit 0
