"""The audit log: one entry for each effect, written in the effect's own transaction; and the tree that proves it."""

from casino_brag.audit.entry import Entry, EntryType

__all__ = ["Entry", "EntryType"]
