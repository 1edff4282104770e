#!/bin/sh
# The first process of a lab machine: mounts the host's root read-only, runs the lab's script in it.
export PATH=/bin:/sbin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
modprobe -a virtio_pci virtio_console virtio_net 9pnet_virtio 9p
# What the host asked for is on the kernel's command line.
modprobe -a ${lab_modules//,/ }
options=trans=virtio,version=9p2000.L,msize=524288
mount -t 9p -o $options,ro,cache=loose host /host || { echo "lab: no host root"; poweroff -f; }
mkdir /below
mount --bind /host /below
for name in dev proc sys; do mount --bind /$name /host/$name; done
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /host/dev/pts
for name in tmp run dev/shm; do mount -t tmpfs -o mode=1777 tmpfs /host/$name; done
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
mkdir -p /host/run/lab
mount -t 9p -o $options,rw,cache=none lab /host/run/lab || { echo "lab: no share"; poweroff -f; }
while read -r path; do
  mkdir -p "/host$path"
  mount --bind "/below$path" "/host$path"
done </host/run/lab/machine/visible
chroot /host /bin/sh /run/lab/guest.sh
poweroff -f
