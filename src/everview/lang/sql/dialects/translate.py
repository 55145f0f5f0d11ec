"""Text of another dialect as Spark's: each construct keeps its meaning there, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from everview.errors import UserError
from everview.expr.dialect import DIALECT
from everview.expr.types import Schema
from everview.lang.sql.bind.pure_functions import PURE
from everview.lang.sql.dialects import numbers, strings
from everview.lang.sql.dialects.meanings import (
    AS_SPARK,
    MEANINGS,
    SAME_EVERYWHERE,
    SAME_NAMES,
    WHOLE,
    Meaning,
)
from everview.lang.sql.dialects.site import ForeignText, Rewrite, TranslationSite, kind_of
from everview.lang.sql.dialects.types import FLOAT, INTEGER, Columns, Kinds, kind_of_type
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parameters import bind_parameters, bound
from everview.lang.sql.parse.parser import parse_statements
from everview.lang.sql.parse.statements import CopyTo, Explain, Parameters, Query, Statement
from everview.lang.sql.parse.trees import foreign_decimal_literal, read_foreign


def parse_dialect(
    text: str,
    dialect: str | None = None,
    tables: Callable[[], Mapping[str, Schema]] = dict,
    parameters: Parameters | None = None,
) -> tuple[Statement, ...]:
    """The statements of a text, in order. Another dialect is first turned into Spark's.

    What its operators mean depends on the types of their operands, so of the `tables` named.
    """
    if dialect is not None and not _is_spark(dialect):
        text = translated(text, dialect, tables(), parameters)
    elif parameters is not None:
        text = bound(text, parameters)
    return parse_statements(text)


def only_reads(text: str, dialect: str | None = None) -> bool:
    """Whether a text has statements, and none of them changes anything."""
    if dialect is None or _is_spark(dialect):
        statements = parse_statements(text)
        return bool(statements) and all(
            isinstance(each, Query | Explain | CopyTo) for each in statements
        )
    trees = read_foreign(text, dialect)
    return bool(trees) and all(isinstance(tree, exp.Query | exp.Values) for tree in trees)


def _is_spark(dialect: str) -> bool:
    return dialect.lower() == "spark"


def translated(
    text: str,
    dialect: str,
    tables: Mapping[str, Schema],
    parameters: Parameters | None = None,
) -> str:
    """A text of another dialect as one of Spark's, over tables whose columns are known."""
    trees = read_foreign(text, dialect)
    if parameters is not None:
        trees = bind_parameters(trees, text, parameters)
    name = dialect.lower()
    known: dict[str, Columns] = {
        table.lower(): {column.name.lower(): kind_of_type(column.type) for column in schema}
        for table, schema in tables.items()
    }
    meaning = MEANINGS.get(name, Meaning())
    literal = None if meaning.decimal_literals else foreign_decimal_literal(text, name)
    if literal is not None:
        raise UserError(
            "Q002",
            f"what {literal.stretch} means in {name} cannot be told here",
            span=literal,
            remedy="write the number itself, or CAST('1.5' AS DECIMAL(38, 9))",
        )
    if name not in AS_SPARK:
        for tree in trees:
            _translate(tree, ForeignText(name, meaning, text), known)
    return ";\n".join(tree.sql(dialect=QUERIES) for tree in trees)


def _translate(tree: exp.Expr, reading: ForeignText, known: dict[str, Columns]) -> None:
    """Rewrite a statement in place; what it declares is known to those after it."""
    _declared_types(tree, reading)
    quotient = INTEGER if reading.meaning.division.get(INTEGER) == WHOLE else FLOAT
    fractions, extracted = reading.meaning.fractions, reading.meaning.extracted
    kinds = Kinds(tree, known, fractions=fractions, quotient=quotient, extracted=extracted)
    declared = _declared(tree, kinds)
    rewrites: list[tuple[exp.Expr, Rewrite]] = []
    for node in tree.walk():
        rule = next((rule for types, rule in _RULES if isinstance(node, types)), None)
        if rule is None:
            _must_be_the_same(node, reading)
        elif (rewrite := rule(TranslationSite(node, reading, kinds))) is not None:
            rewrites.append((node, rewrite))
    for node, rewrite in reversed(rewrites):
        parent, key, index = node.parent, node.arg_key, node.index
        assert parent is not None
        assert key is not None
        translation = rewrite()
        parent.set(key, translation, index)
    known |= declared


def _must_be_the_same(node: exp.Expr, reading: ForeignText) -> None:
    """Refuse a function of which it is not known that it means the same in the dialect."""
    if not isinstance(node, exp.Func) or type(node).__name__ in SAME_EVERYWHERE:
        return
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    if not isinstance(node, exp.Anonymous) or name.lower() in PURE - SAME_NAMES:
        reading.refuse(node, f"the function {name.upper()}", "use Spark's dialect")


