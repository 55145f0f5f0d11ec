"""Where plain Spark contradicts SQL, or itself, and Everview answers as SQL: the smallest cases.

`docs/differences-from-spark.md` is `page()`. A comparison with plain Spark leaves out the queries
in which one of the cases `occurs`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp, parse_one

from everview.expr.dialect import DIALECT

Row = tuple[object, ...]

TABLES: dict[str, tuple[Row, ...]] = {
    "t": ((1, 9), (2, 5)),
    "u": ((1, 3), (2, None), (3, 7)),
    "w": ((1, 7), (2, 8)),
}
"""The rows of the tables that the cases read, all with the columns k INT and v INT."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A query that plain Spark and Everview answer differently, and where else that happens."""

    title: str
    why: str
    query: str
    spark: tuple[Row, ...]
    ours: tuple[Row, ...]
    occurs: Callable[[exp.Expr], bool]


Types = Mapping[str, Mapping[str, str]]
"""The types of the columns of each relation, all names in lower case."""


def differs(query: str, types: Types | None = None) -> Difference | None:
    """The first difference that occurs in a query, None where Spark is the judge.

    `types` clears a query of the difference that needs operands of two types.
    """
    case = _first_difference(query)
    if case is not None and case.occurs is _limited_by_key and types is not None:
        return case if _limited_by_key(parse_one(query, read=DIALECT), types) else None
    return case


@lru_cache(maxsize=1024)
def _first_difference(query: str) -> Difference | None:
    tree = parse_one(query, read=DIALECT)
    return next((case for case in DIFFERENCES if case.occurs(tree)), None)


def _negated_ins(tree: exp.Expr) -> Iterator[exp.In]:
    """The IN (subquery) of a tree that are below a NOT, or compared with something."""
    for node in tree.find_all(exp.In):
        if node.args.get("query") and _below_not(node):
            yield node


def _below_not(node: exp.Expr) -> bool:
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        if isinstance(above, exp.Not | exp.EQ | exp.NEQ):
            return True
        above = above.parent
    return False


def _reads_around(tree: exp.Expr) -> bool:
    """A NOT IN inside a subquery that looks for a column of the query around."""
    for node in _negated_ins(tree):
        inner = node.find_ancestor(exp.Select)
        if inner is None or inner.find_ancestor(exp.Select) is None:
            continue
        if _is_conjunct(inner):
            continue
        own = {item.alias_or_name.lower() for item in _items(inner)}
        for column in node.this.find_all(exp.Column):
            if column.table and column.table.lower() not in own:
                return True
    return False


def _is_conjunct(query: exp.Select) -> bool:
    """Whether a query is asked by an EXISTS or IN that a condition holds only with, or without."""
    asked = query.parent
    while isinstance(asked, exp.Subquery | exp.Paren):
        asked = asked.parent
    if not isinstance(asked, exp.Exists | exp.In):
        return False
    above = asked.parent
    if isinstance(above, exp.Not):
        above = above.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where | exp.Having | exp.Qualify | exp.Join)


def _items(select: exp.Select) -> list[exp.Expr]:
    clause, joins = select.args.get("from_"), select.args.get("joins") or ()
    return [*([clause.this] if clause else []), *(join.this for join in joins)]


def _in_a_join(tree: exp.Expr) -> bool:
    """A NOT IN in ON that is not a condition of its own."""
    conditions = (join.args.get("on") for join in tree.find_all(exp.Join))
    for on in (each for each in conditions if isinstance(each, exp.Expr)):
        for node in _negated_ins(on):
            if node.find_ancestor(exp.Or, exp.Query) is not node.find_ancestor(exp.Query):
                return True
            if not isinstance(node.parent, exp.Not):
                return True
    return False


def _beside_its_opposite(tree: exp.Expr) -> bool:
    """The same IN with and without NOT in one query."""
    negated = list(_negated_ins(tree))
    plain = [each for each in tree.find_all(exp.In) if not any(each is n for n in negated)]
    return any(a == b for a in negated for b in plain if b.args.get("query"))


