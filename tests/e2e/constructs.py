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
    "in_on": "SELECT t.k FROM t JOIN u ON t.k = u.k AND u.v IN (SELECT v FROM p)",
    "exists_on": """SELECT t.k, u.v FROM t JOIN u ON t.k = u.k AND NOT EXISTS (
        SELECT 1 FROM p x WHERE x.v > u.v) LEFT JOIN p y ON y.k = t.k""",
    # Items of FROM
    "lateral": """SELECT t.k, x.z FROM t, LATERAL (SELECT SUM(v) AS z FROM u WHERE u.k = t.k) x""",
    "lateral_left": """SELECT t.k, x.v FROM t LEFT JOIN LATERAL (
        SELECT v FROM u WHERE u.k = t.k AND u.v > t.v) x ON TRUE""",
    "lateral_first": """SELECT t.k, x.a FROM t JOIN LATERAL (SELECT v, s FROM u WHERE u.k = t.k
        ORDER BY v DESC, s LIMIT 1) x(a, b) ON x.a > 1""",
    "lateral_leading": """SELECT x.z, t.v FROM LATERAL (SELECT MAX(k) AS m FROM u) x(z), t
        WHERE t.k <= x.z""",
    "generator_leading": "SELECT c, v FROM LATERAL explode(array(1, 2)) AS g(c), t WHERE c = k",
    "lateral_chain": """SELECT t.k, y.w FROM t, LATERAL (SELECT v FROM u WHERE u.k = t.k) x,
        LATERAL (SELECT x.v + t.v AS w) y""",
    "pivot": "SELECT * FROM t PIVOT (SUM(v) FOR k IN (1 AS one, 2))",
    "pivot_counts": "SELECT * FROM t PIVOT (SUM(v) AS a, COUNT(*) AS n FOR k IN (1 AS one, 2)) q",
    "pivot_texts": "SELECT * FROM t PIVOT (MAX(s) AS a, COUNT(*) AS n FOR k IN (1 AS one, 2))",
    "pivot_pairs": """SELECT one, two FROM (SELECT k, v, s FROM t)
        PIVOT (MAX(v) FOR (k, s) IN ((1, 'p') AS one, (2, 'q') AS two))""",
    "unpivot": """SELECT * FROM (SELECT id, CAST(k AS DECIMAL(10,2)) AS k, v FROM p)
        UNPIVOT (z FOR name IN (k AS key, v))""",
    "unpivot_pairs": """SELECT * FROM (SELECT id, k, s, k + 1 AS j FROM p)
        UNPIVOT INCLUDE NULLS ((a, b) FOR name IN ((k, s) AS x, (j, s)))""",
    "like_any": """SELECT k, s LIKE ALL ('%a%', '%') AS x, s NOT LIKE ANY ('a%', '%b') AS y FROM t
        WHERE s LIKE ANY ('a%', '%b', 'p') OR s ILIKE ANY ('Q') OR s NOT ILIKE ALL ('A%', '%C')""",
    "union_of_whole_tables": """SELECT q.v AS z FROM
        (SELECT * FROM t UNION ALL SELECT * FROM (SELECT * FROM t) AS i WHERE TRUE) AS q""",
    "wider_of_a_union": """SELECT try_mod(q.x, 6) AS z FROM
        (SELECT k AS x FROM t UNION ALL SELECT CAST(k AS BIGINT) AS x FROM u) AS q""",
    "natural_then_on": """SELECT * FROM (SELECT * FROM (SELECT k, v FROM t) a
        NATURAL JOIN (SELECT s AS w, k FROM u) b JOIN p ON a.k = p.k) q(a, b, c, d, e, f, g)""",
    "natural_order": """SELECT * FROM (SELECT * FROM (SELECT s, k FROM t) a
        NATURAL JOIN (SELECT k, s FROM u) b) q(a, b)""",
    "using_twice": """SELECT * FROM (SELECT * FROM t a JOIN (SELECT k, v AS w FROM u) b USING (k)
        LEFT JOIN (SELECT s, id FROM p) c USING (s)) q(a, b, c, d, e)""",
    "semi_using": "SELECT * FROM (SELECT * FROM t LEFT SEMI JOIN u USING (s)) q(a, b, c)",
    "fields_of_struct": """SELECT struct(x.*, v AS z) AS a, struct(t.*).s AS b, x.* FROM (
        SELECT v, s, named_struct('p', k, 'q', s) AS x FROM t) t""",
    "star_except": "SELECT * EXCEPT (v), t.* EXCEPT (k, s) FROM t",
    "range": """SELECT r.id, COUNT(t.k) AS n FROM range(-1, 6, 2) r LEFT JOIN t ON t.k = r.id
        CROSS JOIN range(2) GROUP BY r.id""",
    "constant_limit": "SELECT k, v, s FROM t ORDER BY k, v, s LIMIT 2 + CAST(1 AS INT)",
    "limit_in_exists": """SELECT k FROM t WHERE NOT EXISTS (
        SELECT 1 FROM u WHERE u.k = t.k LIMIT 3) OR EXISTS (SELECT 1 FROM p LIMIT 1)""",
    "limit_of_one_row": "SELECT COUNT(*) AS n, (SELECT MAX(v) FROM u LIMIT 1) AS m FROM t LIMIT 2",
    "joins_with_a_name": """SELECT x.a, d FROM (t JOIN u ON t.k = u.k) x(a, b, c, d, e, f)
        WHERE x.f > '' """,
    "no_limit": "SELECT k, v FROM t ORDER BY k LIMIT ALL",
    "time_window": """SELECT window.start AS a, window.end AS b, SUM(v) AS z FROM (
        SELECT timestamp_seconds(k * 70) AS at, v FROM t) GROUP BY window(at, '2 minutes')""",
    "sliding_windows": """SELECT window, s, COUNT(*) AS n FROM (
        SELECT timestamp_seconds(k * 70 - 100) AS at, s FROM t)
        GROUP BY s, window(at, '7 minutes', '3 minutes', 60000000) HAVING COUNT(*) > 1""",
    "window_of_window": """SELECT window(x, '5 minutes').end AS a, SUM(n) AS n FROM (
        SELECT window(timestamp_seconds(k * 70), '1 minute') AS x, COUNT(*) AS n FROM t
        GROUP BY window(timestamp_seconds(k * 70), '1 minute')) GROUP BY ALL""",
    "window_of_rows": """SELECT k, window(timestamp_seconds(k), '4 seconds', '2 seconds').start AS a
        FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)""",
    "sessions": """SELECT s, session_window.start AS a, session_window.end AS b, COUNT(*) AS n,
        SUM(v) AS z FROM (SELECT timestamp_seconds(k * 60 + length(s) * 25) AS at, s, v FROM t)
        GROUP BY s, session_window(at, '1 minute')""",
    "sessions_of_all": """SELECT session_window, COUNT(*) AS n FROM t
        GROUP BY session_window(timestamp_seconds(k * 90 + length(s)), '75 seconds')""",
    "sessions_apart": """SELECT session_window(timestamp_seconds(k), '5 seconds').end AS e, s
        FROM t""",
    "window_of_windows_at_once": """SELECT COUNT(*) AS n FROM t
        GROUP BY window(window(timestamp_seconds(k * 70), '1 minute'), '1 hour')""",
    # Groups of several kinds
    "rollup": "SELECT k, s, SUM(v) AS z, COUNT(*) AS n FROM t GROUP BY ROLLUP(k, s)",
    "cube": """SELECT k, s, MAX(v) AS z, GROUPING(k) AS a, GROUPING(s) AS b, GROUPING_ID(k, s) AS c
        FROM t GROUP BY CUBE(k, s)""",
    "grouping_sets": """SELECT k, s, COUNT(*) AS n, GROUPING_ID() AS g FROM t
        GROUP BY GROUPING SETS ((s), (k, s), (k), (k), ())""",
    "listed_sets": "SELECT k, s, GROUPING_ID() AS g FROM t GROUP BY k, s GROUPING SETS ((s), (k))",
    "with_rollup": """SELECT k, SUM(k) AS z FROM t GROUP BY k WITH ROLLUP
        HAVING GROUPING(k) = 1 OR SUM(v) > 1""",
    "with_cube_of_conditions": """SELECT (v > 1) AS p, (k = 1) AS q, COUNT(*) AS n,
        GROUPING((v > 1)) AS g FROM t GROUP BY (v > 1), (k = 1) WITH CUBE""",
    "nested_sets": """SELECT k, s, COUNT(v) AS n FROM t
        GROUP BY GROUPING SETS (ROLLUP(k, s), CUBE(s), ())""",
    "sets_beside_keys": "SELECT k, s, v, COUNT(*) AS n FROM t GROUP BY k, ROLLUP(s), CUBE(v)",
    "whole_set": "SELECT SUM(v) AS z FROM t GROUP BY GROUPING SETS (())",
    # Aggregates; doubles are rounded, as their last digits depend on the order of rows
    "spread": """SELECT s, ROUND(STDDEV(v), 6) AS a, ROUND(STDDEV_POP(k), 6) AS b,
        STD(k) IS NULL AS c, ROUND(VARIANCE(k), 6) AS d, ROUND(VAR_POP(DISTINCT v), 6) AS e,
        ROUND(VAR_SAMP(v) FILTER (WHERE k > 1), 6) AS f FROM t GROUP BY s""",
    "spread_of_all": "SELECT ROUND(STDDEV_SAMP(v), 6) AS a, ROUND(VAR_POP(k), 6) AS b FROM t",
    "pairs": """SELECT s, ROUND(COVAR_POP(k, v), 6) AS a, ROUND(COVAR_SAMP(k, v), 6) AS b,
        ROUND(CORR(k, v), 6) AS c FROM t GROUP BY s""",
    "regression": """SELECT s, ROUND(REGR_SLOPE(v, k), 6) AS a, ROUND(REGR_INTERCEPT(v, k), 6) AS b,
        ROUND(REGR_R2(v, k), 6) AS c, ROUND(REGR_SXX(v, k), 6) AS d, ROUND(REGR_SYY(v, k), 6) AS e,
        ROUND(REGR_SXY(v, k), 6) AS f, REGR_COUNT(v, k) AS g, REGR_AVGX(v, k) AS h,
        REGR_AVGY(v, k) AS i FROM t GROUP BY s""",
    "bits": """SELECT s, BIT_AND(k) AS a, BIT_OR(k) AS b, BIT_XOR(k) AS c, BIT_XOR(DISTINCT k) AS d
        FROM t GROUP BY s""",
    "max_by": """SELECT k, MAX_BY(v, id) AS a, MIN_BY(s, id) AS b,
        MAX_BY(s, id) FILTER (WHERE v > 1) AS c FROM p GROUP BY k""",
    "max_by_of_all": "SELECT MAX_BY(id, id) AS a, MIN_BY(v, id) AS b FROM p",
    "any_key": """SELECT k, ANY_VALUE(k) AS a, FIRST(k) IGNORE NULLS AS b, SUM(v) AS c
        FROM t GROUP BY k""",
    "median": """SELECT s, MEDIAN(v) AS a, MEDIAN(k) AS b, PERCENTILE(k, 0.3) AS c,
        MEDIAN(DISTINCT k) FILTER (WHERE v > 0) AS d, COUNT(*) AS n FROM t GROUP BY s""",
    "percentiles": """SELECT k, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY v DESC) AS a,
        PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY v) AS b,
        PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY v DESC) AS c FROM t GROUP BY k""",
    "mode": """SELECT k, MODE() WITHIN GROUP (ORDER BY s) AS a, MODE(v, TRUE) AS b,
        MODE() WITHIN GROUP (ORDER BY v DESC) AS c FROM t GROUP BY k""",
    "count_pairs": """SELECT s, COUNT(DISTINCT k, v) AS a, COUNT(k, v) AS b,
        COUNT(DISTINCT k, v) FILTER (WHERE v > 0) AS c FROM t GROUP BY s""",
    "moments_added_up": """SELECT s, SUM(timestamp_seconds(k)) AS a, AVG(timestamp_seconds(k)) AS b
        FROM t GROUP BY s""",
    "listagg": """SELECT k, LISTAGG(s, ',') WITHIN GROUP (ORDER BY s DESC) AS a,
        STRING_AGG(s) WITHIN GROUP (ORDER BY v, s) AS b,
        LISTAGG(v, '|') WITHIN GROUP (ORDER BY v) FILTER (WHERE k > 1) AS c FROM t GROUP BY k""",
    "listagg_distinct": """SELECT k, LISTAGG(DISTINCT s, ', ') WITHIN GROUP (ORDER BY s) AS a
        FROM t GROUP BY k""",
    "median_subquery": """SELECT k, (SELECT MEDIAN(u.v) FROM u WHERE u.k = t.k) AS m,
        (SELECT LISTAGG(u.s, '-') WITHIN GROUP (ORDER BY u.s) FROM u WHERE u.k = t.k) AS l
        FROM t""",
    "having_median": """SELECT k, COUNT(*) AS n FROM t GROUP BY k
        HAVING MEDIAN(v) > (SELECT MEDIAN(v) FROM u) OR STDDEV(v) IS NULL""",
    "spread_over": """SELECT id, ROUND(STDDEV(v) OVER (PARTITION BY k), 6) AS a,
        ROUND(VAR_POP(v) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), 6) AS b,
        ROUND(COVAR_POP(v, k) OVER (PARTITION BY s), 6) AS c FROM p""",
    "truth_over": """SELECT id, BOOL_AND(v > 1) OVER w AS a, SOME(v > 1) OVER w AS b,
        EVERY(v > 1) OVER w AS c, COUNT_IF(v > 1) OVER w AS d, BIT_OR(k) OVER w AS e,
        SUM(v) FILTER (WHERE k > 1) OVER w AS f FROM p WINDOW w AS (PARTITION BY s ORDER BY id)""",
    "ignore_nulls": """SELECT id, LAG(v) IGNORE NULLS OVER w AS a,
        LEAD(v, 2) IGNORE NULLS OVER w AS b, FIRST_VALUE(v) IGNORE NULLS OVER (ORDER BY id
            ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS c,
        LAST_VALUE(v, TRUE) OVER (PARTITION BY k ORDER BY id
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS d,
        NTH_VALUE(v, 2) IGNORE NULLS OVER (ORDER BY id
            RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS e
        FROM p WINDOW w AS (ORDER BY id)""",
    "computed_frame": """SELECT id, COUNT(*) OVER (ORDER BY id ROWS BETWEEN 1 + 1 PRECEDING
        AND -1 FOLLOWING) AS a FROM p""",
    "interval_frame": """SELECT id, COUNT(*) OVER (ORDER BY DATE_ADD(DATE '2024-01-30', k)
        RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND INTERVAL '2' DAY FOLLOWING) AS a,
        COUNT(*) OVER (ORDER BY DATE_ADD(DATE '2024-01-30', k)
        RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS b FROM p""",
    "above_average": "SELECT k, v FROM t WHERE v > (SELECT AVG(v) FROM u) OR k IS NULL",
    "join_under_or": """SELECT t.k, u.s FROM t, u WHERE (t.k = u.k AND t.v > 1 AND u.v > 0)
        OR (u.v < 5 AND t.k = u.k) OR (t.k = u.k AND t.s = 'p' AND u.s IS NULL)""",
    "absorbed_or": "SELECT t.k FROM t, u WHERE t.k = u.k OR (t.k = u.k AND t.v > u.v)",
    # Conditions that are cast, as Spark does after HAVING and QUALIFY and nowhere else
    "having_count": "SELECT k FROM t GROUP BY k HAVING COUNT(v)",
    "having_sum": "SELECT k, SUM(v) AS z FROM t GROUP BY k HAVING z",
    "having_text": "SELECT k FROM t GROUP BY k HAVING 'true'",
    "qualify_number": "SELECT id FROM p QUALIFY ROW_NUMBER() OVER (ORDER BY id) - 1",
    "null_safe_join": "SELECT t.v, u.s FROM t JOIN u ON t.k <=> u.k AND t.v > u.v",
    "null_safe_of_two": "SELECT t.v FROM t JOIN u ON t.k + 1 <=> u.k AND u.s <=> t.s",
    "null_safe_and_equal": "SELECT t.v FROM t LEFT JOIN u ON t.k <=> u.k AND u.s = t.s",
    "grouping_twice": """SELECT k, s, GROUPING(k) + GROUPING(s) AS l, RANK() OVER (
        PARTITION BY GROUPING(k) + GROUPING(s), CASE WHEN GROUPING(s) = 0 THEN k END
        ORDER BY SUM(v)) AS r FROM t GROUP BY ROLLUP (k, s)""",
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
    "range_of_each": """SELECT id, SUM(v) OVER w AS a, COUNT(*) OVER w AS b, AVG(k) OVER w AS c
        FROM p WINDOW w AS (PARTITION BY s, k ORDER BY id DESC
            RANGE BETWEEN 2 PRECEDING AND 3 FOLLOWING)""",
    "range_of_decimals": """SELECT k, v, MAX(s) OVER (PARTITION BY k ORDER BY v NULLS LAST
        RANGE BETWEEN 0.75 PRECEDING AND 1.5 FOLLOWING) AS a FROM t""",
    "range_of_seconds": """SELECT id, COUNT(v) OVER (PARTITION BY s ORDER BY at
        RANGE BETWEEN INTERVAL 90 MINUTE PRECEDING AND INTERVAL 5 MINUTE FOLLOWING) AS a
        FROM (SELECT id, v, s, timestamp_seconds(1000 * id - 9000) AS at FROM p)""",
    "range_of_several_units": """SELECT id, COUNT(v) OVER (ORDER BY at RANGE BETWEEN
        INTERVAL '0 1:30' DAY TO MINUTE PRECEDING AND INTERVAL '0 1:5' DAY TO MINUTE FOLLOWING
        ) AS a, COUNT(k) OVER (ORDER BY at RANGE INTERVAL 1 HOUR 5 MINUTES PRECEDING) AS c,
        COUNT(v) OVER (ORDER BY DATE(at) RANGE INTERVAL '0-1' YEAR TO MONTH PRECEDING) AS b
        FROM (SELECT id, k, v, timestamp_seconds(1000 * id - 9000) AS at FROM p)""",
    "range_joined": """SELECT q.n, u.v FROM (SELECT s, COUNT(*) OVER (ORDER BY k
        RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM t) AS q JOIN u ON q.s = u.s""",
    "first_of_each": "SELECT * FROM p QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) = 1",
    "qualify_groups": """SELECT k, COUNT(*) AS n, SUM(v) AS z FROM t GROUP BY k
        QUALIFY RANK() OVER (ORDER BY z) = 1""",
    "window_of_groups": """SELECT k, SUM(SUM(v)) OVER (ORDER BY k) AS z FROM t GROUP BY k""",
    "first_rows": "SELECT id, v FROM p ORDER BY v DESC, id LIMIT 2",
    "first_groups": "SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC, k LIMIT 1",
    "later_rows": "SELECT id FROM p ORDER BY id LIMIT 2 OFFSET 1",
    "first_ranks": """SELECT * FROM (SELECT k, v, RANK() OVER (PARTITION BY s ORDER BY v DESC) AS r,
        DENSE_RANK() OVER (PARTITION BY s ORDER BY v DESC) AS d FROM t) WHERE r <= 2 AND k > 0""",
    "first_values": """SELECT k, v, s FROM t
        QUALIFY 3 > DENSE_RANK() OVER (PARTITION BY k ORDER BY s DESC NULLS LAST)""",
    "second_of_each": """SELECT id, n FROM (
        SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM p)
        WHERE n BETWEEN 2 AND 3""",
    "first_of_joined": """SELECT p.id, u.v FROM p JOIN u ON p.k = u.k
        QUALIFY RANK() OVER (PARTITION BY p.s ORDER BY u.v, p.id) = 1""",
    "first_of_first": """SELECT k, MAX(v) AS z FROM (SELECT * FROM p ORDER BY v, id LIMIT 5)
        GROUP BY k ORDER BY z DESC, k LIMIT 2""",
    "joined_with_first": """SELECT t.v, q.id FROM t JOIN (
        SELECT * FROM p QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) = 1) AS q
        ON t.s = q.s""",
    "best_groups": """SELECT k, SUM(v) AS z, COUNT(*) AS n FROM t GROUP BY k
        ORDER BY z DESC NULLS LAST, k LIMIT 2 OFFSET 1""",
    "none_of_them": "SELECT id FROM p ORDER BY id LIMIT 0",
    "first_of_distinct": "SELECT DISTINCT k FROM t ORDER BY k LIMIT 2",
    # Functions that DuckDB alone would answer otherwise
    "logarithms": """SELECT k, ln(v) AS a, log10(v) AS b, log2(v) AS c, log(2.5, v) AS d,
        log1p(v) AS e, exp(v / 9) AS f, expm1(v) AS g, power(v, k) AS h FROM t""",
    "product_by_logarithms": "SELECT s, exp(SUM(ln(ABS(v) + 1))) AS z FROM t GROUP BY s",
    "json": """SELECT j, get_json_object(j, '$.k') AS a, get_json_object(j, '$.r.a[1]') AS b,
        json_array_length(get_json_object(j, '$.r.a')) AS n FROM (
            SELECT to_json(struct(k, struct(s, array(k, 7) AS a) AS r)) AS j FROM t)""",
    "tried": """SELECT TRY_CAST(s AS TIMESTAMP) AS a, try_to_timestamp(d, 'yyyyMMdd') AS b,
        split(d, '0', 2) AS c, luhn_check(d) AS e, to_number(n, '9') AS f, hex(unhex(d)) AS g
        FROM (SELECT s, CAST(20240100 + k AS STRING) AS d, CAST(abs(k) % 10 AS STRING) AS n
            FROM t)""",
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
    "window_range_of_days": """SELECT k, SUM(v) OVER (ORDER BY DATE_ADD(DATE '2026-01-01', k)
        RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM t""",
    "window_beside_the_same_sum": """SELECT k, v, SUM(v) AS a, SUM(v) OVER (ORDER BY k) AS b
        FROM t GROUP BY k, v""",
    "window_rank_of_something": "SELECT k, RANK(v) OVER (ORDER BY k) AS z FROM t",
    "window_ntile_of_one": "SELECT k, NTILE() OVER (ORDER BY k) AS z FROM t",
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

