"""Looking at what was played and at what went on: return to player, replay, events, reports."""
