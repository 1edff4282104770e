#!/bin/sh
# shellcheck shell=dash disable=SC2317 # functions that others call
# In one machine with two devices: guest_machine.sh SHMEMCTL. Leaves what it saw in $LAB_OUT.
# shellcheck source=tests/lab/guest_functions.sh
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1

echo to-stdout
echo to-stderr >&2
{ hostname; id -u; ulimit -l; pwd; echo "$LAB_MACHINE $LAB_MACHINES $LAB_HCAS $MARK"; } >"$LAB_OUT/words"
dmesg | grep "tsc: Detected" >"$LAB_OUT/counter"
cat /etc/machine-id >"$LAB_OUT/machine-id"
touch / 2>/dev/null && echo "the host's root is writable" >&2
"$shmemctl" doctor --json "$LAB_OUT/doctor.json" >/dev/null
"$shmemctl" topo --json "$LAB_OUT/topo.json" >/dev/null

# Every device reaches every device of the machine by IPv4. With the usual timeout of a QP (67 ms) the
# retries would end while the host gives this machine no time; -u 18 is 1 s.
for pair in rxe0,rxe0 rxe0,rxe1 rxe1,rxe0; do
  server 18515 ib_write_bw ${pair%,*} -s 4096 -n 20 -u 18
  client 18515 ib_write_bw ${pair#*,} 127.0.0.1 -s 4096 -n 20 -u 18 >/tmp/client 2>&1
  echo "$pair $?" >>"$LAB_OUT/pairs"
  cat /tmp/client >>"$LAB_OUT/clients"
  wait
done

# An event takes rxe0's link down while traffic flows to it, and up again once we have seen that.
state=/sys/class/infiniband/rxe0/ports/1/state
sent() { value /sys/class/infiniband/rxe1/ports/1/hw_counters/sent_pkts; }
is() { [ "$(value "$state")" = "$1" ]; }
flows() { [ "$(sent)" -gt $((before + 100)) ]; }
server 18515 ib_write_bw rxe0 -s 4096 -n 1000000
before=$(sent)
client 18515 ib_write_bw rxe1 127.0.0.1 -s 4096 -n 1000000 >/tmp/client 2>&1 &
traffic=$!
until_true "traffic" flows
echo "flows" >>"$LAB_OUT/link"
touch /tmp/flows
until_true "the link to go down" is 1:
echo "down" >>"$LAB_OUT/link"
touch /tmp/seen-down
until_true "the link to come up" is 4:
before=$(sent)
until_true "traffic after the link came up" flows
echo "flows" >>"$LAB_OUT/link"
kill $traffic
exit 7
