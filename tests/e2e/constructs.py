"""The constructs of the language that are maintained without recomputation, each in one view.

Every query reads the tables t, u (k INT, v DECIMAL(10,2), s STRING) and p (with a key, id), and
its answer does not depend on the order of rows, so that plain Spark can be asked for it.
"""

from __future__ import annotations

CONSTRUCTS: dict[str, str] = {
    # Subqueries
    "scalar_limit": """SELECT k, (SELECT MAX(u.v) FROM u WHERE u.k = t.k
        ORDER BY 1 LIMIT 1 OFFSET 1) AS m FROM t""",
    "scalar_sort": """SELECT k, (SELECT u.v FROM u WHERE u.k = t.k
        ORDER BY u.v DESC, u.s LIMIT 1) AS m FROM t""",
    "not_in_correlated": "SELECT k, v FROM t WHERE v NOT IN (SELECT u.v FROM u WHERE u.k = t.k)",
    "not_in_value": "SELECT k, v NOT IN (SELECT u.v AS rows FROM u) AS x FROM t",
    "in_pairs": """SELECT k, v FROM t WHERE (k, v) IN (SELECT k AS yes, v AS open FROM u)""",
    "not_in_pairs": "SELECT k, v FROM t WHERE (k, v) NOT IN (SELECT k, v FROM u)",
    "two_of_one_name": """SELECT k, (SELECT MAX(v) AS value FROM u WHERE u.k = t.k) AS x,
        (SELECT MIN(v) AS value FROM u WHERE u.k = t.k) AS y FROM t""",
    "same_twice": """SELECT k, (SELECT MAX(v) FROM u WHERE u.k = t.k) AS a,
        (SELECT MAX(v) FROM u WHERE u.k = t.k) + 1 AS b FROM t
        WHERE (SELECT MAX(v) FROM u WHERE u.k = t.k) > 0""",
    "aggregate_in": "SELECT k, SUM(v) AS s FROM t GROUP BY k HAVING SUM(v) IN (SELECT v FROM u)",
    "aggregate_in_value": "SELECT k, MAX(v) IN (SELECT v FROM u) AS s FROM t GROUP BY k",
    "aggregate_not_in_value": """SELECT k, MAX(v) NOT IN (SELECT v FROM u WHERE u.k = t.k) AS s
        FROM t GROUP BY k""",
    "alias_in": "SELECT k, SUM(v) AS z FROM t GROUP BY k HAVING z IN (SELECT v FROM u)",
    "group_by_in": """SELECT v IN (SELECT v FROM u) AS z, COUNT(*) AS n FROM t GROUP BY 1""",
    "in_inside_aggregate": """SELECT SUM(CASE WHEN v IN (SELECT v FROM u) THEN 1 ELSE 0 END) AS z
        FROM t""",
    "subquery_in_subquery": """SELECT k FROM t WHERE (SELECT MAX(v) FROM u WHERE u.k = t.k)
        IN (SELECT v FROM p)""",
    "subquery_of_union": """SELECT k FROM t WHERE v IN (
        SELECT v FROM u WHERE u.k = t.k UNION ALL SELECT 7)""",
    "in_or": "SELECT k FROM t WHERE v IN (SELECT v FROM u) OR k = 2",
    "exists_with_join": """SELECT k FROM t WHERE EXISTS (
        SELECT 1 FROM u a JOIN p b ON a.k = b.k WHERE b.v = t.v)""",
    "not_exists": "SELECT k, v FROM t WHERE NOT (EXISTS (SELECT 1 FROM u WHERE u.k = t.k))",
    "subquery_in_window": """SELECT k, SUM((SELECT MAX(v) FROM u WHERE u.k = t.k)) OVER () AS z
        FROM t""",
    # Windows and first rows
    "running_total": "SELECT k, SUM(v) OVER (PARTITION BY s ORDER BY k) AS z FROM t",
    "rank_all": "SELECT k, v, RANK() OVER (ORDER BY v DESC NULLS LAST) AS z FROM t",
    "row_number": """SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) AS z FROM p""",
    "lag_lead": """SELECT id, LAG(v) OVER w AS a, LEAD(v, 2, 0) OVER w AS b FROM p
        WINDOW w AS (PARTITION BY s ORDER BY id)""",
    "moving_average": """SELECT id, AVG(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING
        AND 1 FOLLOWING) AS z FROM p""",
    "range_frame": """SELECT id, COUNT(*) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING
        AND CURRENT ROW) AS z FROM p""",
    "first_of_each": "SELECT * FROM p QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) = 1",
    "qualify_groups": """SELECT k, COUNT(*) AS n, SUM(v) AS z FROM t GROUP BY k
        QUALIFY RANK() OVER (ORDER BY z) = 1""",
    "window_of_groups": """SELECT k, SUM(SUM(v)) OVER (ORDER BY k) AS z FROM t GROUP BY k""",
    "first_rows": "SELECT id, v FROM p ORDER BY v DESC, id LIMIT 2",
    "first_groups": "SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC, k LIMIT 1",
    "later_rows": "SELECT id FROM p ORDER BY id LIMIT 2 OFFSET 1",
    "first_of_distinct": "SELECT DISTINCT k FROM t ORDER BY k LIMIT 2",
    # Arrays, structs and the rows made of them
    "arrays": """SELECT array(k, 1) AS a, struct(k, s AS word) AS r, array(struct(v, k)) AS ar,
        size(array(s, 'x')) AS n, array_contains(array(k, 2), 2) AS has FROM t""",
    "group_by_array": "SELECT array(k, k) AS a, COUNT(*) AS n FROM t GROUP BY array(k, k)",
    "group_by_struct": "SELECT r, SUM(v) AS z FROM (SELECT struct(k, s) AS r, v FROM t) GROUP BY r",
    "distinct_arrays": "SELECT DISTINCT array(s, 'p') AS a, struct(k AS x) AS r FROM t",
    "join_on_array": """SELECT x.k, y.v FROM t x JOIN u y ON array(x.k, 1) = array(y.k, 1)""",
    "fields": """SELECT r.word, r.deep.k AS deep, q.r.deep.a[1] AS one FROM (
        SELECT struct(s AS word, struct(k, array(k, 7) AS a) AS deep) AS r FROM t) AS q""",
    "except_arrays": "SELECT array(k) AS a FROM t EXCEPT ALL SELECT array(k) FROM u",
    "least_array": "SELECT s, MIN(array(k, 1)) AS a, MAX(struct(v, k)) AS r FROM t GROUP BY s",
    "last_array": """SELECT k, ROW_NUMBER() OVER (PARTITION BY s ORDER BY array(k, id)) AS n
        FROM p""",
    "higher_order": """SELECT transform(array(k, 1), x -> x + k) AS a,
        filter(array(k, 2), x -> x > 1) AS b, exists(array(s, 'p'), x -> x = 'p') AS c,
        aggregate(array(k, 1), 0, (acc, x) -> acc + coalesce(x, 0)) AS d FROM t""",
    "variables": """SELECT transform(a, x -> x + y) AS b FROM (
        SELECT array(k, 2) AS a, k AS y, v AS x FROM t)""",
    "explode": "SELECT k, explode(array(s, 'x')) AS e FROM t",
    "explode_outer": """SELECT s, explode_outer(CASE WHEN k > 1 THEN array(k, v) END) FROM t""",
    "posexplode": "SELECT posexplode(array(v, k)) AS (at, e), k FROM t",
    "posexplode_outer": """SELECT k, posexplode_outer(CASE WHEN k > 1 THEN sequence(1, k) END)
        FROM t""",
    "two_generators": "SELECT explode(array(k, 1)) AS a, explode(array(s, 'x')) AS b FROM t",
    "inline": "SELECT inline(array(struct(k AS a, s AS b), struct(0 AS a, 'none' AS b))), v FROM t",
    "stack": "SELECT s, stack(2, k, v, k + 1) AS (a, b) FROM t",
    "lateral_view": "SELECT k, c FROM t LATERAL VIEW explode(array(s, 'q')) w AS c WHERE c <> ''",
    "lateral_view_outer": """SELECT k, at, c FROM t
        LATERAL VIEW OUTER posexplode(CASE WHEN v > 0 THEN array(v, k) END) w AS at, c""",
    "lateral_views": """SELECT a, b FROM t LATERAL VIEW explode(array(array(k), array(1, 2))) AS a
        LATERAL VIEW OUTER explode(a) AS b""",
    "lateral_function": """SELECT t.k, x.c FROM t, LATERAL explode(array(t.s, 'x')) AS x(c)
        WHERE x.c > ''""",
    "left_lateral": """SELECT t.k, x.c FROM t
        LEFT JOIN LATERAL explode(filter(array(t.k), y -> y > 1)) AS x(c) ON TRUE""",
    "count_exploded": """SELECT e, COUNT(*) AS n, SUM(v) AS z FROM (
        SELECT explode(array(k, 1)) AS e, v FROM t) GROUP BY e""",
    "distinct_exploded": "SELECT DISTINCT explode(array(k, 1)) AS e FROM t",
    "join_exploded": """SELECT x.e, y.v FROM (SELECT explode(array(k, 1)) AS e FROM t) x
        JOIN u y ON y.k = x.e""",
    "explode_groups": "SELECT s, explode(sort_array(collect_set(k))) AS e FROM t GROUP BY s",
    "exists_exploded": """SELECT k FROM t WHERE EXISTS (
        SELECT 1 FROM u LATERAL VIEW explode(array(u.k, 2)) AS e WHERE e = t.k)""",
    "collect_list": """SELECT s, sort_array(collect_list(k)) AS a, sort_array(array_agg(v)) AS b
        FROM t GROUP BY s""",
    "collect_set": """SELECT k, sort_array(collect_set(s)) AS a, COUNT(*) AS n,
        sort_array(array_agg(DISTINCT v)) AS b FROM t GROUP BY k""",
    "collect_all": "SELECT sort_array(collect_list(v)) AS a, size(collect_set(s)) AS n FROM t",
    "collect_structs": """SELECT s, sort_array(collect_list(struct(k, v))) AS a,
        sort_array(collect_list(array(v, k))) AS b FROM t GROUP BY s""",
    "having_exists": """SELECT k FROM t GROUP BY k
        HAVING exists(collect_list(v), x -> x > 1) AND MAX(struct(s, v)).s > ''""",
    "collect_joined": """SELECT x.k, sort_array(collect_list(y.s) FILTER (WHERE y.v > 0)) AS a
        FROM t x LEFT JOIN u y ON x.k = y.k GROUP BY x.k""",
}
