"""Expressions that use every entry of the parity table, over the columns of the grid."""

from __future__ import annotations

from itertools import product

_NUMBERS = ("ti", "sh", "i", "l", "f", "d", "n", "p")

ARITHMETIC = (
    *(f"{c} {op} {c}2" for c, op in product((*_NUMBERS, "q"), ("+", "-", "*", "%"))),
    *(f"{c} / {c}2" for c in ("ti", "i", "l", "f", "d", "n", "p")),
    *(f"{c} DIV {c}2" for c in ("ti", "i", "l")),
    *(f"{a} {op} {b}2" for (a, b), op in product(
        (("sh", "ti"), ("i", "l"), ("n", "i"), ("n", "l"), ("d", "i"), ("d", "n"), ("f", "i"),
         ("f", "d"), ("n", "p"), ("p", "n"), ("n", "q")),
        ("+", "-", "*", "%"))),
    *(f"{a} / {b}2" for a, b in (
        ("n", "i"), ("i", "n"), ("n", "l"), ("n", "p"), ("d", "i"), ("d", "n"), ("l", "d"),
        ("q", "l"), ("q", "i"), ("m", "n"))),
    "n * 1.1", "n * 2", "n / 3", "i / 2.0", "i * 0.1", "d * 0.1", "i + 1", "l + 1", "sh + 1",
    "1.0 / 3", "10 / 4", "0.1 + 0.2", "n * (1 - n2)",
    "n * (1 - n2) * (1 + n3)", "CASE WHEN i2 <> 0 THEN n / i2 ELSE 0 END",
    "i % 3", "i % -1",
    "i / 3", "l DIV 2", "d % 3", "w + w2", "w - w2", "m % m2", "sn + i2", "sn * d2",
    *(f"- {c}" for c in _NUMBERS), *(f"+ {c}" for c in ("i", "d")),
    *(f"abs({c})" for c in _NUMBERS),
    *(f"{name}({c})" for name in ("sign", "ceil", "floor") for c in ("i", "l", "f", "d", "n", "m")),
    *(f"round({c})" for c in ("n", "p", "m", "i", "l")),
    "CASE WHEN abs(d) < 1e6 THEN round(d, 2) END", "CASE WHEN abs(d) < 1e15 THEN round(d) END",
    "n DIV n2", "p DIV n2", "n DIV i2",
    "round(n, 1)", "round(n, -1)", "round(p, 3)", "round(m, 4)", "round(n, 5)",
    *(f"{name}({c})" for name in ("sqrt", "degrees", "radians") for c in ("i", "d", "n")),
    *(f"{name}({c})" for name in ("ln", "log2", "log10", "log1p", "exp", "expm1", "log")
      for c in ("d", "f", "i", "n")),
    *(f"{name}({c})" for name in ("power", "log")
      for c in ("d, d2", "k, k2", "n, d2", "d, 0.5", "10, d", "d, i2")), "pow(i, 3)",
    "isnan(d)", "isnan(f)", "nanvl(d, d2)", "nanvl(f, f2)", "nanvl(f, d2)",
    "nanvl(i, f)", "nanvl(m, 2)",
    *(f"{c} {op} {c}2" for c in ("ti", "i", "l") for op in "&|^"), "sh & i2", "~i", "~l", "~ti",
    *(f"pmod({c}, {c}2)" for c in ("ti", "sh", "d", "f", "n", "p")), "pmod(i, 7)", "pmod(n, p2)",
    *(f"pmod({c}, CASE WHEN {c}2 > -1000000 THEN {c}2 END)" for c in ("i", "l")), "pmod(i, -7)",
    *(f"{name}({c}, k2)" for name in ("shiftleft", "shiftright", "shiftrightunsigned")
      for c in ("i", "l", "ti")), "i << 2", "l >> 3",
    *(f"bit_count({c})" for c in ("i", "l", "ti", "b")), "rint(d)", "factorial(k)", "pi()", "e()",
    "positive(n)", "negative(d)",
    *(f"bround({c})" for c in ("n", "p", "i", "l")), "bround(n, 1)", "bround(p, 3)",
    "bround(n, -1)",
    "CASE WHEN abs(d) < 1e6 THEN bround(d, 1) END", "CASE WHEN abs(d) < 1e15 THEN bround(d) END",
    "round(i, -1)", "round(l, -2)", "round(ti, 3)", "round(i, -9)", "round(sh, -4)", "bround(i, 2)",
    *(f"{name}({c}, {digits})" for name in ("ceil", "floor")
      for c, digits in (("n", 1), ("p", 3), ("n", 4), ("q", 1), ("p", 0))),
    *(f"try_{name}({c}, {c}2)" for name in ("add", "subtract", "multiply", "divide", "mod")
      for c in ("ti", "i", "l", "d", "n")), "try_add(i, 1)", "try_divide(n, i2)",
    "try_divide(i, 0)", "try_mod(CAST(i AS BIGINT), 6)", "try_add(CAST(i AS DECIMAL(12,1)), n)",
)  # fmt: skip

