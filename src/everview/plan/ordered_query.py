"""A query as a user asks it: a plan, and which of its rows are shown in which order."""

from __future__ import annotations

from dataclasses import dataclass

from everview.plan.nodes import Order, Plan


@dataclass(frozen=True, slots=True)
class OrderedQuery:
    """The rows of `plan`, of which `columns` are shown, sorted and cut."""

    plan: Plan
    columns: tuple[str, ...]
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
