"""A wallet in memory that follows the protocol, but for one fault that it is given."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from casino_brag.catalogue.signing import signature
from casino_brag.conformance.bench import Key, Subject
from casino_brag.conformance.security import SIGNED_HEADERS
from casino_brag.outbound import Unanswered, target
from casino_brag.wallet.currency import exponent

OPERATOR, PLAYER, FUNDS_MINOR = "acme", "p-1", 5_000
CURRENCIES = ("GBP", "JPY", "KWD", "XBT")
KEYS = {"k1": "first secret", "k2": "second secret"}
SUBJECT = Subject(
    "http://wallet.test/brag",
    OPERATOR,
    Key("k1", KEYS["k1"]),
    Key("k2", KEYS["k2"]),
    PLAYER,
    CURRENCIES,
    seconds=0.5,
)

NAMED: Final = ("amount_minor", "player", "currency", "round_id")
MEMBERS: Final = {*NAMED, "transaction_id", "game", "wager", "round_closed"}
PAUSE_SECONDS: Final = 0.01


class Fault(Enum):
    """What a wallet may do wrong; each is said by its name."""

    ODD_STAKES_ARE_ROUNDED = auto()
    CREDIT_ENDS_AT_THE_STAKE = auto()
    CREDIT_OF_ZERO_IS_REFUSED = auto()
    CLOSED_ROUND_IS_NOT_CREDITED = auto()
    ANSWERS_TELL_THE_BALANCE_BEFORE = auto()
    LAST_UNIT_IS_KEPT = auto()
    ZERO_IS_NOT_TOLD = auto()
    ROUND_HAS_ONE_DEBIT = auto()
    UNKNOWN_MEMBERS_ARE_REFUSED = auto()
    FEW_HUNDREDTHS_ARE_DROPPED = auto()
    TWO_DECIMALS_EVERYWHERE = auto()
    HUNDREDTHS_EVERYWHERE = auto()

    REPEATED_DEBIT_COUNTS = auto()
    REPEATED_DEBIT_IS_REFUSED = auto()
    REPEATED_CREDIT_COUNTS = auto()
    REPEAT_IS_KNOWN_BY_ITS_BYTES = auto()
    AMOUNT_IS_NOT_COMPARED = auto()
    PLAYER_IS_NOT_COMPARED = auto()
    CURRENCY_IS_NOT_COMPARED = auto()
    ROUND_IS_NOT_COMPARED = auto()
    DIRECTION_IS_NOT_COMPARED = auto()
    MISMATCH_IS_A_CONFLICT = auto()
    MISMATCH_IS_CARRIED_OUT = auto()
    IDS_ARE_LOOKED_UP_FIRST = auto()
    BALANCES_ARE_WRITTEN_BACK = auto()

    CANCEL_KEEPS_THE_MONEY = auto()
    CANCEL_RETURNS_AGAIN = auto()
    CANCEL_OF_AN_UNKNOWN_DEBIT_PAYS = auto()
    CANCEL_OF_AN_UNKNOWN_DEBIT_IS_HTTP_404 = auto()
    CANCEL_OF_AN_UNKNOWN_DEBIT_IS_FORGOTTEN = auto()
    CANCELLED_DEBIT_IS_CALLED_DONE = auto()
    REFUSED_DEBIT_IS_GIVEN_BACK = auto()
    CREDIT_CAN_BE_CANCELLED = auto()
    CANCEL_IS_OF_THE_ROUND = auto()

    OVERDRAFT_OF_TEN = auto()
    AMOUNTS_HAVE_32_BITS = auto()
    DEBIT_OF_ZERO_IS_DONE = auto()
    NEGATIVE_DEBIT_IS_DONE = auto()
    NEGATIVE_CREDIT_IS_DONE = auto()
    FRACTION_IS_ROUNDED = auto()
    TEXT_IS_CONVERTED = auto()
    TRUE_IS_ONE = auto()
    ABSENT_AMOUNT_IS_ONE = auto()
    MEMBER_GIVEN_TWICE_IS_ADDED = auto()
    MALFORMED_BODY_IS_HTTP_500 = auto()
    MALFORMED_BODY_COSTS_ONE = auto()
    EVERY_CURRENCY_IS_POUNDS = auto()
    EVERY_PLAYER_IS_FUNDED = auto()

    SIGNATURE_IS_NOT_LOOKED_AT = auto()
    SIGNATURE_IS_LOOKED_AT_TOO_LATE = auto()
    SIGNATURE_IS_COMPARED_IN_PART = auto()
    PATH_IS_NOT_SIGNED = auto()
    ABSENT_OPERATOR_IS_ASSUMED = auto()
    KEY_ID_IS_NOT_LOOKED_AT = auto()
    OPERATOR_IS_NOT_LOOKED_AT = auto()
    OLD_TIMESTAMP_IS_ACCEPTED = auto()
    FUTURE_TIMESTAMP_IS_ACCEPTED = auto()
    CLOCKS_MUST_AGREE = auto()
    NONCES_ARE_NOT_KEPT = auto()
    NONCES_ARE_KEPT_WITH_THEIR_SIGNATURE = auto()
    ONE_KEY_IS_LIVE = auto()

    STAKES_OF_ONE_ARE_ANSWERED_LATE = auto()


@dataclass
class Movement:
    """A debit or a credit that the wallet has heard of: as `asked`, and what it `moved`, at first."""

    direction: str
    asked: Mapping[str, Any]
    raw: bytes
    moved: int = 0
    refused: str | None = None
    cancelled: bool = False


class FaultyWallet:
    """Answers as `outbound.post` would; without a fault it is right."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.fault = fault
        self.money = {(PLAYER, currency): FUNDS_MINOR for currency in CURRENCIES}
        self.movements: dict[str, Movement] = {}
        self.nonces: set[str] = set()
        self.adding = threading.Lock()
        hasty = self.fault in (Fault.IDS_ARE_LOOKED_UP_FIRST, Fault.BALANCES_ARE_WRITTEN_BACK)
        self.one_at_a_time: AbstractContextManager[Any] = nullcontext() if hasty else threading.Lock()

    def __call__(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float
    ) -> tuple[int, bytes]:
        if self.fault is Fault.STAKES_OF_ONE_ARE_ANSWERED_LATE and b'"amount_minor": 1,' in body:
            raise Unanswered(f"{seconds:g} s were over", sent=True)
        with self.one_at_a_time:
            if not self._is_ours(target(url), body, headers):
                if self.fault is Fault.SIGNATURE_IS_LOOKED_AT_TOO_LATE:
                    self._answer(url.rpartition("/")[2], body)
                return 401, b"{}"
            try:
                answer = self._answer(url.rpartition("/")[2], body)
            except ValueError:
                if self.fault is Fault.MALFORMED_BODY_COSTS_ONE:
                    self.money[PLAYER, "GBP"] -= 1
                return 500 if self.fault is Fault.MALFORMED_BODY_IS_HTTP_500 else 422, b"{}"
        mismatch = answer.get("reason") == "transaction_mismatch"
        if mismatch and self.fault is Fault.MISMATCH_IS_A_CONFLICT:
            return 409, b"{}"
        if answer["status"] == "not_found" and self.fault is Fault.CANCEL_OF_AN_UNKNOWN_DEBIT_IS_HTTP_404:
            return 404, b"{}"
        return 200, json.dumps(answer).encode()

    def _answer(self, operation: str, body: bytes) -> dict[str, Any]:
        asked = self._read(operation, body)
        before = self.money.get(self._account(asked))
        answer = {
            "debit": self._debit,
            "credit": self._credit,
            "cancel": self._cancel,
            "balance": self._balance,
        }[operation](asked, body)
        if answer.get("reason") == "transaction_mismatch" and self.fault is Fault.MISMATCH_IS_CARRIED_OUT:
            self.money[PLAYER, "GBP"] += 1
        after = self.money.get(self._account(asked))
        early = self.fault is Fault.ANSWERS_TELL_THE_BALANCE_BEFORE and operation != "balance"
        told = before if early else after
        if told is None or (told == 0 and self.fault is Fault.ZERO_IS_NOT_TOLD):
            return answer
        return {**answer, "balance_minor": told}

    def _is_ours(self, path: str, body: bytes, headers: Mapping[str, str]) -> bool:
        fault = self.fault
        if fault is Fault.ABSENT_OPERATOR_IS_ASSUMED:
            headers = {"X-Operator": OPERATOR, **headers}
        if not all(name in headers for name in SIGNED_HEADERS):
            return False
        operator, key_id, timestamp, nonce, given = (headers[name] for name in SIGNED_HEADERS)
        secret = KEYS.get("k1" if fault is Fault.KEY_ID_IS_NOT_LOOKED_AT else key_id)
        if secret is None or (key_id == "k2" and fault is Fault.ONE_KEY_IS_LIVE):
            return False
        paths = [path]
        if fault is Fault.PATH_IS_NOT_SIGNED:
            paths = ["/brag/debit", "/brag/credit", "/brag/cancel", "/brag/balance"]
        right = [signature(secret, "POST", path, timestamp, nonce, body) for path in paths]
        if fault is Fault.SIGNATURE_IS_COMPARED_IN_PART and right[0].startswith(given):
            right = [given]
        return (
            (operator == OPERATOR or fault is Fault.OPERATOR_IS_NOT_LOOKED_AT)
            and (given in right or fault is Fault.SIGNATURE_IS_NOT_LOOKED_AT)
            and self._is_in_time(int(timestamp))
            and self._is_new(nonce, given)
        )

    def _is_in_time(self, timestamp: int) -> bool:
        late = time.time() - timestamp
        widest = 30 if self.fault is Fault.CLOCKS_MUST_AGREE else 300
        return (late <= widest or self.fault is Fault.OLD_TIMESTAMP_IS_ACCEPTED) and (
            late >= -widest or self.fault is Fault.FUTURE_TIMESTAMP_IS_ACCEPTED
        )

    def _is_new(self, nonce: str, given: str) -> bool:
        kept = nonce + given if self.fault is Fault.NONCES_ARE_KEPT_WITH_THEIR_SIGNATURE else nonce
        new = kept not in self.nonces or self.fault is Fault.NONCES_ARE_NOT_KEPT
        self.nonces.add(kept)
        return new

    def _read(self, operation: str, body: bytes) -> dict[str, Any]:
        """The body; ValueError when it is none of the protocol's."""
        asked = json.loads(body, object_pairs_hook=self._object)
        if not isinstance(asked, dict) or not isinstance(asked.get("player"), str):
            raise ValueError
        if operation == "balance":
            return asked
        if self.fault is Fault.UNKNOWN_MEMBERS_ARE_REFUSED and set(asked) - MEMBERS:
            raise ValueError
        if self.fault is Fault.ABSENT_AMOUNT_IS_ONE:
            asked.setdefault("amount_minor", 1)
        asked["amount_minor"] = self._amount(operation, asked.get("amount_minor"))
        return asked

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        if self.fault is Fault.MEMBER_GIVEN_TWICE_IS_ADDED and len(read) < len(pairs):
            read["amount_minor"] = sum(value for name, value in pairs if name == "amount_minor")
        return read

    def _amount(self, operation: str, given: Any) -> int:
        if self.fault is Fault.TEXT_IS_CONVERTED and isinstance(given, str):
            return int(given)
        if self.fault is Fault.TRUE_IS_ONE and isinstance(given, bool):
            return int(given)
        if self.fault is Fault.FRACTION_IS_ROUNDED and isinstance(given, float):
            return round(given)
        if type(given) is not int:
            raise ValueError
        if self.fault is Fault.AMOUNTS_HAVE_32_BITS:
            given = (given + 2**31) % 2**32 - 2**31
        below = {
            ("debit", Fault.NEGATIVE_DEBIT_IS_DONE): -1_000,
            ("debit", Fault.AMOUNTS_HAVE_32_BITS): -1_000,
            ("debit", Fault.DEBIT_OF_ZERO_IS_DONE): 0,
            ("credit", Fault.NEGATIVE_CREDIT_IS_DONE): -1_000,
        }
        least = below.get((operation, self.fault), 0 if operation == "credit" else 1)  # type: ignore[arg-type]
        if given < least:
            raise ValueError
        return int(given)

    def _account(self, asked: Mapping[str, Any]) -> tuple[str, str]:
        if self.fault is Fault.EVERY_CURRENCY_IS_POUNDS:
            return asked["player"], "GBP"
        return asked["player"], asked["currency"]

    def _unknown(self, asked: Mapping[str, Any]) -> str | None:
        player, currency = self._account(asked)
        if currency not in CURRENCIES:
            return "currency_unknown"
        if self.fault is Fault.EVERY_PLAYER_IS_FUNDED:
            self.money.setdefault((player, currency), FUNDS_MINOR)
        return None if (player, currency) in self.money else "player_unknown"

    def _kept(self, asked: Mapping[str, Any]) -> int:
        """What is moved of an amount."""
        amount: int = asked["amount_minor"]
        unit = 10 ** (exponent(asked["currency"]) or 0)
        if self.fault is Fault.ODD_STAKES_ARE_ROUNDED and asked["wager"] != "payout":
            return amount // 2 * 2
        if self.fault is Fault.FEW_HUNDREDTHS_ARE_DROPPED and unit == 100 and amount < 10:
            return 0
        if self.fault is Fault.TWO_DECIMALS_EVERYWHERE and unit > 100:
            return amount // (unit // 100) * (unit // 100)
        if self.fault is Fault.HUNDREDTHS_EVERYWHERE:
            return amount * unit // 100
        return amount

    def _balance(self, asked: Mapping[str, Any], _: bytes) -> dict[str, Any]:
        unknown = self._unknown(asked)
        return {"status": "refused", "reason": unknown} if unknown else {"status": "done"}

    def _debit(self, asked: Mapping[str, Any], raw: bytes) -> dict[str, Any]:
        known = self.movements.get(asked["transaction_id"])
        if known is not None:
            if known.cancelled and self.fault is not Fault.CANCELLED_DEBIT_IS_CALLED_DONE:
                return {"status": "refused", "reason": "cancelled"}
            if not self._is_same("debit", known, asked, raw):
                return {"status": "refused", "reason": "transaction_mismatch"}
            if self.fault is Fault.REPEATED_DEBIT_IS_REFUSED:
                return {"status": "refused", "reason": "transaction_mismatch"}
            if self.fault is not Fault.REPEATED_DEBIT_COUNTS:
                return {"status": "refused", "reason": known.refused} if known.refused else {"status": "done"}
        movement = Movement("debit", asked, raw, -self._kept(asked), self._hindrance(asked))
        if movement.refused is None:
            self._apply(movement)
        self.movements[asked["transaction_id"]] = movement
        return {"status": "refused", "reason": movement.refused} if movement.refused else {"status": "done"}

    def _hindrance(self, asked: Mapping[str, Any]) -> str | None:
        if unknown := self._unknown(asked):
            return unknown
        least = {Fault.LAST_UNIT_IS_KEPT: 1, Fault.OVERDRAFT_OF_TEN: -10}.get(self.fault, 0)  # type: ignore[arg-type]
        left = self.money[self._account(asked)] - asked["amount_minor"]
        return "insufficient_funds" if left < least else None

    def _credit(self, asked: Mapping[str, Any], raw: bytes) -> dict[str, Any]:
        if asked["amount_minor"] == 0 and self.fault is Fault.CREDIT_OF_ZERO_IS_REFUSED:
            return {"status": "refused", "reason": "amount_invalid"}
        known = self.movements.get(asked["transaction_id"])
        if known is not None:
            if not self._is_same("credit", known, asked, raw):
                return {"status": "refused", "reason": "transaction_mismatch"}
            if self.fault is not Fault.REPEATED_CREDIT_COUNTS:
                return {"status": "done"}
        if unknown := self._unknown(asked):
            return {"status": "refused", "reason": unknown}
        if self.fault is Fault.CLOSED_ROUND_IS_NOT_CREDITED and any(
            movement.direction == "credit" and movement.asked["round_id"] == asked["round_id"]
            for movement in self.movements.values()
        ):
            return {"status": "refused", "reason": "round_closed"}
        given = self._kept(asked)
        if self.fault is Fault.CREDIT_ENDS_AT_THE_STAKE:
            given = min(given, -sum(debit.moved for debit in self._debits_of(asked)))
        movement = Movement("credit", asked, raw, given)
        self._apply(movement)
        self.movements[asked["transaction_id"]] = movement
        return {"status": "done"}

    def _cancel(self, asked: Mapping[str, Any], raw: bytes) -> dict[str, Any]:
        known = self.movements.get(asked["transaction_id"])
        if known is None:
            tombstone = Movement("debit", asked, raw, cancelled=True)
            if self.fault is not Fault.CANCEL_OF_AN_UNKNOWN_DEBIT_IS_FORGOTTEN:
                self.movements[asked["transaction_id"]] = tombstone
            if self.fault is Fault.CANCEL_OF_AN_UNKNOWN_DEBIT_PAYS:
                self.money[self._account(asked)] += asked["amount_minor"]
            return {"status": "not_found"}
        credit_too = self.fault is Fault.CREDIT_CAN_BE_CANCELLED
        if not self._is_same(known.direction if credit_too else "debit", known, asked, raw):
            return {"status": "refused", "reason": "transaction_mismatch"}
        if known.refused and self.fault is not Fault.REFUSED_DEBIT_IS_GIVEN_BACK:
            return {"status": "not_found"}
        undone = [known]
        if self.fault is Fault.CANCEL_IS_OF_THE_ROUND:
            undone = self._debits_of(asked)
        for movement in undone:
            if not movement.cancelled or self.fault is Fault.CANCEL_RETURNS_AGAIN:
                if self.fault is not Fault.CANCEL_KEEPS_THE_MONEY:
                    self._apply(Movement("cancel", asked, raw, -movement.moved))
                movement.cancelled = True
        return {"status": "done"}

    def _debits_of(self, asked: Mapping[str, Any]) -> list[Movement]:
        return [
            movement
            for movement in self.movements.values()
            if movement.direction == "debit" and movement.asked["round_id"] == asked["round_id"]
        ]

    def _is_same(self, direction: str, known: Movement, asked: Mapping[str, Any], raw: bytes) -> bool:
        if self.fault is Fault.REPEAT_IS_KNOWN_BY_ITS_BYTES:
            return direction == known.direction and raw == known.raw
        left_out = {
            Fault.AMOUNT_IS_NOT_COMPARED: "amount_minor",
            Fault.PLAYER_IS_NOT_COMPARED: "player",
            Fault.CURRENCY_IS_NOT_COMPARED: "currency",
            Fault.ROUND_IS_NOT_COMPARED: "round_id",
        }.get(self.fault)  # type: ignore[arg-type]
        alike = all(known.asked[name] == asked[name] for name in NAMED if name != left_out)
        return alike and (direction == known.direction or self.fault is Fault.DIRECTION_IS_NOT_COMPARED)

    def _apply(self, movement: Movement) -> None:
        account = self._account(movement.asked)
        again = movement.direction == "debit" and self._debits_of(movement.asked)
        if again and self.fault is Fault.ROUND_HAS_ONE_DEBIT:
            return
        seen = self.money.get(account, 0)
        if self.fault in (Fault.IDS_ARE_LOOKED_UP_FIRST, Fault.BALANCES_ARE_WRITTEN_BACK):
            time.sleep(PAUSE_SECONDS)
        with self.adding:
            if self.fault is not Fault.BALANCES_ARE_WRITTEN_BACK:
                seen = self.money.get(account, 0)
            self.money[account] = seen + movement.moved
