"""Bad input over the whole language: what is said, and the statements it is said of."""

from __future__ import annotations

SETUP = """
CREATE TABLE t (k INT, v INT, a ARRAY<INT>);
CREATE TABLE u (k INT PRIMARY KEY, v INT NOT NULL);
CREATE TABLE t2 (k INT, d DATE, s STRING, m DECIMAL(5,2), y TINYINT);
CREATE VIEW vw AS SELECT k, SUM(v) AS s FROM u GROUP BY k;
INSERT INTO u VALUES (1, 2), (3, 4);
INSERT INTO t VALUES (1, 2, array(1, 2))
"""

VIEWS = """
Q001 ARRAY_AGG takes 1 arguments, not 2
    SELECT ARRAY_AGG(v, k) AS z FROM u
Q001 COALESCE does not have the arguments that it needs
    SELECT COALESCE() AS z FROM u
Q001 COLLECT_LIST takes 1 arguments, not 2
    SELECT COLLECT_LIST(v, k) AS z FROM u
Q001 COLLECT_SET takes 1 arguments, not 0
    SELECT COLLECT_SET() AS z FROM u
Q001 CORR does not have the arguments that it needs
    SELECT CORR(v) AS z FROM u
Q001 COUNT takes at least 1 arguments, not 0
    SELECT COUNT() AS z FROM u
Q001 COUNT_IF takes 1 arguments, not 2
    SELECT COUNT_IF(v > 1, k) AS z FROM u
Q001 CUME_DIST takes 0 arguments, not 1
    SELECT CUME_DIST(v) OVER (ORDER BY k) AS z FROM u
Q001 DATE_ADD does not have the arguments that it needs
    SELECT DATE_ADD(k) AS z FROM u
Q001 FIRST_VALUE does not have the arguments that it needs
    SELECT FIRST_VALUE() OVER (ORDER BY k) AS z FROM u
Q001 FIRST_VALUE takes at most 1 arguments, not 2
    SELECT FIRST_VALUE(v, 3) OVER (ORDER BY k) AS z FROM u
    SELECT FIRST_VALUE(v, k) OVER (ORDER BY k) AS z FROM u
Q001 GREATEST takes at least 2 arguments, not 1
    SELECT GREATEST(k) AS z FROM u
Q001 GROUPING takes 1 arguments, not 0
    SELECT GROUPING() AS z FROM u GROUP BY ROLLUP(k)
Q001 GROUPING takes 1 arguments, not 2
    SELECT GROUPING(k, v) AS z FROM u GROUP BY ROLLUP(k, v)
Q001 IF does not have the arguments that it needs
    SELECT IF(k) AS z FROM u
Q001 IN lists nothing
    SELECT k FROM u WHERE k IN ()
    SELECT * FROM u PIVOT (SUM(v) FOR k IN ())
Q001 LEAD takes 1 to 3 arguments, not 4
    SELECT LEAD(v, 1, 2, 3) OVER (ORDER BY k) AS z FROM u
Q001 MODE takes at most 2 arguments, not 3
    SELECT MODE(v, 1, 2) AS z FROM u
Q001 NTH_VALUE takes 2 arguments, not 1
    SELECT NTH_VALUE(v) OVER (ORDER BY k) AS z FROM u
Q001 NTH_VALUE takes 2 arguments, not 3
    SELECT NTH_VALUE(v, 2, 3) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM u
Q001 NTILE takes 0 to 1 arguments, not 2
    SELECT NTILE(2, 3) OVER (ORDER BY k) AS z FROM u
Q001 NULLIF does not have the arguments that it needs
    SELECT NULLIF(k) AS z FROM u
Q001 NVL2 does not have the arguments that it needs
    SELECT NVL2(k) AS z FROM u
Q001 REGR_AVGX does not have the arguments that it needs
    SELECT REGR_AVGX(v) AS z FROM u
Q001 REGR_COUNT takes 2 arguments, not 1
    SELECT REGR_COUNT(v) AS z FROM u
Q001 ROW_NUMBER takes 0 arguments, not 1
    SELECT ROW_NUMBER(v) OVER (ORDER BY k) AS z FROM u
Q001 SUBSTRING does not have the arguments that it needs
    SELECT SUBSTRING() AS z FROM u
Q001 SUM does not have the arguments that it needs
    SELECT SUM() AS z FROM u
Q001 SUM takes at most 1 arguments, not 2
    SELECT SUM(v, k) AS z FROM u
Q001 UPPER does not have the arguments that it needs
    SELECT UPPER() AS z FROM u
Q001 UPPER takes at most 1 arguments, not 2
    SELECT UPPER(s, s) AS z FROM t2
Q001 USING lists nothing
    SELECT k FROM u JOIN t USING ()
Q001 VALUES lists nothing
    SELECT * FROM VALUES ()
Q001 a query was expected after AS
    u
Q001 aggregate does not have the arguments that it needs
    SELECT aggregate(a, 0) AS z FROM t
Q001 element_at does not have the arguments that it needs
    SELECT element_at(a) FROM t
Q001 expected AS after CAST
    SELECT CAST(k) AS z FROM u
Q001 expected CTE to have alias
    WITH SELECT 1
Q001 expected END after CASE
    SELECT CASE END AS z FROM u
Q001 expected TYPE after CAST
    SELECT CAST(k AS nope) AS z FROM u
Q001 expected ]
    SELECT a[0 AS s FROM t
Q001 expecting (
    WITH x AS SELECT 1 AS a FROM x
Q001 expecting )
    SELECT k FROM (SELECT k FROM u
    SELECT * FROM u PIVOT (SUM(v) FOR k)
Q001 expecting FOR
    SELECT * FROM u PIVOT (v FOR k IN (1))
    SELECT * FROM u PIVOT (v + 1 FOR k IN (1))
Q001 explode takes 1 arguments, not 0
    SELECT explode() AS z FROM t
    SELECT k FROM t LATERAL VIEW explode() x AS b
Q001 explode takes 1 arguments, not 2
    SELECT explode(a, a) AS z FROM t
Q001 failed to parse any statement following CTE
    WITH x AS (SELECT 1 AS a)
Q001 invalid expression / Unexpected token
    SELECT u.k FROM u JOIN t ON u.k = t.k USING (k)
    SELECT k FROM u)
Q001 map does not have the arguments that it needs
    SELECT map(1) AS s FROM u
    SELECT map(1, 2, 3) AS s FROM u
Q001 something is missing after )
    SELECT * FROM u PIVOT (FOR k IN (1))
Q001 something is missing after ,
    SELECT k, FROM u
Q001 something is missing after DISTINCT
    SELECT SUM(DISTINCT) AS z FROM u
    SELECT DISTINCT FROM u
Q001 something is missing after ON
    SELECT u.k FROM u JOIN t ON
Q001 something is missing after SELECT
    SELECT FROM u
    SELECT , k FROM u
Q001 something is missing after UNION
    SELECT k FROM u UNION
Q001 something is missing after VALUES
    VALUES
Q001 something is missing at 1
    SELECT (x -> x)(1) AS z FROM t
Q001 something is missing at AS
    SELECT k BETWEEN 1 AS z FROM u
Q001 something is missing at SELECT
    WITH x AS () SELECT 1
Q001 stack does not have the arguments that it needs
    SELECT stack(2) FROM t
    SELECT stack() FROM t
Q001 the text cannot be read
    SELECT X'GG' AS z FROM u
    SELECT `k FROM u
Q003 not a statement of the language
    TABLE nowhere
    1
Q006 t is not in the FROM clause
    SELECT t.k FROM u LEFT SEMI JOIN t ON u.k = t.k
Q006 there is no table or view db.u
    SELECT k FROM db.u
Q006 there is no table or view nowhere
    SELECT k FROM nowhere
Q006 there is no table or view v
    SELECT k FROM v
Q006 there is no table or view w
    SELECT k FROM w
Q006 there is no table or view x
    WITH x AS (SELECT k FROM x) SELECT * FROM x
Q006 there is no table or view y
    WITH x AS (SELECT k FROM y), y AS (SELECT k FROM u) SELECT * FROM x
Q006 there is no window w
    SELECT SUM(v) OVER w AS z FROM u
Q006 u is not in the FROM clause
    SELECT u.* FROM u x
    SELECT k FROM u x WHERE EXISTS (SELECT 1 FROM t WHERE t.k = u.k)
Q006 x is not in the FROM clause
    SELECT x.k FROM u
    SELECT x.* FROM u
Q007 there is no field b in ARRAY<INT>
    SELECT a.b AS s FROM t
Q007 unknown column a
    SELECT k FROM u ORDER BY a LIMIT 1
    SELECT k FROM u JOIN t USING (a)
Q007 unknown column db.u.k
    SELECT db.u.k FROM u
Q007 unknown column k
    SELECT k FROM (SELECT k, v FROM u) x(a, a)
    SELECT * FROM (VALUES (k)) x(a)
Q007 unknown column nope
    SELECT SUM(v) OVER (ORDER BY nope) AS z FROM u
    SELECT SUM(v) OVER (PARTITION BY nope) AS z FROM u
Q007 unknown column u.nope
    SELECT u.nope FROM u
Q007 unknown column x
    SELECT x -> x AS z FROM t
Q007 unknown column z
    SELECT k FROM u WHERE z > 1
    SELECT k AS z FROM u WHERE z > 1
Q008 the column a is ambiguous
    SELECT a FROM (SELECT k, v FROM u) x(a, a)
Q008 the column k is ambiguous
    SELECT k FROM u, t
    SELECT k FROM u JOIN t ON k = k
Q008 u stands twice in FROM
    SELECT k FROM u, u
Q008 w stands twice in WINDOW
    SELECT SUM(v) OVER w AS z FROM u WINDOW w AS (ORDER BY k), w AS (ORDER BY v)
Q008 x stands twice in FROM
    SELECT k FROM u x, t x
Q008 x stands twice in WITH
    WITH x AS (SELECT k FROM u), x AS (SELECT v FROM u) SELECT * FROM x
Q009 ${1} has no value here
    SELECT $1 AS z FROM u
Q009 ${a} has no value here
    SELECT @a AS z FROM u
Q009 * stands for columns only in the SELECT list and in COUNT(*)
    SELECT SUM(*) AS z FROM u
    SELECT COUNT(u.*) AS z FROM u
Q009 :a has no value here
    SELECT :a AS z FROM u
Q009 ? has no value here
    SELECT ? AS z FROM u
Q009 GROUP BY position 0 is not in the SELECT list
    SELECT k FROM u GROUP BY 0
Q009 GROUP BY position 1.5 is not in the SELECT list
    SELECT k FROM u GROUP BY 1.5
Q009 GROUP BY position 3 is not in the SELECT list
    SELECT k FROM u GROUP BY 3
Q009 GROUPING_ID of other columns than GROUP BY has
    SELECT GROUPING_ID(v, k) AS z FROM u GROUP BY ROLLUP(k, v)
Q009 GROUPING_ID of something that GROUP BY has no sets of
    SELECT GROUPING_ID() AS z FROM u GROUP BY k
    SELECT GROUPING_ID(v) AS z FROM u GROUP BY ROLLUP(k)
Q009 LAG stands without OVER
    SELECT LAG(v) AS z FROM u
Q009 LAG takes no frame
    SELECT LAG(v) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS b FROM u
Q009 LIMIT needs a number
    SELECT k FROM u ORDER BY k LIMIT -1
    SELECT k FROM u ORDER BY k LIMIT 1.5
Q009 OFFSET needs a number
    SELECT k FROM u ORDER BY k LIMIT 1 OFFSET -1
    SELECT k FROM u ORDER BY k OFFSET x
Q009 ORDER BY position -1 is not in the SELECT list
    SELECT k FROM u ORDER BY -1 LIMIT 1
Q009 ORDER BY position 0 is not in the SELECT list
    SELECT k FROM u ORDER BY 0 LIMIT 1
Q009 ORDER BY position 2 is not in the SELECT list
    SELECT k FROM u ORDER BY 2 LIMIT 1
Q009 ORDER BY something that is not in the SELECT list
    SELECT k FROM u UNION SELECT k FROM u ORDER BY nope LIMIT 1
    SELECT k FROM u UNION SELECT k AS b FROM u ORDER BY b LIMIT 1
Q009 RANK stands without OVER
    SELECT RANK() AS z FROM u
Q009 RANK takes no frame
    SELECT RANK() OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM u
    SELECT RANK() OVER (ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS b FROM u
Q009 ROW_NUMBER stands without OVER
    SELECT ROW_NUMBER() AS z FROM u
Q009 a window function inside GROUP BY
    SELECT k, RANK() OVER (ORDER BY k) AS r FROM u GROUP BY r, k
    SELECT k FROM u GROUP BY RANK() OVER (ORDER BY k)
Q009 a window function inside HAVING
    SELECT k FROM u GROUP BY k HAVING RANK() OVER (ORDER BY k) > 1
Q009 a window function inside WHERE
    SELECT k FROM u WHERE RANK() OVER (ORDER BY k) > 1
Q009 an aggregate inside GROUP BY
    SELECT SUM(v) AS z FROM u GROUP BY 1
    SELECT k, SUM(v) AS z FROM u GROUP BY z
Q009 an aggregate inside ON
    SELECT u.k FROM u JOIN t ON SUM(u.k) = t.k
Q009 an aggregate inside WHERE
    SELECT k FROM u WHERE SUM(v) > 1
    SELECT k FROM u WHERE k > ANY (1)
Q009 an aggregate inside an aggregate
    SELECT SUM(v) FILTER (WHERE SUM(v) > 1) AS z FROM u
    SELECT SUM(SUM(v)) AS z FROM u
Q009 k is neither in GROUP BY nor inside an aggregate
    SELECT k FROM u GROUP BY -1
    SELECT k FROM u GROUP BY 'k'
Q009 v is neither in GROUP BY nor inside an aggregate
    SELECT SUM(v) OVER (PARTITION BY SUM(v)) AS z FROM u
    SELECT SUM(v) WITHIN GROUP (ORDER BY v) AS z FROM u
Q009 {?} has no value here
    SELECT {{ k }} AS z FROM u
Q011 '' is empty or has a quote, a slash or a line break in it
    SELECT k AS `` FROM u
Q011 _epoch is a name that Everview uses itself
    SELECT k AS `_epoch` FROM u
Q011 two columns are called 1_a
    SELECT * FROM u PIVOT (SUM(v) AS a, MAX(v) AS a FOR k IN (1))
Q011 two columns are called a
    SELECT * FROM u PIVOT (SUM(v) FOR k IN (1 AS a, 2 AS a))
    SELECT * FROM u UNPIVOT (a FOR a IN (k, v))
Q011 two columns are called col
    SELECT explode(a), explode(a) FROM t
Q011 two columns are called k
    SELECT * FROM u, t
    SELECT k, k FROM u
Q012 1 names are given to 2 columns
    SELECT posexplode(a) AS (p) FROM t
Q012 2 names are given to 1 columns
    SELECT k FROM (SELECT k FROM u) x(a, b)
    SELECT * FROM (VALUES (1)) x(a, b)
Q012 3 names are given to 2 columns
    SELECT posexplode(a) AS (p, c, d) FROM t
Q012 > ALL compares 1 values with 2 columns
    SELECT (k, v) > ALL (SELECT k, v FROM u) AS z FROM u
Q012 IN compares 1 values with 2 columns
    SELECT k FROM u WHERE k IN (SELECT k, v FROM u)
Q012 IN compares 2 values with 1 columns
    SELECT k FROM u WHERE (k, v) IN (SELECT k FROM u)
Q012 MAX_BY takes 2 arguments, not 1
    SELECT MAX_BY(v) AS z FROM u
Q012 PIVOT compares 1 columns with 2 values
    SELECT * FROM u PIVOT (SUM(v) FOR k IN ((1, 2)))
Q012 PIVOT compares 2 columns with 1 values
    SELECT * FROM u PIVOT (SUM(v) FOR (k, v) IN (1, 2))
Q012 PIVOT compares 2 columns with 3 values
    SELECT * FROM u PIVOT (SUM(v) FOR (k, v) IN ((1, 2, 3)))
Q012 a subquery used as a value selects 2 columns
    SELECT k FROM u WHERE k = (SELECT v, k FROM u)
    SELECT (SELECT * FROM u) AS z FROM u
Q012 rows of VALUES have 2 and 1 values
    SELECT * FROM (VALUES (1, 2), (3)) x
    VALUES (1, 2), (3)
Q012 the sides of UNION have 1 and 2 columns
    SELECT k FROM u UNION SELECT k, v FROM u
    SELECT (SELECT k FROM u UNION SELECT v, k FROM u) AS z FROM u
Q013 BOOL_AND of int has no meaning
    SELECT BOOL_AND(k) AS z FROM u
Q013 EXPLODE of int makes no rows
    SELECT explode(explode(a)) AS z FROM t
Q013 INLINE of array<int> makes no rows
    SELECT inline(a) FROM t
Q013 LAG takes a whole number, not 'a'
    SELECT LAG(v, 'a') OVER (ORDER BY k) AS z FROM u
Q013 LAG takes a whole number, not 1.5
    SELECT LAG(v, 1.5) OVER (ORDER BY k) AS z FROM u
Q013 LAG takes a whole number, not NULL
    SELECT LAG(v, NULL) OVER (ORDER BY k) AS z FROM u
Q013 LAG takes a whole number, not u.k
    SELECT LAG(v, k) OVER (ORDER BY k) AS z FROM u
Q013 MAX of map<int,int> has no meaning
    SELECT MAX(map(1, k)) AS z FROM u
Q013 NTH_VALUE takes a whole number from 1, not -1
    SELECT NTH_VALUE(v, -1) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM u
Q013 NTH_VALUE takes a whole number from 1, not 0
    SELECT NTH_VALUE(v, 0) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM u
Q013 NTH_VALUE takes a whole number from 1, not u.k
    SELECT NTH_VALUE(v, k) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM u
Q013 NTILE takes a whole number from 1, not 'a'
    SELECT NTILE('a') OVER (ORDER BY k) AS z FROM u
Q013 NTILE takes a whole number from 1, not -1
    SELECT NTILE(-1) OVER (ORDER BY k) AS z FROM u
Q013 NTILE takes a whole number from 1, not 0
    SELECT NTILE(0) OVER (ORDER BY k) AS z FROM u
Q013 NTILE takes a whole number from 1, not u.k
    SELECT NTILE(k) OVER (ORDER BY k) AS z FROM u
Q013 SUM of array<int> has no meaning
    SELECT SUM(a) AS z FROM t
Q013 SUM of boolean has no meaning
    SELECT SUM(TRUE) AS z FROM u
Q013 the condition after ON is int, not boolean
    SELECT u.k FROM u JOIN t ON u.k
Q013 the condition after WHERE is int, not boolean
    SELECT k FROM u WHERE k
Q013 the condition after WHERE is string, not boolean
    SELECT k FROM u WHERE 'true'
Q013 the condition after WHERE is void, not boolean
    SELECT k FROM u WHERE NULL
Q013 the number 1e400 is too large
    SELECT 1e400 AS z FROM u
Q014 the column s has a type that cannot be stored yet: map<void,int>
    SELECT map(NULL, 1) AS s FROM u
Q014 the column s has a type that cannot be stored yet: struct<a:int,a:int>
    SELECT named_struct('a', 1, 'a', 2) AS s FROM u
Q014 the column z has a type that cannot be stored yet: array<void>
    SELECT ARRAY() AS z FROM u
Q014 the column z has a type that cannot be stored yet: decimal(2,5)
    SELECT CAST(k AS DECIMAL(2,5)) AS z FROM u
Q014 the column z has a type that cannot be stored yet: decimal(42,0)
    SELECT 999999999999999999999999999999999999999999 AS z FROM u
Q014 the column z has a type that cannot be stored yet: decimal(50,2)
    SELECT CAST(k AS DECIMAL(50,2)) AS z FROM u
Q014 the column z has a type that cannot be stored yet: void
    SELECT NULL AS z FROM u
Q007 unknown column nope
    SELECT * EXCEPT (nope) FROM u
Q020 ALL of something that is no subquery
    SELECT k FROM u WHERE k > ALL (1)
    SELECT k > ALL (1) AS x FROM u
Q020 ANY of something that is no subquery
    SELECT k > ANY (SELECT v FROM t) + 1 AS x FROM u
Q020 AS OF
    SELECT k FROM u TIMESTAMP AS OF '2026-01-01'
Q001 ASOF JOIN needs a MATCH_CONDITION
    SELECT u.k FROM u ASOF JOIN t ON u.k = t.k
Q020 AT
    SELECT k FROM u AT (VERSION => 1)
Q020 DISTINCT ON
    SELECT DISTINCT ON (k) k, v FROM u
Q020 EXPLODE here
    SELECT explode(a) + 1 AS z FROM t
    SELECT SUM(explode(a)) AS z FROM t
Q020 FILTER on an aggregate
    SELECT UPPER(s) FILTER (WHERE TRUE) AS z FROM t2
Q020 FIRST_VALUE over rows that may tie
    SELECT FIRST_VALUE(v, TRUE, 3) OVER (ORDER BY k) AS z FROM u
Q020 FOR UPDATE
    SELECT k FROM u FOR UPDATE
Q020 FULL SEMI JOIN
    SELECT u.k FROM u FULL SEMI JOIN t ON u.k = t.k
Q020 INTO
    SELECT k INTO x FROM u
Q020 LATERAL NOPE
    SELECT k FROM t LATERAL VIEW nope(a) x AS b
    SELECT k FROM t, LATERAL nope(a) x
Q020 LATERAL SUM
    SELECT k FROM t LATERAL VIEW SUM(k) x AS b
Q020 LATERAL T
    SELECT k FROM t, LATERAL t
Q020 LATERAL UPPER
    SELECT k FROM t LATERAL VIEW upper('a') x AS b
Q020 LIKE ALL of a subquery
    SELECT k LIKE ALL (SELECT s FROM t2) AS z FROM u
Q020 LIMIT without ORDER BY
    SELECT (SELECT k, v FROM u LIMIT 1) AS z FROM u
Q020 ORDER BY of the map map(1, k)
    SELECT k FROM u ORDER BY map(1, k) LIMIT 1
Q020 PIVOT to values that are not constant
    SELECT * FROM u PIVOT (SUM(v) FOR k IN (v))
Q020 RIGHT SEMI JOIN
    SELECT u.k FROM u RIGHT SEMI JOIN t ON u.k = t.k
Q020 STACK here
    SELECT stack(0, 1) FROM t
    SELECT stack(k, 1, 2) FROM t
Q020 UNPIVOT of 1 columns
    SELECT * FROM u UNPIVOT ((a, c) FOR b IN ((k)))
Q020 UNPIVOT of an expression
    SELECT * FROM u UNPIVOT (a FOR b IN (k + 1))
Q020 a RANGE of numbers here
    SELECT SUM(v) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM u
    SELECT SUM(v) OVER (ORDER BY k, v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS z FROM u
Q020 a computed frame bound
    SELECT SUM(v) OVER (ORDER BY k ROWS BETWEEN 'a' PRECEDING AND CURRENT ROW) AS z FROM u
Q020 a frame of a fraction here
    SELECT SUM(v) OVER (ORDER BY k ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW) AS z FROM u
Q020 a frame that ends before it begins
    SELECT SUM(v) OVER (ORDER BY k ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS z FROM u
    SELECT SUM(v) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) AS z FROM u
Q020 a subquery here
    SELECT k <=> ALL (SELECT k FROM u) AS z FROM u
Q020 a window that adds to a named one
    SELECT SUM(v) OVER (w ORDER BY v) AS z FROM u WINDOW w AS (ORDER BY k)
Q020 the aggregate any_value
    SELECT ANY_VALUE(k) AS z FROM u GROUP BY ROLLUP(k)
    SELECT ANY_VALUE(k) AS z, GROUPING_ID() AS g FROM u GROUP BY CUBE(k, v)
Q020 the aggregate listagg
    SELECT LISTAGG(s, s) WITHIN GROUP (ORDER BY s) AS z FROM t2
Q020 the aggregate mode
    SELECT MODE() AS z FROM u
Q020 the aggregate percentile
    SELECT PERCENTILE(v) AS z FROM u
    SELECT PERCENTILE() AS z FROM u
Q020 the aggregate percentile_cont
    SELECT PERCENTILE_CONT(0.5) AS z FROM u
    SELECT PERCENTILE_CONT(2) WITHIN GROUP (ORDER BY v) AS z FROM u
Q020 the function nope in FROM
    SELECT * FROM nope(1)
Q020 this form of RANGE
    SELECT * FROM range()
Q020 the window function upper
    SELECT UPPER(s) OVER (ORDER BY k) AS z FROM t2
"""
"""Queries that no view can have."""

