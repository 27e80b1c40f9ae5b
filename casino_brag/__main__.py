"""``python -m casino_brag``: the same as the command ``casino-brag``."""

from casino_brag.cli import main

main()
