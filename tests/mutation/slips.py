"""Slips of the pen in programs and in SQL: what is written, and what was nearly written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType

from everview import compiler
from everview.differentiate import (
    lifting,
    mergeable,
    product_change,
    range_frame,
    recursion,
    top_k,
)
from everview.lang.sql.lower import (
    domain,
    frames,
    group_keys,
    grouping,
    outer_joins,
    set_operations,
    subquery_joins,
)
from everview.program import arrangements, loops, lowering, schedule
from everview.rewrite import (
    distinct,
    factorize,
    join_order,
    loop_normal_form,
    normalize,
    polynomial,
    prune,
    pushdown,
)
from everview.sqlgen import aggregates, sql
from mutation.planting import Fault, planted, source

Slip = tuple[str, str, str]
"""The fault's name, the text as it is, and the text with the slip."""

THRESHOLD = """ FROM {self._sub(child)}"
                    f"{self._grouped(schema)} HAVING SUM({WEIGHT}) > 0"""
WHOLE = """rows = self.consolidate(self.query(child), schema_of(child), ())
        if any"""
CROSSED = (
    "Lookup(lookup.keys, tuple((a, b) for (a, _), (_, b) in "
    "zip(lookup.pairs, lookup.pairs[::-1], strict=True)))"
)
"""A lookup whose columns agree with those of other keys."""
EITHER = "self._one() if isinstance(plan, Distinct) else total"

