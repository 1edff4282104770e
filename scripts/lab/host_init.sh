#!/bin/sh
# shellcheck shell=dash
# The first process of a test host (cluster.py): host_init.sh NUMBER. It is in namespaces of its own
# already, and makes of what it sees there a host: the machine's root read-only, and what differs
# between hosts from the folder /media/NUMBER. When it ends, the kernel ends all else on the host.
# shellcheck disable=SC2154 # the settings are assigned in a file
set -eu
# This /proc is still the machine's: the number is the one that the machine knows this process by.
read -r pid _ </proc/self/stat
folder=/media/$1
# shellcheck source=/dev/null
. "$folder/settings"

echo "$hostname" >/proc/sys/kernel/hostname
for name in all default; do
  [ ! -d /proc/sys/net/ipv6 ] || echo 0 >"/proc/sys/net/ipv6/conf/$name/accept_dad"
  case $family in *6*) ;; *) [ ! -d /proc/sys/net/ipv6 ] || echo 1 >"/proc/sys/net/ipv6/conf/$name/disable_ipv6" ;; esac
done

# Folders of the machine that this host's own /tmp and so on would hide: kept aside.
count=0
while read -r path; do
  count=$((count + 1))
  mkdir -p "$folder/aside/$count"
  mount --bind "$path" "$folder/aside/$count"
done <"$folder/visible"
mkdir -p "$folder/cgroup"
[ ! -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup "$folder/cgroup"

# Nothing of the machine can be written to, what is kept aside included: what is mounted from it stays read-only.
while read -r _ _ _ _ point options _; do
  case $point in "$folder"/aside/*) ;; /proc* | /sys* | /dev* | /media*) continue ;; esac
  case $options in rw*) mount -o remount,bind,ro "$point" 2>/dev/null || [ "$point" != / ] ;; esac
done </proc/self/mountinfo

mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts /dev/pts
[ ! -e /dev/ptmx ] || mount --bind /dev/pts/ptmx /dev/ptmx
mount -t tmpfs -o "mode=1777,size=$shm" tmpfs /dev/shm
mount -t mqueue mqueue /dev/mqueue 2>/dev/null || true
for path in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs $path; done
for path in /run /root; do mount -t tmpfs -o mode=755 tmpfs $path; done
mkdir -p /run/lab/bin /run/lab/files /run/sshd /root/.ssh
chmod 700 /root/.ssh
count=0
while read -r path; do
  count=$((count + 1))
  mkdir -p "$path"
  mount --bind "$folder/aside/$count" "$path"
done <"$folder/visible"
mount --rbind "$folder/bin" /run/lab/bin
mount --rbind "$folder/files" /run/lab/files
if [ -n "$out" ]; then
  # Writable, unlike the file system that it is on.
  mkdir -p "$out"
  mount --bind "$folder/out" "$out"
fi
for path in "$folder"/etc/*; do
  name=${path##*/}
  [ ! -e "/etc/$name" ] || mount --bind "$path" "/etc/$name"
done
cp "$folder/ssh_config" /root/.ssh/config
cp "$folder/key" /root/.ssh/id_ed25519
chmod 600 /root/.ssh/id_ed25519

mount -t proc proc /proc
mount -t sysfs -o ro sysfs /sys
[ ! -d /sys/fs/cgroup ] || mount --rbind "$folder/cgroup" /sys/fs/cgroup
[ ! -s "$folder/boot_id" ] || mount --bind "$folder/boot_id" /proc/sys/kernel/random/boot_id

echo "$pid"
# Children that lost their parents are reaped by the kernel; the host ends with this end of file.
exec env --ignore-signal=CHLD cat >/dev/null
