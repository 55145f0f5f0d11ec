"""Whether the answer of a plan depends on the order of rows that tie."""

from __future__ import annotations

from everview.plan.nodes import Plan, Window
from everview.plan.traverse import walk

BY_PLACE = ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value")
"""Window functions whose answer depends on the place of a row among those that tie with it."""


def is_tie_sensitive(plan: Plan) -> bool:
    """Whether some window of the plan looks at places rather than values."""
    return any(
        over.function in BY_PLACE or over.frame.startswith("ROWS")
        for node in walk(plan)
        if isinstance(node, Window)
        for over in node.columns
    )
