#!/bin/sh
# shellcheck shell=dash
# The first process of a lab machine: mounts the host's root read-only, sets the machine up, runs
# the command in that root, tells the host how it ended. Everything here is busybox from memory: a
# program of the host is read over 9p, which costs a hundred times more under emulation.
export PATH=/bin:/sbin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
modprobe -a virtio_pci virtio_console virtio_net 9pnet_virtio 9p
for port in /dev/vport*p1; do port=${port%1}; done
# Once for all: what arrives at a closed port is lost.
exec 5<>"${port}1"
share=/host/run/lab

# In the host's root, with its programs.
host() { chroot /host "$@"; }

tell() { echo "$*" >&5; }

fail() {
  tell "failed $1"
  # The host ends the machine; what follows would only confuse.
  sleep 60
  poweroff -f
}

mount_9p() {
  mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,$3" "$1" "$2" ||
    fail "cannot mount the folder '$1' of the host"
}

# rename_nics MAC=NAME...: two steps, because a name may still belong to another NIC.
rename_nics() {
  for step in first second; do
    for name in "$@"; do
      [ $step = second ] || for link in /sys/class/net/*; do
        read -r mac <"$link/address"
        [ "$mac" != "${name%%=*}" ] || ip link set "${link##*/}" name "lab-${name##*=}"
      done
      [ $step = first ] || ip link set "lab-${name##*=}" name "${name##*=}" ||
        fail "there is no NIC ${name##*=}"
    done
  done
}

# wait_for_carrier NAME...: some models take a second or two.
wait_for_carrier() {
  for name in "$@"; do
    tries=0
    until read -r carrier <"/sys/class/net/$name/carrier" && [ "$carrier" = 1 ]; do
      tries=$((tries + 1))
      [ $tries -lt 200 ] || fail "$name has no carrier"
      sleep 0.1
    done
  done
}

# disguise_gpus FILE=VALUE...: graphics functions (class 0x0380) show these values in sysfs.
disguise_gpus() {
  mkdir -p /host/run/gpu
  for pair in "$@"; do echo "${pair#*=}" >"/host/run/gpu/${pair%%=*}"; done
  for function in /sys/bus/pci/devices/*; do
    read -r class <"$function/class"
    [ "$class" = 0x038000 ] || continue
    for pair in "$@"; do
      mount --bind "/host/run/gpu/${pair%%=*}" "/host$(readlink -f "$function")/${pair%%=*}" ||
        fail "cannot give a function a GPU's ids"
    done
  done
}

sysctl() { echo "$2" >"/proc/sys/$1"; }

# What the host asked for is on the kernel's command line, which the kernel makes our environment of.
# shellcheck disable=SC2046,SC2154
modprobe -a $(echo "$lab_modules" | tr , ' ')
mount_9p host /host ro,cache=loose
mkdir /below
mount --bind /host /below
for name in dev proc sys; do mount --bind /$name /host/$name; done
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /host/dev/pts
for name in tmp run dev/shm; do mount -t tmpfs -o mode=1777,size=90% tmpfs /host/$name; done
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
mkdir -p $share
mount_9p lab $share rw,cache=none
# Folders that our own /tmp hides.
while read -r path; do
  mkdir -p "/host$path"
  mount --bind "/below$path" "/host$path"
done <$share/visible
read -r hostname <$share/hostname
sysctl kernel/hostname "$hostname"
for name in hostname hosts machine-id; do
  [ ! -e /host/etc/$name ] || mount --bind $share/$name /host/etc/$name
done
ulimit -l unlimited
ulimit -n 65536
# shellcheck source=/dev/null
. $share/setup
read -r uptime _ </proc/uptime
tell "ready $uptime"
# All machines begin together.
read -r _ <&5

mkfifo /run.stdout /run.stderr
cat </run.stdout >"${port}2" &
cats=$!
cat </run.stderr >"${port}3" &
cats="$cats $!"
(
  exec </dev/null >/run.stdout 2>/run.stderr 5>&-
  # shellcheck source=/dev/null
  . $share/environment
  # shellcheck source=/dev/null
  . $share/events
  exec chroot /host /bin/sh /run/lab/command
)
code=$?
# What the command left running may hold its output open.
# shellcheck disable=SC2086 # a list of words
(sleep 2; kill $cats 2>/dev/null) &
# shellcheck disable=SC2086
wait $cats
tell "exit $code"
# The host ends the machine when the other one has ended as well: its kernel still answers.
while :; do sleep 3600; done
