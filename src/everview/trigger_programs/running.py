"""Trigger programs that run in this process: rows come and go, and results are always there."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.arguments import did_you_mean, shown
from everview.errors import UserError
from everview.lang.agca.evaluate import rows_of
from everview.lang.agca.factorize import eliminated
from everview.lang.agca.normal_form import constant, monomials, normal_form
from everview.lang.agca.syntax import (
    Assignment,
    Atom,
    Comparison,
    Definition,
    Expr,
    Extract,
    Variable,
    children,
    names_in,
    walk,
)
from everview.trigger_programs.codegen import Batch, Key, generate, restoring
from everview.trigger_programs.columns import (
    EXACT,
    BadValueError,
    Columns,
    Ints,
    integers,
    is_text,
    values,
)
from everview.trigger_programs.program import TriggerProgram, print_program
from everview.trigger_programs.statement_tree import Index

SNAPSHOT_VERSION = 2
"""The version of the text of snapshots: from 2 on they have a checksum."""
Row: TypeAlias = tuple[Any, ...]
Maps: TypeAlias = dict[str, dict[Key, Any]]
Indexes: TypeAlias = dict[Index, dict[Key, dict[Key, None]]]

_KEYS = (int, Decimal, str, bool, date, datetime, bytes, type(None))
_NUMBERS = (int, Decimal, type(None))
_FAILURES = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What Python raises where it computes with values that do not go together."""
_WEIGHT_MAX = 1_000_000
_WRITTEN_MAX = 10**1000
"""A larger whole number is written in base 16: Python writes no longer ones in base 10."""


