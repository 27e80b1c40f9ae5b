"""What a round is: cards, hands, the paytable and the settlement.

Pure: nothing here reads a clock, a database, a random number or the network, and only
:meth:`casino_brag.game.paytable.Paytable.load` reads a file.  Start with :mod:`casino_brag.game.settlement`.
"""
