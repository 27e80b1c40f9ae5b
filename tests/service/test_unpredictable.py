"""Before the decision no card can be worked out from anything that leaves, is logged or is stored.

The search plays a thief who has everything but the seal's key: a dump of all tables, both logs, every answer.  It
tries whatever a careless program might have used for a seed, and deals from it as the service does.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256, sha384, sha512
from itertools import chain, permutations
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import requests
from psycopg import sql
from psycopg.rows import dict_row

from casino_brag.config import parse_seal_keys
from casino_brag.db.embedded import Role
from casino_brag.game.cards import PACK
from casino_brag.rng import DEALS, commitment_value, rank, seeds
from casino_brag.rng.hmac_drbg import HmacDrbg
from casino_brag.sealing import SealBroken, Sealer
from tests.running import Player, RunningService, code_of

ROUNDS = 30
GAMES = ("three-card-brag", "double-play-brag")
HEX = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{2}){8,}(?![0-9a-f])")

HANDS = 52 * 51 * 50
"""Three cards in their order are guessed once in so many times."""

Row = dict[str, Any]


@dataclass
class Watched:
    """A player's second round, with everything that was said up to its decision, and what came of it."""

    player: Player
    name: str
    client_seed: str | None
    before: Row = field(default_factory=dict)
    """The proof of the player's first round, which is over: its seed is known."""
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    said: list[str] = field(default_factory=list)
    opened: Row = field(default_factory=dict)
    settled: Row = field(default_factory=dict)
    proof: Row = field(default_factory=dict)

    @property
    def round_id(self) -> UUID:
        return UUID(self.opened["round_id"])

    @property
    def rules_digest(self) -> str:
        return str(self.opened["paytable"]["digest"])

    @property
    def shown(self) -> tuple[int, ...]:
        """The player's three cards."""
        return numbers(self.opened["player_cards"])

    def hear(self, answer: requests.Response) -> requests.Response:
        head = [f"{answer.status_code}", *map(": ".join, answer.headers.items())]
        self.said.append("\n".join([*head, "", answer.text]))
        return answer

    def watch(self) -> None:
        """Plays a round to its end, opens the next one, and asks for all that can be asked about it."""
        named = {} if self.client_seed is None else {"client_seed": self.client_seed}
        first = self.player.played(**named)
        self.before = self.player.proof(first["round_id"]).json()
        self.hear(self.player.get("/v1/session"))
        opened = self.hear(self.player.open(100, 50, key=self.key, **named))
        assert opened.status_code == 201
        self.opened = opened.json()
        for path in (f"/v1/rounds/{self.round_id}", "/v1/session", f"/v1/rounds/{self.round_id}/proof"):
            self.hear(self.player.get(path))


@dataclass
class Dump:
    """What a thief carries off: every row of every table, both logs, and the files of the database."""

    rows: list[Row]
    texts: list[str]
    """The rows as they can be read."""
    log: str
    files: bytes

    def about(self, watched: Watched) -> list[Row]:
        """The rows that name the round or its player."""
        (player,) = (str(row["player_id"]) for row in self.rows if row.get("reference") == watched.name)
        named = (watched.opened["round_id"], player)
        return [
            row
            for row, text in zip(self.rows, self.texts, strict=True)
            if any(name in text for name in named)
        ]

    def of_table(self, watched: Watched, column: str) -> Row:
        """The round's row of the table that has this column."""
        (row,) = (row for row in self.rows if column in row and row["round_id"] == watched.round_id)
        return row


@dataclass
class Scene:
    """The service, its watched rounds, and what there was to steal before any of them was decided, and after."""

    service: RunningService
    rounds: list[Watched]
    before: Dump
    after: Dump


def numbers(cards: list[str]) -> tuple[int, ...]:
    return tuple(list(map(str, PACK)).index(card) for card in cards)


def text_of(value: object) -> str:
    """A column's value as text: bytes as hex, with what is readable in them."""
    if isinstance(value, bytes):
        return f"{value.hex()} {value.decode('latin-1')}"
    return str(value)


