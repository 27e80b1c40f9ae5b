#!/bin/sh
# Brings .venv to a lock file, and leaves it alone when it is there already.
#
#     requirements/setup.sh serve    what `make serve` runs on
#     requirements/setup.sh dev      the same and the tools of `make check`
#     requirements/setup.sh test     the same and, where it may, what else the tests make use of:
#                                    a second PostgreSQL, Chromium, and NIST's cases in .cache
#
# PYTHON names the interpreter (default python3). Wants Linux and Python 3.11 or newer, nothing else.
#
# .venv/stamp says what a finished set-up was made from: two lines, the interpreter and place, then the
# lock and its digest. It is taken away before anything changes and written last, so an environment
# without it was interrupted, or made by other means, and is built anew.
set -eu

say() { printf '%s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# Debian packages: installed when we are root, else the line to type is shown and the answer is "no".
apt_install() {
    if ! command -v apt-get >/dev/null; then
        say "This system has no apt-get: please install what Debian calls '$1' by its own means."
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        say "To install it: sudo apt-get update && sudo apt-get install -y --no-install-recommends $1"
        return 1
    fi
    say "Installing $1 ..."
    (
        PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # dpkg insists on them, bare environments lack them
        export PATH DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1" >/dev/null
    ) </dev/null 9<&- # nothing that apt may start shall hold our turn
}

# The interpreter itself, not a virtual environment that happens to be active (ours might be) nor a shim.
find_python() {
    found=$("$1" -c 'import os, sys; print("%d.%d.%d" % sys.version_info[:3], os.path.realpath(sys._base_executable))') \
        || die "'$1' does not run. Install Python 3.11 or newer, or name one: PYTHON=/path/to/python3 make ..."
    version=${found%% *}
    python=${found#* }
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
        || die "Python 3.11 or newer is needed, and $1 is $version. Name a newer one: PYTHON=python3.13 make ..."
}

# Debian ships the standard library's venv and ensurepip as a package of their own.
need_venv() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    say "$python cannot make virtual environments: its modules venv and ensurepip are missing."
    apt_install "python${version%.*}-venv" || exit 1
}

stamped() { [ -f .venv/stamp ] && .venv/bin/python -c '' 2>/dev/null && grep -Fqx "$1" .venv/stamp; }

pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@" </dev/null; }

# The lock, each file checked against its hash, then this checkout itself (editable) on top.
install_lock() {
    if stamped "$place"; then
        rm .venv/stamp
    else
        need_venv
        rm -rf .venv
        "$python" -m venv .venv
    fi
    say "Installing requirements/$lock.lock into .venv ..."
    pip install --quiet --require-hashes -r "requirements/$lock.lock"
    pip install --quiet --no-deps --no-build-isolation --editable .
    printf '%s\n' "$place" "$(wanted "$lock")" >.venv/stamp.new
    mv .venv/stamp.new .venv/stamp
}

wanted() { printf '%s ' "$1"; cat pyproject.toml "requirements/$1.lock" | sha256sum; }

# The suite always runs on the embedded server; with Debian's PostgreSQL it runs on a second release too.
offer_postgres() {
    for server in /usr/lib/postgresql/*/bin/postgres; do
        [ -x "$server" ] && return
    done
    say "The tests run on the embedded PostgreSQL only: this system has none of its own to test on beside it."
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        apt_install postgresql || return 0
    fi
    # Only the programs are wanted. Left to itself the package would make a cluster and start it.
    no_cluster=/etc/postgresql-common/createcluster.d/casino-brag-tests.conf
    mkdir -p "${no_cluster%/*}"
    echo 'create_main_cluster = false' >"$no_cluster"
    apt_install postgresql || installed=no
    rm "$no_cluster"
    [ "${installed:-yes}" = yes ] || [ -z "${CI:-}" ] || die "CI is set: there the tests run on both, so this ends here."
}

# Tests of pages drive a browser.
offer_chromium() {
    for browser in chromium chromium-browser google-chrome; do
        ! command -v "$browser" >/dev/null || return 0
    done
    say "The tests in a browser want Chromium, which this system has not. It is big: 200 MB to fetch, 750 MB on disk."
    apt_install chromium || [ -z "${CI:-}" ] || die "CI is set: there all tests are run, so this ends here."
}

# All that NIST published for the generators. A few of each kind come with the checkout.
offer_vectors() {
    [ ! -s .cache/evprand.txt ] || return 0
    say "Fetching NIST's cases for the random number module into .cache (25 to 65 MB, once) ..."
    verification/fetch_nist_vectors.sh .cache/evprand.txt >&2 9<&- && return
    say "The tests of the random number module run on the cases of casino_brag/rng/known_answers.txt only."
    [ -z "${CI:-}" ] || die "CI is set: there they run on all, so this ends here."
}

case ${1:-} in
    serve) lock=serve ;;
    dev | test) lock=dev ;;
    *) die "usage: requirements/setup.sh serve|dev|test" ;;
esac
cd "$(dirname "$0")/.."
exec 9<requirements/setup.sh # two at once (make serve beside make test) take turns
flock -w 900 9 || die "Another set-up has been running in this checkout for 15 minutes: end it and try again."

find_python "${PYTHON:-python3}"
place="python $version $python in $PWD"
# dev.lock holds all of serve.lock at the same versions, so an environment for testing serves as well.
if ! { stamped "$place" && { stamped "$(wanted dev)" || stamped "$(wanted "$lock")"; }; }; then
    install_lock
fi
if [ "$1" = test ]; then
    offer_postgres
    offer_chromium
    offer_vectors
fi
