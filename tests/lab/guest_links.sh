#!/bin/sh
# shellcheck shell=dash disable=SC2317 # functions that others call
# On each of two machines with rxe0 and rxe1, as one PE of a job after the other: what lab0 puts to
# lab1 meets links that lose, delay and go. The bootstrap's connections use eth0, most jobs rxe1.
# $1: shmemctl. Leaves text, errors, a report and an exit code of each job in $LAB_OUT.
# shellcheck source=tests/lab/guest_functions.sh
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1
export SHMEMCTL_TRANSPORT=ibrc SHMEMCTL_SYMMETRIC_SIZE=16M
port=/sys/class/infiniband/rxe1/ports/1
counters=$port/hw_counters

packets() { echo $(($(value "$counters"/sent_pkts) + $(value "$counters"/rcvd_pkts))); }
moved() { [ "$(packets)" -gt $((before + $1)) ]; }
# in_mid_sweep MACHINE COMMAND...: once the job that comes next moves data through rxe1.
in_mid_sweep() {
  [ "$1" = "$LAB_MACHINE" ] || return 0
  shift
  before=$(packets)
  (until_true "traffic" moved 4000 && "$@") &
}
# on MACHINE COMMAND...
on() {
  [ "$1" != "$LAB_MACHINE" ] || {
    shift
    "$@"
  }
}
# job NAME BENCH-ARGUMENTS...
job() {
  name=$1.$LAB_MACHINE
  shift
  began=$(date +%s)
  "$shmemctl" bench "$@" --timeout 90 --json "$LAB_OUT/$name.json" \
    >"$LAB_OUT/$name.text" 2>"$LAB_OUT/$name.errors"
  echo $? >"$LAB_OUT/$name"
  left_behind >"$LAB_OUT/$name.left"
  echo "$name took $(($(date +%s) - began)) s"
}
down_and_up() {
  ip link set eth1 down
  until_true "the port to go down" is_port 1:
  ip link set eth1 up
}
is_port() { [ "$(value "$port/state")" = "$1" ]; }
# What comes in on eth1 and does not come through: tc's u32 at IP's header.
lose() { tc filter add dev eth1 ingress protocol ip pref 9 u32 match "$@" action drop; }
lose_nothing() { tc filter del dev eth1 ingress pref 9; }
# UDP, that is all of RDMA's packets.
cut() { lose u8 17 0xff at 9; }
dropped() { tc -s filter show dev eth1 ingress pref 9 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'; }
cut_and_mend() {
  cut
  sleep 2
  dropped >"$LAB_OUT/dropped.mended"
  lose_nothing
}

on 0 tc qdisc add dev eth1 root netem rate 20mbit
job slow put -b 256K -e 256K --window 4 -D 4
on 0 tc qdisc del dev eth1 root

export SHMEMCTL_HCA_LIST=rxe1
on 0 tc qdisc add dev eth1 root netem loss 1%
job loss put get -b 1K -e 64K -f 8
on 0 tc -s qdisc show dev eth1 root >"$LAB_OUT/netem"
on 0 tc qdisc del dev eth1 root

in_mid_sweep 1 cut_and_mend
job mended put -b 64K -e 64K -D 6

# A switch on the way that does not take packets of 4096 bytes.
on 1 lose u16 0x1000 0x1000 at 2
job large put -b 64K -e 64K
SHMEMCTL_IB_MTU=2048 job smaller put -b 64K -e 64K --quick
on 1 lose_nothing

# The other end is there, and RDMA's packets do not arrive any more.
in_mid_sweep 1 cut
job silent put -b 64K -e 64K -D 60
on 1 lose_nothing

SHMEMCTL_FAULT=kill:1:bench-get job killed put get -b 64K -e 64K

# Soft-RoCE breaks a connection that has something to send while the link of its device is down.
in_mid_sweep 0 down_and_up
job flap put -b 64K -e 64K -D 4
until_true "the port to come up" is_port 4:
in_mid_sweep 0 ip link set eth1 down
job down put -b 64K -e 64K -D 60
on 0 ip link set eth1 up
until_true "the port to come up" is_port 4:
job again put -b 64K -e 64K --quick
on 1 ip link set eth1 down
job gone put -b 64K -e 64K --quick
exit 0
