"""The two verifiers of a dealt round, on receipts that were made here, and on everything that can be wrong with one."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as BrowserError

from casino_brag.audit.notes import Checkpoint, SigningKey, sign
from casino_brag.audit.tree import inclusion_proof, root_hash
from casino_brag.rng import seeds
from casino_brag.rng.deal import unrank
from casino_brag.rng.hmac_drbg import HmacDrbg
from tests.chromium import run_in, window

CHECKOUT = Path(__file__).parents[2]
VERIFICATION = CHECKOUT / "verification"
RECEIPTS = CHECKOUT / "tests" / "data" / "receipts.json"

Receipt = dict[str, Any]
_spec = importlib.util.spec_from_file_location("verify_round", VERIFICATION / "verify_round.py")
assert _spec is not None
assert _spec.loader is not None
verify_round = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(verify_round)


# Receipts, made by what the verifiers do not know: the package's generator and shuffle, and another canonical JSON

DEALS = 14_658_134_400
LIMIT = 2**64 - 2**64 % DEALS
DEALT = ("client_seed", "client_seeds", "deal_index", "discards", "player_cards", "dealer_cards")
TYPES = {"settled": "round.settled", "voided": "round.voided", "expired": "commitment.expired"}
ABOUT = (
    "Receipts of rounds that were never played, made by tests/verification/test_verify_round.py from seeds that are"
    " hashes of their names. `chain` names those of one series. `words` says which deal a row of words gives; null"
    " where there is none."
)


def lp(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def card_names(index: int) -> list[str]:
    return ["23456789TJQKA"[card // 4] + "cdhs"[card % 4] for card in unrank(index)]


def drawn(words: Iterator[int]) -> dict[str, Any]:
    """The deal of the first word that is in range, of 64 at the most."""
    for discards in range(64):
        word = next(words)
        if word < LIMIT:
            names = card_names(word % DEALS)
            return {
                "deal_index": word % DEALS,
                "discards": discards,
                "player_cards": names[:3],
                "dealer_cards": names[3:],
            }
    return dict.fromkeys(DEALT[2:])


def receipt_of(
    name: str,
    state: str = "settled",
    *,
    number: int = 7,
    previous: str | None = sha256(b"the one before").hexdigest(),
    game: str = "three-card-brag",
    client_seed: str | None = None,
    client_seeds: str = "allowed",
    reason: str | None = None,
) -> Receipt:
    """A valid receipt whose secrets follow from its name."""
    material = {
        part: sha256(f"{name}, {part}".encode()).digest() for part in ("round", "seed", "more seed", "rules")
    }
    round_id = UUID(bytes=material["round"][:16], version=4)
    seed, rules = material["seed"] + material["more seed"][:16], material["rules"]
    before = bytes.fromhex(previous or "")
    committed = lp(
        b"casino-brag commitment 1", round_id.bytes, rules, number.to_bytes(8, "big"), before, seed
    )
    receipt: Receipt = {
        "protocol": "casino-brag-deal-1",
        "round_id": str(round_id),
        "state": state,
        "game": game,
        "rules_digest": rules.hex(),
        "rng_digest": sha256(b"the module that drew the seed").hexdigest(),
        "commitment": {"number": number, "value": sha256(committed).hexdigest(), "previous": previous},
        "seed": seed.hex(),
    }
    if state != "expired":
        own = b"" if client_seed is None else sha256(client_seed.encode()).digest()
        child = HmacDrbg(seed[:32], seed[32:], lp(b"casino-brag deal 1", round_id.bytes, rules, own))
        words = (int.from_bytes(child.generate(8), "big") for _ in repeat(None))
        receipt |= {"client_seed": client_seed, "client_seeds": client_seeds, **drawn(words)}
    told = {
        key: value
        for key, value in receipt.items()
        if key not in ("protocol", "round_id", "state", "rules_digest")
    }
    played = {"decision": "play", "result": "player", "paytable_version": 3, "totals": {"net_minor": 100}}
    entry = {
        "entry_id": str(UUID(bytes=material["round"][16:], version=4)),
        "type": TYPES[state],
        "occurred_at": "2026-03-01T20:15:00.123456Z",
        "actor": "system:closing" if reason is None else "operator:hall-one",
        "authoriser": None,
        "subjects": {
            "operator_id": str(UUID(int=1)),
            "player_id": str(UUID(int=2)),
            "round_id": str(round_id),
        },
        "reason": reason,
        "before": None,
        "after": None,
        "payload": told | {"paytable_digest": rules.hex()} | (played if state == "settled" else {}),
    }
    return with_entry(receipt, entry)


def with_entry(receipt: Receipt, entry: Any) -> Receipt:
    """The receipt with this entry, or the text of one, and the hash that belongs to it."""
    text = entry if isinstance(entry, str) else rfc8785.dumps(entry).decode()
    return receipt | {"audit": {"leaf_hash": sha256(b"\0" + text.encode()).hexdigest(), "entry": text}}


def made() -> dict[str, Any]:
    """What the file of receipts holds."""
    first = receipt_of("first", number=1, previous=None)
    second = receipt_of(
        "second", number=2, previous=first["commitment"]["value"], client_seed=r'ten"of\clubs'
    )
    third = receipt_of("third", "expired", number=3, previous=second["commitment"]["value"])
    alphabet = "".join(map(chr, range(ord("!"), ord("~") + 1)))
    return {
        "about": ABOUT,
        "chain": ["first", "second", "third"],
        "receipts": {
            "first": first,
            "second": second,
            "third": third,
            "longest client seed": receipt_of("longest client seed", client_seed=(alphabet * 2)[:128]),
            "client seeds off": receipt_of("client seeds off", game="double-play-brag", client_seeds="off"),
            "voided": receipt_of(
                "voided", "voided", client_seed="7", reason="Störung am Tisch 4 – 🂡 zurück\n"
            ),
        },
        "words": [
            {"words": [str(word) for word in words], **drawn(iter(words))}
            for words in (
                [0],
                [DEALS - 1],
                [DEALS],
                [LIMIT - 1],
                [LIMIT, 1],
                [2**64 - 1, LIMIT, LIMIT - 2],
                [2**64 - 1] * 63 + [12_345_678_901],
                [2**64 - 1] * 64,
            )
        ],
    }


VECTORS = made()
VALID: dict[str, Receipt] = VECTORS["receipts"]
CHAIN: list[Receipt] = [VALID[name] for name in VECTORS["chain"]]


def test_the_file_of_receipts_is_what_is_made_here() -> None:
    assert json.loads(RECEIPTS.read_text("utf-8")) == VECTORS


# Both verifiers


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page on a server that has the module, and nothing else that it could import."""
    directory = tmp_path_factory.mktemp("served")
    shutil.copy(VERIFICATION / "verify_round.mjs", directory)
    (directory / "index.html").write_text('<!doctype html><link rel="icon" href="data:,">', encoding="utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, window(browser) as page:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            yield page
        finally:
            server.shutdown()
            serving.join()


VERIFY_ALL = """async (texts, commitment) => {
    const { verifyRound } = await import("/verify_round.mjs");
    return Promise.all(texts.map((text) => verifyRound(JSON.parse(text), { commitment })));
}"""
VERIFY_CHAINS = """async (chains) => {
    const { verifyChain } = await import("/verify_round.mjs");
    return Promise.all(chains.map(verifyChain));
}"""


def both(page: Page, receipts: list[Any], noted: str | None = None) -> list[list[str]]:
    """The problems of each receipt, in which both verifiers agree."""
    found = [list(chain.from_iterable(verify_round.verify(receipt, noted).values())) for receipt in receipts]
    texts = [json.dumps(receipt) for receipt in receipts]
    answers = run_in(page, VERIFY_ALL, texts, *([] if noted is None else [noted]))
    assert [sorted(answer["problems"]) for answer in answers] == [sorted(problems) for problems in found]
    assert [answer["holds"] for answer in answers] == [not problems for problems in found]
    return found


def test_every_receipt_holds(page: Page) -> None:
    assert both(page, list(VALID.values())) == [[]] * len(VALID)
    answers = run_in(page, VERIFY_ALL, [json.dumps(receipt) for receipt in VALID.values()])
    for answer, receipt in zip(answers, VALID.values(), strict=True):
        cards = {who: receipt.get(f"{who}_cards", []) for who in ("player", "dealer")}
        assert answer["cards"] == cards


def test_a_row_of_words_gives_its_deal(page: Page) -> None:
    in_browser = """async (row) => {
        const { dealIndex, cards } = await import("/verify_round.mjs");
        const [index, discards] = await dealIndex(row.map(BigInt));
        return [index, discards, cards(index)];
    }"""
    for row in VECTORS["words"]:
        words = [int(word) for word in row["words"]]
        if row["deal_index"] is None:
            with pytest.raises(ValueError, match="64 words in a row"):
                verify_round.deal_index(words)
            with pytest.raises(BrowserError, match="64 words in a row"):
                run_in(page, in_browser, row["words"])
            continue
        cards = {"player": row["player_cards"], "dealer": row["dealer_cards"]}
        assert run_in(page, in_browser, row["words"]) == [row["deal_index"], row["discards"], cards]
        assert verify_round.deal_index(words) == (row["deal_index"], row["discards"])
        assert verify_round.cards(row["deal_index"]) == (row["player_cards"], row["dealer_cards"])


SEEDS = st.binary(min_size=seeds.SEED_BYTES, max_size=seeds.SEED_BYTES)
HASHES = st.binary(min_size=32, max_size=32)
CLIENT_SEEDS = st.none() | st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128
)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    round_id=st.uuids(),
    rules=HASHES,
    number=st.integers(1, 2**53 - 1),
    previous=HASHES,
    client_seed=CLIENT_SEEDS,
)
def test_the_package_commits_and_deals_as_both_verifiers_check(
    page: Page,
    seed: bytes,
    round_id: UUID,
    rules: bytes,
    number: int,
    previous: bytes,
    client_seed: str | None,
) -> None:
    before = None if number == 1 else previous
    value = seeds.commitment_value(round_id, rules.hex(), number, before, seed)
    draw = seeds.deal(seed, round_id, rules.hex(), client_seed)
    names = card_names(draw.index)
    receipt = VALID["first"] | {
        "protocol": seeds.PROTOCOL,
        "round_id": str(round_id),
        "rules_digest": rules.hex(),
        "commitment": {"number": number, "value": value.hex(), "previous": before and before.hex()},
        "seed": seed.hex(),
        "client_seed": client_seed,
        "client_seeds": "allowed",
        "deal_index": draw.index,
        "discards": draw.discards,
        "player_cards": names[:3],
        "dealer_cards": names[3:],
    }
    entry = json.loads(receipt["audit"]["entry"])
    entry["subjects"]["round_id"] = receipt["round_id"]
    entry["payload"] |= {name: receipt[name] for name in ("commitment", "seed", *DEALT)}
    entry["payload"]["paytable_digest"] = receipt["rules_digest"]
    assert both(page, [with_entry(receipt, entry)]) == [[]]


# What is wrong with a receipt


def places(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every value of a document, objects and lists included."""
    if way:
        yield way
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*way, name))


def changed(document: Any, way: tuple[str | int, ...], value: Any = ...) -> Any:
    """A copy with another value there, or with none."""
    copy = deepcopy(document)
    table = copy
    for step in way[:-1]:
        table = table[step]
    if value is ...:
        del table[way[-1]]
    else:
        table[way[-1]] = value
    return copy


def others(value: Any) -> Iterator[Any]:
    """Other values than this one, near and far."""
    yield from (None, True, 0, 1, -1, 0.5, 2**53, "", "another", [], {}, [value], {"value": value})
    if isinstance(value, str):
        for place in {0, len(value) // 2, len(value) - 1} if value else ():
            yield value[:place] + ("1" if value[place] == "0" else "0") + value[place + 1 :]
        yield from (value.upper(), value[:-1], f" {value}")
        yield from (value + more for more in ("0", "\n", "\0", "\ud83c"))
        yield from (
            "As",
            "2c",
            "Td",
            "1s",
            "expired",
            "settled",
            "voided",
            "off",
            "allowed",
            "double-play-brag",
        )
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (value + 1, value - 1, -value - 1, value + 0.5, str(value), 10**400)
    elif isinstance(value, list):
        yield from (value[::-1], value[1:], [*value[1:], value[0]], [*value[:2], value[0]], [*value, "2c"])
    elif isinstance(value, dict):
        yield {**value, "more": None}


def tampered(receipt: Receipt) -> Iterator[tuple[str, Receipt]]:
    """The receipt with every single value changed in many ways, taken away, and with more than there is."""
    for way in places(receipt):
        label = ".".join(map(str, way))
        value: Any = receipt
        for step in way:
            value = value[step]
        yield f"{label} taken away", changed(receipt, way)
        for other in others(value):
            if type(other) is not type(value) or other != value:
                yield f"{label} = {other!r:.60}", changed(receipt, way, other)
    for name in ("Seed", "commitment.number", "__proto__", "constructor", "\x1b[2J\x7fé\ud800"):
        yield f"more: {name!r}", receipt | {name: {}}
    if "deal_index" in receipt:
        swapped = {"player_cards": receipt["dealer_cards"], "dealer_cards": receipt["player_cards"]}
        yield "hands swapped", receipt | swapped
    else:
        yield "dealt after all", receipt | {name: VALID["first"][name] for name in DEALT}


@pytest.mark.parametrize("name", VALID)
def test_no_single_value_of_a_receipt_can_be_changed_unnoticed(page: Page, name: str) -> None:
    labels, receipts = zip(*tampered(VALID[name]), strict=True)
    assert len(labels) > 300
    found = both(page, list(receipts))
    assert [label for label, problems in zip(labels, found, strict=True) if not problems] == []


@pytest.mark.parametrize("name", VALID)
def test_an_entry_that_says_something_else_is_found_though_its_hash_fits(page: Page, name: str) -> None:
    receipt = VALID[name]
    entry = json.loads(receipt["audit"]["entry"])
    told = ("game", "paytable_digest", "rng_digest", "commitment", "seed", *DEALT)
    bound: dict[tuple[str, ...], str]
    bound = {("payload", member): f"payload.{member}" for member in told if member in entry["payload"]}
    bound |= {("type",): "type", ("subjects", "round_id"): "subjects.round_id"}
    receipts, expected = [], []
    for way in places(entry):
        label = next((label for known, label in bound.items() if way[: len(known)] == known), None)
        if label is None:
            continue
        value = entry
        for step in way:
            value = value[step]
        altered: list[Any] = [
            f"{value}0" if isinstance(value, str) else 12,
            None if value is not None else "",
            {},
            [],
        ]
        for copy in (changed(entry, way), *(changed(entry, way, other) for other in altered)):
            receipts.append(with_entry(receipt, copy))
            expected.append([f"audit.entry: {label} is not what the receipt says"])
    assert len(receipts) > 40
    assert both(page, receipts) == expected


def test_an_entry_without_its_parts_is_found(page: Page) -> None:
    receipt = VALID["voided"]
    entry = json.loads(receipt["audit"]["entry"])
    none: list[Any] = [None, 1, "text", [entry], {}, {"payload": []}]
    receipts = [with_entry(receipt, other) for other in none]
    receipts += [with_entry(receipt, changed(entry, (part,))) for part in ("type", "subjects", "payload")]
    assert all(both(page, receipts))


def test_an_expired_commitment_whose_entry_tells_of_a_deal_is_found(page: Page) -> None:
    receipt = VALID["third"]
    entry = json.loads(receipt["audit"]["entry"])
    receipts = [with_entry(receipt, changed(entry, ("payload", name), None)) for name in DEALT]
    expected = [[f"audit.entry: payload.{name} is not what the receipt says"] for name in DEALT]
    assert both(page, receipts) == expected


def test_an_entry_that_can_be_read_in_two_ways_is_found(page: Page) -> None:
    receipt = VALID["second"]
    text = receipt["audit"]["entry"]
    deep = "[" * 32 + "]" * 32
    others = [
        f" {text}",
        f"{text}\n",
        text.replace(":", ": ", 1),
        text.replace('"actor":', '"actor":"somebody","actor":', 1),
        text.replace('"after":null', '"zafter":null'),
        text.replace('"after":null', '"after":1.0'),
        text.replace('"after":null', '"after":0.5'),
        text.replace('"after":null', '"after":-0'),
        text.replace('"after":null', '"after":1e2'),
        text.replace('"after":null', f'"after":{2**53}'),
        text.replace('"after":null', f'"after":{"9" * 5000}'),
        text.replace('"after":null', '"after":NaN'),
        text.replace('"after":null', r'"after":"\ud800"'),
        text.replace('"after":null', r'"after":"\u0041"'),
        text.replace('"after":null', f'"after":{deep}'),
        text.replace('"after":null', f'"after":{"[" * 100_000}'),
        text.replace('"after":null', f'"after":{"[" * 20_000}{"]" * 20_000}'),
        text[:-1],
        "",
    ]
    assert all(other != text for other in others)
    expected = "audit.entry is not canonical JSON (RFC 8785) of texts and whole numbers"
    assert both(page, [with_entry(receipt, other) for other in others]) == [[expected]] * len(others)


def test_an_entry_may_say_more_than_the_receipt(page: Page) -> None:
    receipt = VALID["voided"]
    entry = json.loads(receipt["audit"]["entry"])
    names = ["\ue000", "🂡", "é", "\x00", "\x7f", "\u2028", '"\\/\b\f\n\r\t', "10", "9", "", "__proto__"]
    entry["after"] = json.loads("[" * 31 + "]" * 31)
    entry["payload"]["more"] = {name: [name, -(2**53) + 1, True, False, None, {}, []] for name in names}
    assert both(page, [with_entry(receipt, entry)]) == [[]]


def test_a_deal_that_the_seeds_do_not_give_is_found_though_entry_and_hash_fit(page: Page) -> None:
    receipt, other = VALID["first"], VALID["second"]
    entry = json.loads(receipt["audit"]["entry"])
    deal = {name: other[name] for name in DEALT[2:]}
    entry["payload"] |= deal
    (problems,) = both(page, [with_entry(receipt | deal, entry)])
    assert [problem.partition(":")[0] for problem in problems] == [
        "deal_index",
        "player_cards",
        "dealer_cards",
    ]
    assert problems[1] == (
        f"player_cards: the seeds give {json.dumps(receipt['player_cards'], separators=(',', ':'))},"
        f" the receipt says {json.dumps(other['player_cards'], separators=(',', ':'))}"
    )


def test_a_client_seed_that_was_not_allowed_is_found(page: Page) -> None:
    receipt = receipt_of("refused", client_seed="mine", client_seeds="off")
    assert both(page, [receipt]) == [["client_seed is given, but client_seeds is off"]]


def test_only_the_first_commitment_has_none_before_it(page: Page) -> None:
    receipts = [receipt_of("a", number=1), receipt_of("b", number=2, previous=None)]
    expected = ["commitment.previous must be null for number 1, and for no other"]
    assert both(page, receipts) == [expected, expected]


@pytest.mark.parametrize("member", ["state", "game", "rng_digest", "client_seeds"])
def test_four_members_rest_on_the_entry_alone_so_that_the_log_must_be_asked(page: Page, member: str) -> None:
    """What README.md says of them: whoever changes one in the entry too, and its hash, is found by the log only."""
    receipt = VALID["first"]
    others = {"state": "voided", "game": "double-play-brag", "rng_digest": "0" * 64, "client_seeds": "off"}
    entry = json.loads(receipt["audit"]["entry"])
    if member == "state":
        entry["type"] = "round.voided"
    else:
        entry["payload"][member] = others[member]
    assert both(page, [with_entry(receipt | {member: others[member]}, entry)]) == [[]]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**53 - 2, 2**53 + 2)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["As", "settled", "expired", "0" * 64, "f" * 96]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(), name=st.sampled_from(sorted(VALID)), values=st.lists(JSON_VALUES, min_size=1, max_size=3)
)
def test_no_receipt_is_too_strange_for_either(
    page: Page, data: st.DataObject, name: str, values: list[Any]
) -> None:
    receipt = VALID[name]
    for value in values:
        way = data.draw(st.sampled_from(sorted(places(receipt), key=repr)))
        receipt = changed(receipt, way, value)
    both(page, [receipt, values[0]])


# Beforehand, and one after the other


def test_the_commitment_that_was_noted_is_compared(page: Page) -> None:
    receipt = VALID["second"]
    value = receipt["commitment"]["value"]
    for noted in (value, value.upper()):
        assert run_in(page, VERIFY_ALL, [json.dumps(receipt)], noted)[0]["holds"]
    other = VALID["first"]["commitment"]["value"]
    assert both(page, [receipt], other) == [["commitment.value is not the one that was noted before staking"]]


@pytest.mark.parametrize("noted", ["", "0" * 63, "0" * 64 + "\n", "g" * 64, None, 5])
def test_what_cannot_have_been_noted_is_refused_in_the_browser(page: Page, noted: Any) -> None:
    with pytest.raises(BrowserError, match="TypeError: the value of a commitment has 64 hexadecimal digits"):
        run_in(page, VERIFY_ALL, [json.dumps(VALID["first"])], noted)


def test_a_chain_is_checked_in_any_order_and_every_break_is_named(page: Page) -> None:
    first, second, third = CHAIN
    off = VALID["client seeds off"]
    cases: list[tuple[list[Receipt], list[str]]] = [
        ([first, second, third], []),
        ([third, first, second], []),
        ([second, third], []),
        ([second], []),
        ([first, third], ["chain: number 2 is missing (GET /v1/commitments lists it)"]),
        ([first, second, second], ["chain: number 2 is there twice"]),
        (
            [first, receipt_of("another", number=2), third],
            [f"chain: number {n} does not follow number {n - 1}" for n in (2, 3)],
        ),
        (
            [third, off],
            [
                "chain: the receipts are of different games, and each game has a chain of its own",
                "chain: number 4 is missing (GET /v1/commitments lists it)",
            ],
        ),
        (
            [first, second | {"rng_digest": "0" * 64}],
            ["receipt 2: audit.entry: payload.rng_digest is not what the receipt says"],
        ),
        (
            [third, first | {"protocol": "x"}],
            ['receipt 2: protocol is not of its form: "casino-brag-deal-1"'],
        ),
    ]
    answers = run_in(page, VERIFY_CHAINS, [receipts for receipts, _ in cases])
    for (receipts, expected), answer in zip(cases, answers, strict=True):
        assert answer == {"holds": not expected, "problems": expected}
        assert verify_round.report(receipts, None) == expected
    assert run_in(page, VERIFY_CHAINS, [[]]) == [{"holds": False, "problems": ["no receipt is given"]}]


# The log


KEY = SigningKey.generate("log.example")


def logged(receipt: Receipt, place: int, size: int) -> Receipt:
    """The receipt with its place in a log of so many entries."""
    leaves = [sha256(b"leaf %d" % number).digest() for number in range(size)]
    leaves[place] = bytes.fromhex(receipt["audit"]["leaf_hash"])

    def hashes(level: int, first: int, count: int) -> list[bytes]:
        assert level == 0
        return leaves[first : first + count]

    note = sign(Checkpoint("log.example", size, root_hash(hashes, size)), [KEY])
    return receipt | {
        "inclusion": {
            "leaf_index": place,
            "tree_size": size,
            "proof": [b64encode(beside).decode() for beside in inclusion_proof(hashes, place, size)],
            "checkpoint": note,
            "verifier_keys": [KEY.verifier.text()],
        }
    }


def test_a_receipt_that_shows_its_place_in_the_log_holds(page: Page) -> None:
    receipts = [
        logged(receipt, place, size)
        for size in (1, 2, 3, 7, 8, 100)
        for place in {0, size // 2, size - 1}
        for receipt in (VALID["first"], VALID["third"])
    ]
    assert both(page, receipts) == [[]] * len(receipts)
    assert both(page, [VALID["first"] | {"inclusion": None}]) == [[]]


def test_a_receipt_that_shows_a_wrong_place_in_the_log_does_not_hold(page: Page) -> None:
    true = logged(VALID["first"], 4, 7)
    inclusion = true["inclusion"]
    changes: list[dict[str, Any]] = [
        {"leaf_index": 5},
        {"leaf_index": 7},
        {"leaf_index": 2**53 - 1},
        {"leaf_index": -1},
        {"leaf_index": "4"},
        {"tree_size": 8},
        {"tree_size": 0},
        {"proof": inclusion["proof"][1:]},
        {"proof": [*inclusion["proof"], inclusion["proof"][0]]},
        {"proof": inclusion["proof"][::-1]},
        {"proof": ["AAAA"]},
        {"proof": None},
        {"checkpoint": ""},
        {"checkpoint": inclusion["checkpoint"].replace("\n7\n", "\n8\n")},
        {"checkpoint": logged(VALID["second"], 4, 7)["inclusion"]["checkpoint"]},
        {"verifier_keys": [1]},
        {"more": 1},
    ]
    wrong = [true | {"inclusion": inclusion | change} for change in changes]
    wrong += [true | {"inclusion": value} for value in ({}, [], "", 0, False)]
    for receipt, problems in zip(wrong, both(page, wrong), strict=True):
        assert problems, receipt["inclusion"]
        assert all("inclusion" in problem for problem in problems)


# The command


def run(*arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a player has it: one file, and a Python to which nothing was installed."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", VERIFICATION / "verify_round.py", *arguments],
        check=False,
        env={},
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        timeout=60,
    )
    assert b"Traceback" not in done.stderr
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("ascii"), done.stderr.decode("utf-8")
    )


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, str]:
    """The paths of the valid receipts."""
    paths = {}
    for name, receipt in VALID.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(receipt, indent=2), encoding="utf-8")
        paths[name] = str(path)
    return paths


def test_the_command_says_what_it_checked_and_that_it_holds(saved: dict[str, str]) -> None:
    receipt = VALID["first"]
    done = run(saved["first"], "--commitment", receipt["commitment"]["value"].upper())
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"Receipt 1: three-card-brag, number 1, round {receipt['round_id']}, settled",
        f"  player {' '.join(receipt['player_cards'])}, dealer {' '.join(receipt['dealer_cards'])}",
        "  holds          every member is there, in its form, and no other",
        "  holds          the commitment is the hash of this round, these rules and this seed",
        "  holds          the commitment is the one that was noted before staking",
        "  holds          both seeds give this deal",
        "  holds          the leaf hash is that of the audit entry",
        "  holds          the audit entry says what the receipt says",
        "The round is as it was committed.",
    ]


def test_the_command_says_when_no_commitment_was_compared(saved: dict[str, str]) -> None:
    done = run("-", given=Path(saved["third"]).read_bytes())
    assert done.returncode == 0
    assert "expired\n  nothing was dealt\n" in done.stdout
    assert done.stdout.endswith(
        "Not compared: the commitment with one noted before staking. None was given as --commitment.\n"
        "The round is as it was committed.\n"
    )


def test_the_command_checks_a_chain(saved: dict[str, str]) -> None:
    done = run(saved["third"], saved["first"], saved["second"])
    assert done.returncode == 0
    assert "Chain\n  holds          the commitments follow one another without a gap\n" in done.stdout
    assert done.stdout.endswith("\nThe rounds are as they were committed.\n")
    done = run(saved["third"], saved["first"])
    assert done.returncode == 1
    assert "Chain\n  DOES NOT HOLD  the commitments follow one another without a gap\n" in done.stdout
    assert done.stdout.endswith(
        "\nDOES NOT HOLD: chain: number 2 is missing (GET /v1/commitments lists it)\n"
    )


def test_the_command_names_everything_that_does_not_hold(saved: dict[str, str]) -> None:
    other = VALID["second"]["commitment"]["value"]
    changed_receipt = VALID["first"] | {"rng_digest": "0" * 64}
    done = run("--commitment", other, "-", given=json.dumps(changed_receipt).encode())
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == [
        "DOES NOT HOLD: receipt 1: commitment.value is not the one that was noted before staking",
        "DOES NOT HOLD: receipt 1: audit.entry: payload.rng_digest is not what the receipt says",
    ]
    assert "  DOES NOT HOLD  the audit entry says what the receipt says\n" in done.stdout
    assert "as it was committed" not in done.stdout


@pytest.mark.parametrize(
    "content", ["null", "[]", '"text"', "7", "{}", '{"\\u001b[2J\\ud800": 1}', "[" * 90 + "]" * 90]
)
def test_what_is_no_receipt_does_not_hold(content: str) -> None:
    done = run("-", given=content.encode())
    assert done.returncode == 1
    assert "DOES NOT HOLD: receipt 1: " in done.stdout


TEXT = json.dumps(VALID["first"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (TEXT[:-1].encode(), "Expecting"),
        (TEXT.encode() * 2, "Extra data"),
        (TEXT.encode("utf-16"), "'utf-8' codec can't decode"),
        (TEXT.replace("expired", "\xe9").encode("latin-1") + b"\xff", "'utf-8' codec can't decode"),
        (TEXT.replace('"seed"', '"seed": "", "seed"', 1).encode(), 'member "seed" is there 2 times'),
        (TEXT.replace("{", '{"more": NaN, ', 1).encode(), "NaN is no number"),
        (b"-Infinity", "-Infinity is no number"),
        (b"[" * 200_000, "recursion"),
        (b'{"a":' * 150_000, "recursion"),
        (b"9" * 5000, "digits"),
        (b" " * (1 << 20) + TEXT.encode(), "it is larger than 1 MiB"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_to_do(content: bytes, reason: str) -> None:
    done = run("-", given=content)
    assert (done.returncode, done.stdout) == (2, "")
    assert "- is not the JSON of a receipt" in done.stderr
    assert reason in done.stderr
    assert "save what GET /v1/rounds/{id}/proof answers as it is, one round a file" in done.stderr


def test_a_mistaken_command_is_told_what_to_do(tmp_path: Path, saved: dict[str, str]) -> None:
    for arguments, told in (
        ([], "the following arguments are required: proof.json"),
        (
            [str(tmp_path / "none.json")],
            "(No such file or directory): give the path of a saved receipt, or -",
        ),
        ([str(tmp_path)], "(Is a directory): give the path of a saved receipt, or -"),
        (
            [saved["first"], "--commitment", "0" * 63],
            "--commitment has 64 hexadecimal digits: give the whole value",
        ),
        (
            [saved["first"], "--commitment", ""],
            "--commitment has 64 hexadecimal digits: give the whole value",
        ),
        (
            [saved["first"], saved["second"], "--commitment", "0" * 64],
            "--commitment is that of one round: give one receipt with it",
        ),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr


def test_the_command_explains_itself() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "give several of one game only, that one player played for one kind of money" in done.stdout
