#!/bin/sh
# shellcheck shell=dash disable=SC2317 # functions that others call
# On both of two machines, as PEs of one job, machine 0 losing packets at first: guest_pair.sh SHMEMCTL.
# shellcheck source=tests/lab/guest_functions.sh
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1
counters=/sys/class/infiniband/rxe0/ports/1/hw_counters

cat /etc/machine-id /proc/sys/kernel/random/boot_id >"$LAB_OUT/ids$LAB_MACHINE"

if [ "$LAB_MACHINE" = 1 ]; then
  server 18515 ib_write_bw rxe0 -s 4096 -n 500
  server 18516 ib_write_lat rxe0 -s 8 -n 100
  server 18517 ib_write_bw rxe1 -s 4096 -n 100
  touch "$LAB_OUT/listening1"
  wait
  # This way nothing is lost, and nothing comes out of order.
  until_true "the other machine" [ -e "$LAB_OUT/listening0" ]
  client 18518 ib_write_bw rxe0 "$LAB_PEER" -s 65536 -n 50
  echo $? >"$LAB_OUT/back"
else
  until_true "the other machine" [ -e "$LAB_OUT/listening1" ]
  client 18515 ib_write_bw rxe0 "$LAB_PEER" -s 4096 -n 500
  echo $? >"$LAB_OUT/bandwidth"
  client 18516 ib_write_lat rxe0 "$LAB_PEER" -s 8 -n 100
  echo $? >"$LAB_OUT/latency"
  # Each device reaches each of the other machine.
  client 18517 ib_write_bw rxe0 "$LAB_PEER" -s 4096 -n 100
  echo $? >"$LAB_OUT/across"
  tc -s qdisc show dev eth0 >"$LAB_OUT/netem"
  tc qdisc del dev eth0 root
  server 18518 ib_write_bw rxe0 -s 65536 -n 50
  touch "$LAB_OUT/listening0"
  wait
fi
(cd $counters && grep . ./*) >"$LAB_OUT/counters$LAB_MACHINE"

# Soft-RoCE gives a large message up at such a loss: the job has the wire without it.
"$shmemctl" bringup --symmetric-size 16M --json "$LAB_OUT/bringup$LAB_MACHINE.json" \
  >/dev/null 2>"$LAB_OUT/bringup-errors$LAB_MACHINE"
echo $? >"$LAB_OUT/bringup$LAB_MACHINE"
exit 0