def _conditions_of_items(tree: exp.Expr) -> set[str]:
    """The names of columns that a subquery in FROM or WITH gives to an IN (subquery)."""
    return {
        node.alias.lower()
        for node in tree.find_all(exp.Alias)
        if any(each.args.get("query") for each in node.this.find_all(exp.In))
    }


def _of_a_joined_item(tree: exp.Expr) -> bool:
    """NOT of a column that is an IN in a subquery of FROM, where FROM joins it with another."""
    names = _conditions_of_items(tree)
    for select in tree.find_all(exp.Select):
        conditions = [select.args.get("where"), *(j.args.get("on") for j in _joins(select))]
        if _joins(select) and any(_denied(each, names) for each in conditions if each):
            return True
    return False


def _joins(select: exp.Select) -> list[exp.Expr]:
    return list(select.args.get("joins") or ())


def _denied(tree: exp.Expr, names: set[str]) -> bool:
    return any(c.name.lower() in names and _below_not(c) for c in tree.find_all(exp.Column))


def _in_qualify(tree: exp.Expr) -> bool:
    names = _conditions_of_items(tree)
    clauses = (select.args.get("qualify") for select in tree.find_all(exp.Select))
    return any(_denied(clause, names) for clause in clauses if clause)


def _first_filtered(tree: exp.Expr) -> bool:
    """FIRST_VALUE with FILTER over ROWS that begin where the partition does."""
    for node in tree.find_all(exp.Filter):
        window, spec = node.find_ancestor(exp.Window), None
        if window is not None:
            spec = window.args.get("spec")
        call = node.this.this if isinstance(node.this, exp.IgnoreNulls) else node.this
        if spec is None or not isinstance(call, exp.FirstValue | exp.First):
            continue
        ends = (spec.args.get("end"), spec.args.get("end_side"))
        whole = ends in (("CURRENT ROW", None), ("UNBOUNDED", "FOLLOWING"), (None, None))
        if spec.args.get("start") == "UNBOUNDED" and spec.args["kind"] == "ROWS" and whole:
            return True
    return False


def _limited_by_key(tree: exp.Expr, types: Types | None = None) -> bool:
    """LIMIT in a subquery whose key is compared with a value of another type, or a computed one.

    Two columns of one type are compared without a cast, and Spark answers as SQL does.
    """
    for inner in tree.find_all(exp.Select):
        if not inner.args.get("limit") or inner.find_ancestor(exp.Select) is None:
            continue
        own = {item.alias_or_name.lower() for item in _items(inner)}
        where = inner.args.get("where")
        for node in where.find_all(exp.EQ, exp.NullSafeEQ) if where else ():
            sides = (node.this, node.expression)
            around = [any(_is_around(c, own) for c in s.find_all(exp.Column)) for s in sides]
            if any(around) and not _of_one_type(tree, sides, types or {}):
                return True
    return False


def _compares_rows(tree: exp.Expr) -> bool:
    """Whether a row value is compared with another, or looked for in a list."""
    return any(
        isinstance(row.parent, exp.Predicate) and not row.parent.args.get("query")
        for row in tree.find_all(exp.Tuple)
    )


def _is_around(column: exp.Column, own: set[str]) -> bool:
    return bool(column.table) and column.table.lower() not in own


def _of_one_type(tree: exp.Expr, sides: tuple[exp.Expr, exp.Expr], types: Types) -> bool:
    """Whether both sides are columns of stored relations and have the same type."""
    tables = {each.alias_or_name.lower(): each.name.lower() for each in tree.find_all(exp.Table)}
    found = []
    for side in sides:
        if not isinstance(side, exp.Column):
            return False
        columns = types.get(tables.get(side.table.lower(), ""), {})
        found.append(columns.get(side.name.lower()))
    return found[0] is not None and found[0] == found[1]


