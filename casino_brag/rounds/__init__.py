"""The game cycle: a round is opened, decided, settled and paid, and can be read for ever after."""
