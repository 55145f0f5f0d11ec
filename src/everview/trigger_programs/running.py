"""Trigger programs that run in this process: rows come and go, and results are always there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Clamped, Context, Decimal, Inexact, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

from everview.arguments import did_you_mean, shown
from everview.errors import UserError
from everview.lang.agca.evaluate import rows_of
from everview.lang.agca.factorize import eliminated
from everview.lang.agca.normal_form import constant, monomials, normal_form
from everview.lang.agca.syntax import (
    Assignment,
    Comparison,
    Definition,
    Expr,
    Variable,
    children,
)
from everview.trigger_programs.codegen import Index, Key, generate
from everview.trigger_programs.program import TriggerProgram, print_program

SNAPSHOT_VERSION = 1
"""The version of the text of snapshots."""
Row: TypeAlias = tuple[Any, ...]
Maps: TypeAlias = dict[str, dict[Key, Any]]
Indexes: TypeAlias = dict[Index, dict[Key, dict[Key, None]]]

_EXACT = Context(prec=2000, traps=[Inexact, InvalidOperation, Overflow, Clamped])
"""Sums and products of decimals keep all of their digits."""
_KEYS = (int, Decimal, str, bool, date, datetime, bytes, type(None))
_NUMBERS = (int, Decimal, type(None))


class Triggers:
    """A trigger program and its maps, in memory.

    Rows are not kept, only the maps: to delete a row that was never inserted makes counts negative.
    A call that is refused has changed nothing.
    """

    def __init__(self, program: TriggerProgram) -> None:
        self._program = program
        self._generated = generate(program)
        self._numeric = numeric_columns(program.maps)
        self._columns = {each.relation: len(each.row) for each in program.triggers}
        self._install({each.name: initial_entries(each) for each in program.maps})

    @property
    def text(self) -> str:
        """The program as text."""
        return print_program(self._program)

    def insert(self, relation: str, rows: Any) -> None:
        """Insert rows: tuples, or an Arrow table or batch."""
        self._apply(self._grouped(relation, self._rows(relation, rows), 1))

    def delete(self, relation: str, rows: Any) -> None:
        """Delete rows: tuples, or an Arrow table or batch."""
        self._apply(self._grouped(relation, self._rows(relation, rows), -1))

    def apply(self, changes: Iterable[tuple[str, Row, int]]) -> None:
        """Apply changes of any relations at once: the relation, the row and its weight."""
        found: dict[str, Counter[Row]] = {}
        for relation, row, weight in changes:
            [checked] = self._rows(relation, [row])
            if type(weight) is not int:
                raise _refused(f"{shown(weight)} is no weight", "give a whole number")
            found.setdefault(relation, Counter())[checked] += weight
        self._apply(found)

    def result(self, view: str | None = None) -> list[Row]:
        """The rows of a view: its group variables and the value; of the only one if not named."""
        names = {each.name: each for each in self._program.views}
        if view is None and len(names) == 1:
            view = next(iter(names))
        if view not in names:
            remedy = f"{did_you_mean(str(view), names)}there are: {', '.join(names)}"
            raise _refused(f"there is no view {shown(view)} here", remedy)
        found = names[view]
        values, counts = self._maps[found.values], self._maps[found.counts]
        arity = len(next(e for e in self._program.maps if e.name == found.counts).keys)
        if not arity:
            return [(values.get((), 0),)]
        return [
            (*(key if arity > 1 else (key,)), values.get(key, 0))
            for key, count in counts.items()
            if count > 0
        ]

    def snapshot(self) -> str:
        """All state as text, exactly; `restore` reads it."""
        maps = {
            name: [[[_written(k) for k in _parts(key)], _written(v)] for key, v in entries.items()]
            for name, entries in self._maps.items()
        }
        return json.dumps({"version": SNAPSHOT_VERSION, "program": self.text, "maps": maps})

    def restore(self, snapshot: str) -> None:
        """Take over the state of a snapshot, which must be one of the same program."""
        try:
            raw = json.loads(snapshot)
            version, text, listed = raw["version"], raw["program"], raw["maps"]
        except (ValueError, KeyError, TypeError):
            raise _refused("this is no snapshot", "give what snapshot() returned") from None
        if version != SNAPSHOT_VERSION or text != self.text:
            problem = "the snapshot is of another version" if text == self.text else ""
            raise _refused(
                problem or "the snapshot is of another program", "restore it where it was taken"
            )
        try:
            maps = {
                each.name: {
                    _key([_read(part) for part in key]): _read(value)
                    for key, value in listed[each.name]
                }
                for each in self._program.maps
            }
        except (ValueError, KeyError, TypeError, ArithmeticError):
            raise _refused("the snapshot is damaged", "take it again") from None
        self._install(maps)

    # State

    def _install(self, maps: Maps) -> None:
        """Replace all state in one step: the maps, their indexes, and the functions over them."""
        indexes: Indexes = {each: {} for each in self._generated.indexes}
        for index, entries in indexes.items():
            for key in maps[index.map]:
                parts = _parts(key)
                part = _key([parts[at] for at in index.positions])
                entries.setdefault(part, {})[key] = None
        functions = self._generated.functions(self._program, maps, indexes)
        self._maps, self._functions = maps, functions

    def _grouped(self, relation: str, rows: list[Row], sign: int) -> dict[str, Counter[Row]]:
        counted = Counter(rows)
        return {relation: counted if sign > 0 else Counter({r: -n for r, n in counted.items()})}

    def _apply(self, changes: Mapping[str, Mapping[Row, int]]) -> None:
        """Run the events one by one; if one fails, those before it are taken back."""
        done: list[tuple[Callable[..., None], Row]] = []
        with localcontext(_EXACT):
            try:
                for relation, rows in changes.items():
                    forth, back = (self._functions[relation, sign] for sign in (1, -1))
                    for row, weight in rows.items():
                        run, undo = (forth, back) if weight > 0 else (back, forth)
                        for _ in range(abs(weight)):
                            run(*row)
                            done.append((undo, row))
            except BaseException as problem:
                for undo, row in reversed(done):
                    undo(*row)
                if isinstance(problem, TypeError | ArithmeticError):
                    raise _refused(
                        f"the row {shown(row)} of {relation} cannot be computed with: {problem}",
                        "give values of the types that are compared and multiplied",
                    ) from None
                raise

    # Rows

    def _rows(self, relation: str, rows: Any) -> list[Row]:
        """Rows that have as many columns as the relation, of values that are exact."""
        if relation not in self._columns:
            remedy = f"{did_you_mean(str(relation), self._columns)}there are: "
            remedy += ", ".join(self._columns)
            raise _refused(f"no view reads {shown(relation)}", remedy)
        width = self._columns[relation]
        if isinstance(rows, pa.Table | pa.RecordBatch):
            columns = [column.to_pylist() for column in rows.columns]
            if len(columns) != width:
                raise _refused(
                    f"{relation} has {width} columns, not {len(columns)}", "give all of them"
                )
            listed = list(zip(*columns, strict=True))
        else:
            try:
                listed = [tuple(each) for each in rows]
            except TypeError:
                raise _refused(f"{shown(rows)} are no rows", "give a list of tuples") from None
            for row in listed:
                if len(row) != width:
                    raise _refused(
                        f"{relation} has {width} columns, not {len(row)}", "give all of them"
                    )
            columns = [list(each) for each in zip(*listed, strict=True)]
        for at, column in enumerate(columns):
            numeric = at in self._numeric.get(relation, ())
            _check_column(relation, at, column, _NUMBERS if numeric else _KEYS)
        return listed


def initial_entries(definition: Definition) -> dict[Key, Any]:
    """What is in a map while all tables are empty: what its terms without relations give."""
    terms = normal_form(definition.body, frozenset(definition.key_names))
    made = [(*each.factors, constant(each.coefficient)) for each in terms if not each.atoms]
    found = rows_of(definition, made, {})
    return {_key([*map(_plain, key)]): _plain(value) for key, value in found.items() if value}


def _plain(value: Any) -> Any:
    return constant(value).value if isinstance(value, Fraction) else value


def numeric_columns(maps: Iterable[Definition]) -> dict[str, set[int]]:
    """The columns of each relation that are computed with, by position."""
    found: dict[str, set[int]] = {}
    for definition in maps:
        for each in monomials(definition.body, frozenset(definition.key_names)):
            term, _ = eliminated(each, definition.key_names, frozenset())
            numbers = frozenset[str]().union(*map(_numbers, term.factors))
            for atom in term.atoms:
                for at, argument in enumerate(atom.arguments):
                    if isinstance(argument, Variable) and argument.name in numbers:
                        found.setdefault(atom.relation, set()).add(at)
    return found


def _numbers(query: Expr) -> frozenset[str]:
    """The variables that are computed with; to compare or assign one is no computation."""
    if isinstance(query, Variable):
        return frozenset({query.name})
    parts = children(query)
    if isinstance(query, Comparison | Assignment):
        parts = tuple(each for each in parts if not isinstance(each, Variable))
    return frozenset[str]().union(*map(_numbers, parts))


def _check_column(relation: str, at: int, column: list[Any], allowed: tuple[type, ...]) -> None:
    kinds = set(map(type, column))
    bad = [each for each in kinds if each not in allowed]
    infinite = Decimal in kinds and any(
        isinstance(each, Decimal) and not each.is_finite() for each in column
    )
    if bad or infinite:
        what = bad[0].__name__ if bad else "a decimal that is no number"
        good = ", ".join(each.__name__ for each in allowed if each is not type(None))
        raise _refused(f"column {at + 1} of {relation} has {what}", f"give {good} or None")


def _parts(key: Key) -> Row:
    return key if isinstance(key, tuple) else (key,)


def _key(parts: list[Any]) -> Key:
    return parts[0] if len(parts) == 1 else tuple(parts)


def _written(value: Any) -> Any:
    """A value as JSON: plain where it is one of JSON's own, else with its type."""
    match value:
        case bool() | int() | str() | None:
            return value
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case _:
            return {"bytes": value.hex()}


def _read(value: Any) -> Any:
    match value:
        case {"decimal": text}:
            return Decimal(text)
        case {"datetime": text}:
            return datetime.fromisoformat(text)
        case {"date": text}:
            return date.fromisoformat(text)
        case {"bytes": text}:
            return bytes.fromhex(text)
        case bool() | int() | str() | None:
            return value
        case _:
            raise ValueError(value)


def _refused(problem: str, remedy: str) -> UserError:
    return UserError("G008", problem, remedy=remedy)
