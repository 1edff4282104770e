#!/bin/sh
# shellcheck shell=dash
# As each of two PEs on each of two machines: rows over both NICs, ITERATIONS times. The first PE of a
# machine leaves what its interfaces had sent before and after, and the machine's topology.
# guest_moe.sh SHMEMCTL ITERATIONS ARGUMENTS...
# shellcheck source=tests/lab/guest_functions.sh
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1 iterations=$2
shift 2
name=$LAB_OUT/$LAB_MACHINE
rank=$SHMEMCTL_BOOTSTRAP_UID_RANK

# sent NIC
sent() { value "/sys/class/net/$1/statistics/tx_bytes"; }

if [ $((rank % 2)) = 0 ]; then
  [ "$rank" != 0 ] || "$shmemctl" topo --json "$LAB_OUT/topo.json" >/dev/null || exit
  echo "$(sent eth0) $(sent eth1)" >"$name.before"
fi
[ "$rank" != 0 ] || set -- "$@" --record "$LAB_OUT/routing.txt"
"$shmemctl" moe "$@" -n "$iterations" -w 1 --symmetric-size 32M --remote-transport ibrc \
  --json "$LAB_OUT/moe.json" >"$LAB_OUT/moe$rank.text" || exit
[ $((rank % 2)) = 1 ] || echo "$(sent eth0) $(sent eth1)" >"$name.after"
