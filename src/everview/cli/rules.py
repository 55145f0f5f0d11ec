"""`everview rules`: the derivative of every operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everview.cli.options import JSON

if TYPE_CHECKING:
    from everview.differentiate.rules import Rule

COLUMNS = ("operator", "law", "citation")

_INTRODUCTION = """\
# The rules

The derivative ΔQ of a query Q says what a change of the tables does to its answer:

    Q(DB + ΔDB) = Q(DB) + ΔQ(DB, ΔDB)

Each operator has one rule of its own. `R`, `Q`, `L` and `T` stand for values before the transaction
and `Δ` for what it adds. A row's weight is how often it counts; it is negative in a change that
takes the row away. `Q ⋉ K` keeps the rows of Q whose key occurs in K.

*Linear* operators read nothing but the change. *Bilinear* ones also read their other side,
*threshold* and *partition* ones their own input, but only at the keys that occur in the change.

`everview rules --markdown` writes this page from the table that the compiler uses,
`src/everview/differentiate/rules.py`.
"""

_SHAPES = "| Operator | Where | Law | From |\n|---|---|---|---|"

_SOURCES = """\
## Where the laws come from

- *dbsp*: Budiu, Chajed, McSherry, Ryzhyk and Tannen, *DBSP: Automatic Incremental View Maintenance
  for Rich Query Languages*.
- *ring-of-databases*: Koch, *Incremental Query Evaluation in a Ring of Databases*.
"""


@click.command()
@click.option("--markdown", is_flag=True, help="Print the page docs/rules.md.")
@JSON
def rules(markdown: bool, as_json: bool) -> None:
    """Show the derivative of every operator.

    Each has its law and the place that the law comes from. Needs no store and no engine.

    \b
    Example:
      everview rules
      everview rules --json | jq -r '.rules[].law'
    """
    from everview.cli.output import print_json, print_rows
    from everview.differentiate.rules import RULES, SPECIAL

    every = (*RULES.values(), *SPECIAL)
    if markdown and as_json:
        raise click.UsageError("--markdown and --json exclude each other")
    if markdown:
        click.echo(page(), nl=False)
    elif as_json:
        found = [dict(zip(COLUMNS, _cells(rule), strict=True)) for rule in every]
        print_json({"rules": found})
    else:
        print_rows(COLUMNS, map(_cells, every))


def _cells(rule: Rule) -> tuple[str, str, str]:
    shape = f": {rule.where}" if rule.where else ""
    return f"{rule.operator.__name__}{shape}", rule.law, rule.cites


def page() -> str:
    """The rules as the page docs/rules.md."""
    from everview.differentiate.rules import RULES, SPECIAL, UNDIFFERENTIATED

    rows = (
        f"| `{rule.operator.__name__}` | {_meaning(rule.operator)} | `{rule.law}` | {rule.cites} |"
        for rule in RULES.values()
    )
    table = "\n".join(("| Operator | Means | Law | From |", "|---|---|---|---|", *rows))
    shapes = "\n".join(
        f"| `{rule.operator.__name__}` | {rule.where} | `{rule.law}` | {rule.cites} |"
        for rule in SPECIAL
    )
    special = (
        f"Of these special rules the first that applies takes its place:\n\n{_SHAPES}\n{shapes}\n"
    )
    others = "\n".join(
        f"- `{operator.__name__}`: {_meaning(operator)}"
        for operator in sorted(UNDIFFERENTIATED, key=lambda each: each.__name__)
    )
    only = f"These occur only in derivatives and programs, and need no rule:\n\n{others}\n"
    return "\n".join((_INTRODUCTION, f"{table}\n", special, only, _SOURCES))


def _meaning(operator: type) -> str:
    """What an operator denotes, in its own words."""
    return (operator.__doc__ or "").partition("\n\n")[0].replace("|", "\\|")