_PULLED_UP = "Spark pulls the condition out of the subquery and forgets that it is not known."
_NOT_IN = "u.v NOT IN (SELECT v FROM w)"
_ITEM = "(SELECT k, v IN (SELECT v FROM w) AS x FROM u) AS u"
_SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"

DIFFERENCES = (
    Difference(
        "NOT IN of a column of the query around, in a scalar subquery",
        _PULLED_UP,
        f"SELECT u.k, (SELECT MIN(t.v) FROM t WHERE {_NOT_IN}) AS m FROM u",
        ((1, 5), (2, 5), (3, None)),
        ((1, 5), (2, None), (3, None)),
        _reads_around,
    ),
    Difference(
        "The same in EXISTS that is a value",
        _PULLED_UP,
        f"SELECT u.k, EXISTS (SELECT 1 FROM t WHERE {_NOT_IN}) AS m FROM u",
        ((1, True), (2, True), (3, False)),
        ((1, True), (2, False), (3, False)),
        _reads_around,
    ),
    Difference(
        "The same in EXISTS below OR",
        _PULLED_UP,
        f"SELECT u.k FROM u WHERE EXISTS (SELECT 1 FROM t WHERE {_NOT_IN}) OR u.k = 9",
        ((1,), (2,)),
        ((1,),),
        _reads_around,
    ),
    Difference(
        "The same in IN that is a value",
        _PULLED_UP,
        f"SELECT u.k, 5 IN (SELECT t.v FROM t WHERE {_NOT_IN}) AS m FROM u",
        ((1, True), (2, True), (3, False)),
        ((1, True), (2, False), (3, False)),
        _reads_around,
    ),
    Difference(
        "The same below OR in LATERAL",
        _PULLED_UP,
        f"SELECT u.k, x.v FROM u, LATERAL (SELECT v FROM t WHERE t.k > 9 OR {_NOT_IN}) AS x",
        ((1, 5), (1, 9), (2, 5), (2, 9)),
        ((1, 5), (1, 9)),
        _reads_around,
    ),
    Difference(
        "NOT IN below OR in ON",
        "Spark looks the row up and takes what is not found for not there. In WHERE it does not.",
        f"SELECT u.k, x.v FROM u JOIN t AS x ON u.k > x.v OR {_NOT_IN}",
        ((1, 5), (1, 9), (2, 5), (2, 9)),
        ((1, 5), (1, 9)),
        _in_a_join,
    ),
    Difference(
        "IN or its opposite",
        "Spark takes `x OR NOT x` for true, and has forgotten by then that x may not be known.",
        f"SELECT u.k FROM u WHERE u.v IN (SELECT v FROM w) OR {_NOT_IN}",
        ((1,), (2,), (3,)),
        ((1,), (3,)),
        _beside_its_opposite,
    ),
    Difference(
        "NOT of a column that is an IN, in a condition that a join keeps above itself",
        "Below the join the column is false where it is not known; above it NOT of that is true.",
        f"SELECT u.k FROM {_ITEM} JOIN t ON t.k = u.k WHERE NOT u.x OR t.v > 100",
        ((1,), (2,)),
        ((1,),),
        _of_a_joined_item,
    ),
    Difference(
        "NOT of a column that is an IN, in ON of an outer join",
        "As before: the column is computed below the join.",
        f"SELECT u.k, t.v FROM {_ITEM} LEFT JOIN t ON t.k = u.k AND NOT u.x",
        ((1, 9), (2, 5), (3, None)),
        ((1, 9), (2, None), (3, None)),
        _of_a_joined_item,
    ),
    Difference(
        "NOT of a column that is an IN, in QUALIFY",
        "As before: the column is computed below the window functions.",
        "SELECT k, ROW_NUMBER() OVER (ORDER BY k) AS r, v IN (SELECT v FROM w) AS x FROM u "
        "QUALIFY NOT x",
        ((1, 1, False), (2, 2, False)),
        ((1, 1, False),),
        _in_qualify,
    ),
    Difference(
        "FIRST_VALUE with FILTER over ROWS that begin where the partition does",
        "Spark computes the first value of the partition once, and forgets FILTER.",
        f"SELECT k, FIRST_VALUE(v) FILTER (WHERE v < 9) OVER (ORDER BY k {_SO_FAR}) AS f FROM t",
        ((1, 9), (2, 9)),
        ((1, None), (2, 5)),
        _first_filtered,
    ),
    Difference(
        "LIMIT in a subquery, by a key that is compared with a value of another type",
        "Spark takes the first rows of all keys together, where a cast or a computation stands "
        "between the key and the column of the query around.",
        "SELECT u.k, x.v FROM u, LATERAL "
        "(SELECT t.v FROM t WHERE t.k = CAST(u.k AS BIGINT) ORDER BY t.v LIMIT 1) AS x",
        ((2, 5),),
        ((1, 9), (2, 5)),
        _limited_by_key,
    ),
    Difference(
        "A NULL in a row value",
        "Spark compares structs, in which a NULL equals a NULL and is less than any value.",
        "SELECT k FROM u WHERE (k, v) = (k, v)",
        ((1,), (2,), (3,)),
        ((1,), (3,)),
        _compares_rows,
    ),
)


