"""Arguments and options that several commands share."""

from __future__ import annotations

import click

STORE = click.argument("store")
ENGINE = click.option(
    "--engine",
    type=click.Choice(("spark", "duckdb")),
    default="spark",
    show_default=True,
    envvar="EVERVIEW_ENGINE",
    show_envvar=True,
    help="What computes: Spark, or DuckDB in this process, without Java.",
)
ALLOW = click.option(
    "--allow",
    multiple=True,
    metavar="WHAT",
    help="Let statements reach files:PREFIX, and on Spark table:NAME or function:NAME, as well.",
)
MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    envvar="EVERVIEW_MEMORY",
    show_envvar=True,
    help="How much may be held in memory between transactions, such as 512MB, 2GB or 0.",
)
EPOCH = click.option(
    "--epoch",
    type=click.IntRange(min=0),
    metavar="N",
    help="Read the store as it was at epoch N, even if newer ones are damaged.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
