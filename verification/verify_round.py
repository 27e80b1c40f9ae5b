"""Was a round dealt as it was committed?  The protocol ``casino-brag-deal-1`` from top to bottom, as a check.

Before any stake the casino sends a *commitment*: a hash of the round, the rules and a secret seed.  The bet may bring a
client seed of the player's.  Both seeds make the deal.  Afterwards the casino reveals its seed, and the *receipt* of
the round (what GET /v1/rounds/{id}/proof answers) holds all that is needed to do everything again.  This is done here,
offline, with Python's standard library alone.

Give one saved receipt, or several: then their commitments must also follow one another without a gap, so
give several of one game only, that one player played for one kind of money.  A receipt shows in its audit entry whose
it is: mind that before you hand it on.

Exit status: 0 all holds, 1 something does not, 2 a receipt cannot be read or the command is mistaken.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

# 1. The form of a receipt.  What it need not have it may not have: nothing would vouch for it.

HASH = '"[0-9a-f]{64}"'
CARDS = r'\["[2-9TJQKA][cdhs]","[2-9TJQKA][cdhs]","[2-9TJQKA][cdhs]"\]'
RECEIPT: dict[str, Any] = {  # each value's canonical JSON must be this regular expression
    "protocol": '"casino-brag-deal-1"',
    "round_id": '"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"',
    "state": '"(settled|voided|expired)"',
    "game": '"[a-z0-9-]{1,60}"',
    "rules_digest": HASH,
    "rng_digest": HASH,
    "commitment": {"number": "[1-9][0-9]*", "value": HASH, "previous": f"({HASH}|null)"},
    "seed": '"[0-9a-f]{96}"',
    "audit": {"leaf_hash": HASH, "entry": '".*"'},
}
DEALT = {  # and these, unless the commitment expired before anything was dealt
    "client_seed": r'("([!#-[\]-~]|\\["\\]){1,128}"|null)',
    "client_seeds": '"(allowed|off)"',
    "deal_index": "[0-9]+",
    "discards": "[0-9]+",
    "player_cards": CARDS,
    "dealer_cards": CARDS,
}
LOGGED = {  # and this, once the log has the round's entry
    "leaf_index": "[0-9]+",
    "tree_size": "[1-9][0-9]*",
    "proof": r'\[("[A-Za-z0-9+/]{43}=",?)*\]',
    "checkpoint": '".*"',
    "verifier_keys": r'\[("[!#-[\]-~]+",?)*\]',
}
WHOLE_MAX = 2**53 - 1  # up to here every program that reads JSON has a whole number exactly
NESTED_MAX = 32
ABSENT = object()


def canonical(value: Any, depth: int = NESTED_MAX) -> str:
    """The one text of a JSON value (RFC 8785), or empty for none.  ValueError for what receipts never hold."""
    if value is ABSENT:
        return ""
    if value is None or type(value) is bool or (type(value) is int and abs(value) <= WHOLE_MAX):
        return json.dumps(value)
    if type(value) is str and not re.search("[\ud800-\udfff]", value):
        return json.dumps(value, ensure_ascii=False)
    if type(value) is list and depth:
        return f"[{','.join(canonical(item, depth - 1) for item in value)}]"
    if type(value) is dict and depth:
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return f"{{{','.join(f'{canonical(name)}:{canonical(value[name], depth - 1)}' for name in names)}}}"
    raise ValueError("a fraction, too large a number, half a character, or nested too deeply")


def form_problems(receipt: Any) -> list[str]:
    """What is missing, too much, or not of its form."""
    expired = type(receipt) is dict and receipt.get("state") == "expired"
    form = RECEIPT if expired else RECEIPT | DEALT
    if type(receipt) is dict and "inclusion" in receipt:
        form = form | {"inclusion": "null" if receipt["inclusion"] is None else LOGGED}
    problems = list(misformed("", receipt, form))
    if problems:
        return problems
    if not expired and receipt["client_seeds"] == "off" and receipt["client_seed"] is not None:
        problems.append("client_seed is given, but client_seeds is off")
    if (receipt["commitment"]["number"] == 1) != (receipt["commitment"]["previous"] is None):
        problems.append("commitment.previous must be null for number 1, and for no other")
    return problems


def misformed(name: str, value: Any, form: Any) -> Iterator[str]:
    """The same for one value; the receipt itself has no name."""
    if isinstance(form, str):
        try:
            fits = re.fullmatch(form, canonical(value), re.DOTALL)
        except ValueError:
            fits = None
        if not fits:
            yield f"{name} is {'missing' if value is ABSENT else f'not of its form: {form}'}"
    elif type(value) is not dict:
        yield f"{name or 'the receipt'} is {'missing' if value is ABSENT else 'not a JSON object'}"
    else:
        for unknown in [member for member in value if member not in form]:
            yield f"{name or 'the receipt'} has an unknown member {json.dumps(unknown)}"
        for member, inner in form.items():
            yield from misformed(f"{name}.{member}" if name else member, value.get(member, ABSENT), inner)


# 2. The commitment: one hash, of parts that each have their length in front.


def sha256(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def parts(*parts: bytes) -> bytes:
    """Each part after its length in four bytes, so that the end of one cannot pass for the start of the next."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def commitment_value(receipt: dict[str, Any]) -> str:
    """What the commitment's value has to be."""
    number, previous = receipt["commitment"]["number"], receipt["commitment"]["previous"]
    return sha256(
        parts(
            b"casino-brag commitment 1",
            UUID(receipt["round_id"]).bytes,
            bytes.fromhex(receipt["rules_digest"]),
            number.to_bytes(8, "big"),
            bytes.fromhex(previous or ""),
            bytes.fromhex(receipt["seed"]),
        )
    ).hex()


