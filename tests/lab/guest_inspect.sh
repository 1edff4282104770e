#!/bin/sh
# shellcheck shell=dash disable=SC2317 # functions that others call
# In one machine with rxe0 and rxe1: what inspect says of programs that communicate, and beside it what
# iproute2's `rdma` says. $1: shmemctl.
# shellcheck source=tests/lab/guest_functions.sh
. "$(dirname "$0")/guest_functions.sh"
shmemctl=$1

# connected PROGRAM: two queue pairs of it are connected. That of ib_write_bw's server, which only receives, stays in
# RTR.
connected() {
  [ "$(rdma resource show qp | grep -c "type RC state RT[RS] .*comm $1")" -ge 2 ]
}

# Nothing is made any more: a job connects its queue pairs one after the other. Packet sequence numbers go on.
queue_pairs() { rdma resource show qp | sed 's/[rs]q-psn [0-9]* //g'; }
settled() {
  before=$(queue_pairs)
  sleep 1
  [ "$before" = "$(queue_pairs)" ]
}

# seen NAME INSPECT-ARGUMENTS...: leaves NAME.json, and NAME.qp and so on of `rdma`.
seen() {
  name=$1
  shift
  until_true "the queue pairs to be all there" settled
  for kind in qp cq mr cm_id; do
    rdma resource show $kind >"$LAB_OUT/$name.$kind"
  done
  "$shmemctl" inspect "$@" --json "$LAB_OUT/$name.json" >"$LAB_OUT/$name.text" 2>"$LAB_OUT/$name.errors"
  echo $? >"$LAB_OUT/$name"
}

# perftest's own programs, over rxe1, until they are ended.
server 18700 ib_write_bw rxe1 -s 65536 -D 100
server_job=$!
# Not by client(): a function in the background is a shell, and its program would outlive it.
timeout -k 1 "$LIMIT_S" ib_write_bw -d rxe1 -x 1 -p 18700 -s 65536 -D 100 "$LAB_ADDRESS" \
  >/tmp/client 2>&1 &
client_job=$!
until_true "perftest's queue pairs" connected ib_write_bw
seen perftest --all --window 1
# Recorded by iproute2 into a tree, beside the files that inspect reads.
tree=/tmp/tree
mkdir -p $tree/shmemctl/rdma
for kind in qp cq mr cm_id; do
  cp "$LAB_OUT/perftest.$kind" $tree/shmemctl/rdma/$kind
done
for folder in /proc/[0-9]*; do
  read -r comm <"$folder/comm" || continue
  [ "$comm" = ib_write_bw ] || continue
  mkdir -p "$tree$folder"
  for file in stat status maps environ cmdline limits; do
    cat "$folder/$file" >"$tree$folder/$file"
  done
done 2>/dev/null
seen recorded --all --sysroot $tree
kill $server_job $client_job
wait

# Our own PEs, over rxe0.
SHMEMCTL_TRANSPORT=ibrc SHMEMCTL_HCA_LIST=rxe0 SHMEMCTL_SYMMETRIC_SIZE=16M timeout -k 5 "$LIMIT_S" \
  "$shmemctl" run -n 2 bench put -b 64K -e 64K -D 100 >/tmp/bench 2>&1 &
until_true "the queue pairs of bench" connected shmemctl
seen bench --all
kill $!
wait
# Nobody communicates, and the devices are there.
seen idle --all
exit 0