STATEMENTS = """
C001 there is a table or view u already
    CREATE TABLE u (k INT)
    CREATE TABLE U (k INT)
C001 there is a table or view vw already
    CREATE TABLE vw (k INT)
    CREATE VIEW vw AS SELECT 1 AS a
C002 there is no function nope
    DROP FUNCTION nope
C002 there is no function upper
    DROP FUNCTION upper
C002 there is no table or view nowhere
    DROP TABLE nowhere
    DROP VIEW nowhere
C003 u cannot be dropped, because it is read by vw
    DROP TABLE u
C004 vw is a view: it follows its tables and cannot be changed itself
    INSERT INTO vw VALUES (1, 2)
    DELETE FROM vw
C005 u is a table
    CREATE OR REPLACE VIEW u AS SELECT 1 AS a
    DROP VIEW u
C005 vw is a view
    DROP TABLE vw
    DROP TABLE IF EXISTS vw
C006 u is a table
    EXPLAIN u
C007 vw cannot read itself
    CREATE OR REPLACE VIEW vw AS SELECT k FROM vw
Q001 VALUES lists nothing
    INSERT INTO u VALUES ()
Q001 a query was expected after AS
    CREATE TABLE x (select INT)
    CREATE VIEW x
Q001 expected table name but got AS
    CREATE VIEW AS SELECT 1 AS a
Q001 expected table name but got select
    CREATE TABLE select (a INT)
Q001 expected table name, but the text ends
    CREATE TABLE
    CREATE VIEW
Q001 expecting )
    CREATE TABLE x (a nope)
    CREATE TABLE x (a STRUCT<>)
Q001 expecting >
    CREATE TABLE x (a ARRAY<nope>)
Q001 invalid expression / Unexpected token
    )
Q001 something is missing after $
    $$
Q001 something is missing after (
    (
Q001 something is missing after )
    CREATE TABLE x (a INT, PRIMARY KEY ())
Q001 something is missing after ,
    CREATE TABLE x (a INT,)
Q001 something is missing after RETURN
    CREATE FUNCTION f(a INT) RETURNS INT RETURN
Q001 something is missing after SELECT
    CREATE TABLE x AS SELECT
Q001 something is missing after THEN
    MERGE INTO u USING t ON u.k = t.k WHEN MATCHED THEN
Q001 something is missing after VALUES
    INSERT INTO u VALUES
Q001 something is missing after WHEN
    MERGE INTO u USING t ON u.k = t.k WHEN
Q001 something is missing after WHERE
    INSERT INTO u SELECT k, v FROM t WHERE
    DELETE FROM u WHERE
Q001 something is missing after k
    MERGE INTO u USING t ON u.k = t.k
Q001 something is missing after t
    MERGE INTO u USING t
Q001 the text cannot be read
    EXPLAIN 'x
    '
Q003 DELETE … LIMIT is not part of the language
    DELETE FROM u LIMIT 1
Q003 DELETE … ORDER is not part of the language
    DELETE FROM u ORDER BY k
Q003 DELETE … RETURNING is not part of the language
    DELETE FROM u RETURNING k
Q003 DELETE … TABLES is not part of the language
    DELETE u WHERE k = 1
Q003 DELETE … USING is not part of the language
    DELETE FROM u USING t WHERE u.k = t.k
Q003 DROP of several names is not part of the language
    DROP TABLE u, t
Q003 INSERT … BY NAME is not part of the language
    INSERT INTO u BY NAME SELECT 1 AS k, 2 AS v
Q003 this form of ON CONFLICT is not part of the language
    INSERT INTO u VALUES (5, 6) ON CONFLICT (u.k) DO NOTHING
Q003 INSERT … RETURNING is not part of the language
    INSERT INTO u VALUES (5, 6) RETURNING k
Q003 INSERT … WHERE is not part of the language
    INSERT INTO u REPLACE WHERE k = 1 SELECT 1 AS k, 2 AS v
Q003 OR REPLACE and IF NOT EXISTS cannot both hold
    CREATE OR REPLACE VIEW IF NOT EXISTS x AS SELECT 1 AS a
Q003 UPDATE without SET is not part of the language
    UPDATE u
    UPDATE u SET
Q003 UPDATE … FROM is not part of the language
    UPDATE u SET v = 1 FROM t WHERE u.k = t.k
Q003 UPDATE … ORDER is not part of the language
    UPDATE u SET v = 1 ORDER BY k LIMIT 1
Q003 WHEN NOT MATCHED BY SOURCE is not part of the language
    MERGE INTO u USING t ON u.k = t.k WHEN NOT MATCHED BY SOURCE THEN DELETE
Q003 a table is neither replaced nor temporary
    CREATE OR REPLACE TABLE x (a INT)
    CREATE TEMPORARY TABLE x (a INT)
Q003 not a statement of the language
    CREATE
    CREATE VIEW x AS INSERT INTO u VALUES (7, 8)
Q003 this clause after MATCHED is not part of the language
    MERGE INTO u USING t ON u.k = t.k WHEN MATCHED THEN INSERT *
Q003 this clause after NOT MATCHED is not part of the language
    MERGE INTO u USING t ON u.k = t.k WHEN NOT MATCHED THEN DELETE
    MERGE INTO u USING t ON u.k = t.k WHEN NOT MATCHED THEN UPDATE SET v = 1
Q003 this form of CREATE FUNCTION is not part of the language
    CREATE FUNCTION f
    CREATE FUNCTION f() RETURNS INT
Q003 this form of INSERT is not part of the language
    INSERT INTO u
    INSERT OVERWRITE u VALUES (5, 6)
Q003 this form of SET is not part of the language
    UPDATE u SET k
Q003 this is not a query
    EXPLAIN EXPLAIN vw
Q003 this option is not part of the language: 'refresh'='sometimes'
    CREATE VIEW x WITH (refresh = 'sometimes') AS SELECT 1 AS a
Q003 this option is not part of the language: 'speed'='fast'
    CREATE VIEW x WITH (speed = 'fast') AS SELECT 1 AS a
Q003 this option is not part of the language: TEMPORARY
    CREATE TEMPORARY VIEW x AS SELECT 1 AS a
Q004 a table has one primary key
    CREATE TABLE x (a INT PRIMARY KEY, b INT PRIMARY KEY)
Q004 a table needs a column
    CREATE TABLE x ()
Q004 a table needs either its columns or a query
    CREATE TABLE x
    CREATE TABLE x LIKE u
Q004 the primary key names a column twice
    CREATE TABLE x (a INT, PRIMARY KEY (a, a))
Q004 this part of CREATE TABLE is not supported: a
    CREATE TABLE x (a)
Q004 two columns are called A
    CREATE TABLE x (a INT, A STRING)
Q004 two columns are called a
    CREATE TABLE x (a INT, a INT)
Q005 the column a has a type that is not supported: ARRAY
    CREATE TABLE x (a ARRAY)
Q005 the column a has a type that is not supported: DECIMAL(0, 0)
    CREATE TABLE x (a DECIMAL(0,0))
Q005 the column a has a type that is not supported: DECIMAL(2, 5)
    CREATE TABLE x (a DECIMAL(2,5))
Q005 the column a has a type that is not supported: DECIMAL(50, 2)
    CREATE TABLE x (a DECIMAL(50,2))
Q005 the column a has a type that is not supported: INTERVAL DAY
    CREATE TABLE x (a INTERVAL DAY)
Q005 the column a has a type that is not supported: MAP<INT>
    CREATE TABLE x (a MAP<INT>)
Q005 the column a has a type that is not supported: VARCHAR(0)
    CREATE TABLE x (a VARCHAR(0))
Q005 the column a has a type that is not supported: VARCHAR(NOPE)
    CREATE TABLE x (a VARCHAR(nope))
Q005 the column a has a type that is not supported: VARIANT
    CREATE TABLE x (a VARIANT)
Q011 '' is empty or has a quote, a slash or a line break in it
    CREATE TABLE x (`` INT)
    CREATE TABLE `` (a INT)
Q011 'a/b' is empty or has a quote, a slash or a line break in it
    CREATE TABLE `a/b` (a INT)
    CREATE VIEW `a/b` AS SELECT 1 AS a
Q006 db.u is not a table's name
    DROP TABLE db.u
    INSERT INTO db.u VALUES (5, 6)
Q006 db.x is not a table's name
    CREATE TABLE db.x (a INT)
    CREATE VIEW db.x AS SELECT 1 AS a
Q006 the primary key names an unknown column: nope
    CREATE TABLE x (a INT, PRIMARY KEY (nope))
Q006 u CROSS JOIN t is not a table's name
    UPDATE u, t SET u.v = 1
Q006 u PARTITION(k = 1) is not a table's name
    INSERT INTO u PARTITION (k = 1) VALUES (2)
Q006 what MERGE uses has no name
    MERGE INTO u USING (SELECT 1 AS k) ON u.k = 1 WHEN MATCHED THEN UPDATE SET *
Q006 x is not what is changed
    UPDATE u SET x.v = 1
Q007 u has no column nope
    INSERT INTO u (k, nope) VALUES (5, 6)
    UPDATE u SET nope = 1
Q007 unknown column nope
    CREATE OR REPLACE VIEW vw AS SELECT nope FROM u
    CREATE VIEW x WITH (refresh = 'auto') AS SELECT nope FROM u
Q008 a column is named twice
    INSERT INTO u (k, k) VALUES (5, 6)
    UPDATE u SET v = 1, v = 2
Q011 two columns are called a
    CREATE VIEW x (a, a) AS SELECT 1 AS a, 2 AS b
Q012 2 names are given to 1 columns
    CREATE VIEW x (a, b) AS SELECT 1 AS a
Q022 case cannot be a function: Spark has one of that name
    CREATE FUNCTION case(a INT) RETURNS INT RETURN a
Q022 f cannot be a function: its body holds a query, an aggregate or a window
    CREATE FUNCTION f(a INT) RETURNS INT RETURN SUM(a)
    CREATE FUNCTION f(a INT) RETURNS INT RETURN (SELECT 1)
Q022 f cannot be a function: its body names b, which it does not take
    CREATE FUNCTION f(a INT) RETURNS INT RETURN b
Q022 f cannot be a function: two arguments have one name
    CREATE FUNCTION f(a INT, a INT) RETURNS INT RETURN a
Q022 map cannot be a function: Spark has one of that name
    CREATE FUNCTION map(a INT) RETURNS INT RETURN a
Q022 upper cannot be a function: Spark has one of that name
    CREATE FUNCTION upper(a STRING) RETURNS STRING RETURN a
T002 INSERT gives 1 values for 2 columns of u
    INSERT INTO u VALUES (5)
    INSERT INTO u SELECT k FROM t
T002 INSERT gives 2 values for 1 columns of u
    INSERT INTO u (k) VALUES (5, 6)
    MERGE INTO u USING t ON u.k = t.k AND FALSE WHEN NOT MATCHED THEN INSERT (k) VALUES (t.k, t.v)
T002 INSERT gives 3 values for 2 columns of u
    INSERT INTO u VALUES (5, 6, 7)
    MERGE INTO u USING t ON u.k = t.k AND FALSE WHEN NOT MATCHED THEN INSERT VALUES (9, 1, 2)
T002 INSERT gives 6 values for 5 columns of t2
    INSERT INTO t2 VALUES (1, NULL, 5, 1, 1, 1)
T006 MERGE: 1 rows of u are matched more than once, for instance {'k': 1}
    MERGE INTO u USING (SELECT 1 AS k UNION ALL SELECT 1) s ON u.k = s.k WHEN MATCHED THEN DELETE
T008 there is nothing to COMMIT: no transaction is open in this thread
    COMMIT
T008 there is nothing to ROLLBACK: no transaction is open in this thread
    ROLLBACK
T010 u would have two rows with the same primary key
    INSERT INTO u VALUES (1, 2)
    UPDATE u SET k = 9
T012 NULL in a column of u that may not be NULL (k, v)
    INSERT INTO u (k) VALUES (5)
    INSERT INTO u VALUES (NULL, 2)
"""
"""Statements that are refused before any engine is asked."""