LOGIC = (
    *(f"{c} {op} {c}2" for c, op in product(
        ("i", "l", "d", "f", "n", "m", "s", "b", "dt", "ts", "tn"), ("=", "<", "<=>"))),
    *(f"{c} {op} {c}2" for c, op in product(("i", "d", "s", "dt"), ("<>", "<=", ">", ">="))),
    *(f"{a} {op} {b}2" for (a, b), op in product(
        (("i", "l"), ("i", "d"), ("n", "d"), ("m", "d"), ("l", "d"), ("n", "i"), ("n", "p"),
         ("m", "w"), ("f", "d"), ("f", "n"), ("f", "i"), ("dt", "ts"), ("dt", "tn"), ("ts", "tn"),
         ("sn", "i"), ("sn", "d"), ("sn", "n"), ("sd", "dt"), ("sb", "b")), ("=", "<"))),
    "f = 0.1", "d = 0.1", "n = 1.15", "s = ''", "sn = 123", "dt < '2020-01-01'",
    "dt = '2024-2-3'", "ts >= '2020-01-01'", "ts > '2024-01-01 00:00:00'", "ts < DATE '2024-01-01'",
    "s = 'it''s'", "s = 'a\\\\%'", "i IS DISTINCT FROM i2", "d IS DISTINCT FROM d2",
    "b AND b2", "b OR b2", "NOT b", "b IS TRUE", "b IS NOT FALSE", "b AND NULL",
    "i IS NULL", "d IS NOT NULL", "isnull(s)", "isnotnull(s)",
    "i BETWEEN i2 AND 5", "d BETWEEN d2 AND 1", "s BETWEEN 'A' AND 'b'", "i NOT BETWEEN 0 AND 10",
    "dt BETWEEN '2000-01-01' AND '2024-12-31'",
    "i IN (1, 2, NULL)", "i NOT IN (1, NULL)", "i IN (1, i2)", "s IN ('a', 'abc', NULL)",
    "d IN (0.0D, double('NaN'))", "n IN (1, 2.25)", "i IN (1.0, 2.5)", "sn IN (1, 2)",
    "dt IN ('2024-01-01', '2000-02-29')",
    "CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' END",
    "CASE i WHEN 1 THEN 1 WHEN NULL THEN 2 ELSE 0 END",
    "CASE WHEN b THEN i2 ELSE l2 END", "CASE WHEN b THEN i2 ELSE n2 END",
    "CASE WHEN b THEN n2 ELSE d2 END", "CASE WHEN b THEN n2 ELSE p2 END",
    "CASE WHEN b THEN 1 ELSE 2.5 END", "CASE WHEN b THEN dt2 ELSE ts2 END",
    "CASE WHEN b THEN i2 ELSE sn2 END", "CASE WHEN i2 = 0 THEN 0 ELSE 10 DIV i2 END",
    "CASE WHEN i2 <> 0 THEN i / i2 ELSE 0 END",
    "IF(b, i2, i3)", "IF(i > 1, 1, 0)", "IF(b, i2, d2)", "IF(b, NULL, s2)",
    "COALESCE(i, i2, 0)", "COALESCE(n, d2)", "COALESCE(n, p2)", "COALESCE(i, 0.5)",
    "COALESCE(dt, ts2)", "COALESCE(s, s2, 'none')", "COALESCE(n, 0)", "COALESCE(NULL, i)",
    "NULLIF(i, i2)", "NULLIF(d, d2)", "NULLIF(s, '')", "NULLIF(n, 0)", "NVL(i, 7)", "NVL(s, s2)",
    "NVL2(i, i2, 9)", "IFNULL(d, 0)",
    *(f"{name}({c}, {c}2)" for name in ("greatest", "least") for c in ("i", "d", "n", "s", "dt")),
    "greatest(i, d2)", "greatest(n, i2)", "greatest(i, NULL, 3)", "least(i, l2, 5)",
    "least(ts, ts2)", "greatest(b, b2)", "greatest(f, f2)", "least(f, f2)", "least(f, f2, 0.1)",
    "least(d, f2, l3)",
    "nullifzero(i)", "nullifzero(n)", "zeroifnull(d)", "zeroifnull(l)",
    "decode(i, 1, 'one', NULL, 'none', 'other')", "decode(s, 'a', 1, 'abc', i2)",
    "decode(k, 1, n2, 2, 0.5, 0)", "bigint(i)", "decimal(n)", "tinyint(k)", "float(i)",
)  # fmt: skip