SLIPS: dict[ModuleType, tuple[Slip, ...]] = {
    compiler: (
        (
            "a change is not added to a state",
            "endings.append(Add(state.name, lowering.compute(change).name))",
            "lowering.compute(change)",
        ),
        (
            "a view is not published",
            "endings += (Publish(name, change_name(name)) for name in moved)",
            "pass",
        ),
        ("a view over a view does not follow", "changed.add(name)", "pass"),
        (
            "states do not follow views",
            "change = derivatives.change(state.plan, CIRCUIT)",
            "change = Policies(lowering, {*touched}).change(state.plan, CIRCUIT)",
        ),
    ),
    lowering: (
        (
            "the right side is looked up by keys in another order",
            "join(driver, self._joined(right, lookup)",
            f"join(driver, self._joined(right, {CROSSED})",
        ),
        (
            "the left side is looked up by keys in another order",
            "join(self.lower_lookup(left, lookup), driver",
            f"join(self.lower_lookup(left, {CROSSED}), driver",
        ),
        (
            "keys are looked up under the names that a map gives them",
            "return lowered, Lookup(lowered.child, named)",
            "return lowered, Lookup(lowered.child, pairs)",
        ),
        (
            "a slice is shared whatever its keys",
            'replace(fresh, result="")',
            'replace(fresh, result="", keys=())',
        ),
        (
            "equal names, another plan",
            "self._computed.get(plan)",
            "next(iter(self._computed.values()), None)",
        ),
        (
            "a slice is looked up by another key",
            'key = theirs.pop(by, "") if by',
            'key = theirs.pop(by, "") and lookup.pairs[-1][1] if by',
        ),
        (
            "a source is looked up by another key",
            "(theirs for _, theirs in lookup.pairs)",
            "(theirs for _, theirs in lookup.pairs[::-1])",
        ),
        ("a filter is left to a state that has none", "if serving.filtered:", "if True:"),
        (
            "a change counts as old",
            "        if not reads_change(plan):\n            return self._stored",
            "        if True:\n            return self._stored",
        ),
        (
            "both keys are looked for on the left",
            "for side in (plan.left, plan.right))",
            "for side in (plan.left, plan.left))",
        ),
        (
            "the other side is looked up by keys in another order",
            "by_join = Lookup(first, _turned(plan.on))",
            f"lookup = Lookup(first, _turned(plan.on)); by_join = {CROSSED}",
        ),
        ("a change of another table", "change_name(node.name)", "change_name('t')"),
    ),
    arrangements: (
        (
            "a state is filtered for one of its readers",
            "demands[0].predicate if len(predicates) == 1 else None",
            "demands[0].predicate",
        ),
        (
            "a state lacks what a filter looks at",
            "(demand.all_columns if predicate is None else demand.columns)",
            "demand.columns",
        ),
        (
            "a table is read without what a filter looks at",
            "if c.name in demand.all_columns",
            "if c.name in demand.columns",
        ),
        ("a state holds another plan", "state.plan == plan and", ""),
        ("states of one key have one name", "{by}\\n{content}", "{by}"),
        ("floats are looked up by their bits", "usable = searchable(schema, by)", "usable = by"),
        (
            "the first reader decides for all",
            "self._demands.setdefault(mark, []).append(demand)",
            "self._demands.setdefault(mark, [demand])",
        ),
    ),
    schedule: (
        ("keys of the second reader are lost", "first.keys + fetch.keys", "first.keys"),
        ("columns of the second reader are lost", "first.schema + fetch.schema", "first.schema"),
        ("a slice is fetched before its keys are known", "1 + max(", "max("),
        ("what is written is not consolidated", "consolidated=True", "consolidated=False"),
        (
            "a fetch by one column serves another",
            "(fetch.relation, fetch.reads_by)",
            "(fetch.relation, None)",
        ),
        ("a step forgets what was renamed", "Ref(renamed[node.name], node.schema)", "node"),
        (
            "slices by the keys of different results are one",
            'replace(step, result="")',
            'replace(step, result="", **({"keys": ()} if isinstance(step, Fetch) else {}))',
        ),
    ),
    sql: (
        ("a join takes the left weight", "l.{WEIGHT} * r.{WEIGHT} AS", "l.{WEIGHT} AS"),
        ("a join takes the right weight", "l.{WEIGHT} * r.{WEIGHT} AS", "r.{WEIGHT} AS"),
        ("a join adds weights", "l.{WEIGHT} * r.{WEIGHT} AS", "l.{WEIGHT} + r.{WEIGHT} AS"),
        ("a join loses its residual", "if plan.residual:", "if False:"),
        ("a join matches nulls", 'nested else "="', "nested else self.dialect.null_safe_equal"),
        (
            "a join does not match nulls",
            "self.dialect.null_safe_equal if plan.nulls",
            '"=" if plan.nulls',
        ),
        ("a negation keeps the sign", "{listed}-{WEIGHT}", "{listed}{WEIGHT}"),
        ("a sum of plans loses its right side", " UNION ALL {self._ordered(right, plan)}", ""),
        ("a sum of plans is a set", "} UNION ALL {self._ordered", "} UNION {self._ordered"),
        ("distinct and positive from two on", THRESHOLD, THRESHOLD.replace("> 0", "> 1")),
        ("distinct and positive from zero on", THRESHOLD, THRESHOLD.replace("> 0", ">= 0")),
        ("distinct and positive of any sign", THRESHOLD, THRESHOLD.replace("> 0", "<> 0")),
        ("distinct as often as it occurs", EITHER, "total"),
        ("positive once each", EITHER, "self._one()"),
        ("consolidation keeps only insertions", "SUM({column}) <> 0", "SUM({column}) > 0"),
        (
            "consolidation forgets the rings",
            "for column in (WEIGHT, *map(self._q, rings))",
            "for column in (WEIGHT,)",
        ),
        (
            "consolidation counts rows",
            'CAST(SUM({WEIGHT}) AS BIGINT) AS {WEIGHT}"\n        return',
            'CAST(COUNT(*) AS BIGINT) AS {WEIGHT}"\n        return',
        ),
        (
            "a total has the number of rows as its weight",
            "{made}CAST(SUM({WEIGHT}) AS BIGINT)",
            "{made}CAST(COUNT(*) AS BIGINT)",
        ),
        ("no rows have a total", "'' if keys else ' HAVING COUNT(*) > 0'", "''"),
        (
            "a count of rows ignores the weight",
            'if measure.column is None:\n            return f"CAST(SUM({WEIGHT})',
            'if measure.column is None:\n            return f"CAST(COUNT(*)',
        ),
        (
            "a count of values ignores the weight",
            'weight = f"CASE WHEN {column} IS NULL THEN 0 ELSE {WEIGHT} END"',
            'weight = f"CASE WHEN {column} IS NULL THEN 0 ELSE 1 END"',
        ),
        (
            "a count of values counts nulls",
            'weight = f"CASE WHEN {column} IS NULL THEN 0 ELSE {WEIGHT} END"',
            "weight = WEIGHT",
        ),
        (
            "a decimal sum ignores the weight",
            "self.dialect.times_weight(value, decimal) if decimal",
            "value if decimal",
        ),
        ("an integer sum ignores the weight", 'else f"{value} * {WEIGHT}"', "else value"),
        ("no values sum to null", "CAST(COALESCE(SUM({product}), 0) AS", "CAST(SUM({product}) AS"),
        (
            "a group needs two rows",
            'having = f" HAVING SUM({WEIGHT}) > 0"',
            'having = f" HAVING SUM({WEIGHT}) > 1"',
        ),
        (
            "a group needs no row",
            'having = f" HAVING SUM({WEIGHT}) > 0"',
            'having = f" HAVING SUM({WEIGHT}) >= 0"',
        ),
        (
            "a group of any sign",
            'having = f" HAVING SUM({WEIGHT}) > 0"',
            'having = f" HAVING SUM({WEIGHT}) <> 0"',
        ),
        (
            "the group without keys can vanish",
            'SUM({WEIGHT}) > 0" if keys else _ALWAYS',
            'SUM({WEIGHT}) > 0"',
        ),
        (
            "the empty group has null totals",
            'made.append(f"CAST(COALESCE(SUM({name}), 0) AS',
            'made.append(f"CAST(SUM({name}) AS',
        ),
        (
            "a group has its rows as its weight",
            "{''.join(made)}{self._one()} ",
            "{''.join(made)}SUM({WEIGHT}) AS {WEIGHT} ",
        ),
        (
            "a partition meets rows that cancel",
            WHOLE,
            WHOLE.replace(
                "self.consolidate(self.query(child), schema_of(child), ())", "self.query(child)"
            ),
        ),
        (
            "the partition without keys can vanish",
            "{self._grouped(own) or _ALWAYS}",
            "{self._grouped(own) or ' HAVING COUNT(*) > 0'}",
        ),
        (
            "a partition has every row once",
            "({self.dialect.repeat_rows(rows, listed)}) AS c",
            "({rows}) AS c",
        ),
        (
            "a window forgets its keys",
            "        if keys:\n            parts.append(",
            "        if False:\n            parts.append(",
        ),
        ("a window forgets its order", "if over.order:", "if False:"),
        (
            "a window has every row once",
            "copies = self.dialect.repeat_rows(rows, listed)",
            "copies = rows",
        ),
        ("a restriction loses nulls", "a))} {null_safe} ", "a))} = "),
        ("a restriction by nothing keeps all", " WHERE EXISTS ({rows})", ""),
        (
            "a restriction looks at the weight of its keys",
            "(SELECT DISTINCT {keys} FROM {self._sub(to)})",
            "(SELECT DISTINCT {keys} FROM {self._sub(to)} WHERE {WEIGHT} > 0)",
        ),
        ("a filter keeps all", " WHERE {condition}", ""),
        (
            "a value counts for nothing",
            "{', '.join((*made, self._one()))}",
            "{', '.join((*made, '0 AS ' + WEIGHT))}",
        ),
    ),
    aggregates: (
        (
            "a partition counts rows once",
            'CAST(COALESCE(SUM({WEIGHT}), 0) AS BIGINT)"',
            'CAST(COUNT(*) AS BIGINT)"',
        ),
        (
            "a partition counts values once",
            'present = f"SUM(CASE WHEN {column} IS NULL THEN 0 ELSE {WEIGHT} END)"',
            'present = f"SUM(CASE WHEN {column} IS NULL THEN 0 ELSE 1 END)"',
        ),
        (
            "a partition counts nulls",
            'present = f"SUM(CASE WHEN {column} IS NULL THEN 0 ELSE {WEIGHT} END)"',
            'present = f"SUM({WEIGHT})"',
        ),
        (
            "a partition sums decimals once",
            "SUM({dialect.times_weight(column, parts)})",
            "SUM({column})",
        ),
        (
            "a partition sums integers once",
            "SUM(CAST({column} AS {dialect.wide_integer}) * {WEIGHT})",
            "SUM(CAST({column} AS {dialect.wide_integer}))",
        ),
        (
            "a partition sums doubles once",
            "SUM(CAST({column} AS DOUBLE) * {WEIGHT})",
            "SUM(CAST({column} AS DOUBLE))",
        ),
        (
            "distinct values are counted as often as they occur",
            'f"COUNT({call.distinct}{call.args[0]})"',
            'f"COUNT({call.args[0]})"',
        ),
        (
            "distinct values are summed as often as they occur",
            "return _Call((value,), call.distinct",
            'return _Call((value,), ""',
        ),
        ("pairs are counted where one is missing", '" OR ".join', '" AND ".join'),
        ("an order is turned", "'DESC' if each.descending", "'ASC' if each.descending"),
        ("an order puts nulls last", "'FIRST' if each.nulls_first", "'LAST' if each.nulls_first"),
        (
            "the order of values is forgotten",
            "aggregate.order[0].descending if aggregate.order else False",
            "False",
        ),
        (
            "distinct values are taken as they are",
            'return lambda call: f"{function.upper()}({call.distinct}',
            'return lambda call: f"{function.upper()}(',
        ),
    ),
    mergeable: (
        ("a group forgets its old value", "known = add(old, negate(", "known = negate(add(old, "),
        (
            "a group that loses rows keeps its old value",
            "known = add(old, negate(restrict_to_keys(old, losing, node.keys)))",
            "known = old",
        ),
        (
            "a group that loses rows is not read",
            "add(restrict_to_keys(node.child, losing, node.keys), *gained)",
            "add(*gained)",
        ),
        ("an extreme is lost unseen", "_EXTREMES[aggregate.function]}", "'<>'}"),
        ("a tie is lost unseen", "{_EXTREMES[aggregate.function]}", "{aggregate.function and '>'}"),
        ("a group without values stays", 'f"{value} IS NULL OR {reached}"', "reached"),
        (
            "lost rows that matter are left out of the change",
            "losing, d_child, lost, kept)",
            "losing, d_child, lost)",
        ),
        ("groups without a key are not told apart", "nulls=True), taken", "nulls=False), taken"),
        (
            "groups that gain rows are read",
            "return positive(negate(d_child))",
            "return positive(d_child)",
        ),
        ("signed rows are merged", " and sign(plan.child) is not Sign.ANY", ""),
        ("a count of groups", '"sum" if a.function == "count" else', "a.function or"),
        ("a row without a value is counted", "THEN 0 ELSE 1 END", "THEN 1 ELSE 1 END"),
    ),
    top_k: (
        (
            "a group that lacks rows keeps those it had",
            "known = add(held, negate(restrict_to_keys(held, short, keys)))",
            "known = held",
        ),
        (
            "a group that lacks rows is not read",
            "rows = add(known, restrict_to_keys(child, short, keys), d_child)",
            "rows = add(known, d_child)",
        ),
        ("a group lacks nothing for want of one row", "(place, '<=', shape", "(place, '<', shape"),
        ("rows that go are not missed", "map_(add(held, d_child)", "map_(held"),
        ("ranks are counted by rows", '"dense_rank" if shape', '"row_number" if shape'),
        (
            "one row less is kept",
            "int(bound.name) - less if",
            "int(bound.name) - 1 if",
        ),
        ("a condition besides is forgotten", "if part != bound", "if part == bound"),
        ("what comes early is taken for late", '">=" if first', '"<=" if first'),
        ("an equal row is taken for a late one", "{value} {sign_} ", "{value} {sign_[0]} "),
        ("a null comes late", 'f"{value} IS NULL OR {scalar', 'f"{scalar'),
        ("what has no bound is passed over", " OR {scalar.column(bound)} IS NULL", ""),
        ("equal rows have as many numbers", 'function == "rank"', 'function == "none"'),
    ),
    lifting: (
        ("a pair comes with its left row", 'f"GREATEST({_STEP}, {scalar.column(other)})"', "_STEP"),
        ("what is reached is read at once", 'f"{_STEP} + 1"', "_STEP"),
        ("what is outside comes too late", '_output("1")', '_output("2")'),
    ),
    recursion: (
        (
            "earlier iterations have not changed",
            "add(old(plan), before(loop, each.inside[name], schema))",
            "old(plan)",
        ),
        (
            "what is outside has not changed",
            "return add(old(plan), outside[each.outside[name]])",
            "return old(plan)",
        ),
    ),
    loops: (
        (
            "nothing follows from an iteration",
            '"" if isinstance(later, Empty) else inner.compute(later).name',
            '""',
        ),
    ),
    range_frame: (
        ("a frame reaches as far as its nearer end", "max(reaches)", "min(reaches)"),
        ("cells are as narrow as can be", "max(2, *known)", "2"),
        ("a cell is touched from one side", 'side in "-+"', 'side in "+"'),
        ("rows are not read as far as they are touched", "(changed, 2)", "(changed, 1)"),
        ("only the cells of changed rows are touched", "(changed, 1)", "(changed, 0)"),
        ("rows that come are not near", "(add(rows, changed), rows)", "(rows, rows)"),
    ),
    product_change: (
        (
            "a factor that changes too is read as it was",
            "d_map = d(product.factors[other]) if other < place else _nothing(step.map)",
            "d_map = _nothing(step.map)",
        ),
        (
            "factors that change too are read as they are now, both ways",
            "if other < place else",
            "if other != place else",
        ),
        (
            "a map of factors that change too is read as it was",
            "d_map = _change(product, step.members, step.map, place, d)",
            "d_map = _nothing(step.map)",
        ),
        (
            "a map is read as all changes leave it",
            "if place < upto and not isinstance",
            "if not isinstance",
        ),
    ),
    factorize: (
        (
            "an equality within a factor is lost",
            "joined_by(plan, self.leaves[member], on)",
            "()",
        ),
        (
            "a condition within a factor is lost",
            "[*computed, *self.conditions]",
            "computed",
        ),
        (
            "what is subtracted is added",
            "(m.negative, self._summed(case, m))",
            "(False, self._summed(case, m))",
        ),
        (
            "a literal multiplies every factor",
            "own += literals if block == first else ()",
            "own += literals",
        ),
        (
            "rows whose operand is null are counted",
            "if not operands and not conditions:",
            "if not conditions:",
        ),
        (
            "a value is summed where another is null",
            "if conditions or not {*operands} <= {*texts}:",
            "if conditions:",
        ),
        (
            "a literal is left out",
            "literals = [each for each in monomial.literals if not _is(each, 1)]",
            "literals = []",
        ),
        (
            "a column that two relations have is of the first",
            "return self.keys[block].setdefault(text, self._name(text, block))",
            "return self.keys[self.blocks[0]].setdefault(text, self._name(text, block))",
        ),
    ),
    polynomial: (
        (
            "a case holds beside the one before it",
            "before += never if condition is not None else ()",
            "before += ()",
        ),
        (
            "a case holds only where the one before it is false",
            "NOT COALESCE({text}, FALSE)",
            "NOT ({text})",
        ),
        (
            "a difference is a sum",
            "right = _negated(b) if isinstance(tree, exp.Sub) else b",
            "right = b",
        ),
        (
            "a sum is there where one side is null",
            "dict.fromkeys(a.operands + b.operands)",
            "dict.fromkeys(a.operands)",
        ),
        (
            "twice negative is negative",
            "one.negative != other.negative",
            "one.negative or other.negative",
        ),
        (
            "a product of cases holds where one of them does",
            "Case(a.conditions + b.conditions, operands",
            "Case(a.conditions, operands",
        ),
        (
            "a value of two relations is of the first",
            "if len(places) == 1 and cannot_raise(tree, self.schema):\n            (place,) =",
            "if places and cannot_raise(tree, self.schema):\n            place, *_ =",
        ),
    ),
    normalize: (
        (
            "a join forgets that NULL equals NULL",
            "on, residual, nulls)\n        case D",
            "on, residual)\n        case D",
        ),
        ("a row without elements goes", "position, outer=outer)", "position)"),
    ),
    join_order: (
        (
            "joins are arranged and so are their columns",
            "columns_of(plan))\n    fresh",
            "columns_of(joined))\n    fresh",
        ),
    ),
    pushdown: (
        ("a filter passes a group by what is not its key", "<= set(keys))", "or set(keys))"),
        (
            "a filter passes the group without keys",
            "if scalar.columns(p) and scalar.columns(p) <=",
            "if scalar.columns(p) <=",
        ),
        ("a filter of one side of a sum", "push(right, predicates))", "right)"),
        (
            "a filter of the left goes to the right",
            "if used <= set(columns_of(node.left)):",
            "if used <= set(columns_of(node.right)):",
        ),
        (
            "a null-safe equality is a plain one",
            "made = join(left, right, on, residual, nulls)",
            "made = join(left, right, on, residual)",
        ),
    ),
    distinct: (
        (
            "a distinct below a subtraction goes",
            "positive = sign(node.child) <= Sign.POSITIVE",
            "positive = True",
        ),
        ("a bag is taken for a set", "child if is_set(child) else distinct(child)", "child"),
    ),
    prune: (
        ("what a filter looks at is pruned", "needed | scalar.columns(predicate)", "needed"),
        ("what a window orders by is pruned", "{order.column for order in column.order} | ", ""),
        (
            "the columns of a set are pruned",
            "Distinct(prune(child, frozenset(columns_of(child))))",
            "Distinct(prune(child, needed))",
        ),
    ),
    loop_normal_form: (
        (
            "a body loses its distinct",
            "equations[name] = distinct(named(body.child))",
            "equations[name] = named(body.child)",
        ),
    ),
    subquery_joins: (
        ("NOT IN an empty list is not known", "`rows` = 0 OR ({known})", "{known}"),
        ("a NULL in the list is passed over", "`rows` = `known` AND NOT", "NOT"),
        ("NULL is not in a list", " AND NOT {scalar.column(left)} IS NULL", ""),
        (
            "a pair with a NULL is not in a list",
            "left_columns), _NONE), columns",
            "left_columns), '`yes` = 0'), columns",
        ),
    ),
    outer_joins: (
        (
            "a left join keeps every row beside NULLs",
            "padded_with_nulls(anti_join_on(left, right, condition), joined)",
            "padded_with_nulls(left, joined)",
        ),
        ("a full join forgets the right side", 'side in ("RIGHT", "FULL")', 'side == "RIGHT"'),
        (
            "a condition on the left decides which rows stay",
            "filter_(left, scalar.conjunction(ours))",
            "left",
        ),
        (
            "a condition on the right is forgotten",
            "filter_(right, scalar.conjunction(theirs))",
            "right",
        ),
    ),
    group_keys: (
        (
            "a rollup has no total",
            "range(len(parts), -1, -1)]\n        case exp.Cube",
            "range(len(parts), 0, -1)]\n        case exp.Cube",
        ),
    ),
    grouping: (
        (
            "a key that is left out is shown",
            "if name in by else null_of(type_)",
            "if name else null_of(type_)",
        ),
        (
            "GROUPING tells the keys there are",
            "(key not in grouped_by) <<",
            "(key in grouped_by) <<",
        ),
    ),
    domain: (
        ("values without rows have no group", "add(counted, map_(values, missing))", "counted"),
        ("values without rows are counted", "replace(a, column=_IS_ROW) if", "a if"),
    ),
    frames: (
        (
            "a frame ends where it begins",
            "{kind} BETWEEN {start} AND {end}",
            "{kind} BETWEEN {start} AND {start}",
        ),
        ("rows are a range", 'return f"{kind} BETWEEN', 'return f"RANGE BETWEEN'),
    ),
    set_operations: (
        (
            "EXCEPT ALL is a set",
            "return positive(add(left, negate(right)))",
            "return distinct(positive(add(left, negate(right))))",
        ),
        (
            "INTERSECT ALL keeps the left side",
            "add(left, negate(positive(add(left, negate(right)))))",
            "left",
        ),
    ),
}


def faults() -> list[Fault]:
    """Every slip, each in a copy of its own."""
    return [
        Fault(module, "slip", what, partial(_planted, module, source(module), right, wrong))
        for module, slips in SLIPS.items()
        for what, right, wrong in slips
    ]


@contextmanager
def _planted(module: ModuleType, text: str, right: str, wrong: str) -> Iterator[None]:
    assert text.count(right) == 1, f"not once in the source: {right}"
    with planted(module, text.replace(right, wrong)):
        yield