def dump(service: RunningService) -> Dump:
    with service.connect(Role.SUPERUSER) as conn:
        tables = conn.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert len(tables) >= 13
        reading = conn.cursor(row_factory=dict_row)
        rows = [
            row
            for table in tables
            for row in reading.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(*table)))
        ]
        conn.execute("CHECKPOINT")
        (table,) = conn.execute("SELECT pg_relation_filepath('commitment')").fetchone() or ("",)
    logs = (service.log_path, service.data_dir / "postgres.log")
    cluster = service.data_dir / "postgres"
    kept = ((cluster / table).parent, cluster / "pg_wal")
    files = [file for directory in kept for file in directory.rglob("*") if file.is_file()]
    log = "\n".join(log.read_text(errors="replace") for log in logs)
    return Dump(rows, [" ".join(map(text_of, row.values())) for row in rows], log, b"".join(map(read, files)))


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:  # a running database removes files
        return b""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with RunningService.start(tmp_path_factory.mktemp("unpredictable"), workers=2) as service:
        operator = service.operator()
        rounds = []
        for number in range(ROUNDS):
            name = secrets.token_hex(6)
            player = operator.player(player=name, game=GAMES[number % 2])
            rounds.append(Watched(player, name, None if number % 3 else f"words-of-{name}"))
            rounds[-1].watch()
        before = dump(service)
        for watched in rounds:
            watched.settled = watched.player.decide(watched.opened["round_id"], "play").json()
            watched.proof = watched.player.proof(watched.opened["round_id"]).json()
        yield Scene(service, rounds, before, dump(service))


# What might be a seed


def as_seeds(text: bytes) -> Iterator[bytes]:
    """The ways in which bytes are made into 48: cut, filled up, repeated, hashed."""
    yield text.ljust(48, b"\0")[:48]
    yield text[-48:].rjust(48, b"\0")
    if text:
        yield (text * 48)[:48]
    once = sha256(text).digest()
    yield once.ljust(48, b"\0")
    yield (once + sha256(once).digest())[:48]
    yield sha384(text).digest()
    yield sha512(text).digest()[:48]


def windows(text: bytes) -> Iterator[bytes]:
    return (text[start : start + 48] for start in range(len(text) - 47))


def numbers_as_seeds(values: Iterable[int]) -> Iterator[bytes]:
    for value in values:
        yield value.to_bytes(48, "big")
        yield value.to_bytes(48, "little")
        yield from as_seeds(str(value).encode())


def byte_strings(value: object) -> Iterator[bytes]:
    """A value's bytes, and those that stand in it in hexadecimal."""
    match value:
        case bytes():
            yield value
            yield from map(bytes.fromhex, HEX.findall(value.decode("latin-1")))
        case UUID():
            yield value.bytes
        case str():
            yield value.encode()
            yield from map(bytes.fromhex, HEX.findall(value))


