#!/bin/sh
# On both of two machines, as PEs of one job, machine 0 losing packets: guest_pair.sh SHMEMCTL.
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1
counters=/sys/class/infiniband/rxe0/ports/1/hw_counters

cat /etc/machine-id /proc/sys/kernel/random/boot_id >"$LAB_OUT/ids$LAB_MACHINE"
"$shmemctl" bringup --symmetric-size 1M --json "$LAB_OUT/bringup$LAB_MACHINE.json" >/dev/null 2>&1
echo $? >"$LAB_OUT/bringup$LAB_MACHINE"

if [ "$LAB_MACHINE" = 1 ]; then
  server 18515 ib_write_bw rxe0 -s 65536 -n 100
  server 18516 ib_write_lat rxe0 -s 8 -n 100
  touch "$LAB_OUT/listening"
  wait
else
  until_true "the other machine" [ -e "$LAB_OUT/listening" ]
  client 18515 ib_write_bw rxe0 "$LAB_PEER" -s 65536 -n 100
  echo $? >"$LAB_OUT/bandwidth"
  client 18516 ib_write_lat rxe0 "$LAB_PEER" -s 8 -n 100
  echo $? >"$LAB_OUT/latency"
  tc -s qdisc show dev eth0 >"$LAB_OUT/netem"
fi
(cd $counters && grep . ./*) >"$LAB_OUT/counters$LAB_MACHINE"