TEXTS = (
    *(f"{name}(s)" for name in (
        "length", "octet_length", "bit_length", "trim", "ltrim", "rtrim", "btrim", "reverse",
        "ascii", "md5", "sha1", "char_length")),
    "length(i)", "length(dt)", "concat(s, s2)", "s || s2", "s || i2", "concat(s, n2, dt3)",
    "concat(s, NULL)", "concat(s, b2)", "concat(s, ts2)", "s || '-' || s2",
    "concat_ws('-', s, s2)", "concat_ws(s2, s, 'z')", "concat_ws('-', s, i2)",
    "substring(s, k2)", "substring(s, k2, k3)", "substring(s, 0, 2)", "substr(s, 2, 3)",
    "substring(s, -2, 1)", "substring(s, 1, k2)", "substring(s, -3)", "substring(s, i2, i3)",
    "left(s, k2)", "right(s, k2)", "left(s, 2)", "right(s, 2)",
    "trim(BOTH 'a' FROM s)", "trim(LEADING s2 FROM s)", "trim(TRAILING 'a ' FROM s)",
    "btrim(s, 'ab')", "replace(s, s2, s3)", "replace(s, 'a')", "replace(s, 'a', 'bb')",
    "replace(s, '', 'x')", "translate(s, 'abé', 'xy')", "translate(s, s2, s3)",
    "startswith(s, s2)", "endswith(s, s2)", "contains(s, s2)", "startswith(s, 'a')",
    "instr(s, s2)", "locate(s2, s)", "position('a' IN s)", "locate(s2, s, k3)", "locate('a', s, 2)",
    "lpad(s, k2, s3)", "rpad(s, k2, s3)", "lpad(s, 5)", "rpad(s, 5, 'xy')", "lpad(i, 8, '0')",
    "lpad(s, k2, 'ab')", "rpad(s, k2)",
    "repeat(s, k2)", "space(k)", "repeat('ab', 2)",
    "split_part(s, ',', 2)", "split_part(s, 'a', -1)",
    "s LIKE '%o%'", "s LIKE '_'", "s LIKE 'a%'", "s LIKE '%c'", "s LIKE '50\\\\%%'", "s LIKE ''",
    "s LIKE '50!%!_%' ESCAPE '!'", "s NOT LIKE 'a%'", "s LIKE '_b_'", "s LIKE 'x%y'", "s LIKE '%'",
    "s LIKE 'a\\\\\\\\\\\\%'", "i LIKE '1%'",
    "s LIKE s2", "s NOT LIKE s2", "s LIKE concat('%', s2, '%')", "s ILIKE '%A%'", "s ILIKE s2",
    "s NOT ILIKE 'a%'", "s ILIKE 'É%'", "s LIKE ANY ('a%', '%c', NULL)",
    "s LIKE ALL ('%a%', '%b%')",
    "s NOT LIKE ANY ('a%', '%c')", "s NOT LIKE ALL ('a%', NULL)", "s LIKE ANY (s2, 'x')",
    *(f"{name}({c})" for name in ("upper", "lower") for c in ("s", "sc", "i", "dt")),
    "initcap(s)", "initcap(CASE WHEN NOT sc RLIKE '[İß]' THEN sc END)", "initcap(b)",
    "upper(concat(s, s2))", "CASE WHEN i2 <> 0 THEN upper(10 DIV i2) ELSE 'z' END",
    "initcap(concat(s, ' ', s2))", "lower(sc || sc2)",
    "concat_ws('-')", "split_part(s, ',', k2)", "split_part(s, s2, k3)", "split_part(s, s2, 1)",
    "substring_index(s, ',', k2)", "substring_index(s, 'a', -2)",
    "find_in_set(s2, s)", "find_in_set('b', s)", "space(k)",
    "overlay(s PLACING 'zz' FROM 2)", "overlay(s, 'zz', 2, 0)", "overlay(s, s2, 1, k3)",
    "hex(CAST(s AS BINARY))", "unhex(hex(s))", "unhex(sn)", "unhex(i)", "luhn_check(sn)",
    "X'00FF'", "X'ABC'", "X''", "hex(X'0a')", "X'61' = CAST(s AS BINARY)",
    "X'6' < CAST(s AS BINARY)",
    "luhn_check(l)", "luhn_check(abs(i))", "luhn_check(repeat('79927398713', k))",
    "to_number(sn, '99')", "to_number(CAST(abs(k) AS STRING), '9999')", "to_number(s, '9')",
    "chr(i)", "chr(k)", "char(65 + k)", "bin(i)", "bin(l)", "hex(i)", "hex(l)", "hex(s)",
    "base64(s)", "sha2(s, 256)", "sha2(s, 0)",
    *(f"s RLIKE '{pattern}'" for pattern in (
        "a", "^a", "^[a-z]+$", "[^a]", "a.b", "x.y", "(a|b)+c", "a{2,3}", "^.$", "\\\\d+", "\\\\s",
        "\\\\W", "^[\\\\w ]*$", "a,b?", "o_o|50%", "^(?:a|ab)(c|bcd)?$", "é", "[é-ÿ]")),
    *(f"regexp_replace(s, '{pattern}', '{text}')" for pattern, text in (
        ("a", "b"), ("([a-z])", "<$1>"), ("\\\\s+", ""), ("(a)(.)", "$2$1"),
        ("[^a-z]", "_"), (".", "x"), ("a+?", "-"))),
    *(f"regexp_extract(s, '{pattern}', {group})" for pattern, group in (
        ("([a-z]+)", 1), ("[A-Z]+", 0), ("(.),(.)", 2), ("a(b|c)", 1))),
    *(f"CASE WHEN NOT s RLIKE '[\\\\n]' THEN {found} END" for found in (
        "s RLIKE 'c$'", "regexp_replace(s, 'c$', 'z')", "regexp_extract(s, '([a-z])$', 1)")),
    "regexp_extract(s, '([a-z]+)')", "regexp_extract(sd, '([0-9]{4})-([0-9]+)', 2)",
    "regexp(s, 'b')", "s RLIKE '\\\\\\\\%'", "s RLIKE '^[\\\\s\\\\d.,-]*a'", "s RLIKE '(a|)b?,'",
    "regexp_replace(s, '[\\\\\\\\%]', '{x}')", "regexp_extract(sd, '(\\\\d+)-(\\\\d+)', 0)",
)  # fmt: skip