BEYOND_SPARK: dict[str, str] = {
    "all_any": """SELECT k, v > ALL (SELECT v FROM u) AS x, v <> SOME (SELECT v FROM u) AS z
        FROM t""",
    "all_where": "SELECT k, v FROM t WHERE v <= ALL (SELECT u.v FROM u WHERE u.k = t.k)",
    "any_or": """SELECT k, v FROM t WHERE v < ANY (SELECT u.v FROM u WHERE u.k = t.k)
        OR k = 2""",
    "all_having": """SELECT k, SUM(v) AS z FROM t GROUP BY k
        HAVING SUM(v) >= ALL (SELECT v FROM u WHERE u.k = t.k)""",
    "not_all": "SELECT k, v FROM t WHERE NOT v = ALL (SELECT u.v FROM u WHERE u.k = t.k)",
    "differs_from_all": "SELECT k, v FROM t WHERE v <> ALL (SELECT v FROM u WHERE u.k = t.k)",
    "join_condition": """SELECT k FROM t WHERE EXISTS (
        SELECT 1 FROM u a JOIN u b ON a.k = b.k AND b.v = t.v)""",
    "left_join_condition": """SELECT k, (SELECT COUNT(b.k) FROM u a
        LEFT JOIN u b ON a.k = b.k AND b.v = t.v) AS n FROM t""",
}
"""What Spark itself refuses: DuckDB means the same by it."""
