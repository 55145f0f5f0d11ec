"""Plans built in Python as a language of views: their text, checked and lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

from sqlglot.errors import SqlglotError

from everview.analysis.monotone import not_monotone
from everview.arguments import shown
from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.type_inference import type_of
from everview.expr.types import BEGUN, Schema, Type, names, storable_type, unusable_name
from everview.plan.nodes import (
    Add,
    Change,
    Distinct,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Partition,
    Plan,
    Recursive,
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Window,
)
from everview.plan.text import parse_plan, print_plan
from everview.plan.traverse import children, recurs, schema_of, sources, with_children

Analyze = Callable[[str, Schema, Span | None], Type]
Loops = Mapping[str, Schema]


@lru_cache(maxsize=1024)
def _read(text: str) -> Plan:
    return parse_plan(text)


def written(plan: Plan) -> str:
    """The text of a plan, which must be built of operators throughout."""
    if isinstance(plan, get_args(Plan)):
        with suppress(Exception):  # whatever it is built of instead fails in its own way
            text = print_plan(plan)
            if _read(text) == plan:
                return text
    raise _refused(
        "P002",
        f"{shown(plan)} is no plan, or is built of something else than operators",
        "build it over db.source(…) with the functions of everview.plan.build",
    )


def reads_of(text: str) -> tuple[str, ...]:
    """The relations that a plan reads."""
    return tuple(source.name for source in sources(_read(text)))


def lower_view(text: str, known: Mapping[str, Source], analyze: Analyze) -> Plan:
    """The plan of a view over the relations there are, by lower-case name."""
    plan = _Checking(known, analyze).checked(_read(text), {})
    for column in schema_of(plan):
        problem = unusable_name(column.name)
        if storable_type(column.type) != column.type:
            problem = f"{column.name} has a type that cannot be stored: {column.type}"
        if problem:
            raise _refused("P003", problem, "give every column a plain name and a plain type")
    return plan


@dataclass(frozen=True, slots=True)
class _Checking:
    """Checks one plan: its columns, types and relations."""

    known: Mapping[str, Source]
    analyze: Analyze

    def checked(self, plan: Plan, loops: Loops) -> Plan:
        """The same plan with canonical scalars, over relations that exist."""
        match plan:
            case Source():
                return self._source(plan)
            case Change() | Ref() | Restrict():
                problem = f"{type(plan).__name__} occurs in derivatives and programs only"
                raise _refused("P002", problem, "build the plan of other operators")
            case Totals(_, _, measures) if any(m.function == "product" for m in measures):
                problem = "products of totals are made by a policy only"
                raise _refused("P002", problem, "declare the view over the join itself")
            case Recursive(name, schema):
                if loops.get(name) != schema:
                    problem = f"{name} is read where no loop defines it with these columns"
                    raise _refused("P002", problem, "read it inside its loop, with all its columns")
                return plan
            case Fixpoint():
                return self._loop(plan, loops)
        rebuilt = with_children(plan, tuple(self.checked(part, loops) for part in children(plan)))
        _must_have_columns(rebuilt)
        return self._with_scalars(rebuilt)

    def _source(self, source: Source) -> Source:
        relation = self.known.get(source.name.lower())
        if relation is None or relation.schema != source.schema:
            problem = f"the plan reads {source.name}, "
            problem += "which has other columns" if relation else "which is no table or view"
            raise _refused("P001", problem, f'take it from db.source("{source.name}")')
        return relation

    def _loop(self, node: Fixpoint, loops: Loops) -> Plan:
        known = {**loops, **{name: schema_of(body) for name, body in node.equations}}
        bodies = ((name, self.checked(body, known)) for name, body in node.equations)
        loop = replace(node, equations=tuple(bodies))
        if node.traced or recurs(loop):
            problem = f"the loop of {node.result} is traced, or reads one around it"
            raise _refused("P002", problem, "let the inner loop end first")
        for name, body in loop.equations if BEGUN not in node.names else ():
            once = isinstance(body, Distinct)
            construct = not_monotone(body.child if isinstance(body, Distinct) else body, once)
            if construct:
                problem = f"the recursion of {name} goes through {construct}"
                raise _refused(
                    "P002",
                    problem,
                    "use while_, which may do anything and is run again from scratch",
                )
        return loop

    def _with_scalars(self, plan: Plan) -> Plan:
        match plan:
            case Filter(child, predicate):
                return replace(plan, predicate=self._typed(predicate, schema_of(child), "boolean"))
            case Map(child, outputs):
                schema = schema_of(child)
                texts = (self._typed(each.scalar, schema, each.type) for each in outputs)
                typed = (replace(o, scalar=text) for o, text in zip(outputs, texts, strict=True))
                return replace(plan, outputs=tuple(typed))
            case Unnest(child, array, element):
                wanted = f"array<{element.type}>"
                return replace(plan, array=self._typed(array, schema_of(child), wanted))
            case Join(_, _, _, residual) if residual is not None:
                return replace(plan, residual=self._typed(residual, schema_of(plan), "boolean"))
            case _:
                return plan

    def _typed(self, text: str, schema: Schema, wanted: Type) -> str:
        """The canonical text of a scalar, if it has the type that it was given."""
        try:
            tree = scalar.parse(text)
        except SqlglotError:
            raise _refused("P003", f"{text} is no expression", "write it as in SQL") from None
        if any(map(scalar.is_volatile, tree.walk())):
            raise _refused("P003", f"{text} may give another answer every time", "leave it out")
        unknown = scalar.columns(text) - {*names(schema)}
        if unknown:
            problem = f"{text} reads {min(unknown)}, which is not there"
            raise _refused("P003", problem, f"there are: {', '.join(names(schema))}")
        type_ = type_of(text, schema) or self.analyze(text, schema, None)
        if type_ != wanted:
            raise _refused("P003", f"{text} is {type_}, not {wanted}", f"CAST it to {wanted}")
        return scalar.canonical(text)


def _must_have_columns(plan: Plan) -> None:
    """Refuse an operator over columns that are not there, or two that do not fit together."""
    below = [schema_of(part) for part in children(plan)]
    if isinstance(plan, Add) and below[0] != below[1]:
        raise _refused("P002", "Add of rows with other columns", "give both the same columns")
    if isinstance(plan, Join) and not {*names(below[0])}.isdisjoint(names(below[1])):
        raise _refused("P002", "Join of rows with columns of one name", "give them other names")
    for columns, wanted in zip(below, _named(plan), strict=False):
        lost = {*wanted} - {*names(columns)}
        if lost:
            problem = f"{type(plan).__name__} reads {min(lost)}, which is not there"
            raise _refused("P002", problem, f"there are: {', '.join(names(columns))}")


def _named(plan: Plan) -> Iterator[tuple[str, ...]]:
    """The columns that an operator names of each of its children."""
    match plan:
        case Join(_, _, on):
            yield tuple(left for left, _ in on)
            yield tuple(right for _, right in on)
        case Totals(_, keys, measures):
            yield (*keys, *(name for each in measures for name in each.reads))
        case Partition(_, keys, aggregates):
            yield (*keys, *(name for each in aggregates for name in each.arguments))
        case Groups(_, keys) | Window(_, keys):
            yield keys
        case _:
            return


def _refused(code: str, problem: str, remedy: str) -> UserError:
    return UserError(code, problem, remedy=remedy)
