# Runs in the host's root in a lab machine: sets it up, runs the command, tells the host how it ended.
exec 2>/dev/console
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
share=/run/lab/machine
for port in /dev/vport*p1; do port=${port%1}; done

tell() { echo "$*" >"${port}1"; }

fail() {
  tell "failed $1"
  # The host ends the machine; what follows here would only confuse.
  sleep 60
  exit 1
}

bind_over() {
  [ ! -e "$2" ] || mount --bind "$1" "$2" || fail "cannot replace $2"
}

# rename_nics MAC=NAME...: two steps, because a name may still belong to another NIC.
rename_nics() {
  for name in "$@"; do
    for link in /sys/class/net/*; do
      read -r mac <"$link/address" 2>/dev/null || continue
      [ "$mac" = "${name%%=*}" ] || continue
      batch="$batch${batch:+
}link set ${link##*/} name lab-${name##*=}"
      later="$later${later:+
}link set lab-${name##*=} name ${name##*=}"
    done
  done
  printf '%s\n%s\n' "$batch" "$later" | ip -b - || fail "cannot name the NICs"
}

# disguise_gpus FILE=VALUE...: graphics functions (class 0x0380) show these values in sysfs.
disguise_gpus() {
  mkdir -p /run/gpu
  for pair in "$@"; do echo "${pair#*=}" >"/run/gpu/${pair%%=*}"; done
  for function in /sys/bus/pci/devices/*; do
    read -r class <"$function/class"
    [ "$class" = 0x038000 ] || continue
    for pair in "$@"; do
      mount --bind "/run/gpu/${pair%%=*}" "$(readlink -f "$function")/${pair%%=*}" ||
        fail "cannot give a function a GPU's ids"
    done
  done
}

read -r hostname <"$share/hostname"
echo "$hostname" >/proc/sys/kernel/hostname
for name in hostname hosts machine-id; do bind_over "$share/$name" "/etc/$name"; done
ulimit -l unlimited
ulimit -n 65536
. "$share/environment"
. "$share/setup"
tell "ready $(cut -d' ' -f1 /proc/uptime)"

mkfifo /run/stdout /run/stderr
cat </run/stdout >"${port}2" &
cats=$!
cat </run/stderr >"${port}3" &
cats="$cats $!"
(
  exec </dev/null >/run/stdout 2>/run/stderr
  . "$share/events"
  exec /bin/sh "$share/command"
)
code=$?
# What the command left running may hold its output open.
(sleep 2; kill $cats 2>/dev/null) &
wait $cats
tell "exit $code"