_SURE_ZONE = "CASE WHEN NOT st RLIKE '[+-][0-9]$' THEN st END"

MOMENTS = (
    "dt + k2", "dt - k2", "k + dt2", "dt + 1", "date_add(dt, k2)", "date_sub(dt, k2)",
    "date_add(ts, k2)", "date_add(sd, 1)", "datediff(dt, dt2)", "datediff(ts, ts2)",
    "datediff(dt, '2024-01-01')", "date_sub(dt, ti2)",
    "add_months(dt, k2)", "add_months(dt, 1)", "last_day(dt)", "last_day(ts)",
    *(f"{m} {sign} INTERVAL '{count}' {unit}" for m, sign, count, unit in (
        ("dt", "+", 1, "MONTH"), ("dt", "-", 1, "YEAR"), ("dt", "+", 3, "DAY"),
        ("dt", "+", 1, "WEEK"), ("ts", "+", 1, "MONTH"), ("ts", "-", 30, "DAY"),
        ("ts", "+", 90, "MINUTE"), ("ts", "-", 1, "HOUR"), ("ts", "-", 1, "SECOND"),
        ("tn", "+", 1, "MONTH"), ("tn", "-", 1, "HOUR"))),
    *(f"{name}({c})" for name in (
        ["year", "quarter", "month", "day", "dayofyear", "weekofyear", "dayofweek", "weekday"]
    ) for c in ("dt", "ts", "tn")),
    *(f"{name}({c})" for name in ("hour", "minute", "second") for c in ("ts", "tn", "dt")),
    "extract(SECOND FROM ts)", "extract(SECOND FROM tn)", "extract(DOW FROM dt)", "year(sd)",
    "extract(WEEK FROM ts)", "date_part('month', dt)",
    "to_date(dt)", "to_date(ts)", "make_date(2024, k, 29)", "make_date(i, 1, 1)",
    "make_date(2023, k, k2)",
    *(f"trunc(dt, '{unit}')" for unit in ("WEEK", "MONTH", "mm", "QUARTER", "YEAR", "yy")),
    "trunc(ts, 'MONTH')",
    *(f"date_trunc('{unit}', ts)" for unit in (
        "YEAR", "QUARTER", "MONTH", "week", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND",
        "MICROSECOND")),
    "date_trunc('MONTH', dt)", "date_trunc('DAY', tn)",
    *(f"date_format({c}, '{pattern}')" for c, pattern in (
        ("ts", "yyyy-MM-dd"), ("ts", "yyyy-MM-dd HH:mm:ss"), ("dt", "MM/dd/yyyy"),
        ("dt", "yyyyMM"), ("dt", "yyyy-MM"), ("ts", "EEEE, MMM d"), ("dt", "EEE"),
        ("dt", "MMMM yyyy"))),
    *(f"date_format({c}, '{pattern}')" for c, pattern in (
        ("ts", "yyyy-MM-dd HH:mm:ss.SSS"), ("ts", "SSSSSS"), ("ts", "yy D a hh"), ("dt", "E"),
        ("ts", "h:m:s a"), ("dt", "M/d/yy"), ("dt", "DDD"), ("ts", "H"), ("dt", "EE"))),
    'date_format(ts, "yyyy-MM-dd\'T\'HH:mm:ss")',
    *(f"next_day(dt, '{day}')" for day in ("MON", "sunday", "FR")), "next_day(ts, 'TUE')",
    "months_between(dt, dt2)", "months_between(ts, ts2)", "months_between(ts, ts2, false)",
    "months_between(ts, dt2, true)",
    *(f"timestampdiff({unit}, ts, ts2)" for unit in (
        "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER",
        "YEAR")),
    "datediff(MONTH, ts, ts2)", "datediff(DAY, dt, dt2)", "timestampdiff(YEAR, dt, dt2)",
    "timestampdiff(HOUR, tn, ts2)",
    *(f"timestampadd({unit}, k2, ts)" for unit in (
        "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")),
    "timestampadd(DAY, k2, tn)", "dateadd(MONTH, k2, dt)", "timestampadd(MONTH, 1, tn)",
    "dt + INTERVAL '1' HOUR", "dt - INTERVAL '90' MINUTE", "INTERVAL '1' DAY + ts",
    "INTERVAL '2' HOUR + ts", "INTERVAL '1' MONTH + dt", "INTERVAL '3' HOUR + dt",
    "ts + INTERVAL 1 DAY 2 HOURS", "ts - INTERVAL '1 day'",
    *(f"to_date(sd, '{pattern}')" for pattern in ("yyyy-MM-dd", "yyyyMMdd", "dd/MM/yyyy")),
    "to_timestamp(ts)", "to_timestamp(dt)", "to_timestamp_ntz(ts)", "to_timestamp_ntz(dt)",
    "to_timestamp(sd, 'yyyy-MM-dd HH:mm:ss')",
    *(f"{name}({c}, 'yyyy-MM-dd HH:mm')" for name in ("to_date", "to_timestamp")
      for c in ("dt", "ts", "tn")),
    *(f"try_to_timestamp({c})" for c in ("dt", "ts", "tn", "sd", "su", _SURE_ZONE)),
    *(f"{name}(sd, '{pattern}')" for name in ("try_to_date", "try_to_timestamp")
      for pattern in ("yyyy-MM-dd", "yyyyMMdd")), "try_to_timestamp(st, 'yyyy-MM-dd HH:mm:ss')",
    *(f"{m} CAST('{count}' AS INTERVAL {unit})" for m, count, unit in (
        ("dt +", 30, "DAY"), ("ts -", " 5 ", "DAY"), ("tn +", -7, "HOUR"), ("dt -", "+2", "MONTH"),
        ("ts +", 90, "SECOND"), ("dt +", 3, "MINUTE"), ("ts -", 1, "YEAR"))),
    "to_timestamp(sd, 'yyyy-MM-dd')", "unix_timestamp(ts)", "unix_timestamp(sd, 'yyyy-MM-dd')",
    "to_unix_timestamp(ts)", "from_unixtime(i)", "from_unixtime(i, 'yyyy-MM-dd')",
    "timestamp_seconds(i)", "timestamp_millis(i)", "timestamp_micros(i)", "date_from_unix_date(k)",
    "make_timestamp(2024, k, 29, 12, 30, 45.887)", "make_timestamp(2024, 2, 29, k, k2, 7)",
    "extract(YEAROFWEEK FROM dt)", "extract(DAYOFWEEK_ISO FROM ts)", "datepart('year', dt)",
    "unix_date(dt)", "unix_micros(ts)", "unix_millis(ts)", "unix_seconds(ts)", "dayname(dt)",
    "monthname(dt)",
)  # fmt: skip

