#!/bin/sh
# Fetches NIST's published cases for random bit generators, as OpenSSL hands them on in its file evprand.txt.
#
#     verification/fetch_nist_vectors.sh PATH
#
# They are taken out of Debian's source package of OpenSSL, fetched by this machine's own apt: from where its
# packages come from, by its proxies, and checked by it (a signed index lists the SHA-256 of the archive). Root is not
# needed, nor any package of developer's tools, and the system is left as it is: apt's lists go where the download
# goes, into a temporary directory. Prints the file's SHA-256 and how many cases it has. Needs about 100 MB there.
set -eu
umask 022

file=test/recipes/30-test_evp_data/evprand.txt

say() { printf '%s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

[ $# -eq 1 ] || die "usage: verification/fetch_nist_vectors.sh PATH"
command -v apt-get >/dev/null || die "This system has no apt-get. On one that has, fetch the file and copy it to $1."

work=$(mktemp -d)
new=$1.new.$$
trap 'rm -rf "$work" "$new"' EXIT
trap 'exit 1' HUP INT TERM

mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial" "$work/download"
if [ "$(id -u)" -eq 0 ]; then # then apt downloads as the user _apt, where there is one
    chmod 755 "$work"
    ! id _apt >/dev/null 2>&1 || chown _apt "$work/download"
fi

# What this machine fetches packages from, as sources of source packages: both notations, with their keys.
list='' parts=''
eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
parts=${parts%/}
for source in "$list" "$parts"/*.list "$parts"/*.sources; do
    [ -r "$source" ] || continue
    case $source in
        *.sources) sed 's/^[Tt][Yy][Pp][Ee][Ss]:.*/Types: deb-src/' "$source" >"$work/sources/${source##*/}" ;;
        *) sed -n 's/^[[:space:]]*deb\(-src\)\{0,1\}\([[:space:]]\)/deb-src\2/p' "$source" >>"$work/all.list" ;;
    esac
done
[ ! -s "$work/all.list" ] || sort -u "$work/all.list" >"$work/sources/all.list"
[ -n "$(ls "$work/sources")" ] || die "apt has no sources here: nothing is said in $list and $parts."

with_sources() {
    timeout 300 "$@" </dev/null \
        -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Dir::Cache::archives="$work/cache/archives" \
        -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30
}

# A source that is out of reach, or has no source packages, does not matter, and a mirror may list a version that it
# no longer has, or not yet: what counts is whether some version of openssl can be had.
with_sources apt-get -q update >"$work/log" 2>&1 || say "apt could not read all of its sources; going on with the others."
fetched=
for version in $(with_sources apt-cache -q showsrc openssl 2>>"$work/log" | sed -n 's/^Version: //p' | sort -Vru); do
    (cd "$work/download" && rm -f ./* && with_sources apt-get -q source --download-only --tar-only "openssl=$version") \
        >>"$work/log" 2>&1 && fetched=$version && break
done
[ "$fetched" ] || {
    cat "$work/log" >&2
    die "apt could not fetch the source package of openssl: the lines above say why."
}

mkdir -p "$(dirname "$1")"
for archive in "$work"/download/openssl_*.orig.tar.?z; do
    tar -xOf "$archive" --wildcards "*/$file" >"$new" || die "${archive##*/} has no $file, or cannot be unpacked."
done
cases=$(grep -c '^Output\.[0-9]* *= *[0-9A-Fa-f]' "$new") || die "No case is in the $file of ${archive##*/}."
mv "$new" "$1"
printf '%s cases in %s, from %s\nSHA-256 %s\n' "$cases" "$1" "${archive##*/}" "$(sha256sum <"$1" | cut -c 1-64)"
