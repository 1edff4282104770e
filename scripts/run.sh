#!/usr/bin/env bash
# Installs what the build needs, builds the tool and runs it: scripts/run.sh [ARGS...].
# Without arguments it runs `check`, the node's acceptance test.
set -euo pipefail
here="$(cd "$(dirname "$0")/.." && pwd)"
"$here/scripts/build.sh" release shmemctl
[ $# -gt 0 ] || set -- check
exec "$here/build/shmemctl" "$@"