def commitment_problems(receipt: dict[str, Any]) -> list[str]:
    """Whether this is a commitment to this round, these rules and this seed."""
    if receipt["commitment"]["value"] == commitment_value(receipt):
        return []
    return ["commitment.value is not the hash of this round, these rules, number, previous and seed"]


# 3. The words: HMAC_DRBG with SHA-256 (NIST SP 800-90A rev. 1, 10.1.2), made of both seeds for this round alone.


def child_words(receipt: dict[str, Any]) -> Iterator[int]:
    """The generator's answers to requests of eight bytes, as numbers."""
    key, value = bytes(32), b"\x01" * 32

    def update(data: bytes) -> None:
        nonlocal key, value
        for mark in (b"\x00", b"\x01") if data else (b"\x00",):
            key = hmac.digest(key, value + mark + data, "sha256")
            value = hmac.digest(key, value, "sha256")

    entropy_and_nonce = bytes.fromhex(receipt["seed"])  # 32 and 16 bytes
    client_seed = receipt["client_seed"]
    personalization = parts(
        b"casino-brag deal 1",
        UUID(receipt["round_id"]).bytes,
        bytes.fromhex(receipt["rules_digest"]),
        b"" if client_seed is None else sha256(client_seed.encode()),
    )
    update(entropy_and_nonce + personalization)
    while True:
        value = hmac.digest(key, value, "sha256")
        yield int.from_bytes(value[:8], "big")
        update(b"")


# 4. The deal: a word becomes the number of a deal, each as likely as the next, and the number becomes six cards.

DEALS = 52 * 51 * 50 * 49 * 48 * 47
LIMIT = 2**64 - 2**64 % DEALS  # words from here on are discarded: they would favour the lowest deals
WORDS_MAX = 64


def deal_index(words: Iterable[int]) -> tuple[int, int]:
    """The deal's number, and how many words were discarded to get it."""
    for discards, word in zip(range(WORDS_MAX), words, strict=False):
        if word < LIMIT:
            return word % DEALS, discards
    raise ValueError(f"{WORDS_MAX} words in a row are to be discarded, which no seed is known to do")


def cards(index: int) -> tuple[list[str], list[str]]:
    """The player's three cards and the dealer's: a shuffle of the pack that ends after six cards."""
    picks: list[int] = []
    for remaining in (47, 48, 49, 50, 51, 52):  # the last card's pick is the lowest digit
        index, pick = divmod(index, remaining)
        picks.insert(0, pick)
    pack = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    for place, pick in enumerate(picks):
        pack[place], pack[place + pick] = pack[place + pick], pack[place]
    return pack[0:3], pack[3:6]


def deal_problems(receipt: dict[str, Any]) -> list[str]:
    """Whether both seeds give this deal."""
    index, discards = deal_index(child_words(receipt))
    player, dealer = cards(index)
    deal = {"deal_index": index, "discards": discards, "player_cards": player, "dealer_cards": dealer}
    return [
        f"{name}: the seeds give {canonical(value)}, the receipt says {canonical(receipt[name])}"
        for name, value in deal.items()
        if value != receipt[name]
    ]


