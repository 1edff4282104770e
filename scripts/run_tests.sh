#!/usr/bin/env bash
# scripts/run_tests.sh BUILD [CTEST OPTION…]: runs the tests of a build folder once each. Those that
# tests/quarantine.txt names run after the others; how they end is printed and does not matter.
#   SHMEMCTL_QUARANTINE  another file of that form
set -euo pipefail
build=$1
shift
list=${SHMEMCTL_QUARANTINE:-$(dirname "$0")/../tests/quarantine.txt}

names=()
reasons=()
while read -r name reason; do
  case $name in '' | '#'*) continue ;; esac
  if [ -z "$reason" ]; then
    echo "$list: $name: without a reason; fix: NAME REASON" >&2
    exit 2
  fi
  names+=("$name")
  reasons+=("$reason")
done < "$list"

run() { ctest --test-dir "$build" --output-on-failure "$@"; }
if [ ${#names[@]} = 0 ]; then
  run "$@"
  exit
fi

# The regular expression that matches exactly the test $1.
exactly() { printf '^%s$' "$(printf '%s' "$1" | sed 's/[][().*+?^$|\\]/\\&/g')"; }
all=$(for name in "${names[@]}"; do exactly "$name" && echo; done | paste -sd '|')

status=0
run "$@" -E "$all" || status=$?
for i in "${!names[@]}"; do
  log=$(run -R "$(exactly "${names[i]}")" 2>&1) && result=passed || result=failed
  case $log in
    *'No tests were found'*) result='no such test in this build' ;;
    *) [ "$result" = passed ] || printf '%s\n' "$log" ;;
  esac
  echo "quarantined: ${names[i]}: $result (${reasons[i]})"
done
exit "$status"
