"""What follows when a table or view is altered: its views and constraints, or which would break."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.constraints import ConstraintDefinition, resolved
from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.follow import AlteredSource, Followed, follow
from everview.database.declare_constraints import generated_checks, must_be_no_constraint
from everview.errors import UserError
from everview.lang.sql.bind.read_through import names_in, with_new_names
from everview.lang.sql.parse.constraints import ASSERTION
from everview.lang.sql.parse.statements import Alter

Constraints = dict[str, ConstraintDefinition]
AlterIn = Callable[[Catalog, Constraints], Catalog]
"""The catalog with the altered relation, and with the constraints that it has then."""


@dataclass(frozen=True, slots=True)
class AlteredRelation:
    """A relation that gets another definition; `after` is None for a view.

    `became` are the names of its columns, by those of before; None for one that goes.
    """

    name: str
    to: str
    before: TableDefinition | None = None
    after: TableDefinition | None = None
    became: Mapping[str, str | None] = field(default_factory=dict)

    def dropped_in(self, text: str) -> list[str]:
        """The columns that go, of those that a text may name."""
        return sorted(names_in(text) & {n.lower() for n, now in self.became.items() if now is None})


def followed(
    statement: Alter,
    catalog: Catalog,
    relation: AlteredRelation,
    alter_in: AlterIn,
    altered: AlteredSource,
    held: Collection[str],
) -> Followed:
    """The altered catalog with what follows; what breaks goes, if that is asked for."""
    must_be_no_constraint(relation.name, catalog)
    _must_not_be_computed_from(relation, statement)
    constraints, broken = _constraints(catalog, relation)
    if broken:
        gone = catalog.resting_on(broken)
        if not statement.cascade:
            raise _would_break(statement, relation.name, broken, gone)
        catalog = catalog.without_all(gone).compile()
        constraints, _ = _constraints(catalog, relation)
    while True:
        views = follow(catalog, alter_in(catalog, constraints), altered, held)
        if not views.broken:
            return views
        gone = catalog.resting_on(views.broken)
        if not statement.cascade:
            raise _would_break(statement, relation.name, views.broken, gone)
        catalog = catalog.without_all(gone).compile()
        constraints, _ = _constraints(catalog, relation)


def _would_break(
    statement: Alter, name: str, broken: Mapping[str, str], gone: list[str]
) -> UserError:
    why = "; ".join(f"{each}: {reason}" for each, reason in broken.items())
    problem = f"{name} cannot be altered so: {', '.join(gone)} would break ({why})"
    remedy = f"drop {', '.join(reversed(gone))} first, or write CASCADE"
    return UserError("C008", problem, span=statement.span, remedy=remedy)


def _must_not_be_computed_from(relation: AlteredRelation, statement: Alter) -> None:
    """Refuse to take away a column from which another one is generated."""
    for name, value in relation.before.generated if relation.before else ():
        named = relation.dropped_in(value)
        if named and relation.became.get(name) is not None:
            problem = f"{name} of {relation.name} is generated from {', '.join(named)}"
            remedy = f"drop the column {name} first"
            raise UserError("C008", problem, span=statement.span, remedy=remedy)


def _constraints(catalog: Catalog, relation: AlteredRelation) -> tuple[Constraints, dict[str, str]]:
    """The constraints over the relation of now, and those that would break, with the reason.

    Those of generated columns are made again from the table.
    """
    before, after = relation.before, relation.after
    tables = {
        (after.name if after and name == relation.name else name): (
            after if after and name == relation.name else each
        )
        for name, each in catalog.tables.items()
    }
    made = {} if after is None else {each.name: each for each in generated_checks(after)}
    own = {each.name for each in generated_checks(before)} if before else set[str]()
    kept: Constraints = {}
    broken: dict[str, str] = {}
    for name, each in catalog.constraints.items():
        if name in own:
            continue
        if name in made:
            broken[name] = "its name is needed"
            continue
        try:
            kept[name] = _renamed(each, relation, catalog)
            if _is_about(kept[name], relation) or kept[name] is not each:
                resolved(kept[name], tables, kept.values())
        except UserError as problem:
            broken[name] = problem.problem
    known = catalog.constraints
    made = {name: known[name] if known.get(name) == c else c for name, c in made.items()}
    return {**kept, **made}, broken


def _is_about(constraint: ConstraintDefinition, relation: AlteredRelation) -> bool:
    """Whether a constraint is one of the altered table, or refers to it."""
    to = constraint.references
    tables = {constraint.table, "" if to is None else to.table}
    return bool(tables & {relation.to, relation.name})


def _renamed(
    constraint: ConstraintDefinition, relation: AlteredRelation, catalog: Catalog
) -> ConstraintDefinition:
    """A constraint with the names of now; the same one where it has none of those that change.

    Assertions follow together with views, and so do the views of what is not enforced.
    """
    reads_it = relation.name in catalog.reads(constraint.name)
    if constraint.kind == ASSERTION or not reads_it:
        return constraint
    condition = constraint.condition
    if condition:
        if named := relation.dropped_in(condition):
            raise _names(named)
        condition = with_new_names(condition, relation.name, relation.to, relation.became)
    to = constraint.references
    if to is not None and to.table == relation.name:
        to = replace(to, table=relation.to, columns=_now(to.columns, relation))
    columns, table = constraint.columns, constraint.table
    if table == relation.name:
        columns, table = _now(columns, relation), relation.to
    renamed = replace(constraint, table=table, columns=columns, condition=condition, references=to)
    return constraint if renamed == constraint else renamed


def _now(columns: tuple[str, ...], relation: AlteredRelation) -> tuple[str, ...]:
    found = [relation.became.get(name, name) for name in columns]
    if None in found:
        raise _names([columns[found.index(None)]])
    return tuple(name for name in found if name is not None)


def _names(named: list[str]) -> UserError:
    return UserError("C008", f"it names {', '.join(named)}", remedy="leave that as it is")


def generated_now(
    table: TableDefinition, to: str, became: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The expressions of generated columns, with the names of now in them."""
    return tuple((n, with_new_names(value, table.name, to, became)) for n, value in table.generated)
