"""∇, Δ and pre of a view in relational algebra, as text."""

from __future__ import annotations

from everview.database.catalog.definitions import ViewDefinition
from everview.differentiate.sets.tables import definitions, pre_text
from everview.errors import UserError
from everview.lang.front_end import RELALG
from everview.lang.relalg.parse import parse_query

_LEGEND = """\
-- ∇R and ΔR are the rows that leave the set of the rows of R, and those that come into it.
-- add(S) = S ∪ ΔS, sub(S) = S − ∇S, mod(S) = (S − ∇S) ∪ ΔS; all of it is about the state before."""


_PRE_LEGEND = """\
-- ∇R and ΔR are the rows that leave the set of the rows of R, and those that come into it.
-- tx.read gives the value of this inside a transaction, and tx.preview what it changes."""


def explain_nabla(view: ViewDefinition) -> str:
    """The rows that leave a view and those that come into it, after the parts that they read."""
    _must_be_of_sets(view, "∇ and Δ")
    return "\n".join((*definitions(view.name, parse_query(view.query)), _LEGEND))


def explain_pre(view: ViewDefinition) -> str:
    """What a view will be after a transaction, as an expression about the state before it."""
    _must_be_of_sets(view, "pre")
    return f"{pre_text(view.name, parse_query(view.query))}\n{_PRE_LEGEND}"


def _must_be_of_sets(view: ViewDefinition, what: str) -> None:
    if view.language != RELALG:
        raise UserError(
            "R005",
            f"{view.name} is not written in relational algebra: it has no {what}",
            remedy="look at its change, which has both signs, with the stage derivative; "
            "or declare the view with db.relalg",
        )
