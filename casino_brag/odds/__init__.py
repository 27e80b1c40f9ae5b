"""What a game is worth: exact counts of outcomes, and the figures that follow from them.

Pure, on NumPy.  Rules are not known here: every payout comes from :mod:`casino_brag.game.settlement`.
"""
