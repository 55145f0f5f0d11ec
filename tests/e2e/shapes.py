"""Views that cover the language, built from shapes that fit on each other.

Every shape reads relations with the columns (k INT, v DECIMAL(10,2), s STRING) and has those
columns itself, so any shape can be a view over any other.
"""

from __future__ import annotations

SHAPES: dict[str, str] = {
    "filter": "SELECT f.* FROM (SELECT k, v, s FROM {a}) AS f WHERE f.v > 0.5 OR s IS NULL",
    "project": """SELECT k + 1 AS k, CAST(v * 2 AS DECIMAL(10,2)) AS v,
        CASE WHEN s = 'p' THEN 'q' ELSE s END AS s FROM {a}""",
    "spark_only": "SELECT k, v, soundex(concat(s, 'é')) AS s FROM {a} WHERE NOT s <=> lower('P')",
    "join": "SELECT x.k, y.v, x.s FROM {a} AS x JOIN {b} AS y ON x.k = y.k AND x.v <= y.v",
    "self_join": "SELECT x.k, y.v, x.s FROM {a} x, {a} y WHERE x.k = y.k AND x.s = y.s",
    "product": "SELECT x.k, y.v, y.s FROM {a} x CROSS JOIN {b} y WHERE x.k + y.k > 2",
    "three_tables": """SELECT x.k, z.v, y.s FROM {a} x JOIN {b} y ON x.k = y.k
        JOIN {c} z ON z.s = y.s AND z.k >= x.k""",
    "union_all": "SELECT k, v, s FROM {a} UNION ALL SELECT k, v, 'u' FROM {b} WHERE k IS NOT NULL",
    "union": "SELECT k, v, s FROM {a} UNION SELECT k, v, s FROM {b}",
    "distinct": "SELECT DISTINCT k, CAST(1 AS DECIMAL(10,2)) AS v, s FROM {a}",
    "group": """SELECT k, CAST(SUM(v) AS DECIMAL(10,2)) AS v, CAST(COUNT(*) AS STRING) AS s
        FROM {a} GROUP BY k""",
    "average": """SELECT CAST(COUNT(s) AS INT) AS k, CAST(AVG(v) AS DECIMAL(10,2)) AS v, s
        FROM {a} GROUP BY s HAVING COUNT(*) > 1 OR SUM(k) IS NULL""",
    "aliases": """SELECT key AS k, CAST(w AS DECIMAL(10,2)) AS v, CAST(next AS STRING) AS s FROM (
        SELECT k AS key, key + 1 AS next, SUM(v) AS total, total * 2 AS w
        FROM {a} GROUP BY key HAVING total > 0 OR COUNT(v) = 0)""",
    "global": """SELECT CAST(COUNT(v) AS INT) AS k, CAST(SUM(v) AS DECIMAL(10,2)) AS v,
        CAST(AVG(k) AS STRING) AS s FROM {a}""",
    "doubles": """SELECT k, CAST(SUM(CAST(v AS DOUBLE)) AS DECIMAL(10,2)) AS v, MAXS AS s FROM (
        SELECT k, v, CASE WHEN v > 1 THEN 'big' END AS MAXS FROM {a}) GROUP BY k, MAXS""",
    "cte": """WITH g AS (SELECT s, COUNT(*) AS n FROM {b} GROUP BY s)
        SELECT x.k, CAST(g.n AS DECIMAL(10,2)) AS v, x.s FROM {a} x JOIN g ON g.s = x.s""",
    "subquery": """SELECT d.k, d.v, d.s FROM (SELECT DISTINCT k, v, s FROM {a}) AS d
        JOIN (SELECT k FROM {b} WHERE v IS NOT NULL) AS e ON e.k = d.k""",
    "semi": "SELECT x.k, x.v, x.s FROM {a} x LEFT SEMI JOIN {b} y ON x.k = y.k AND x.s = y.s",
    "anti": "SELECT x.* FROM {a} x LEFT ANTI JOIN {b} y ON x.k = y.k AND x.v <= y.v",
    "left": "SELECT x.k, y.v, x.s FROM {a} x LEFT JOIN {b} y ON x.k = y.k AND y.v > 0",
    "full": """SELECT k, coalesce(x.v, y.v) AS v, y.s FROM {a} x FULL JOIN {b} y USING (k)""",
    "right": "SELECT y.k, x.v, y.s FROM {a} x RIGHT JOIN {b} y ON x.k = y.k AND x.v < y.v",
    "except_all": "SELECT k, v, s FROM {a} EXCEPT ALL SELECT k, v, s FROM {b}",
    "intersect": "SELECT k, v, s FROM {a} INTERSECT SELECT k, v, s FROM {b}",
    "extremes": """SELECT k, MIN(v) AS v, MAX(s) AS s FROM {a} GROUP BY k
        HAVING COUNT(DISTINCT s) < 3 OR SUM(v) FILTER (WHERE s = 'p') > 1""",
    "exists": """SELECT k, v, s FROM {a} x WHERE EXISTS (
        SELECT 1 FROM {b} y WHERE y.k = x.k AND (y.v > x.v OR x.s IS NULL))""",
    "not_in": "SELECT k, v, s FROM {a} WHERE k NOT IN (SELECT y.k FROM {b} y WHERE y.s <=> 'q')",
    "scalar": """SELECT k, (SELECT MAX(y.v) FROM {b} y WHERE y.k = x.k) AS v,
        CASE WHEN x.v IN (SELECT z.v FROM {c} z) THEN x.s ELSE 'no' END AS s FROM {a} x""",
    "values": """SELECT x.k, CAST(w.a AS DECIMAL(10,2)) AS v, w.b AS s FROM {a} x
        JOIN (VALUES (1, 'one'), (2, NULL), (NULL, 'none')) AS w(a, b) ON w.a = x.k""",
}

NEEDS_SPARK = frozenset({"spark_only"})
"""Shapes with a function that the embedded engine refuses by name."""


def shapes_for(engine: str) -> tuple[str, ...]:
    """The shapes that an engine can maintain."""
    return tuple(shape for shape in SHAPES if engine == "spark" or shape not in NEEDS_SPARK)


def query(shape: str, first: str) -> str:
    """The query of a shape over one relation, with the base tables beside it."""
    others = [name for name in ("t", "u") if name != first] * 2
    return SHAPES[shape].format(a=first, b=others[0], c=others[1])
