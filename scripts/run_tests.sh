#!/usr/bin/env bash
# scripts/run_tests.sh BUILD [CTEST OPTION…]: runs the tests of a build folder once each. Those that
# tests/quarantine.txt names run after the others; how they end is printed and does not matter. Ends with
# why each test failed, in a few lines, because a CI page often shows only the end of a log.
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

# Of each failed test of the last run: its time (one that timed out has no other mark in the log), and the
# lines that say what failed, or its last lines.
summarize_failures() {
  awk '
    / Test: / { sub(/^.* Test: /, ""); name = $0; reading = n = n_telling = 0 }
    /^<end of output>$/ { reading = 0 }
    reading && NF {
      line = substr($0, 1, 300)
      last[n++ % 12] = line
      if (n_telling < 12 && /^(FAIL|ERROR): |Error: |error: |: Failure$|ThreadSanitizer|AddressSanitizer|runtime error|\/ld: |: undefined reference/)
        telling[n_telling++] = line
    }
    /^Output:$/ { getline; reading = 1 }
    /^Test time =/ { sub(/^Test time = */, ""); time = $0 }
    /^Unable to find executable/ { print "failed: " $0 }
    /^Test Failed/ {
      print "failed: " name " (" time ")"
      for (i = 0; i < n_telling; i++) print "    " telling[i]
      for (i = n > 12 ? n - 12 : 0; !n_telling && i < n; i++) print "    " last[i % 12]
    }' "$build/Testing/Temporary/LastTest.log" | head -n 100
}
if [ ${#names[@]} = 0 ]; then
  run "$@" || { status=$?; summarize_failures; exit "$status"; }
  exit
fi

# The regular expression that matches exactly the test $1.
exactly() { printf '^%s$' "$(printf '%s' "$1" | sed 's/[][().*+?^$|\\]/\\&/g')"; }
all=$(for name in "${names[@]}"; do exactly "$name" && echo; done | paste -sd '|')

status=0
failures=
run "$@" -E "$all" || { status=$?; failures=$(summarize_failures); }
for i in "${!names[@]}"; do
  log=$(run -R "$(exactly "${names[i]}")" 2>&1) && result=passed || result=failed
  case $log in
    *'No tests were found'*) result='no such test in this build' ;;
    *) [ "$result" = passed ] || printf '%s\n' "$log" ;;
  esac
  echo "quarantined: ${names[i]}: $result (${reasons[i]})"
done
[ -z "$failures" ] || printf '%s\n' "$failures"
exit "$status"
