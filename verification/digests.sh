#!/bin/sh
# Compares the files of the program with their manifests, by sha256sum and without the program.
#
#     verification/digests.sh            says whether they agree, and prints the digests to compare with others'
#     verification/digests.sh --write    makes the manifests anew, after a change that was meant
#
# casino_brag/rng/MANIFEST.sha256 lists the random number module, casino_brag/MANIFEST.sha256 the package, the
# jurisdictions and the database's schema.  The program itself compares both, and deals nothing when they do not agree.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."

package_files() {
    find casino_brag jurisdictions migrations ! -type d ! -path '*/__pycache__/*' ! -path casino_brag/MANIFEST.sha256 \
        \( -path 'casino_brag/*' -o -path 'jurisdictions/*.toml' -o -path 'migrations/*.sql' \) | sort
}

if [ "${1:-}" = --write ]; then
    (cd casino_brag/rng && sha256sum -- *.py *.txt) >casino_brag/rng/MANIFEST.sha256.new
    mv casino_brag/rng/MANIFEST.sha256.new casino_brag/rng/MANIFEST.sha256
    package_files | xargs sha256sum -- >MANIFEST.sha256.new
    mv MANIFEST.sha256.new casino_brag/MANIFEST.sha256
fi

(cd casino_brag/rng && sha256sum --check --strict --quiet MANIFEST.sha256)
sha256sum --check --strict --quiet casino_brag/MANIFEST.sha256
listed=$(cut -c 67- casino_brag/MANIFEST.sha256)
if [ "$listed" != "$(package_files)" ]; then
    echo "There are files that the manifest does not list, or lists of files that are not there." >&2
    exit 1
fi

# The digest that is stored with every round: names, lengths and contents, in the order of names.
module=$(cd casino_brag/rng && for file in $(printf '%s\n' *.py *.txt | sort); do
    printf '%s\n%s\n' "$file" "$(($(wc -c <"$file")))"
    cat "$file"
done | sha256sum)
echo "random number module  ${module%% *}"
sha256sum casino_brag/MANIFEST.sha256 paytables/*.toml
