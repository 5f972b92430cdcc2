# Sourced by the scripts beside it. POSIX sh only, and on the way where nothing is to be made, three short processes.
#
# An environment is good when its stamp says what it was made of: where the checkout is (it is installed in place),
# what pyproject.toml says, and which extras. The stamp is written last, so a half-made one is made again.

fail() {
    echo "kesoku-actors: $*" >&2
    exit 1
}

# use_environment ROOT FOLDER EXTRA
use_environment() {
    environment_key="$1|$(cksum <"$1/pyproject.toml")|$3"
    if [ -x "$2/bin/python" ] && [ -f "$2/kesoku-stamp" ]; then
        { read -r environment_stamp && read -r environment_python; } <"$2/kesoku-stamp" || :
        if [ "$environment_stamp" = "$environment_key" ]; then
            [ -z "${KESOKU_PYTHON:-}" ] && return
            [ "$(command -v -- "$KESOKU_PYTHON" || :)" = "$environment_python" ] && return
        fi
    fi
    environment_python=$(find_python)
    "$environment_python" "$1/scripts/environment.py" "$1" "$2" "$3" "$environment_key" "$environment_python" </dev/null
}

# Print the first Python that is new enough.
find_python() {
    environment_seen=
    for candidate in ${KESOKU_PYTHON:+"$KESOKU_PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python; do
        found=$(command -v -- "$candidate" 2>/dev/null) || found=
        if [ -n "$found" ] && "$found" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$found"
            return
        fi
        environment_seen="$environment_seen${found:+ $found}"
        [ "$candidate" = "${KESOKU_PYTHON:-}" ] && fail "KESOKU_PYTHON=$KESOKU_PYTHON is not a Python of 3.11 or newer"
    done
    [ -n "$environment_seen" ] || fail "no Python was found; install 3.11 or newer, on Debian: apt install python3 python3-venv"
    fail "Python 3.11 or newer is needed, found only$environment_seen; on Debian 12 or newer: apt install python3 python3-venv"
}
