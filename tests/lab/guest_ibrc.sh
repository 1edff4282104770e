#!/bin/sh
# shellcheck shell=dash disable=SC2016,SC2317 # functions that others call; shells of others
# In one machine with rxe0 and rxe1: what ibrc does with two NICs, and what it says where it cannot
# connect, where others hold the device, and where a PE falls silent.
# $1: shmemctl; $2: the conformance program's folder. Leaves text, errors, a report, an exit code and
# what was left behind of each job in $LAB_OUT.
# shellcheck source=tests/lab/guest_functions.sh
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1 tests=$2
export SHMEMCTL_TRANSPORT=ibrc SHMEMCTL_SYMMETRIC_SIZE=16M

# job NAME COMMAND...: its report goes to $report.
job() {
  job=$1
  shift
  began=$(date +%s)
  report=$LAB_OUT/$job.json
  "$@" >"$LAB_OUT/$job.text" 2>"$LAB_OUT/$job.errors"
  echo $? >"$LAB_OUT/$job"
  left_behind >"$LAB_OUT/$job.left"
  echo "$job took $(($(date +%s) - began)) s"
}
# bringup RUN-ARGUMENTS...
bringup() { "$shmemctl" run "$@" bringup --json "$report"; }
bench() { "$shmemctl" run -n 2 bench "$@" --json "$report"; }
# Two PEs, each with an environment of its own: $1 is shell code that sees $pe.
each() {
  "$shmemctl" run -n 2 sh -c "pe=\$SHMEMCTL_LOCAL_RANK; $1; exec \"\$0\" bringup --json \"$report\"" \
    "$shmemctl"
}
# Without /dev/infiniband, in namespaces of its own.
without_devices() {
  unshare -m sh -c 'mount -t tmpfs none /dev/infiniband; "$0" run -n 2 bringup --json "$1"' \
    "$shmemctl" "$report"
}
# What all processes of a cgroup together may have of rxe0: within LIMIT... COMMAND...
within() {
  echo "rxe0 $1 $2" >"$cgroup/rdma.max"
  shift 2
  sh -c 'echo $$ >"$0"/cgroup.procs; exec "$@"' "$cgroup" "$@"
}
limited() { within "$@" "$shmemctl" run -n 2 bringup --json "$report"; }
# Another program has opened rxe0, as one may.
held() {
  within hca_handle=1 hca_object=max timeout -k 1 "$LIMIT_S" ib_write_bw -d rxe0 -p 18600 \
    >/tmp/holder 2>&1 &
  holder=$!
  until_true "the holder" listens "$(printf %04X 18600)"
  limited hca_handle=1 hca_object=max
  code=$?
  kill "$holder"
  return "$code"
}

job shared bringup -n 2
job both bringup -n 2 --nodes 2
job kinds each 'export SHMEMCTL_IB_GID_INDEX=$pe'
job devices without_devices
ip link set eth1 mtu 1500
job smaller bringup -n 2
SHMEMCTL_IB_MTU=4096 job mismatch bringup -n 2
ip link set eth1 mtu 4200
job key "$tests/test_ibrc" --gtest_filter='FaultsOfDevices.*'

mkdir -p /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
echo +rdma >/sys/fs/cgroup/cgroup.subtree_control
cgroup=/sys/fs/cgroup/lab
mkdir $cgroup
job held held
job objects limited hca_handle=max hca_object=6
job again bringup -n 2

# A PE that is stopped still has a NIC that answers: the job's deadline ends it.
SHMEMCTL_FAULT=stop:1:bench-put SHMEMCTL_HCA_LIST=rxe0 job stopped bench put -b 64K -e 64K --timeout 20
exit 0
