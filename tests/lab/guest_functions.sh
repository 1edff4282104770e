# shellcheck shell=dash
# What the scripts share that tests run in a lab machine. Every wait ends after LIMIT_S.
LIMIT_S=120

# until_true WHAT COMMAND...
until_true() {
  what=$1
  shift
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt $((LIMIT_S * 5)) ] || {
      echo "waited $LIMIT_S s for $what" >&2
      exit 9
    }
    sleep 0.2
  done
}

# Looks at the kernel's table: a connection would be taken for the client's. Starts no process.
listens() {
  for table in /proc/net/tcp /proc/net/tcp6; do
    while read -r _ socket _ kind _; do
      case "$socket $kind" in *:"$1 0A") return 0 ;; esac
    done <$table
  done
  return 1
}

# server PORT PROGRAM DEVICE ARGUMENTS...: in the background, and listening.
server() {
  port=$1 program=$2 device=$3
  shift 3
  timeout -k 1 $LIMIT_S "$program" -d "$device" -x 1 -p "$port" "$@" >"/tmp/server.$port" 2>&1 &
  until_true "port $port" listens "$(printf %04X "$port")"
}

# value FILE: its first word.
value() {
  read -r word _ <"$1"
  echo "$word"
}

# client PORT PROGRAM DEVICE ADDRESS ARGUMENTS...
client() {
  port=$1 program=$2 device=$3 address=$4
  shift 4
  timeout -k 1 $LIMIT_S "$program" -d "$device" -x 1 -p "$port" "$@" "$address"
}

# The processes of shmemctl and of the tests that are still there. Starts no process.
left_behind() {
  for folder in /proc/[0-9]*; do
    read -r comm <"$folder/comm" || continue
    case "$comm" in shmemctl | test_*) echo "${folder#/proc/} $comm" ;; esac
  done 2>/dev/null
}
