#!/bin/sh
# In one machine with rxe0 and rxe1: what ibrc does with two NICs, and what it says where it cannot
# connect. $1: shmemctl. Leaves text, errors, a report and an exit code of each job in $LAB_OUT.
shmemctl=$1
tests=$(dirname "$shmemctl")
export SHMEMCTL_TRANSPORT=ibrc SHMEMCTL_SYMMETRIC_SIZE=16M

# job NAME COMMAND...: its report goes to $report.
job() {
  name=$1
  shift
  report=$LAB_OUT/$name.json "$@" >"$LAB_OUT/$name.text" 2>"$LAB_OUT/$name.errors"
  echo $? >"$LAB_OUT/$name"
}
# bringup RUN-ARGUMENTS...
bringup() { "$shmemctl" run "$@" bringup --json "$report"; }
# Two PEs, each with an environment of its own: $1 is shell code that sees $pe.
each() {
  "$shmemctl" run -n 2 sh -c "pe=\$SHMEMCTL_LOCAL_RANK; $1; exec \"\$0\" bringup --json \"\$report\"" \
    "$shmemctl"
}
# Without /dev/infiniband, in namespaces of its own.
without_devices() {
  unshare -m sh -c 'mount -t tmpfs none /dev/infiniband; "$0" run -n 2 bringup --json "$report"' \
    "$shmemctl"
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
job suite "$tests/test_transports" --gtest_filter='Ibrc/Conformance.*/ibrc*'
exit 0
