#!/bin/sh
# OpenSHMEM programs over one RDMA device, by several ways: $1: shmemctl; then names of programs,
# which lie in $LAB_OUT/programs. Leaves a line for each run in $LAB_OUT/ends: way, program, exit
# code; and what a run wrote in $LAB_OUT/WAY.PROGRAM.
shmemctl=$1
shift
export SHMEMCTL_TIMEOUT=120 SHMEMCTL_SYMMETRIC_SIZE=256M

# over WAY PROGRAM...: the way's variables come before it.
over() {
  way=$1
  shift
  for program; do
    "$shmemctl" run -n 4 "$LAB_OUT/programs/$program" >"$LAB_OUT/$way.$program" 2>&1
    echo "$way $program $?" >>"$LAB_OUT/ends"
  done
}

SHMEMCTL_TRANSPORT=ibrc over ibrc "$@"
SHMEMCTL_TRANSPORT=libfabric SHMEMCTL_LIBFABRIC_PROVIDER=verbs FI_UNIVERSE_SIZE=8 \
  over libfabric "$@"
SHMEMCTL_TRANSPORT=ucx UCX_TLS=rc_verbs,ud_verbs,self UCX_IB_GID_INDEX=0 over ucx "$@"
