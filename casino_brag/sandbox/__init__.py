"""An operator's wallet to try integrations with: the protocol as it should be answered, and every fault on demand.

`messages` reads the calls, `store` keeps the books, `faults` says what goes wrong, `app` puts them together.
"""
