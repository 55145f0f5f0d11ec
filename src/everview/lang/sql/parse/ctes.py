"""Which names in a query are tables, and which are CTEs; which of those are recursive."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp


def reads_of(tree: exp.Expr) -> tuple[str, ...]:
    """The tables that a query names, without the names that its own WITH defines."""
    named = (table for table in tree.find_all(exp.Table) if table.name)
    return tuple(dict.fromkeys(table.name for table in named if cte_of(table) is None))


def cte_of(table: exp.Table) -> exp.CTE | None:
    """The common table expression that a name refers to, None where it refers to a table.

    Inside a WITH, only the expressions before it are visible, and those it recurses with.
    """
    below: exp.Expr = table
    while (node := below.parent) is not None:
        clause = node if isinstance(node, exp.With) else node.args.get("with_")
        if clause is not None and clause is not below and not table.db:
            ctes = clause.expressions
            visible = ctes[: ctes.index(below)] if clause is node else ctes
            names = {cte.alias.lower() for cte in visible}
            if isinstance(node, exp.With) and node.args.get("recursive"):
                names |= {*recursive_groups(node).get(below.alias.lower(), ())}
            if table.name.lower() in names:
                same = (cte for cte in ctes if cte.alias.lower() == table.name.lower())
                return next((cte for cte in same if isinstance(cte, exp.CTE)), None)
        below = node
    return None


def recursive_groups(clause: exp.With) -> dict[str, tuple[str, ...]]:
    """For each recursive name of a WITH: all names that are mutually recursive with it.

    These are the strongly connected components of the graph of which name reads which.
    """
    ctes = {cte.alias.lower(): cte for cte in clause.expressions}
    reads = {name: names_read(cte.this) & {*ctes} for name, cte in ctes.items()}
    reach = {name: _reachable(name, reads) for name in ctes}
    return {
        name: tuple(other for other in ctes if other in reach[name] and name in reach[other])
        for name in ctes
        if name in reach[name]
    }


def names_read(tree: exp.Expr) -> set[str]:
    """The names in lower case that a query reads, without those that it defines itself."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    unqualified = (node for node in tree.find_all(exp.Table) if not node.args.get("db"))
    return {node.name.lower() for node in unqualified} - own


def _reachable(name: str, reads: Mapping[str, set[str]]) -> set[str]:
    reached, waiting = set[str](), [name]
    while waiting:
        fresh = reads[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached
