# shellcheck shell=dash
# What the scripts share that tests run in a lab machine. Every wait ends after LIMIT_S.
LIMIT_S=60

# until_true WHAT COMMAND...
until_true() {
  what=$1
  shift
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt $((LIMIT_S * 10)) ] || {
      echo "waited $LIMIT_S s for $what" >&2
      exit 9
    }
    sleep 0.1
  done
}

# Looks at the kernel's table: a connection would be taken for the client's.
listens() { grep -q ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp /proc/net/tcp6; }

# server PORT PROGRAM DEVICE ARGUMENTS...: in the background, and listening.
server() {
  port=$1 program=$2 device=$3
  shift 3
  timeout -k 1 $LIMIT_S "$program" -d "$device" -x 1 -p "$port" "$@" >"/tmp/server.$port" 2>&1 &
  until_true "port $port" listens "$port"
}

# client PORT PROGRAM DEVICE ADDRESS ARGUMENTS...
client() {
  port=$1 program=$2 device=$3 address=$4
  shift 4
  timeout -k 1 $LIMIT_S "$program" -d "$device" -x 1 -p "$port" "$@" "$address"
}