def instants(dumped: Dump, watched: Watched) -> set[int]:
    """The times on record about a round, in seconds, milliseconds and microseconds, and a little around them."""
    times = {v for row in dumped.about(watched) for v in row.values() if isinstance(v, datetime)}
    micros = {int(time.timestamp()) * 10**6 + time.microsecond for time in times}
    millis = {micro // 1000 + near for micro in micros for near in range(-3, 4)}
    return micros | millis | {milli // 1000 for milli in millis}


def known(dumped: Dump, watched: Watched) -> list[bytes]:
    """What a deal might have been made of, the likeliest first: identifiers, digests, nonces, words."""
    commitment = dumped.of_table(watched, "sealed_seed")
    round_ = dumped.of_table(watched, "sealed_deal")
    sealed = [row.partition(b"\0")[2] for row in (commitment["sealed_seed"], round_["sealed_deal"])]
    session = dumped.of_table(watched, "sealed_deal")["session_id"]
    words = [watched.client_seed or "", watched.player.token, watched.key, watched.name]
    return [
        watched.round_id.bytes,
        commitment["player_id"].bytes,
        commitment["value"],
        bytes.fromhex(watched.before["seed"]),
        bytes.fromhex(watched.rules_digest),
        sealed[0][:12],
        sealed[0][12:],
        words[0].encode(),
        commitment["previous"],
        session.bytes,
        round_["account_id"].bytes,
        round_["operator_id"].bytes,
        commitment["paytable_version_id"].bytes,
        bytes.fromhex(commitment["rng_digest"]),
        sealed[1][:12],
        sealed[1][12:],
        sha256(words[0].encode()).digest(),
        commitment["number"].to_bytes(8, "big"),
        watched.round_id.bytes[:6],
        *(word.encode() for word in words[1:]),
    ]


def candidates(dumped: Dump, watched: Watched) -> Iterator[bytes]:
    """Every string of 48 bytes that the search deals from."""
    atoms = known(dumped, watched)
    found = {part for row in dumped.about(watched) for value in row.values() for part in byte_strings(value)}
    found |= {part for text in watched.said for part in byte_strings(text)}
    log = "\n".join(line for line in dumped.log.splitlines() if watched.opened["round_id"] in line)
    found |= {bytes.fromhex(part) for part in HEX.findall(log)}
    for text in found:
        yield from windows(text)
        yield from as_seeds(text)
    yield from numbers_as_seeds(chain(range(64), instants(dumped, watched)))
    for parts in chain(permutations(atoms, 2), permutations(atoms[:9], 3)):
        yield from as_seeds(b"".join(parts))


@dataclass
class Found:
    """What a search came to: how many seeds it dealt from, and those that gave the player's, or all six, cards."""

    tried: int
    players: int
    whole: list[bytes]


def search(watched: Watched, tried: Iterable[bytes], dealt: tuple[int, ...]) -> Found:
    """Deals from each candidate; `dealt` are the six cards that were dealt."""
    rest = DEALS // HANDS
    shown, whole = rank(dealt) // rest, rank(dealt)
    found, seen = Found(0, 0, []), set()
    for candidate in tried:
        if candidate in seen:
            continue
        seen.add(candidate)
        index = seeds.deal(candidate, watched.round_id, watched.rules_digest, watched.client_seed).index
        if index // rest == shown:
            found.players += 1
            if index == whole:
                found.whole.append(candidate)
    found.tried = len(seen)
    return found


def dealt_in(watched: Watched) -> tuple[int, ...]:
    return watched.shown + numbers(watched.settled["dealer_cards"])


def test_no_card_follows_from_anything_visible_before_the_decision(scene: Scene) -> None:
    tried = players = 0
    for watched in scene.rounds:
        found = search(watched, candidates(scene.before, watched), dealt_in(watched))
        assert found.whole == []
        tried, players = tried + found.tried, players + found.players
    assert tried > 8_000 * ROUNDS
    # The player's hand is met by chance now and then: so often less than once in 10^9 runs.
    assert players <= 10 + 5 * tried / HANDS


def test_the_same_search_finds_the_seed_when_it_is_revealed(scene: Scene) -> None:
    for watched in scene.rounds[:5]:
        revealed = bytes.fromhex(watched.proof["seed"])
        assert revealed not in candidates(scene.before, watched)
        assert revealed in candidates(scene.after, watched)
        found = search(watched, candidates(scene.after, watched), dealt_in(watched))
        assert found.whole == [revealed]
        assert found.players >= 1


@pytest.mark.parametrize("number", range(6))
def test_the_same_search_finds_a_seed_that_was_made_of_what_is_visible(scene: Scene, number: int) -> None:
    watched = scene.rounds[number]
    commitment = scene.before.of_table(watched, "sealed_seed")
    milliseconds = int(commitment["made_at"].timestamp() * 1000) + 2
    careless = [
        commitment["value"] + commitment["value"][:16],
        sha384(watched.round_id.bytes + commitment["player_id"].bytes).digest(),
        (bytes.fromhex(watched.before["seed"]) + watched.round_id.bytes)[-48:],
        commitment["sealed_seed"][-64:-16],
        sha512(
            commitment["value"] + (watched.client_seed or "").encode() + commitment["player_id"].bytes
        ).digest()[:48],
        sha384(str(milliseconds // 1000).encode()).digest(),
    ][number]
    dealt = seeds.deal(careless, watched.round_id, watched.rules_digest, watched.client_seed).cards
    assert careless in search(watched, candidates(scene.before, watched), dealt).whole


# What is kept


def test_no_seed_and_no_deal_stands_anywhere_in_clear_before_the_end(scene: Scene) -> None:
    answers = chain.from_iterable(watched.said for watched in scene.rounds)
    everything = "\n".join([*scene.before.texts, scene.before.log, *answers])
    assert scene.before.log.count('"/v1/rounds"') == 2 * ROUNDS
    for watched in scene.rounds:
        over, hidden = bytes.fromhex(watched.before["seed"]), bytes.fromhex(watched.proof["seed"])
        # Whatever finds the seed of the round before, in the same dump, does not find this one's.
        assert clear_in(everything, over, watched.before["deal_index"]) >= {"hex", "number"}
        assert clear_in(everything, hidden, watched.proof["deal_index"]) == set()
        assert over[:32] in scene.before.files
        assert hidden[:32] not in scene.before.files
        assert hidden.hex()[:64].encode() not in scene.before.files


def clear_in(text: str, seed: bytes, deal_index: int) -> set[str]:
    """The forms in which a seed or a deal can be read in a text."""
    forms = {
        "hex": seed.hex(),
        "entropy": seed.hex()[:64],
        "nonce": seed.hex()[64:],
        "capitals": seed.hex().upper(),
        "base64": base64.b64encode(seed).decode(),
        "for addresses": base64.urlsafe_b64encode(seed).decode(),
        "raw": seed.decode("latin-1"),
        "backwards": seed[::-1].hex(),
        "index, big end first": f"{deal_index:016x}",
        "index, little end first": deal_index.to_bytes(8, "little").hex(),
    }
    found = {name for name, form in forms.items() if form in text}
    alone = str(deal_index) in text and re.search(rf"(?<![0-9]){deal_index}(?![0-9])", text)
    return found | ({"number"} if alone else set())


def test_sealed_values_are_distinct_and_of_one_length(scene: Scene) -> None:
    for column in ("sealed_seed", "sealed_deal"):
        sealed = [row[column] for row in scene.after.rows if column in row]
        assert len(sealed) >= 2 * ROUNDS
        assert len(set(sealed)) == len(sealed)
        assert len({len(value) for value in sealed}) == 1
        nonces = {value.partition(b"\0")[2][:12] for value in sealed}
        assert len(nonces) == len(sealed)


def test_a_sealed_value_opens_for_its_own_round_only(scene: Scene) -> None:
    sealer = Sealer(parse_seal_keys((scene.service.data_dir / "seal.keys").read_text().strip()))
    for watched, other in zip(scene.rounds, [*scene.rounds[1:], scene.rounds[0]], strict=True):
        sealed = scene.before.of_table(watched, "sealed_seed")["sealed_seed"]
        assert sealer.open(sealed, context=f"seed of round {watched.round_id}").hex() == watched.proof["seed"]
        for context in (f"seed of round {other.round_id}", f"deal of round {watched.round_id}", ""):
            with pytest.raises(SealBroken):
                sealer.open(sealed, context=context)


def test_no_round_is_dealt_from_a_seed_that_was_moved_to_it(scene: Scene) -> None:
    """Whoever can write to the database cannot have a round dealt from a seed that has been revealed."""
    operator = scene.service.operator()
    players = [operator.player() for _ in range(2)]
    ours, seen = (player.next_commitment() for player in players)
    ours, theirs = ours["round_id"], seen["round_id"]
    with scene.service.connect(Role.SUPERUSER) as conn, conn.transaction():
        conn.execute("ALTER TABLE commitment DISABLE TRIGGER ALL")
        conn.execute(
            "UPDATE commitment SET sealed_seed = (SELECT sealed_seed FROM commitment WHERE round_id = %s)"
            " WHERE round_id = %s",
            [ours, theirs],
        )
        conn.execute("ALTER TABLE commitment ENABLE TRIGGER ALL")
    for named in ({}, {"commitment": seen["value"]}):
        refused = players[1].open(100, **named)
        assert code_of(refused) == "internal_error"
        assert "operator has to be told" in refused.json()["detail"]
    assert players[1].balance_minor() == 100_000
    assert theirs != ours
    assert players[0].open(100).json()["round_id"] == ours


# What comes next


def test_the_next_seed_does_not_follow_from_those_that_were_revealed(scene: Scene) -> None:
    for watched in scene.rounds:
        promised = watched.settled["next_commitment"]
        round_id, number = UUID(promised["round_id"]), promised["number"]
        previous = bytes.fromhex(watched.opened["commitment"]["value"])

        def is_it(
            seed: bytes,
            round_id: UUID = round_id,
            number: int = number,
            previous: bytes = previous,
            value: str = promised["value"],
            rules_digest: str = watched.rules_digest,
        ) -> bool:
            return commitment_value(round_id, rules_digest, number, previous, seed).hex() == value

        tried = set(following(watched, round_id))
        assert len(tried) > 500
        assert not any(map(is_it, tried))
        # The real one is recognised when it is known.
        played = watched.player.played()
        assert played["round_id"] == promised["round_id"]
        revealed = bytes.fromhex(watched.player.proof(played["round_id"]).json()["seed"])
        assert is_it(revealed)
        assert revealed not in tried


def following(watched: Watched, next_round: UUID) -> Iterator[bytes]:
    """What a generator without fresh entropy might give after the two seeds that were revealed."""
    older, newer = bytes.fromhex(watched.before["seed"]), bytes.fromhex(watched.proof["seed"])
    pairs = [a + b for a, b in permutations((older, newer, next_round.bytes, watched.round_id.bytes), 2)]
    differences = [(int.from_bytes(newer, "big") - int.from_bytes(older, "big")) % 2**384]
    for text in (older, newer, *pairs, bytes(x ^ y for x, y in zip(older, newer, strict=True))):
        yield from windows(text)
        yield from as_seeds(text)
    for step in chain(range(-40, 41), differences):
        for order in ("big", "little"):
            start = int.from_bytes(newer, order)
            yield ((start + step) % 2**384).to_bytes(48, order)
    for seed in (older, newer):
        for personalization in (b"", next_round.bytes, watched.round_id.bytes):
            generator = HmacDrbg(seed[:32], seed[32:], personalization)
            stream = generator.generate(256) + generator.generate(256, next_round.bytes)
            yield from windows(stream)