def _declared(tree: exp.Expr, kinds: Kinds) -> dict[str, Columns]:
    """The table or view that a statement makes, with the kinds of its columns."""
    if not isinstance(tree, exp.Create):
        return {}
    target, query = tree.this, tree.args.get("expression")
    name = target.this.name if isinstance(target, exp.Schema) else target.name
    parts = target.expressions if isinstance(target, exp.Schema) else []
    if not isinstance(query, exp.Query):
        defined = (part for part in parts if isinstance(part, exp.ColumnDef))
        columns = {each.name.lower(): kind_of(each.args.get("kind")) for each in defined}
        return {name.lower(): columns}
    outputs = kinds.outputs(query)
    if parts:
        outputs = {p.name.lower(): kind for p, kind in zip(parts, outputs.values(), strict=False)}
    return {name.lower(): outputs}


_TEXTS = ("VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "BPCHAR")


_DECIMALS = {"DECIMAL": "DECIMAL", "BIGDECIMAL": "BIGNUMERIC"}
"""Types of decimals, as they are written."""


def _declared_types(tree: exp.Expr, reading: ForeignText) -> None:
    """Give each type the name it has in Spark, where sqlglot gives it another one."""
    for convert in list(tree.find_all(exp.Convert)):
        if convert.args.get("style"):
            reading.refuse(convert, "CONVERT with a style", "write CAST")
        convert.replace(exp.Cast(this=convert.expression, to=convert.this))
    for type_ in list(tree.find_all(exp.DataType)):
        name = type_.this.name if isinstance(type_.this, exp.DataType.Type) else str(type_.this)
        wanted = reading.meaning.types.get(name)
        if name in _DECIMALS and not type_.expressions:
            wanted = reading.meaning.decimal if name == "DECIMAL" else None
            if wanted is None:
                remedy = "write how many digits it has: DECIMAL(38, 9), for instance"
                what = f"a {_DECIMALS[name]} without a number of digits"
                reading.refuse(type_, what, remedy)
        elif name == "BIGDECIMAL":
            type_.set("this", exp.DataType.Type.DECIMAL)
        if name in _TEXTS and reading.meaning.cuts_varchar is False:
            wanted = "STRING" if isinstance(type_.parent, exp.ColumnDef) else None
        elif name in ("CHAR", "NCHAR", "BPCHAR") and isinstance(type_.parent, exp.ColumnDef):
            wanted = ""
        if wanted == "" or name in ("TIME", "TIMETZ"):
            reading.refuse(
                type_, f"the type {name}", "use a type that Spark has too: DOUBLE, VARCHAR(n)"
            )
        if wanted:
            type_.replace(exp.DataType.build(wanted, dialect=DIALECT))


_RULES: tuple[
    tuple[tuple[type[exp.Expr], ...], Callable[[TranslationSite], Rewrite | None]], ...
] = (
    ((exp.Div,), numbers.division),
    ((exp.IntDiv,), numbers.whole_division),
    ((exp.Mod,), numbers.remainder),
    ((exp.Avg,), numbers.average),
    ((exp.Round,), numbers.rounded),
    ((exp.Log,), numbers.logarithm),
    ((exp.Greatest, exp.Least), numbers.extreme),
    ((exp.Cast,), numbers.converted),
    ((exp.Concat, exp.ConcatWs, exp.DPipe), strings.joined),
    ((exp.Add, exp.Sub), strings.added),
    ((exp.Like, exp.ILike), strings.like),
    ((exp.Upper, exp.Lower), strings.cased),
    ((exp.Substring,), strings.substring),
    ((exp.Left, exp.Right), strings.ends),
    ((exp.Length,), strings.length),
    ((exp.Extract,), strings.part),
    ((exp.DayOfWeek, exp.DayOfWeekIso), strings.day_of_week),
    ((exp.Week,), strings.week),
    ((exp.DateDiff, exp.TimestampDiff), strings.difference),
    ((exp.DateTrunc, exp.TimestampTrunc), strings.truncated),
    ((exp.DateAdd, exp.DateSub, exp.TsOrDsAdd), strings.moved),
    ((exp.TimeToStr,), strings.written),
    ((exp.Date,), strings.day),
    ((exp.RegexpReplace,), strings.replaced),
    ((exp.RegexpExtract,), strings.extracted),
    ((exp.Trunc,), numbers.cut),
    ((exp.Literal,), numbers.literal),
)
"""Every construct that is looked at, and the rule that gives it its meaning or refuses it."""
