"""Whether views equal their queries: the law, checked on the stored data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from everview.analysis.tie_sensitive import is_tie_sensitive
from everview.database.audit_query import Written, written_minus_stored
from everview.database.catalog.catalog import Catalog
from everview.database.error_context import report_damage
from everview.database.queries import only_known_to_spark
from everview.database.verdict import ViewAudit, judge
from everview.errors import UserError
from everview.expr.quoting import spark_name
from everview.lang.front_end import SQL
from everview.lang.sql.lower.query import lower_query
from everview.plan.build import add, negate
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import has_loops
from everview.runtime.protocol import Difference, Engine, Snapshot
from everview.runtime.retry import CalculationError

EMBEDDED = "the embedded engine has no other reader"
NO_SQL = "it is not written in SQL"
TIES = "rows tie, and Spark may take them in any order"
"""Why an audit compares a view with its query as we read it."""

NOT_MAINTAINABLE = "Q020"
"""The code of what the language of views cannot say."""
IN_BLOCKS = "Spark reads the recomputed parts of it, and we read the rest"


def audit_view(
    name: str, catalog: Catalog, engine: Engine, snapshot: Snapshot, *, from_tables: bool
) -> ViewAudit:
    """A view against its query: evaluated from the tables alone, or from what it reads."""
    if name not in catalog.views:
        raise UserError("C006", f"{name} is a table", remedy="audit a view")
    if (problem := catalog.beyond_reach.get(name)) is not None:
        message = f"{name} cannot be audited here: {problem.problem}"
        raise UserError("E015", message, remedy=problem.remedy)
    needed, tables = [name], list[str]()
    for each in needed:
        for read in catalog.reads(each):
            kind = needed if from_tables and read in catalog.views else tables
            if read not in kind:
                kind.append(read)
    texts = {
        each: view.query if view.language == SQL else catalog.written(each)
        for each, view in catalog.views.items()
        if each in needed
    }
    with report_damage(snapshot):
        try:
            found = _difference(name, texts, tuple(tables), engine, snapshot)
        except UserError as refusal:
            blocks = [part for each in needed for part in catalog.views[each].parts]
            if engine.text is None or refusal.code != NOT_MAINTAINABLE or not blocks:
                raise
            return _audit_in_blocks(name, needed, catalog, engine, snapshot)
    return judge(name, catalog.schema(name), found)


def _audit_in_blocks(
    name: str, needed: Sequence[str], catalog: Catalog, engine: Engine, snapshot: Snapshot
) -> ViewAudit:
    """A view that neither Spark nor we read as a whole, block by block.

    Spark reads the blocks that are recomputed, we read the rest over what is stored of them. If
    each block equals its query, and each view its own over them, the view equals its query.
    """
    assert engine.text is not None
    for each in (view for view in catalog.views if view in needed):
        for part in catalog.views[each].parts:
            reads = tuple(map(catalog.relation, part.reads))
            answer = engine.text.difference(part.name, {part.name: part.query}, reads, snapshot)
            if isinstance(answer, str) or answer.weighted.num_rows:
                why = f"a recomputed part of {each} differs from its query: {part.query}"
                return ViewAudit(name, None, (), (), why)
        stored = Source(each, snapshot.stored[each].schema)
        plan = add(catalog.written(each), negate(stored))
        found = _plan_difference(each, plan, engine, snapshot, IN_BLOCKS)
        verdict = judge(each, catalog.schema(each), found)
        if not verdict.ok and each != name:
            return ViewAudit(name, None, (), (), f"{each}, which it reads, differs from its query")
    return verdict


def _difference(
    name: str,
    written: Mapping[str, Written],
    tables: Sequence[str],
    engine: Engine,
    snapshot: Snapshot,
) -> Difference:
    """A view's query minus the view.

    Spark reads the text itself. What it does not read, and what it answers in one of several ways
    because rows tie, is compared with the text as we read it.
    """
    if engine.text is None:
        with only_known_to_spark():
            plan = written_minus_stored(name, written, snapshot, engine.analyze)
        return _plan_difference(name, plan, engine, snapshot, EMBEDDED)
    texts = {view: each for view, each in written.items() if isinstance(each, str)}
    all_sql = len(texts) == len(written)
    in_process = not all_sql
    try:
        answer = engine.text.difference(name, texts, tables, snapshot) if all_sql else NO_SQL
    except CalculationError as problem:
        # Spark infers conditions from others: from a = b AND b - 1 > 0 also a - 1 > 0, and so
        # computes with rows that join nothing. It would do the same to the plan.
        answer, in_process = f"Spark cannot compute it: {problem.problem}", True
    if isinstance(answer, Difference) and not answer.weighted.num_rows:
        return answer
    try:
        plan = written_minus_stored(name, written, snapshot, engine.analyze)
    except UserError:
        # A view that recomputes a part: only Spark reads it.
        if isinstance(answer, str):
            raise
        return answer
    if isinstance(answer, str):
        if has_loops(plan) or in_process:
            return _plan_difference(name, plan, engine, snapshot, answer)
    elif not is_tie_sensitive(plan) or engine.text.is_deterministic(name, texts, tables, snapshot):
        return answer
    ours = answer if isinstance(answer, str) else TIES
    found = engine.text.plan_difference(name, plan, snapshot)
    if found is None:
        return _plan_difference(name, plan, engine, snapshot, ours)
    return replace(found, ours=ours)


def _plan_difference(
    name: str, plan: Plan, engine: Engine, snapshot: Snapshot, ours: str
) -> Difference:
    """The rows of a plan, which is a view's query minus the view, all read from the segments."""
    source = Source(name, snapshot.stored[name].schema)
    sql = f"SELECT COUNT(*) AS n FROM {spark_name(name)}"
    count = lower_query(sql, {name.lower(): source}, engine.analyze)
    [rows] = engine.evaluate(count, snapshot, {}, cached=False).column("n").to_pylist()
    return Difference(rows, engine.evaluate(plan, snapshot, {}, cached=False), ours)