_SURE_DIGITS = "{0} = 0 OR isnan({0}) OR abs({0}) BETWEEN 0.001 AND 9e14 OR abs({0}) > 1e308"

CASTS = (
    *(f"CAST({c} AS {t})" for c, t in product(
        ("ti", "i", "l"),
        ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,1)",
         "DECIMAL(20,4)", "STRING", "BOOLEAN"))),
    *(f"CAST({c} AS {t})" for c, t in product(
        ("n", "p", "m", "w"),
        ("TINYINT", "INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(5,1)", "DECIMAL(20,4)", "BOOLEAN",
         "STRING"))),
    *(f"CAST({c} AS {t})" for c, t in product(
        ("d", "f"),
        ("TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,1)", "DECIMAL(12,2)",
         "DECIMAL(15,6)", "BOOLEAN"))),
    *(f"CAST(b AS {t})" for t in ("INT", "BIGINT", "DOUBLE", "DECIMAL(5,1)", "STRING")),
    *(f"CAST(sn AS {t})" for t in (
        "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,1)", "DECIMAL(20,4)")),
    "CAST(sb AS BOOLEAN)", "CAST(sd AS DATE)", "CAST(s AS BINARY)",
    *(f"CAST(dt AS {t})" for t in ("STRING", "TIMESTAMP", "TIMESTAMP_NTZ")),
    *(f"CAST(ts AS {t})" for t in ("DATE", "TIMESTAMP_NTZ", "STRING", "INT", "BIGINT")),
    *(f"CAST(tn AS {t})" for t in ("DATE", "TIMESTAMP", "STRING")),
    *(f"TRY_CAST({c} AS {t})" for c, t in (
        ("sn", "INT"), ("sn", "BIGINT"), ("sn", "DOUBLE"), ("sn", "DECIMAL(5,1)"), ("d", "INT"),
        ("sb", "BOOLEAN"), ("sd", "DATE"), ("l", "INT"), ("n", "TINYINT"), ("i", "DECIMAL(5,1)"))),
    *(f"TRY_CAST({c} AS {t})" for c in ("sd", "su") for t in ("TIMESTAMP", "TIMESTAMP_NTZ")),
    "CAST(NULL AS INT)", "i::string", "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00.5'",
    "CAST('2024-01-01' AS TIMESTAMP)",
    *(f"CAST(CASE WHEN {_SURE_DIGITS.format(d)} THEN {d} END AS STRING)"
      for d in ("d", "d * 1000000", "i / 7", "l * 0.01D")),
    "CAST(ts AS DOUBLE)", "CAST(i AS TIMESTAMP)", "CAST(ti AS TIMESTAMP)",
    "CAST(sd AS TIMESTAMP)", "CAST(sd AS TIMESTAMP_NTZ)", "CAST(st AS TIMESTAMP)",
    "CAST(st AS TIMESTAMP_NTZ)", "to_timestamp(sd)", "sd < ts2",
)  # fmt: skip