class Triggers:
    """A trigger program and its maps, in memory.

    Rows are not kept, only the maps: to delete a row that was never inserted makes counts negative.
    A call that is refused has changed nothing.
    """

    def __init__(self, program: TriggerProgram, columns: Columns | None = None) -> None:
        self._program = program
        self._columns = columns
        self._generated = generate(program, columns)
        self._numeric = numeric_columns(program.maps)
        self._widths = {each.relation: len(each.row) for each in program.triggers}
        self._read = columns_read(program)
        self._install({each.name: initial_entries(each) for each in program.maps})

    @property
    def text(self) -> str:
        """The program as text."""
        return print_program(self._program)

    def insert(self, relation: str, rows: Any) -> None:
        """Insert rows: tuples, or an Arrow table or batch."""
        try:
            if type(rows) is list and len(rows) == 1:
                self._inserting[relation](rows[0])
                return
        except _FAILURES as problem:
            raise self._failed(relation, 1, rows) from problem
        self._change(relation, 1, rows)

    def delete(self, relation: str, rows: Any) -> None:
        """Delete rows: tuples, or an Arrow table or batch."""
        try:
            if type(rows) is list and len(rows) == 1:
                self._deleting[relation](rows[0])
                return
        except _FAILURES as problem:
            raise self._failed(relation, -1, rows) from problem
        self._change(relation, -1, rows)

    def apply(self, changes: Iterable[tuple[str, Row, int]]) -> None:
        """Apply changes of any relations at once: the relation, the row and its weight."""
        weighed: dict[tuple[str, int], list[Row]] = {}
        for each in _iterated(changes, "changes", "give a list of (relation, row, weight)"):
            if not isinstance(each, tuple | list) or len(each) != 3:
                raise _refused(f"{shown(each)} is no change", "give (relation, row, weight)")
            relation, row, weight = each
            if type(weight) is not int or abs(weight) > _WEIGHT_MAX:
                remedy = f"give a whole number of at most {_WEIGHT_MAX}"
                raise _refused(f"{shown(weight)} is no weight", remedy)
            self._must_be_known(relation)
            sign = 1 if weight > 0 else -1
            weighed.setdefault((relation, sign), []).extend([row] * abs(weight))
        self._apply([(*event, self._batch(*event, rows)) for event, rows in weighed.items()])

    def _change(self, relation: str, sign: int, rows: Any) -> None:
        self._must_be_known(relation)
        self._apply([(relation, sign, self._batch(relation, sign, rows))])

    def _failed(self, relation: str, sign: int, rows: list[Any]) -> UserError:
        """What a row that failed is told: what is wrong with its values, or with computing."""
        try:
            self._must_be_known(relation)
            self._batch(relation, sign, rows)
        except UserError as found:
            return found
        return _not_computed(relation, rows[0])

    def result(self, view: str | None = None) -> list[Row]:
        """The rows of a view: its group variables and the value; of the only one if not named."""
        names = {each.name: each for each in self._program.views}
        found = names[self._named(view, names)]
        values, counts = self._maps[found.values], self._maps[found.counts]
        arity = len(next(e for e in self._program.maps if e.name == found.counts).keys)
        if not arity:
            return [(values.get((), 0),)]
        return [
            (*(key if arity > 1 else (key,)), values.get(key, 0))
            for key, count in counts.items()
            if count > 0
        ]

    def _named(self, view: str | None, names: Iterable[str]) -> str:
        known = list(names)
        if view is None and len(known) == 1:
            return known[0]
        if view not in known:
            remedy = f"{_near(view, known)}there are: {', '.join(known)}"
            raise _refused(f"there is no view {shown(view)} here", remedy)
        assert view is not None
        return view

    def snapshot(self) -> str:
        """All state as text, exactly; `restore` reads it."""
        maps = {
            name: [[[_written(k) for k in _parts(key)], _written(v)] for key, v in entries.items()]
            for name, entries in self._maps.items()
        }
        kept = {"version": SNAPSHOT_VERSION, "program": self.text, "checksum": checksum_of(maps)}
        return json.dumps({**kept, "maps": maps})

    def restore(self, snapshot: str) -> None:
        """Take over the state of a snapshot, which must be one of the same program."""
        try:
            raw = json.loads(snapshot)
            version, text, listed = raw["version"], raw["program"], raw["maps"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise _refused("this is no snapshot", "give what snapshot() returned") from None
        if version != SNAPSHOT_VERSION or text != self.text:
            problem = "the snapshot is of another version" if text == self.text else ""
            raise _refused(
                problem or "the snapshot is of another program", "restore it where it was taken"
            )
        try:
            if raw["checksum"] != checksum_of(listed):
                raise ValueError(listed)
            maps = {
                each.name: _entries(each, self._key_checks(each), listed[each.name])
                for each in self._program.maps
            }
        except (ValueError, LookupError, TypeError, ArithmeticError):
            raise _refused("the snapshot is damaged", "take it again") from None
        self._install(maps)

    def _key_checks(self, map_: Definition) -> list[Callable[[Any], Any]]:
        """What reads each part of a key of a map, as a value of the column that it is from."""
        columns = self._columns
        if columns is None:
            return [_read] * len(map_.keys)
        places = {
            argument.name: (atom.relation, at)
            for atom in walk(map_.body)
            if isinstance(atom, Atom)
            for at, argument in enumerate(atom.arguments)
            if isinstance(argument, Variable)
        }

        def reading(relation: str, at: int) -> Callable[[Any], Any]:
            return lambda value: columns.checked(relation, at, _read(value))

        return [reading(*places[k]) if k in places else _read for k in map_.key_names]

    # State

    def _install(self, maps: Maps) -> None:
        """Replace all state in one step: the maps, their indexes, and the functions over them."""
        indexes: Indexes = {each: {} for each in self._generated.indexes}
        for index, entries in indexes.items():
            for key in maps[index.map]:
                parts = _parts(key)
                part = _key([parts[at] for at in index.positions])
                entries.setdefault(part, {})[key] = None
        functions = self._generated.functions(self._program, maps, indexes, self._checked)
        restore = restoring(self._program, maps, indexes)
        known = self._widths if self._columns is None else self._columns.schemas
        self._inserting = {each: self._single(each, 1) for each in known}
        self._deleting = {each: self._single(each, -1) for each in known}
        self._maps, self._functions, self._restore_entry = maps, functions, restore

    def _single(self, relation: str, sign: int) -> Callable[[Any], None]:
        """What one row does, which it checks; it is compiled when it is first called."""
        if self._columns is None:
            return lambda row: self._change(relation, sign, [row])

        def first(row: Any) -> None:
            if relation in self._widths:
                run = self._functions.row[relation, sign]
            else:
                width = self._width(relation)

                def run(row: Any) -> None:
                    if len(row) != width:
                        raise ValueError

            (self._inserting if sign > 0 else self._deleting)[relation] = run
            run(row)

        return first

    def _apply(self, changes: Iterable[tuple[str, int, _Rows]]) -> None:
        """Run events in order; if one fails, those before it are taken back."""
        log: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        with localcontext(EXACT):
            try:
                for relation, sign, rows in changes:
                    if isinstance(rows, _Filtered):
                        entries: list[tuple[Any, ...]] = []
                        log.append((self._restore_all, (entries,)))
                        self._functions.batch[relation, sign](rows.columns, entries, rows.number)
                    else:
                        self._one_by_one(relation, sign, rows, log)
            except BaseException:
                for undo, arguments in reversed(log):
                    undo(*arguments)
                raise

    def _one_by_one(
        self,
        relation: str,
        sign: int,
        rows: list[Row],
        log: list[tuple[Callable[..., None], tuple[Any, ...]]],
    ) -> None:
        """Rows of which each sees what those before it did."""
        if relation not in self._widths:
            return
        run = self._functions.row[relation, sign]
        undo = self._functions.row[relation, -sign]
        for row in rows:
            try:
                run(row)
            except _FAILURES as problem:
                raise _not_computed(relation, row) from problem
            log.append((undo, (row,)))

    def _restore_all(self, entries: list[tuple[Any, ...]]) -> None:
        for number, added, olds in reversed(entries):
            for key, old in zip(added, olds, strict=True):
                self._restore_entry(number, key, old)

    # Rows

    def _must_be_known(self, relation: object) -> None:
        known = self._widths if self._columns is None else self._columns.schemas
        if not isinstance(relation, str) or relation not in known:
            remedy = f"{_near(relation, known)}there are: {', '.join(known)}"
            raise _refused(f"no view reads {shown(relation)}", remedy)

    def _width(self, relation: str) -> int:
        if self._columns is None:
            return self._widths[relation]
        return len(self._columns.schemas[relation])

    def _batch(self, relation: str, sign: int, rows: Any) -> _Rows:
        """Rows as the functions for an event take them: checked, and filtered column by column."""
        width = self._width(relation)
        arrow = isinstance(rows, pa.Table | pa.RecordBatch)
        if arrow:
            given = list(rows.columns)
            if len(given) != width:
                raise _refused(
                    f"{relation} has {width} columns, not {len(given)}", "give all of them"
                )
        else:
            rows, given = _tuples(relation, width, rows)
        if self._columns is None:
            if arrow:
                given = [_listed(relation, at, column) for at, column in enumerate(given)]
                rows = list(zip(*given, strict=True))
            for at, column in enumerate(given):
                numeric = at in self._numeric.get(relation, ())
                _check_column(relation, at, column, _NUMBERS if numeric else _KEYS)
            return list(rows)
        batch = self._generated.filtered.get((relation, sign))
        if batch is not None:
            number = rows.num_rows if arrow else len(rows)
            if not number:
                return _Filtered([[] for _ in batch.columns], 0)
            return self._filtered(relation, batch, given, number)
        if arrow:
            listed = (_listed(relation, at, column) for at, column in enumerate(given))
            rows = list(zip(*listed, strict=True))
        if relation not in self._widths:
            return []
        return [self._checked(relation, row) for row in rows]

    def _filtered(self, relation: str, batch: Batch, given: list[Any], number: int) -> _Filtered:
        columns = {at: self._column(relation, at, given[at]) for at in batch.columns}
        kept = _kept(batch, columns)
        if kept is not None:
            number = int(kept.sum())
            mask = pa.array(kept)
            columns = {at: column.filter(mask) for at, column in columns.items()}
        return _Filtered([values(columns[at]) for at in batch.columns], number)

    def _column(self, relation: str, at: int, given: Any) -> pa.Array:
        assert self._columns is not None
        try:
            if isinstance(given, tuple):
                return self._columns.array(relation, at, list(given))
            return self._columns.conform(relation, at, given)
        except BadValueError as problem:
            raise self._bad_value(relation, at, problem) from None

    def _bad_value(self, relation: str, at: int, problem: BadValueError) -> UserError:
        assert self._columns is not None
        column = self._columns.schemas[relation][at]
        null = self._columns.may_be_null(relation, at)
        return _refused(
            f"column {column.name} of {relation} has {problem}",
            f"give values of {self._columns.declared(relation, at)}{' or None' if null else ''}",
        )

    def _checked(self, relation: str, row: Any) -> Row:
        """A row with the values that maps keep, in the columns that are read."""
        columns = self._columns
        if columns is None:
            return tuple(row)
        _tuples(relation, self._width(relation), [row])
        read = self._read[relation]
        made: list[Any] = []
        for at, value in enumerate(row):
            try:
                made.append(columns.checked(relation, at, value) if at in read else value)
            except BadValueError as problem:
                raise self._bad_value(relation, at, problem) from None
        return tuple(made)


@dataclass(frozen=True, slots=True)
class _Filtered:
    """The columns of rows that an event's batches take, and how many rows there are."""

    columns: list[list[Any]]
    number: int


_Rows: TypeAlias = "list[Row] | _Filtered"


def _tuples(relation: str, width: int, rows: Any) -> tuple[list[Row], list[tuple[Any, ...]]]:
    """Rows and their columns."""
    listed = list(_iterated(rows, "rows", "give a list of tuples"))
    for row in listed:
        if isinstance(row, str | bytes | bytearray) or not isinstance(row, Sequence):
            raise _refused(f"{shown(row)} is no row of {relation}", "give a list of tuples")
    wrong = {*map(len, listed)} - {width}
    if wrong:
        raise _refused(f"{relation} has {width} columns, not {min(wrong)}", "give all of them")
    return listed, list(zip(*listed, strict=True))


def _iterated(given: Any, what: str, remedy: str) -> Iterator[Any]:
    """What is in something that can be iterated; an error of its own is not ours."""
    if not isinstance(given, str | bytes | Mapping):
        try:
            return iter(given)
        except TypeError:
            pass
    raise _refused(f"{shown(given)} are no {what}", remedy)


def _listed(relation: str, at: int, column: Any) -> list[Any]:
    """An Arrow column as values of Python."""
    try:
        column.validate(full=True)
        found: list[Any] = column.to_pylist()
        return found
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        problem = f"column {at + 1} of {relation} has values of {column.type} that cannot be read"
        raise _refused(problem, "convert the values first") from None


_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _kept(batch: Batch, columns: Mapping[int, pa.Array]) -> npt.NDArray[np.bool_] | None:
    """Which rows satisfy the filters of a batch; None if all do."""
    kept: npt.NDArray[np.bool_] | None = None
    for each in batch.filters:
        sides = [each.left, each.right] if each.is_column else [each.left]
        found = [_filled_integers(columns[at]) for at in sides]
        mask = _COMPARE[each.operator](found[0], found[1] if each.is_column else each.right)
        for at in sides:
            if columns[at].null_count:
                mask &= columns[at].is_valid().to_numpy(zero_copy_only=False)
        kept = mask if kept is None else kept & mask
    return None if kept is None or kept.all() else kept


def _filled_integers(column: pa.Array) -> Ints:
    """A column in units, with any number where it is NULL."""
    if column.null_count:
        decimal = pa.types.is_decimal(column.type)
        zero = pa.scalar(Decimal(0) if decimal else 0, column.type)
        column = column.fill_null(zero)
    found = integers(column)
    assert found is not None
    return found


def initial_entries(definition: Definition) -> dict[Key, Any]:
    """What is in a map while all tables are empty: what its terms without relations give."""
    terms = normal_form(definition.body, frozenset(definition.key_names))
    made = [(*each.factors, constant(each.coefficient)) for each in terms if not each.atoms]
    found = rows_of(definition, made, {})
    return {_key([*map(_plain, key)]): _plain(value) for key, value in found.items() if value}


def _plain(value: Any) -> Any:
    return constant(value).value if isinstance(value, Fraction) else value


def columns_read(program: TriggerProgram) -> dict[str, set[int]]:
    """The columns of each relation that statements use, by position."""
    found: dict[str, set[int]] = {}
    for trigger in program.triggers:
        used = {n for s in trigger.statements for n in (*names_in(s.body), *s.keys, *s.given)}
        places = {at for at, name in enumerate(trigger.row) if name in used}
        found.setdefault(trigger.relation, set()).update(places)
    return found


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
    if isinstance(query, Comparison | Assignment | Extract):
        parts = tuple(each for each in parts if not isinstance(each, Variable))
    return frozenset[str]().union(*map(_numbers, parts))


def _check_column(relation: str, at: int, column: list[Any], allowed: tuple[type, ...]) -> None:
    kinds = set(map(type, column))
    bad = [each for each in kinds if each not in allowed]
    infinite = Decimal in kinds and any(
        isinstance(each, Decimal) and not each.is_finite() for each in column
    )
    if str in kinds and any(isinstance(each, str) and not is_text(each) for each in column):
        problem = f"column {at + 1} of {relation} has half of a surrogate pair"
        raise _refused(problem, "decode the bytes it comes from with the encoding they have")
    if bad or infinite:
        what = f"a value of {bad[0].__name__}" if bad else "a decimal that is no number"
        good = ", ".join(each.__name__ for each in allowed if each is not type(None))
        raise _refused(f"column {at + 1} of {relation} has {what}", f"give {good} or None")


def _entries(
    map_: Definition, checks: list[Callable[[Any], Any]], listed: Any
) -> dict[Key, int | Decimal]:
    """The entries of a map from a snapshot: numbers other than 0, each with a key of its own."""
    found: dict[Key, int | Decimal] = {}
    for parts, value in listed:
        number = _read(value)
        if type(number) not in (int, Decimal) or not number or not Decimal(number).is_finite():
            raise ValueError(map_.name)
        found[_key([check(part) for check, part in zip(checks, parts, strict=True)])] = number
    if len(found) < len(listed):
        raise ValueError(map_.name)
    return found


def checksum_of(maps: Any) -> str:
    """What tells the entries of a snapshot from damaged ones."""
    return sha256(json.dumps(maps).encode()).hexdigest()


def _parts(key: Key) -> Row:
    return key if isinstance(key, tuple) else (key,)


def _key(parts: list[Any]) -> Key:
    return parts[0] if len(parts) == 1 else tuple(parts)


def _written(value: Any) -> Any:
    """A value as JSON: plain where it is one of JSON's own, else with its type."""
    match value:
        case int() if abs(value) >= _WRITTEN_MAX:
            return {"int": hex(value)}
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
        case {"int": text}:
            return int(text, 16)
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


def _near(name: object, known: Iterable[str]) -> str:
    return did_you_mean(name, known) if isinstance(name, str) else ""


def _not_computed(relation: str, row: Any) -> UserError:
    return _refused(
        f"the row {shown(row)} of {relation} holds values that a view cannot compare or multiply",
        "give values of the types that the view compares and multiplies",
    )


def _refused(problem: str, remedy: str) -> UserError:
    return UserError("G008", problem, remedy=remedy)
