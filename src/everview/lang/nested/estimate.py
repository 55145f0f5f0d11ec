"""What a shredded view costs, and a change of it, by the cost transformation of §4.2.

A dictionary of n labels costs n times what it has under one. When R changes, the n labels that are
there get the delta, and those that appear get all that is under them: O(nd + d²) of §2.2. Theorem 4
says that this is less than the view for every update that is smaller than R.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.errors import UserError
from everview.lang.nested.cost import LEAST, Cost, Costs, Many, cost, time_cost
from everview.lang.nested.delta import DELTA, degree, delta
from everview.lang.nested.flat_queries import flat_query
from everview.lang.nested.shred import Shredded
from everview.lang.nested.syntax import Empty, Expr, relations


@dataclass(frozen=True, slots=True)
class Change:
    """What a relation of a view gets when a table changes: how many rows, in which time."""

    rows: int
    time: int


NOTHING = Change(0, 0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one relation of a view costs, and a change of one row of each table.

    There are `outer` labels, one for the flat relation, each with `cost` under it. A change is None
    where it has no delta in IncNRC⁺. What `depends` on a relation has a degree above zero.
    """

    outer: int
    cost: Cost
    changes: Mapping[str, Change | None]
    depends: bool

    @property
    def time(self) -> int:
        """The time to evaluate it."""
        return self.outer * time_cost(self.cost)


def estimates(parts: Mapping[str, Shredded], sizes: Costs) -> dict[str, Estimate]:
    """The estimate of each relation of a view that is its own, by path."""
    found: dict[str, Estimate] = {}
    for path, part in parts.items():
        if part.shared is None:
            found[path] = _estimate(part, dict(parts), sizes, found)
    return found


def _estimate(
    part: Shredded, parts: dict[str, Shredded], sizes: Costs, known: Mapping[str, Estimate]
) -> Estimate:
    queries = list(_queries(part, parts))
    read = dict.fromkeys(name for each in queries for name in relations(each))
    around: Costs = {v.variable: LEAST for each in part.occurrences for v in each.values}
    whole = [cost(each, sizes, around) for each in queries]
    outer, above = 1, None
    if part.path:
        above = known[part.above]
        outer = above.outer * _count(above.cost)
    one = max(whole, key=time_cost)
    changes: dict[str, Change | None] = {}
    for name in dict.fromkeys((*read, *(above.changes if above else ()))):
        changed = {**sizes, DELTA + name: _one_row(sizes.get(name, LEAST))}
        under = _change_under(queries, name, changed, around)
        came = above.changes.get(name, NOTHING) if above else NOTHING
        changes[name] = None
        if under is not None and came is not None:
            changes[name] = Change(
                outer * under.rows + came.rows * _count(one),
                outer * under.time + came.rows * time_cost(one),
            )
    depends = any(degree(each, frozenset(read)) > 0 for each in queries)
    return Estimate(outer, one, changes, depends)


def _queries(part: Shredded, parts: dict[str, Shredded]) -> Iterator[Expr]:
    """The flat query, or one for each occurrence of a dictionary."""
    owns: list[int | None] = [each.number for each in part.occurrences]
    for own in owns or [None]:
        yield flat_query(part, parts, own)


def _change_under(queries: list[Expr], name: str, sizes: Costs, around: Costs) -> Change | None:
    """The change of what is under one label."""
    try:
        deltas = [delta(each, name) for each in queries]
    except UserError:
        return None
    costs = [cost(each, sizes, around) for each in deltas if each != Empty()]
    if not costs:
        return NOTHING
    most = max(costs, key=time_cost)
    return Change(_count(most), time_cost(most))


def _count(found: Cost) -> int:
    return found.count if isinstance(found, Many) else 1


def _one_row(size: Cost) -> Cost:
    return Many(1, size.element) if isinstance(size, Many) else Many(1, LEAST)