_COUNT = "CASE WHEN l2 >= 0 THEN l2 END"

AVERAGES = (
    *(f"ev_avg_double({total}, {_COUNT})" for total in ("w", "l", "i")),
    "ev_single(CAST(1 AS BIGINT), i)",
    "ev_from_base(hex(l), 16)", "ev_from_base(bin(l), 2)", "ev_from_base('', 2)",
    *(f"ev_avg_decimal({total}, {_COUNT}, {p}, {s})" for total, p, s in (
        ("n", 10, 2), ("q", 20, 2), ("p", 18, 6), ("q", 20, 12))),
    "ev_avg_decimal(n, abs(k2), 10, 2)", "ev_avg_decimal(p, abs(k2), 18, 6)",
)  # fmt: skip

NESTED = (
    *(f"{c} {op} {c}2" for c in ("ai", "ad", "sa", "aa", "r", "ar")
      for op in ("=", "<>", "<=>", "IS DISTINCT FROM")),
    "array(i, i2)", "array(i, l2)", "array(s, NULL, s2)", "array(n, i2)", "array(r, r2)",
    "array(array(i), array(k2, NULL))", "array(NULL, i)", "array(ai, ai2, array())",
    "struct(i, s2 AS y)", "named_struct('p', i, 'q', ai2)", "struct(r AS inner, d)",
    "(r).x", "(r).y", "(ar).x", "(ar).y", "struct(r AS inner, d).inner.y", "ar[0].x",
    "transform(ar, e -> e.y)",
    "map('a', i, 'b', i2)", "map(coalesce(s, 'none'), i2)", "map('k', array(i))['k']",
    "map(1, s, 2, s2)[k3]",
    "ai[k2]", "ai[0]", "ai[CAST(k2 AS SMALLINT)]",
    "sa[1]", "aa[k2]", "aa[0][0]", "mp['a']", "mp[s2]", "mp[NULL]",
    "element_at(ai, k2)", "element_at(ai, 1)", "element_at(sa, -1)", "element_at(mp, s2)",
    "try_element_at(ai, k2)", "try_element_at(ai, 2)", "try_element_at(mp, 'zz')", "get(ai, k2)",
    "get(sa, 0)", "size(ai)", "size(aa)", "size(mp)", "cardinality(sa)", "cardinality(mp)",
    "array_size(ai)",
    *(f"array_contains({c})" for c in ("ai, k2", "ai, 1", "sa, s2", "ad, d2", "sa, 'b'")),
    *(f"array_position({c})" for c in ("ai, k2", "sa, s2", "ad, d2", "ai, 1")),
    *(f"array_remove({c})" for c in ("ai, k2", "sa, s2", "ad, d2", "ai, 1")),
    *(f"array_{name}({c})" for name in ("append", "prepend")
      for c in ("ai, k2", "sa, 'x'", "ai, NULL", "aa, ai2")),
    *(f"array_{name}({c})" for name in ("distinct", "compact") for c in ("ai", "sa")),
    "array_compact(ar)", "array_compact(aa)",
    *(f"array_{name}({c}, {c}2)" for name in ("union", "intersect", "except")
      for c in ("ai", "sa")),
    "array_union(ai, array(1, 5))", "arrays_overlap(ai, ai2)", "arrays_overlap(sa, sa2)",
    *(f"{name}({c})" for name in ("sort_array", "array_sort")
      for c in ("ai", "ad", "sa", "aa", "ar")),
    *(f"sort_array({c}, FALSE)" for c in ("ai", "sa", "aa", "ar")), "sort_array(ai, true)",
    *(f"array_{name}({c})" for name in ("max", "min") for c in ("ai", "sa")),
    "slice(ai, k2, 2)", "slice(ai, 1, k2)", "slice(ai, -2, 2)", "slice(sa, 2, 5)",
    "slice(aa, k2, k3)", "flatten(aa)", "flatten(array(ai, ai2))", "concat(ai, ai2)", "ai || ai2",
    "concat(sa, array('x'))", "concat(ai, ai2, ai3)", "reverse(ai)", "reverse(sa)", "reverse(aa)",
    "concat_ws(',', sa)", "array_join(sa, ',')", "array_join(sa, '-', 'N')", "array_join(ai, ', ')",
    "array_join(sa, ',', s2)", "array_repeat(i, k2)", "array_repeat(ai, 2)", "array_repeat(s, 3)",
    "sequence(1, k)", "sequence(k, 5)", "sequence(k, k2)", "sequence(k, 5, 2)",
    "sequence(5, 1, -2)",
    "sequence(k, k2, 3)", "sequence(1L, k)", "sequence(ti, 3)",
    "split(s, ',')", "split(s, ' ')", "split(s, '[, ]')", "split(s, 'b|c')", "split(s, ',', -1)",
    "split(s, '\\\\s+')", "split(s, 'a')", "split(s, ',')[0]", "size(split(s, 'a'))",
    *(f"split({c}, '{pattern}', {limit})" for c in ("s", "sc") for limit in (1, 2, 3, 7)
      for pattern in (",", "a", "\\\\s+", "[a-c]", "b|c", "")),
    *(f"split(CASE WHEN NOT contains(s, '😀') THEN s END, '|', {limit})"
      for limit in (0, 1, 2, 3, 9)),
    "split(s, '')", "split(sc, '|')", "split(sc, '|', 2)",
    "map_keys(mp)", "map_values(mp)", "map_entries(mp)", "map_contains_key(mp, s2)",
    "map_contains_key(mp, 'a')", "map_from_arrays(array('a', 'b'), array(i, i2))",
    "map_from_entries(map_entries(mp))", "map_keys(map_from_arrays(sa, sa))",
    "map_from_entries(array(struct('a', i)))",
    "transform(ai, x -> x + 1)", "transform(ai, (x, j) -> x + j)", "transform(ai, x -> x * k2)",
    "transform(sa, x -> upper(x))", "transform(aa, x -> size(x))", "transform(aa, x -> x[0])",
    "transform(aa, x -> transform(x, y -> y + size(x)))", "transform(ai, x -> struct(x, i2 AS b))",
    "transform(ar, e -> e.x)", "transform(ai, x -> CASE WHEN x > 1 THEN 'big' END)",
    "filter(ai, x -> x > 1)", "filter(ai, (x, j) -> j > 0)", "filter(sa, x -> x IS NOT NULL)",
    "filter(ar, e -> e.y = 'b')", "filter(ai, x -> x > k2)",
    "exists(ai, x -> x > 1)", "exists(sa, x -> x = s2)", "forall(ai, x -> x > 0)",
    "forall(sa, x -> x <> 'a')", "aggregate(ai, 0, (acc, x) -> acc + x)",
    "aggregate(ai, 0, (acc, x) -> acc + coalesce(x, 0), acc -> acc * 10)",
    "aggregate(sa, '', (acc, x) -> concat(acc, coalesce(x, '?')))",
    "reduce(ai, i2, (acc, x) -> coalesce(x, acc))",
    "aggregate(ai, CAST(0 AS BIGINT), (acc, x) -> acc + x)",
    "map_filter(mp, (k, v) -> v > 1)", "map_filter(mp, (k, v) -> k <> s2)",
    "transform_values(mp, (k, v) -> v + 1)", "transform_values(mp, (k, v) -> concat(k, v))",
    "transform_keys(mp, (k, v) -> concat(k, 'x'))", "transform_keys(mp, (k, v) -> v)",
    "CAST(ai AS ARRAY<BIGINT>)", "CAST(ai AS ARRAY<STRING>)", "CAST(array() AS ARRAY<INT>)",
    "CAST(r AS STRUCT<x: BIGINT, y: STRING>)", "CAST(r AS STRUCT<a: STRING, b: STRING>)",
    "CAST(ad AS ARRAY<FLOAT>)", "CAST(ar AS ARRAY<STRUCT<x: STRING, y: STRING>>)",
    "CAST(NULL AS ARRAY<INT>)", "COALESCE(ai, array())", "COALESCE(r, struct(0 AS x, '' AS y))",
    "IF(b, ai, ai2)", "CASE WHEN size(ai) > 0 THEN ai[0] END", "ai IS NULL", "r IS NOT NULL",
    "COALESCE(ai, CAST(array(1L) AS ARRAY<BIGINT>))", "isnull(mp)", "COALESCE(mp, mp2)",
    "ev_single(CAST(1 AS BIGINT), ai)",
)  # fmt: skip

