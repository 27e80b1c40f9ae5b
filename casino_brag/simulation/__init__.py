"""The game played by the thousand million: Monte Carlo on the very deal and the very settlement of the live game.

Every word comes from a generator of SP 800-90A that is seeded and numbered by chunk, so a run can be repeated to
the last round by anyone, in any order and on any number of machines.  Rounds are counted by stakes, player's
category and result; what a cell pays is asked of :mod:`casino_brag.game.settlement`, so there is no second set of
rules.  Nothing here ever deals a live round.  Start with :mod:`casino_brag.simulation.play`.
"""
