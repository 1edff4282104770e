#!/bin/sh
# Beside guest_ibrc_links.sh: takes eth1 down once the job is in the midst of it. $1: the job's name,
# $2: for how many seconds; 0 is for ever.
counters=/sys/class/infiniband/rxe1/ports/1/hw_counters
packets() { echo $(($(cat $counters/sent_pkts) + $(cat $counters/rcvd_pkts))); }
until [ -e "$LAB_OUT/$1.$LAB_MACHINE.began" ]; do sleep 0.1; done
before=$(packets)
until [ "$(packets)" -gt $((before + 4000)) ]; do sleep 0.1; done
ip link set eth1 down
[ "$2" = 0 ] && exit 0
sleep "$2"
ip link set eth1 up