# 5. The audit entry: the text whose hash is the leaf of the casino's log.  It must say what the receipt says.


def leaf_problems(receipt: dict[str, Any]) -> list[str]:
    """Whether the leaf hash is that of the entry."""
    if receipt["audit"]["leaf_hash"] == sha256(b"\x00" + receipt["audit"]["entry"].encode()).hex():
        return []
    return ["audit.leaf_hash is not the hash of audit.entry"]


def entry_problems(receipt: dict[str, Any]) -> list[str]:
    """Whether the entry can be read in one way only, and agrees."""
    try:
        entry = json.loads(receipt["audit"]["entry"])
        reads_one_way = canonical(entry) == receipt["audit"]["entry"]
    except (ValueError, RecursionError):
        reads_one_way = False
    if not reads_one_way:
        return ["audit.entry is not canonical JSON (RFC 8785) of texts and whole numbers"]
    kind = "commitment.expired" if receipt["state"] == "expired" else f"round.{receipt['state']}"
    expected = {
        "type": kind,
        "subjects.round_id": receipt["round_id"],
        "payload.paytable_digest": receipt["rules_digest"],
    }
    for name in ("game", "rng_digest", "commitment", "seed", *DEALT):
        expected[f"payload.{name}"] = receipt.get(name, ABSENT)
    return [
        f"audit.entry: {path} is not what the receipt says"
        for path, value in expected.items()
        if canonical(at(entry, path)) != canonical(value)
    ]


def at(value: Any, path: str) -> Any:
    """What is found under the names of a path, or ABSENT."""
    for name in path.split("."):
        value = value.get(name, ABSENT) if type(value) is dict else ABSENT
    return value


# 6. The log: a Merkle tree (RFC 9162, section 2.1) that has the leaf, if the receipt says where.


def inclusion_problems(receipt: dict[str, Any]) -> list[str]:
    """Whether the hashes of the proof lead from the leaf to the root in the checkpoint."""
    said = receipt["inclusion"]
    lines = said["checkpoint"].split("\n")
    if lines[1:2] != [str(said["tree_size"])] or not said["leaf_index"] < said["tree_size"]:
        return ["inclusion: the checkpoint is not one of tree_size entries, or the leaf is not among them"]
    place, last = said["leaf_index"], said["tree_size"] - 1
    under = bytes.fromhex(receipt["audit"]["leaf_hash"])
    for beside in map(base64.b64decode, said["proof"]):
        if last == 0:
            return ["inclusion.proof has more hashes than the way to the root"]
        if place % 2 == 1 or place == last:
            under = sha256(b"\x01" + beside + under)
            while place % 2 == 0 and place:
                place, last = place // 2, last // 2
        else:
            under = sha256(b"\x01" + under + beside)
        place, last = place // 2, last // 2
    if last or lines[2:3] != [base64.b64encode(under).decode()]:
        return ["inclusion.proof does not lead from the leaf to the root in the checkpoint"]
    return []


# 7. One receipt, and several of a series.


def verify(receipt: Any, noted: str | None = None) -> dict[str, list[str]]:
    """What was checked, in words, and what of it does not hold.  Without its form, a receipt is not checked further."""
    checks = {"every member is there, in its form, and no other": form_problems(receipt)}
    if any(checks.values()):
        return checks
    checks["the commitment is the hash of this round, these rules and this seed"] = commitment_problems(
        receipt
    )
    if noted is not None:
        same = receipt["commitment"]["value"] == noted
        problem = "commitment.value is not the one that was noted before staking"
        checks["the commitment is the one that was noted before staking"] = [] if same else [problem]
    if receipt["state"] != "expired":
        checks["both seeds give this deal"] = deal_problems(receipt)
    checks["the leaf hash is that of the audit entry"] = leaf_problems(receipt)
    checks["the audit entry says what the receipt says"] = entry_problems(receipt)
    if receipt.get("inclusion") is not None:
        checks["the leaf is in the log of the checkpoint"] = inclusion_problems(receipt)
    return checks


