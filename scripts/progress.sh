# shellcheck shell=bash
# Sourced: how far a build is.

# ninja ARGS...: on a terminal one line that repaints itself, elsewhere a line for every tenth; what
# compilers say in full, and nothing if there is nothing to do. All on stderr.
ninja_with_progress() {
  case " $* " in
  *" -t "* | *" -v "* | *" -n "* | *" -d "*) ninja "$@" >&2 ;;
  *) NINJA_STATUS='@%f/%t %e@ ' ninja "$@" 2>&1 | show_ninja_progress >&2 ;;
  esac
}

show_ninja_progress() {
  local line last=0 width=0 text status='^@([0-9]+)/([0-9]+) ([0-9]+)[0-9.]*@ (.*)$'
  if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    width=$(stty size <&1 2>/dev/null | cut -d ' ' -f 2) || width=80
    [ "${width:-0}" -gt 0 ] || width=80
  fi
  while IFS= read -r line; do
    if [[ $line =~ $status ]]; then
      local done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]} seconds=${BASH_REMATCH[3]}
      text="scripts: $done of $all, $seconds s"
      if [ "$width" -gt 0 ]; then
        text="$text: ${BASH_REMATCH[4]##* }"
        printf '\r%s\e[K' "${text:0:width-1}"
      elif [ $((10 * done / all)) -gt "$last" ]; then
        last=$((10 * done / all))
        printf '%s\n' "$text"
      fi
    elif [[ $line != 'ninja: Entering directory'* && $line != 'ninja: no work to do.' ]]; then
      [ "$width" -eq 0 ] || printf '\r\e[K'
      printf '%s\n' "$line"
    fi
  done
  [ "$width" -eq 0 ] || printf '\r\e[K'
}
