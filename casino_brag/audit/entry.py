"""An entry, and the only place where one is turned into the text whose bytes are hashed and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import rfc8785

from casino_brag.db.clock import rfc3339
from casino_brag.ids import uuid7


class EntryType(StrEnum):
    """What happened, as subject and action."""

    OPERATOR_ADDED = "operator.added"
    """An operator was added, with its first key."""
    OPERATOR_KEY_ROTATED = "operator.key_rotated"
    """An operator was given a new key; of two older ones the older was retired."""
    PAYTABLE_ACTIVATED = "paytable.activated"
    """A paytable version was published or returned to, and the game offers it from now on."""
    PAYTABLE_DRAFT_CREATED = "paytable.draft_created"
    """A person began a draft of a paytable."""
    PAYTABLE_DRAFT_SAVED = "paytable.draft_saved"
    """A person gave a draft another text."""
    PAYTABLE_SUBMITTED = "paytable.submitted"
    """A person submitted a draft for approval, for the jurisdictions that are named; it changes no more."""
    PAYTABLE_APPROVED = "paytable.approved"
    """Another person approved what was submitted, which is a version from now on."""
    PAYTABLE_REJECTED = "paytable.rejected"
    """What was submitted was rejected, or taken back by who submitted it."""
    PAYTABLE_SCHEDULED = "paytable.scheduled"
    """A version is to come into force at a time."""
    PAYTABLE_UNSCHEDULED = "paytable.unscheduled"
    """That was called off."""
    PAYTABLE_RETIRED = "paytable.retired"
    """A version is never put in force again."""
    OPERATOR_WALLET_CHANGED = "operator.wallet_changed"
    """Where an operator's wallet is, or how it funds the Play wager, was said or said anew."""
    OPERATOR_INTERRUPTION_CHANGED = "operator.interruption_changed"
    """How long an operator's interrupted rounds wait, and what becomes of them then, was said anew."""
    GAME_DISABLED = "game.disabled"
    """A game takes no new rounds; where an operator or a person said so, its open rounds wait as well."""
    GAME_DRAINING = "game.draining"
    """A game takes no new rounds, and its open rounds are decided as ever."""
    GAME_ENABLED = "game.enabled"
    """A game that was closed is open again."""
    SESSION_OPENED = "session.opened"
    """A player's session began; a demo account may have been filled."""
    SESSION_CLOSED = "session.closed"
    """An operator ended a session."""
    WALLET_DEPOSIT = "wallet.deposit"
    """Money came to a player's account from outside."""
    WALLET_WITHDRAWAL = "wallet.withdrawal"
    """Money left a player's account for outside."""
    WALLET_DEBIT_BEGUN = "wallet.debit_begun"
    """An operator's wallet is about to be asked for the debits of a stake."""
    WALLET_DEBITED = "wallet.debited"
    """An operator's wallet debited a stake, which came to the player's account."""
    WALLET_DEBIT_REFUSED = "wallet.debit_refused"
    """An operator's wallet refused a debit."""
    WALLET_DEBIT_UNKNOWN = "wallet.debit_unknown"
    """Whether a debit was done is not known, or it is not wanted any more: it is being cancelled."""
    WALLET_DEBIT_CANCELLED = "wallet.debit_cancelled"
    """A debit is certain to have no effect."""
    WALLET_CREDITED = "wallet.credited"
    """An operator's wallet confirmed a credit, which left the player's account."""
    OPERATOR_CLIENT_SEEDS_CHANGED = "operator.client_seeds_changed"
    """An operator's players may bring a text of their own into deals from now on, or may not."""
    COMMITMENT_MADE = "commitment.made"
    """The seed of a player's next round was drawn and committed to.  `round_id` is that round's."""
    COMMITMENT_EXPIRED = "commitment.expired"
    """A commitment was replaced before a round was dealt from it, and its seed revealed."""
    COMMITMENT_LOST = "commitment.lost"
    """A commitment was replaced whose seed cannot be revealed, because the key that sealed it is gone."""
    ROUND_OPENED = "round.opened"
    """Stakes were taken and cards dealt."""
    ROUND_SETTLED = "round.settled"
    """A decision was taken and the round paid."""
    ROUND_VOIDED = "round.voided"
    """A round was taken back: its stakes, or what was lost, went back to the player."""
    RNG_SELF_TESTED = "rng.self_tested"
    """A process tested its random number module before first use."""
    RNG_INSTANTIATED = "rng.instantiated"
    """A process has a generator of its own, on fresh entropy."""
    RNG_FORKED = "rng.forked"
    """A forked process threw its parent's generator away."""
    RNG_INTEGRITY_CHECKED = "rng.integrity_checked"
    """A process tested its random number module again, as it does once a day."""
    RNG_FAILED = "rng.failed"
    """A random number module stopped for good; its process deals no more."""
    INTEGRITY_CHECKED = "integrity.checked"
    """The files of the program and the published paytables were compared with their digests, and agreed."""
    INTEGRITY_FAILED = "integrity.failed"
    """They did not agree."""
    WEBHOOK_SET = "webhook.set"
    """An operator is told of what happens at this address from now on."""
    WEBHOOK_SECRET_ROTATED = "webhook.secret_rotated"  # noqa: S105 - a name, no secret
    """An operator's webhook was given a new secret; the newest before it stays live beside it."""
    WEBHOOK_REMOVED = "webhook.removed"
    """An operator is told nothing any more, as it or somebody for it wished."""
    WEBHOOK_GIVEN_UP = "webhook.given_up"
    """An operator could not be told something for three days, and is told neither it nor anything older."""
    RTP_CHECKED = "rtp.checked"
    """What live play returned was compared with what the rules let expect; `payload` sums it up."""
    RTP_ALERT = "rtp.alert"
    """The evidence against a paytable version reached a level; operators are told."""
    RTP_CASE_OPENED = "rtp.case_opened"
    """A case was opened of such an alert."""
    RTP_CASE_CHANGED = "rtp.case_changed"
    """A case was noted in, investigated or closed, or a further alert joined it."""
    PROGRAM_FAILED = "program.failed"
    """Something happened that the program does not foresee; a request or a job ended in it."""
    CLOCK_STEPPED = "clock.stepped"
    """The database's clock went forward or back by more than the time that had passed on a machine."""
    CLOCK_DRIFTED = "clock.drifted"
    """A machine's clock and the database's came to differ, or agree again."""
    ROUND_LARGE_WIN = "round.large_win"
    """A round paid much more than its stakes."""
    ROUND_LARGE_WAGER = "round.large_wager"
    """Much was staked on a round."""
    PLAYER_LARGE_WIN = "player.large_win"
    """What a player won in a day became large."""
    PLAYER_LARGE_WAGER = "player.large_wager"
    """What a player staked in a day became large."""
    REPLAY_COMPLETED = "replay.completed"
    """All rounds of a period were derived anew from their records, and agree with them."""
    REPLAY_DIFFERED = "replay.differed"
    """Some of them do not."""
    STAFF_ADDED = "staff.added"
    """A person came to staff, with these roles."""
    STAFF_ROLES_CHANGED = "staff.roles_changed"
    """A person of staff has other roles from now on."""
    STAFF_TOKEN_ISSUED = "staff.token_issued"  # noqa: S105 - a name, no secret
    """A person of staff was given a token to call with."""
    STAFF_TOKEN_REVOKED = "staff.token_revoked"  # noqa: S105 - a name, no secret
    """Such a token was ended."""
    STAFF_RETIRED = "staff.retired"
    """A person left staff, and every token of that person's ended."""
    STAFF_CALLED = "staff.called"
    """A person of staff made a call; `payload` says which, and whether it was within that person's roles."""
    STAFF_REFUSED = "staff.refused"
    """A token was refused; `payload` says the address it came from, `reason` what was wrong with it."""
    STAFF_INVITED = "staff.invited"
    """A person was given a link to join by, and an earlier one ended."""
    STAFF_JOINED = "staff.joined"
    """A person has a password and a second factor from now on, and can sign in."""
    STAFF_JOIN_FAILED = "staff.join_failed"
    """The join code that was given with a link was not the one that goes with it."""
    STAFF_INVITATION_ENDED = "staff.invitation_ended"
    """It was the fifth wrong one: nobody can join by the link any more."""
    STAFF_SIGNED_IN = "staff.signed_in"
    """A person signed in: with a password, or at the operator's identity provider, and with a code."""
    STAFF_SIGN_IN_FAILED = "staff.sign_in_failed"
    """A password, a code or what a provider said was not right, as `reason` says; or the account was locked."""
    STAFF_LOCKED_OUT = "staff.locked_out"
    """It was the third failure in a row: nobody can sign in to the account for a while."""
    STAFF_PROVED = "staff.proved"
    """A person who was signed in gave a code once more."""
    STAFF_SIGNED_OUT = "staff.signed_out"
    """A person ended a session of theirs."""
    STAFF_PASSWORD_CHANGED = "staff.password_changed"  # noqa: S105 - a name, no secret
    """A person has another password, and was signed out everywhere else."""
    STAFF_FACTOR_CHANGED = "staff.factor_changed"
    """A person has another second factor, and was signed out everywhere else; or has other recovery codes only."""
    STAFF_PROVIDER_LINKED = "staff.provider_linked"
    """An account at the operator's identity provider stands for a person's password now; `payload` says which."""
    STAFF_PROVIDER_UNLINKED = "staff.provider_unlinked"
    """It does not any more, and the person was signed out everywhere else."""
    STAFF_UNLOCKED = "staff.unlocked"
    """An account that was locked can be signed in to before its time."""
    STAFF_RESET = "staff.reset"
    """A person's password, second factor and sessions ended; the person joins anew."""
    PROPOSAL_MADE = "proposal.made"
    """A person proposed something that another has to approve; `payload` says what."""
    PROPOSAL_DECIDED = "proposal.decided"
    """A proposal was approved and with that carried out, or rejected, or withdrawn."""
    LOG_KEY_ADDED = "log.key_added"
    """A key signs the log's checkpoints from now on; `payload` holds what checks them."""
    SIMULATION_QUEUED = "simulation.queued"
    """A person of staff had a paytable put in the queue of simulations."""
    SIMULATION_COMPLETED = "simulation.completed"
    """A simulation was played to its end and concludes something, or could not be played; `after` says which."""
    SIMULATION_CANCELLED = "simulation.cancelled"
    """A person of staff ended a simulation before that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened.

    `occurred_at` is the database's clock, to the microsecond.  `actor` did it (``player:…``, ``operator:…``,
    ``staff:…``, ``system:…``); `authoriser` allowed it where that is somebody else.  Amounts in `payload` are minor
    units.
    """

    type: EntryType
    occurred_at: datetime
    actor: str
    authoriser: str | None = None
    operator_id: UUID | None = None
    player_id: UUID | None = None
    session_id: UUID | None = None
    round_id: UUID | None = None
    reason: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    payload: Mapping[str, Any] | None = None
    entry_id: UUID = field(default_factory=uuid7)

    def text(self) -> str:
        """The entry in RFC 8785 canonical form.  Its UTF-8 bytes are what the log keeps and hashes."""
        subjects = {
            "operator_id": self.operator_id,
            "player_id": self.player_id,
            "session_id": self.session_id,
            "round_id": self.round_id,
        }
        return rfc8785.dumps(
            {
                "entry_id": str(self.entry_id),
                "type": self.type.value,
                "occurred_at": rfc3339(self.occurred_at),
                "actor": self.actor,
                "authoriser": self.authoriser,
                "subjects": {name: str(value) for name, value in subjects.items() if value is not None},
                "reason": self.reason,
                "before": _plain(self.before),
                "after": _plain(self.after),
                "payload": _plain(self.payload),
            }
        ).decode()


def _plain(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if values is None else {name: _plain_value(value) for name, value in values.items()}


def _plain_value(value: Any) -> Any:
    match value:
        case Mapping():
            return _plain(value)
        case str() | int() | None:
            return value
        case Sequence():
            return [_plain_value(item) for item in value]
        case _:
            return str(value)
