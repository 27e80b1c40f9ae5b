"""The audit log: one entry for each effect, written in the effect's own transaction."""

from casino_brag.audit.entry import Entry, EntryType

__all__ = ["Entry", "EntryType"]
