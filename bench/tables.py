"""The eight tables of TPC-H at a scale, generated once and kept, and the queries over them."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import duckdb

DATA = Path(__file__).parent / "data"
QUERIES = Path(__file__).parents[1] / "tests" / "tpc" / "tpch"
KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
_SPARK_TYPES = {"INTEGER": "INT", "VARCHAR": "STRING"}


def queries() -> dict[str, str]:
    """The 22 queries, q01 to q22, with the parameters of their validation."""
    return {file.stem: file.read_text() for file in sorted(QUERIES.glob("*.sql"))}


def generated(scale: float, folder: Path = DATA, names: Iterable[str] = KEYS) -> Path:
    """The folder of a scale, with a Parquet file for each of the tables named."""
    kept = folder / f"scale-{scale:g}"
    generate(scale, kept, [name for name in names if not (kept / f"{name}.parquet").exists()])
    return kept


def generate(scale: float, into: Path, names: Iterable[str] = KEYS) -> None:
    """Write the tables named at a scale."""
    wanted = ",".join(names)
    if not wanted:
        return
    into.mkdir(parents=True, exist_ok=True)
    generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    size = ["-s", f"{scale:g}", "-T", wanted, "-o", str(into), "--overwrite"]
    subprocess.run([str(generator), "parquet", *size], check=True, capture_output=True)


def declaration(name: str, file: Path) -> str:
    """The table in a file as a statement that declares it."""
    described = duckdb.execute(f"DESCRIBE FROM '{file}'").fetchall()
    columns = [f"{column} {_SPARK_TYPES.get(type_, type_)}" for column, type_, *_ in described]
    key = f"PRIMARY KEY ({', '.join(KEYS[name])})"
    return f"CREATE TABLE {name} ({', '.join([*columns, key])})"
