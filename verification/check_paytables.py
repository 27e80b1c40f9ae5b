"""Every paytable of a directory against the PAR sheet beside it, ``NAME.toml`` against ``NAME.par.json``.

Computes the figures afresh and names each that differs, with both values.  A claim that does not hold is reported, but
it is no difference.  Exit status 1 when a figure differs, or a paytable or a PAR sheet has no counterpart.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from math import isclose
from pathlib import Path
from typing import Any

from figures import ALTERNATIVES, par_sheet
from rules import claim_holds, read_paytable

NOT_RECOMPUTED = ("warnings", "main.mistakes", "rounds_for_half_width", "per_stake", "claims.at_stakes")
"""What else a PAR sheet holds; it is not looked at."""

PAYTABLES = Path(__file__).resolve().parents[1] / "paytables"


def main() -> int:
    """Check a directory and print what was found; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("directory", type=Path, nargs="?", default=PAYTABLES, help="default: %(default)s")
    directory = parser.parse_args().directory
    paytables = {path.stem: path for path in directory.glob("*.toml")}
    sheets = {path.name.removesuffix(".par.json"): path for path in directory.glob("*.par.json")}
    if not paytables:
        parser.error(f"{directory} holds no paytable: name a directory with *.toml files")
    wrong = [f"{sheets[name]} belongs to no paytable" for name in sorted(sheets.keys() - paytables.keys())]
    wrong += [f"{paytables[name]} has no PAR sheet" for name in sorted(paytables.keys() - sheets.keys())]
    for name in sorted(paytables.keys() & sheets.keys()):
        found, failing_claims = check(paytables[name], sheets[name])
        print(f"{paytables[name]}: {'differs from its PAR sheet' if found else 'every figure agrees'}")
        for sentence in failing_claims:
            print(f"  claim that does not hold: {sentence}")
        wrong += [f"{sheets[name]}: {sentence}" for sentence in found]
    for sentence in wrong:
        print(f"WRONG  {sentence}")
    print(f"Not recomputed: {', '.join(NOT_RECOMPUTED)}")
    return 1 if wrong else 0


def check(paytable_file: Path, sheet_file: Path) -> tuple[list[str], list[str]]:
    """A sentence for each difference of a PAR sheet from what its paytable returns, and for each failing claim."""
    try:
        paytable = read_paytable(paytable_file)
        sheet = json.loads(sheet_file.read_text(encoding="utf-8"))
        alternatives = [other["name"] for other in sheet["main"]["alternatives"]]
        computed = par_sheet(paytable, alternatives)
        take_at_stakes(computed, sheet)
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        return [f"cannot be compared with {paytable_file}: {error!r}"], []
    wrong = list(differences(computed, sheet))
    wrong += [f"main.alternatives: {name} is missing" for name in ALTERNATIVES if name not in alternatives]
    if paytable["game"] != paytable_file.stem:
        wrong.append(f"game: {paytable['game']!r} is not the name of {paytable_file}")
    failing_claims = [
        f"{claim['source']!r} says {claim['figure']} of {claim['wager']} is {claim['value']}; it is"
        f" {claim['exact']:.6%} = {claim['exact_fraction']}"
        for claim in computed["claims"]
        if not claim["holds"]
    ]
    return wrong, failing_claims


def take_at_stakes(computed: Any, sheet: Any) -> None:
    """Take a claim's figures at single stakes as given, and judge from them once more whether the claim holds."""
    for claim, found in zip(computed["claims"], sheet["claims"], strict=False):
        if "at_stakes" in found:
            claim["at_stakes"] = found["at_stakes"]
            figures = map(Fraction, found["at_stakes"].values())
            claim["holds"] &= all(claim_holds(claim["value"], figure) for figure in figures)


def differences(computed: Any, found: Any, key: str = "") -> Iterator[str]:
    """Where a document differs from what was computed: keys, exact values, and decimals in their twelve places."""
    if isinstance(computed, dict) and isinstance(found, dict):
        for name in computed | found:
            inner = f"{key}.{name}" if key else name
            if inner in NOT_RECOMPUTED:
                continue
            if name not in found:
                yield f"{inner}: missing; computed {computed[name]!r}"
            elif name not in computed:
                yield f"{inner}: {found[name]!r} is no figure that is known here"
            else:
                yield from differences(computed[name], found[name], inner)
    elif isinstance(computed, list) and isinstance(found, list):
        if len(computed) != len(found):
            yield f"{key}: {len(found)} entries; computed {len(computed)}"
        for place, (inside_computed, inside_found) in enumerate(zip(computed, found, strict=False)):
            named = [
                inside_computed[name] for name in ("name", "spot", "category") if name in inside_computed
            ]
            yield from differences(inside_computed, inside_found, f"{key}[{named[0] if named else place}]")
    elif not _equal(computed, found):
        yield f"{key}: the PAR sheet says {found!r}, computed {computed!r}"


def _equal(computed: Any, found: Any) -> bool:
    if isinstance(computed, float) and type(found) in (int, float):
        return isclose(
            computed, found, rel_tol=0, abs_tol=1.5e-12
        )  # the last place may be rounded either way
    return type(computed) is type(found) and str(computed) == str(found)


if __name__ == "__main__":
    sys.exit(main())
