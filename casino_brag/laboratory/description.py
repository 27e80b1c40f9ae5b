"""The module in words, for those who examine it.  Its numbers are taken from the code that they describe."""

from __future__ import annotations

from typing import Final

from casino_brag.rng.bounded import DISCARDS_MAX, WORDS
from casino_brag.rng.deal import DEALS
from casino_brag.rng.entropy import PROPORTION_MAX, REPETITIONS_MAX, START_UP_BYTES, WINDOW_BYTES
from casino_brag.rng.generator import ENTROPY_BYTES, INTEGRITY_SECONDS, NONCE_BYTES
from casino_brag.rng.hmac_drbg import OUTPUT_BYTES_MAX
from casino_brag.rng.seeds import PROTOCOL, SEED_BYTES

Terms = tuple[tuple[str, tuple[str, ...]], ...]

CLAIM: Final = (
    "The module is built for certification and tested against NIST's vectors. This folder is what its makers send to"
    " a laboratory: a description, what was tested and how it came out, and samples to test again. No laboratory has"
    " examined it."
)

LIMITS: Final[Terms] = (
    (
        "Not an examination",
        (
            "Its makers ran every test in here. That a test passed says that it found nothing, on this machine, with"
            " these samples.",
        ),
    ),
    (
        "Statistics are weak",
        (
            "They find coarse faults. A small bias, such as that of a remainder modulo 2^32 or of scaling by a float,"
            " passes all of them. That deals are even follows from the code, and tests at the boundaries hold it.",
        ),
    ),
    (
        "Entropy is the kernel's",
        (
            "All of it comes from getrandom of the Linux kernel, and no estimate of it is made here. The health tests"
            " look at output that the kernel has conditioned already: they notice a source that has failed, and"
            " measure no entropy.",
        ),
    ),
    (
        "Wiping is not complete",
        (
            "State is overwritten when it is done with. Python and OpenSSL make copies on the way that cannot be"
            " reached; whoever reads the process's memory at the right moment reads secrets.",
        ),
    ),
    (
        "No boundary of hardware",
        (
            "The module is software in the process of the service. What protects that process protects it: the"
            " operating system, its accounts, and whoever holds its keys.",
        ),
    ),
)

AGAIN: Final = (
    "Each of these stands alone, needs no database, and ends with 0 when all is well. Collectors keep nothing of what"
    " they write, so a sample can be as large as a battery asks for."
)

COMMANDS: Final = (
    "sha256sum --check SHA256SUMS                        # in this folder: nothing was altered on its way",
    "sha256sum --check MANIFEST.sha256                   # in module/: the source is what its manifest lists",
    "casino-brag rng health                              # self-test, start-up test, integrity, the kernel's facts",
    "casino-brag rng kat FILE                            # known answers, and every case of one of NIST's files",
    "casino-brag rng raw 1e9 | dieharder -g 200 -d 15    # raw output into any battery",
    "casino-brag rng deals 1e6 > deals.txt               # final outcomes",
    "casino-brag rng battery                             # ent, rngtest and dieharder, judged as one family",
)


def module() -> Terms:
    """Design, states, health tests, entropy, mapping and the deal that can be checked, in words."""
    limit = WORDS - WORDS % DEALS
    return (
        (
            "Design",
            (
                "HMAC_DRBG with SHA-256 (SP 800-90A rev. 1, 10.1.2), in Python on the standard library alone. The"
                " algorithm is a file of its own, so that published cases run against the code that deals. Each"
                " process has one instance, and one lock around it. There is no second source, no seed to set, no card"
                " to force.",
            ),
        ),
        (
            "Entropy source",
            (
                f"os.getrandom, which waits until the kernel's generator is seeded. An instance begins with"
                f" {ENTROPY_BYTES} bytes of entropy and a nonce of {NONCE_BYTES}. Before every request it is reseeded"
                f" with {ENTROPY_BYTES} fresh bytes (prediction resistance), and {NONCE_BYTES} more go into the"
                " request's additional input with purpose, instance, number and subject.",
            ),
        ),
        (
            "States",
            (
                "uninstantiated → self-test → ready ⇄ reseeding; any failure → error. Only ready serves. The error"
                " wipes the state and stays until the process ends: then rounds are refused and no stake is taken.",
            ),
        ),
        (
            "Health tests",
            (
                "Before first use: the module's files against their manifest, known answers, and"
                f" {START_UP_BYTES:,} bytes of the entropy source, which are thrown away. Files and known answers again"
                f" every {INTEGRITY_SECONDS // 3600} hours.",
                f"On every byte of entropy: repetition count (cut-off {REPETITIONS_MAX}) and adaptive proportion"
                f" (cut-off {PROPORTION_MAX} in a window of {WINDOW_BYTES}), as in SP 800-90B, 4.4; and equal"
                " successive draws.",
            ),
        ),
        (
            "Forks and threads",
            (
                "The process's number is compared at every request, and Python's own hook runs after a fork: a child"
                " throws away what it inherited and begins anew. Threads take turns.",
            ),
        ),
        (
            "Mapping",
            (
                f"A deal of six cards in order is one integer below {DEALS:,} = 52·51·50·49·48·47. A word of 64 bits at"
                f" or above {limit:,} is thrown away, counted, and replaced by the next; what is left modulo the number"
                f" of deals is exactly even. {DISCARDS_MAX} such words in a row are a failure. The integer's digits in"
                " the bases 52, 51, … 47 are the picks of a Fisher-Yates shuffle.",
            ),
        ),
        (
            "The deal that can be checked",
            (
                f"Protocol {PROTOCOL}. The generator gives a round a seed of {SEED_BYTES} bytes before anything is"
                " staked; its commitment, a SHA-256 over round, rules, number, the commitment before and the seed, is"
                " shown to the player. The cards follow from the seed, the round, the rules and a text of the"
                " player's own, by a second HMAC_DRBG that is used once. The seed is kept sealed until the round is"
                " over, and then shown.",
                "The player's text is personalization. It earns no entropy credit: the quality of a deal rests on the"
                " seed.",
            ),
        ),
        (
            "Requests",
            (f"At most {OUTPUT_BYTES_MAX:,} bytes each. A round takes one of {SEED_BYTES} bytes.",),
        ),
    )
