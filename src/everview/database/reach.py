"""Which views this engine keeps fresh, and what may not change while it does not.

A stored view may call what the engine does not know: a function of Spark's on the embedded engine,
or a function in Python that was not given. It is read as it is stored. Since it must equal its
query after every transaction, the tables under it, and under the views over it, stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection

from everview.database.catalog.catalog import Catalog
from everview.errors import UserError


def must_be_in_reach(catalog: Catalog, changed: Collection[str]) -> None:
    """Refuse a change of tables under a view that is not kept fresh here."""
    for view, problem in catalog.beyond_reach.items():
        under = catalog.tables_under(view)
        touched = [table for table in changed if table in under]
        if touched:
            raise UserError(
                "E015",
                f"{', '.join(touched)} cannot change here: the view {view} would have to follow, "
                f"and {problem.problem}",
                remedy=_GIVE if problem.code in _CALLS else problem.remedy,
            )


_CALLS = ("Q010", "Q023")
"""What is said of a function that nobody knows."""
_GIVE = "give what the view calls: ev.open(…, functions={'name': (function, 'type')})"
