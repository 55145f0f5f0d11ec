"""The command `everview`: its subcommands, and what they share.

Each command imports what it needs when it runs, so that `--help` loads no engine.
"""

from __future__ import annotations

import click

import everview
from everview.cli.audit import audit
from everview.cli.changes import changes
from everview.cli.compact import compact
from everview.cli.exit_codes import ExitCodes
from everview.cli.explain import explain
from everview.cli.fuzz import fuzz
from everview.cli.languages import LANGUAGES
from everview.cli.repair import repair
from everview.cli.retain import retain
from everview.cli.rules import rules
from everview.cli.sql import sql
from everview.cli.status import status
from everview.cli.verify import verify

COMMANDS = (
    sql,
    *LANGUAGES,
    status,
    explain,
    audit,
    changes,
    verify,
    repair,
    compact,
    retain,
    rules,
    fuzz,
)
"""In the order in which a new user needs them."""


@click.group(cls=ExitCodes, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(everview.__version__, prog_name="everview", message="%(prog)s %(version)s")
def main() -> None:
    """Materialized views that are always fresh, maintained from the change.

    A store is a folder with tables and views; after every transaction each view equals its query.

    \b
    Example:
      everview sql shop -c "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT);
        CREATE MATERIALIZED VIEW n AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;
        INSERT INTO orders VALUES (1, 7), (2, 7); SELECT * FROM n"
      everview status shop
      everview audit shop

    \b
    Exit codes:
      0   done
      1   something you can fix; the error says how
      2   the command line was not understood
      3   audit or fuzz found a difference, or verify or repair damage
      70  a bug in everview
    """


for _command in COMMANDS:
    main.add_command(_command)
