"""Replay: every round that is over, derived and paid again from its records, and compared with them."""
