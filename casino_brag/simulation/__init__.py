"""The game played by the thousand million: Monte Carlo.

Every word comes from a generator of SP 800-90A that is seeded and numbered by chunk, so a run can be repeated to
the last round by anyone, in any order and on any number of machines.  Rounds are counted by stakes, player's
category and result: array code that tests hold, round by round, against the live deal and settlement.  What a result
pays is asked of :mod:`casino_brag.game.settlement` itself.  Nothing here ever deals a live round.  Start with
:mod:`casino_brag.simulation.plan`.
"""
