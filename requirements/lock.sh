#!/bin/sh
# Makes the lock files anew: what runs, what `make serve` needs beside it, what builds the wheel, what development needs.
# Each is pinned by version and hash, for every Python this project supports, and names no registry.
set -eu
cd "$(dirname "$0")/.."
compile() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --no-annotate "$@"
}
compile --extra dev --extra embedded --extra sim --extra cluster --extra oidc pyproject.toml -o requirements/dev.lock
compile -c requirements/dev.lock pyproject.toml -o requirements/run.lock
printf 'hatchling\neditables\n' | compile -c requirements/dev.lock --extra embedded pyproject.toml - -o requirements/serve.lock
printf 'hatchling\n' | compile -c requirements/dev.lock - -o requirements/build.lock
