"""The changes that follow from those of a transaction before its program runs."""

from __future__ import annotations

from collections.abc import Collection

from everview.database.catalog.catalog import Catalog
from everview.database.recompute_blocks import with_recomputed_blocks
from everview.database.referential_actions import with_referential_actions
from everview.errors import UserError
from everview.runtime.protocol import Changes, Engine, Part, Snapshot

UNKNOWN_FUNCTION = ("Q010", "Q023")
GIVE_FUNCTION = "give what the view calls: ev.open(…, functions={'name': (function, 'type')})"


def following_changes(
    catalog: Catalog,
    engine: Engine,
    pending: Changes,
    removes: frozenset[str],
    snapshot: Snapshot,
) -> tuple[dict[str, list[Part]], frozenset[str]]:
    """The changes of tables and recomputed blocks, and the tables that lose rows.

    A commit and a preview come through here, so they see the same.
    """
    grown, losing = with_referential_actions(catalog, engine, pending, removes, snapshot)
    _must_be_maintained(catalog, grown)
    return with_recomputed_blocks(catalog, engine, grown, snapshot), losing


def _must_be_maintained(catalog: Catalog, changed: Collection[str]) -> None:
    """Refuse a change of tables under a view that this engine cannot maintain.

    A stored view may call what the engine does not know: a function of Spark's on the embedded
    engine, or a Python function that was not given. It is read as it is stored. Since it must equal
    its query after every transaction, the tables under it stay as they are.
    """
    for name, problem in catalog.beyond_reach.items():
        under = catalog.tables_under(name)
        touched = [table for table in changed if table in under]
        if touched:
            kind = "view" if name in catalog.views else "constraint"
            raise UserError(
                "E015",
                f"{', '.join(touched)} cannot change here: the {kind} {name} would have to follow, "
                f"and {problem.problem}",
                remedy=GIVE_FUNCTION if problem.code in UNKNOWN_FUNCTION else problem.remedy,
            )
