"""Bad texts: good statements with something deleted, doubled, swapped, cut off or put in."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator

SETUP = """
CREATE TABLE t (k INT, v INT, a ARRAY<INT>, s STRING);
CREATE TABLE u (k INT PRIMARY KEY, v INT NOT NULL);
CREATE TABLE w (k INT, d DATE, m DECIMAL(5,2), x DOUBLE);
CREATE VIEW sums AS SELECT k, SUM(v) AS total FROM u GROUP BY k;
INSERT INTO u VALUES (1, 2), (3, 4), (5, 0);
INSERT INTO t VALUES (1, 2, array(1, 2), 'x'), (NULL, 3, NULL, NULL);
INSERT INTO w VALUES (1, DATE '2024-01-01', 1.5, 0.5)
"""

QUERIES = (
    "SELECT u.k, SUM(t.v) AS z FROM u JOIN t ON u.k = t.k WHERE t.v > 1 GROUP BY u.k "
    "HAVING SUM(t.v) > 0",
    "SELECT k, CASE WHEN v > 1 THEN 'a' ELSE s END AS z FROM t WHERE v BETWEEN 1 AND 3 AND "
    "s LIKE 'x%'",
    "SELECT k, (SELECT MAX(v) FROM t WHERE t.k = u.k) AS m FROM u WHERE EXISTS (SELECT 1 "
    "FROM w WHERE w.k = u.k)",
    "SELECT k FROM u WHERE k NOT IN (SELECT k FROM t WHERE k IS NOT NULL) UNION ALL SELECT "
    "k FROM w",
    "SELECT k, ROW_NUMBER() OVER (PARTITION BY v ORDER BY k DESC) AS n FROM u QUALIFY n <= 2",
    "WITH x AS (SELECT k, v FROM u), y AS (SELECT k FROM x WHERE v > 0) SELECT x.k FROM x "
    "JOIN y USING (k)",
    "SELECT * FROM (SELECT k, v FROM u) PIVOT (SUM(v) AS s FOR k IN (1 AS one, 3 AS three))",
    "SELECT k, v, GROUPING(k) AS g, COUNT(*) AS n FROM u GROUP BY GROUPING SETS ((k, v), (k), ())",
    "SELECT k, transform(a, e -> e + k) AS z, filter(a, e -> e > 1) AS y FROM t LATERAL "
    "VIEW explode(a) q AS e",
    "WITH RECURSIVE r MAX RECURSION LEVEL 20 AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM "
    "r WHERE n < 5) SELECT n FROM r",
    "SELECT DISTINCT CAST(m AS INT) AS i, d + INTERVAL 1 DAY AS e, round(x, 2) AS r FROM w "
    "ORDER BY i LIMIT 3",
)
STATEMENTS = (
    "INSERT INTO u (k, v) SELECT k + 10, v FROM u WHERE k < 9",
    "UPDATE u SET v = v + 1 WHERE k IN (SELECT k FROM t)",
    "DELETE FROM u WHERE v = 2 AND k > 0",
    "MERGE INTO u USING t ON u.k = t.k WHEN MATCHED AND t.v > 1 THEN UPDATE SET v = t.v"
    " WHEN NOT MATCHED THEN INSERT (k, v) VALUES (9, t.v)",
    "CREATE TABLE n (a INT PRIMARY KEY, b DECIMAL(5,2) NOT NULL, c ARRAY<STRUCT<x: INT>>)",
    "CREATE FUNCTION twice(x INT) RETURNS INT RETURN x * 2",
    "CREATE OR REPLACE VIEW n (a, b) AS SELECT k, v FROM u",
    "DROP VIEW IF EXISTS sums",
    "CREATE ASSERTION few CHECK (NOT EXISTS (SELECT v FROM u GROUP BY v HAVING COUNT(*) > 2))",
    "ALTER TABLE w ADD CONSTRAINT known FOREIGN KEY (k) REFERENCES u (k) ON DELETE CASCADE",
)
DATALOG = (
    ".decl e(x: number, y: number)\n.decl r(x: number, y: number)\n.output r\ne(1, 2). e(2, 3).\n"
    "r(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z), x != z.",
    '.decl n(s: symbol, c: number)\n.decl m(s: symbol, c: number)\nn("a", 1).\n'
    "m(s, c + 1) :- n(s, _), c = count : { n(s, _) }, !n(s, 7), strlen(s) > 0.",
)
RELALG = (
    "Π[k, v AS x](σ[v > 1 AND k <> 3](u)) ∪ Π[k, k AS x](w) − Π[k, v AS x](u ⋈ Π[k](t))",
    "(Π[k](u) ∩ Π[v AS k](u)) × Π[s, v](t)",
)
NESTED = (
    "for x in u where x.k > 1 and x.v < 9 union sng((k: x.k, all: for y in t where y.k == x.k "
    "union sng((s: y.s, n: y.v + 1))))",
    "(for x in u union sng(x.k * 2)) ⊎ (let y := 3 in for z in t union sng(if z.v == y then 1 "
    "else z.k))",
)
TRIGGERS = (
    "CREATE TABLE t (k INT PRIMARY KEY, v DECIMAL(5,2) NOT NULL, s VARCHAR(3));"
    "CREATE VIEW q AS SELECT s, SUM(v * k) AS m, AVG(k) AS a FROM t WHERE v > 1.5 GROUP BY s",
    "q[k] := Sum(u(k, v) * (v > 1) * k * -2.5); p[] := Sum(t(a, x) * t(a, y) * x)",
)
AGCA = (
    "q[k] := Sum(u(k, v) * (v > 1) * k * -2.5); p[] := Sum(q(k, x) * x)",
    "n[x, y] := (u(x, _) + u(_, x)) * (y := x + 1) * (Sum(t(x, _, _, s) * (s like 'a%')) <> 3)",
)

PUT_IN = (
    *(
        "\0",
        "\u202e",
        "\u200b",
        "ﬀ",
        "\U0001f9ea",
        "`",
        "'",
        '"',
        "\\",
        ";",
        "--",
        "/*",
        "*/",
        "{",
        "}",
    ),
    *(
        "$",
        "?",
        "@x",
        ":x",
        "%",
        "^",
        "λ",
        "0x",
        "1e999",
        "9" * 400,
        "1E+5000",
        "-",
        "..",
        "::",
        "=>",
        "||",
    ),
    *(
        "NULL",
        "*",
        "()",
        "[]",
        "SELECT",
        "FROM",
        "AS",
        "NOT",
        "OVER",
        "(",
        ")",
        ",",
        "\n",
        "e'",
        "X'0'",
    ),
)

DEEP = (
    *(f"SELECT {'(' * n}1{')' * n} AS x" for n in (50, 500, 5_000)),
    *(f"SELECT {'-' * n}1 AS x" for n in (999, 9_999)),
    *(f"SELECT {'NOT ' * n}TRUE AS x" for n in (500, 5_000)),
    *(f"SELECT {'1 + ' * n}1 AS x" for n in (300, 3_000)),
    *(f"SELECT {' AND '.join(['k = 1'] * n)} AS x FROM u" for n in (300, 1_000)),
    *(f"SELECT {'abs(' * n}1{')' * n} AS x" for n in (50, 500, 5_000)),
    *(f"SELECT {'CASE WHEN TRUE THEN ' * n}1{' END' * n} AS x" for n in (50, 1_000)),
    *(f"SELECT k FROM {'(SELECT k FROM ' * n}u{')' * n}" for n in (20, 300, 3_000)),
    *(" UNION ALL ".join(["SELECT k FROM u"] * n) for n in (20, 300)),
    *(f"SELECT k IN ({', '.join(map(str, range(n)))}) AS x FROM u" for n in (100, 2_000)),
    *(f"SELECT {', '.join(f'k AS c{i}' for i in range(n))} FROM u" for n in (300,)),
    *(f"SELECT CAST(NULL AS {'ARRAY<' * n}INT{'>' * n}) AS x" for n in (20, 500, 5_000)),
    *(f"SELECT {'array(' * n}1{')' * n} AS x" for n in (20, 500)),
    *(f"SELECT '{'x' * n}' AS x" for n in (10, 1_000_000)),
    *(f"SELECT {'9' * n} AS x" for n in (38, 39, 5_000)),
    *(f"SELECT {'(' * n}" for n in (10, 20_000)),
    *(
        f"SELECT k FROM u WHERE {'EXISTS (SELECT 1 FROM u WHERE ' * n}TRUE{')' * n}"
        for n in (5, 200)
    ),
    *(f"SELECT 1 AS {'x' * n}" for n in (300, 100_000)),
    *(f"{'/*' * n} SELECT 1" for n in (1, 2_000)),
    *(f"{';' * n}" for n in (0, 1, 5_000)),
    *(f"SELECT a{'[0]' * n} AS x FROM t" for n in (1, 500)),
    *(f"SELECT {'k.' * n}k AS x FROM u" for n in (2, 500)),
)
"""What is nested deep, or long; some of it is right."""


def tokens(text: str) -> list[str]:
    """The words and signs of a text, each with the space before it."""
    return re.findall(r"\s*(?:'[^']*'|\"[^\"]*\"|[.]?\w+|<>|<=|>=|!=|->|:-|\S)", text)


def mutations(texts: Iterable[str], seed: int, of_each: int) -> Iterator[str]:
    """Texts with one thing wrong; some of them still mean something."""
    chance = random.Random(seed)
    for text in texts:
        words = tokens(text)
        broken = [*_cut(words), *_deleted(words), *_doubled(words), *_swapped(words)]
        broken += _put_in(words, chance)
        for every in (broken, [*_exchanged(words)]):
            found = sorted(set(every) - {text})
            yield from chance.sample(found, min(of_each // 2, len(found)))


def _cut(words: list[str]) -> Iterator[str]:
    for at in range(1, len(words)):
        yield "".join(words[:at])


def _deleted(words: list[str]) -> Iterator[str]:
    for at in range(len(words)):
        yield "".join([*words[:at], *words[at + 1 :]])


def _doubled(words: list[str]) -> Iterator[str]:
    for at in range(len(words)):
        yield "".join([*words[:at], words[at], " ", *words[at:]])


def _swapped(words: list[str]) -> Iterator[str]:
    for at in range(len(words) - 1):
        yield "".join([*words[:at], " ", words[at + 1], " ", words[at], *words[at + 2 :]])


def _exchanged(words: list[str]) -> Iterator[str]:
    """One name, number or text in the place of another: mostly what can be read and is wrong."""
    plain = sorted({word.strip() for word in words if re.fullmatch(r"\s*(['\"].*|\w+)", word)})
    values = [word for word in plain if word.upper() != word or not word.isalpha()]
    for at, word in enumerate(words):
        if word.strip() in values:
            space = word[: len(word) - len(word.lstrip())]
            for other in (*values, "nope", "NULL", "''", "-1", "*", "CURRENT_DATE"):
                yield "".join([*words[:at], space, other, *words[at + 1 :]])


def _put_in(words: list[str], chance: random.Random) -> Iterator[str]:
    for sign in PUT_IN:
        at = chance.randrange(len(words) + 1)
        yield "".join([*words[:at], f" {sign} ", *words[at:]])
        at = chance.randrange(len(words))
        yield "".join([*words[:at], f" {sign} ", *words[at + 1 :]])
