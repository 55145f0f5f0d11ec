"""Arguments and options that several commands share."""

from __future__ import annotations

import click

STORE = click.argument("store")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
