"""A stored relation as the text of a view reads it, whatever its language."""

from __future__ import annotations

from dataclasses import dataclass

from everview.plan.nodes import Source


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A stored relation that a text reads; with `nulls`, its rows with a NULL are not facts.

    A nested view has the text of its query.
    """

    source: Source
    nulls: bool = False
    nested: str = ""