JSON = (
    *(f"get_json_object(sj, '$.{path}')" for path in (
        "a", "b", "b.c", "b.d", "b.d[0]", "b.d[1]", "b.d[2]", "b.c.e", "b.c.f", "d", "z.a", "b[0]",
        "b.d[1].a", "b.d[0][1]", "none")),
    *(f"get_json_object(sj, '${path}')" for path in ("[0]", "[1]", "[2]", "[2].a", "[0][0]")),
    "json_array_length(sj)", "json_array_length(get_json_object(sj, '$.b.d'))",
    "CAST(get_json_object(sj, '$.b.d[0]') AS STRING)", "json_array_length(s)",
    "to_json(struct(s AS a, i2 AS b))", "to_json(struct(b, dt2 AS x, l AS n, ti3 AS z))",
    "to_json(ai)", "to_json(sa)", "to_json(aa)", "to_json(r)", "to_json(ar)",
    "to_json(array(b, b2))",
    "to_json(struct(r AS inner, ar2 AS more))", "to_json(struct(chr(abs(k) + 1) AS c))",
    f"to_json(struct(CASE WHEN {_SURE_DIGITS.format('d')} THEN d END AS x))", "to_json(struct(sc))",
    "to_json(named_struct('p', i / 7, 'q', n2 < 0))",
)  # fmt: skip

EXAMPLES = (*ARITHMETIC, *LOGIC, *TEXTS, *MOMENTS, *CASTS, *AVERAGES, *NESTED, *JSON)