ASKED = """
Q006 there is no table or view nowhere
    CREATE TABLE x AS SELECT * FROM nowhere
    INSERT INTO u SELECT k, v FROM nowhere
Q006 u is not in the FROM clause
    DELETE FROM u x WHERE u.k = 1
Q007 unknown column `v`
    MERGE INTO u USING t2 ON u.k = t2.k WHEN NOT MATCHED THEN INSERT *
Q007 unknown column k
    INSERT INTO u VALUES (k, 1)
Q007 unknown column nope
    CREATE TABLE x AS SELECT nope FROM u
    INSERT INTO u SELECT nope, k FROM t
Q007 unknown column `t2`.`v`
    MERGE INTO u USING t2 ON u.k = t2.k WHEN MATCHED THEN UPDATE SET *
Q008 the column k is ambiguous
    MERGE INTO u USING t ON k = k WHEN MATCHED THEN DELETE
Q008 u stands twice in FROM
    MERGE INTO u USING u ON u.k = u.k WHEN MATCHED THEN DELETE
Q009 a window function inside WHERE
    DELETE FROM u WHERE RANK() OVER (ORDER BY k) = 1
Q009 an aggregate inside WHERE
    DELETE FROM u WHERE SUM(k) > 1
Q009 k is neither in GROUP BY nor inside an aggregate
    INSERT INTO u SELECT k, SUM(v) FROM t
    UPDATE u SET v = SUM(v)
Q011 two columns are called k
    CREATE TABLE x AS SELECT k, k FROM u
Q012 2 names are given to 3 columns
    INSERT INTO u SELECT * FROM t
Q012 a row of 2 values stands beside one that is no row
    UPDATE u SET (k, v) = 1
Q012 a subquery used as a value selects 2 columns
    DELETE FROM u WHERE k = (SELECT k, v FROM u)
Q012 rows of VALUES have 2 and 1 values
    INSERT INTO u VALUES (5, 6), (7)
Q012 the sides of UNION have 2 and 1 columns
    INSERT INTO u SELECT k, v FROM t UNION SELECT k FROM t
Q013 the condition after ON is int, not boolean
    MERGE INTO u USING t ON u.k WHEN MATCHED THEN DELETE
Q013 the condition after WHERE is int, not boolean
    DELETE FROM u WHERE k
Q013 the number 1e400 is too large
    INSERT INTO t2 VALUES (1, NULL, 'a', 1e400, 1)
Q014 z has a type that cannot be stored
    CREATE TABLE x AS SELECT NULL AS z
"""
"""Statements of which Spark itself may say what is wrong, as Q010."""


def told(table: str) -> dict[str, tuple[str, str]]:
    """The statements of a table, each with the code and the words of its error."""
    found: dict[str, tuple[str, str]] = {}
    code = words = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            found[line.strip()] = (code, words)
        else:
            code, _, words = line.partition(" ")
    return found
