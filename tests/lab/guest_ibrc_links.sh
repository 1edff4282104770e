#!/bin/sh
# On each of two machines, as one PE of a job that puts from lab0 to lab1 over rxe1 while links go.
# $1: shmemctl. The links themselves are switched by guest_ibrc_switch.sh.
export SHMEMCTL_TRANSPORT=ibrc SHMEMCTL_SYMMETRIC_SIZE=16M SHMEMCTL_HCA_LIST=rxe1
for name in again down; do
  : >"$LAB_OUT/$name.$LAB_MACHINE.began"
  "$1" bench put -b 64K -e 64K -D 10 --timeout 120 --json "$LAB_OUT/$name.$LAB_MACHINE.json" \
    >"$LAB_OUT/$name.$LAB_MACHINE.text" 2>"$LAB_OUT/$name.$LAB_MACHINE.errors"
  echo $? >"$LAB_OUT/$name.$LAB_MACHINE"
done
exit 0