def chain_problems(receipts: list[dict[str, Any]]) -> list[str]:
    """Whether the receipts, put in order, are links of one chain.  Their form has been checked."""
    problems = []
    if len({receipt["game"] for receipt in receipts}) > 1:
        problems.append("chain: the receipts are of different games, and each game has a chain of its own")
    commitments = sorted((receipt["commitment"] for receipt in receipts), key=lambda link: link["number"])
    for before, after in pairwise(commitments):
        if after["number"] == before["number"]:
            problems.append(f"chain: number {after['number']} is there twice")
        elif after["number"] > before["number"] + 1:
            problems.append(f"chain: number {before['number'] + 1} is missing (GET /v1/commitments lists it)")
        elif after["previous"] != before["value"]:
            problems.append(f"chain: number {after['number']} does not follow number {before['number']}")
    return problems


# 8. The command.

LARGEST_FILE = 1 << 20


def main() -> int:
    """Check the receipts that are named, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "receipts", nargs="+", metavar="proof.json", help="a saved receipt; - is standard input"
    )
    noted = "the commitment's value as it was noted before staking; with one receipt"
    parser.add_argument("--commitment", metavar="HEX", type=str.lower, help=noted)
    arguments = parser.parse_args()
    if arguments.commitment is not None:
        if not re.fullmatch("[0-9a-f]{64}", arguments.commitment):
            parser.error("--commitment has 64 hexadecimal digits: give the whole value")
        if len(arguments.receipts) > 1:
            parser.error("--commitment is that of one round: give one receipt with it")
    receipts = []
    for name in arguments.receipts:
        try:
            receipts.append(read(name))
        except OSError as error:
            parser.error(f"cannot read {name} ({error.strerror}): give the path of a saved receipt, or -")
        except (ValueError, RecursionError) as error:
            advice = "save what GET /v1/rounds/{id}/proof answers as it is, one round a file"
            parser.error(f"{name} is not the JSON of a receipt ({error}): {advice}")
        refused = receipts[-1]
        if isinstance(refused, dict) and "code" in refused and "protocol" not in refused:
            parser.error(
                f"{name} is a refusal of the service and no receipt: {json.dumps(refused.get('detail'))}"
            )
    problems = report(receipts, arguments.commitment)
    for problem in problems:
        print(f"DOES NOT HOLD: {problem}")
    if not problems:
        one = len(receipts) == 1
        print("The round is as it was committed." if one else "The rounds are as they were committed.")
    return 1 if problems else 0


def read(name: str) -> Any:
    """The JSON of a file, or of standard input.  OSError, ValueError or RecursionError if there is none."""
    with os.fdopen(0, "rb", closefd=False) if name == "-" else Path(name).open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError("it is larger than 1 MiB")
    return json.loads(content.decode("utf-8"), object_pairs_hook=each_once, parse_constant=no_number)


def each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, each of which must be there once: a second would hide the first."""
    for name, times in Counter(name for name, _ in members).items():
        if times > 1:
            raise ValueError(f"member {json.dumps(name)} is there {times} times")
    return dict(members)


def no_number(name: str) -> None:
    """NaN and the infinities, which Python would read, are no JSON."""
    raise ValueError(f"{name} is no number")


def report(receipts: list[Any], noted: str | None) -> list[str]:
    """Print what was checked of each receipt and of their chain; returns what does not hold."""
    problems = []
    for place, receipt in enumerate(receipts, start=1):
        checks = verify(receipt, noted)
        print(f"Receipt {place}{': ' + title(receipt) if len(checks) > 1 else ''}")
        for words, found in checks.items():
            print(f"  {'DOES NOT HOLD' if found else 'holds':<15}{words}")
            problems += [f"receipt {place}: {problem}" for problem in found]
    if noted is None:
        print("Not compared: the commitment with one noted before staking. None was given as --commitment.")
    if len(receipts) > 1 and not any(form_problems(receipt) for receipt in receipts):
        found = chain_problems(receipts)
        words = "the commitments follow one another without a gap"
        print(f"Chain\n  {'DOES NOT HOLD' if found else 'holds':<15}{words}")
        problems += found
    return problems


def title(receipt: dict[str, Any]) -> str:
    """What a receipt is about, with the cards that its seeds give."""
    number, state = receipt["commitment"]["number"], receipt["state"]
    about = f"{receipt['game']}, number {number}, round {receipt['round_id']}, {state}"
    if state == "expired":
        return f"{about}\n  nothing was dealt"
    player, dealer = cards(deal_index(child_words(receipt))[0])
    return f"{about}\n  player {' '.join(player)}, dealer {' '.join(dealer)}"


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left to say has nowhere to go
        print(f"cannot print what was found ({error.strerror})", file=sys.stderr)
        status = 2
    sys.exit(status)