def page() -> str:
    """The page of the differences, as Markdown."""
    held = "; ".join(f"`{name}` holds {_rows(rows)}" for name, rows in TABLES.items())
    cases = (_section(number, case) for number, case in enumerate(DIFFERENCES, 1))
    return "\n\n".join((f"{_INTRODUCTION}: {held}.", *cases, _THE_SAME)) + "\n"


def _section(number: int, case: Difference) -> str:
    return (
        f"## {number}. {case.title}\n\n{case.why}\n\n```sql\n{case.query}\n```\n\n"
        "| plain Spark | Everview, as SQL |\n|---|---|\n"
        f"| {_rows(case.spark)} | {_rows(case.ours)} |"
    )


def _rows(rows: tuple[Row, ...]) -> str:
    return ", ".join(f"({', '.join(map(_value, row))})" for row in rows)


def _value(value: object) -> str:
    return "NULL" if value is None else str(value).lower()


_INTRODUCTION = """# Differences from Spark

Spark defines the answers of Everview. Where plain Spark 4.3 contradicts SQL's three-valued logic,
Everview answers as SQL does. PostgreSQL 15 was asked too, and agrees, but for the cases with
QUALIFY and FIRST_VALUE, which it does not read. Each difference is here with its smallest case;
`everview_fuzz/check/differences.py` holds them for programs; a test asks both engines and Spark.

The cases read three tables with the columns `k` and `v`"""

_THE_SAME = """## What is the same, and may surprise

- `IN (subquery)` and `NOT IN (subquery)` that are not known are false and not NULL, also as
  values: `SELECT a IN (…), NOT (a IN (…))` shows false, false for a NULL `a`. NOT is pushed to
  them first: through AND, OR, NOT, and through `=` and `<>` with TRUE and FALSE, but not through
  CASE, `COALESCE` or `IS`. So it is in Spark. `= ANY` and `<> ALL`, which Spark does not read, are
  NULL where they are not known, as in SQL.
- A column that is such an IN in a subquery of FROM or WITH means what it stands for in the WHERE
  and ON around it. In the SELECT list it does so if it is used once and FROM has nothing else;
  otherwise, and where NOT stands over an alias of the same SELECT list, it is a value, and NOT of
  a false value is true. Spark does so too, but changes its mind with the query that is put around.
  `NOT x` of such a column below DISTINCT, LIMIT or a set operation is refused.
- A column of a view is what is stored, so NOT of a false value is true. Spark looks through its
  views, and may then not know."""
