#!/usr/bin/env bash
set -e

# Hides.
# More.
hide() {
  # ask the system
  local view="$1" x='raw'
  manager hide "a ${view} b $(id -u)" --flag $MAX_SIZE
  if [[ -f "$view" ]]; then run_it; fi
  cat <<EOF
heredoc $x
EOF
}
function show { echo hi | grep x; }
function both() ( exit 1 )
my-größe() { :; }
outer() { nested() { :; }; nested; }
readonly A=1
alias x=y
main "$@"
