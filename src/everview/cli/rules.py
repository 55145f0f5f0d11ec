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

_SETS = """\
## On sets

A view in [relational algebra](relalg.md) is a set, and its change is a pair of sets: ∇Q leaves, ΔQ
comes. Of a minimal transaction it is minimal: ∇Q is a part of Q, and no row of ΔQ is in Q. Here
`add(S)` stands for `S ∪ ΔS`, `sub(S)` for `S − ∇S` and `mod(S)` for `(S − ∇S) ∪ ΔS`, and everything
is evaluated before the transaction. `everview rules --sets` prints both tables.
"""

_EQUATIONS = """\
With these equations a change below an operator becomes one above it. Applied again and again they
give a right answer too, but not a minimal one: the table above is what to use.
"""

_SHAPES = "| Operator | Where | Law | From |\n|---|---|---|---|"

_SOURCES = """\
## Where the laws come from

- *dbsp*: Budiu, Chajed, McSherry, Ryzhyk and Tannen, *DBSP: Automatic Incremental View Maintenance
  for Rich Query Languages*.
- *minimal-changes*: Griffin, Libkin and Trickey, *An Improved Algorithm for the Incremental
  Recomputation of Active Relational Expressions*: the tables of sets are its Fig. 2 and Fig. 1.
- *ring-of-databases*: Koch, *Incremental Query Evaluation in a Ring of Databases*.
"""


@click.command()
@click.option("--markdown", is_flag=True, help="Print the page docs/rules.md.")
@click.option("--sets", is_flag=True, help="The changes of relational algebra on sets instead.")
@JSON
def rules(markdown: bool, sets: bool, as_json: bool) -> None:
    """Show the derivative of every operator.

    Each has its law and the place that the law comes from. Needs no store and no engine.

    \b
    Example:
      everview rules
      everview rules --sets
      everview rules --json | jq -r '.rules[].law'
    """
    from everview.cli.output import print_json, print_rows
    from everview.differentiate.rules import RULES, SPECIAL

    every = (*RULES.values(), *SPECIAL)
    if markdown and as_json:
        raise click.UsageError("--markdown and --json exclude each other")
    if markdown and sets:
        raise click.UsageError("--markdown prints the tables of sets too: leave out --sets")
    if sets:
        _show_sets(as_json)
    elif markdown:
        click.echo(page(), nl=False)
    elif as_json:
        found = [dict(zip(COLUMNS, _cells(rule), strict=True)) for rule in every]
        print_json({"rules": found})
    else:
        print_rows(COLUMNS, map(_cells, every))


SET_COLUMNS = ("query", "leaves", "comes")
EQUATION_COLUMNS = ("number", "left", "right")


def _show_sets(as_json: bool) -> None:
    """Fig. 2 and Fig. 1 of minimal-changes, written by the code that has them."""
    from everview.cli.output import print_json, print_rows
    from everview.differentiate.sets import tables

    rules, equations = list(tables.rules()), list(tables.equations())
    if as_json:
        print_json(
            {
                "rules": [dict(zip(SET_COLUMNS, each, strict=True)) for each in rules],
                "equations": [dict(zip(EQUATION_COLUMNS, each, strict=True)) for each in equations],
            }
        )
        return
    print_rows(("Q", "∇Q", "ΔQ"), rules)
    click.echo("the same by equations, which is not minimal:")
    print_rows(EQUATION_COLUMNS, equations)


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
    return "\n".join((_INTRODUCTION, f"{table}\n", special, only, *_set_tables(), _SOURCES))


def _set_tables() -> tuple[str, ...]:
    """The rules of sets, as parts of the page."""
    from everview.differentiate.sets import tables

    rules = "\n".join(f"| `{q}` | `{gone}` | `{come}` |" for q, gone, come in tables.rules())
    equations = "\n".join(f"| {n} | `{a}` | `{b}` |" for n, a, b in tables.equations())
    return (
        _SETS,
        f"| Q | ∇Q | ΔQ |\n|---|---|---|\n{rules}\n",
        _EQUATIONS,
        f"| | Change below | Change above |\n|---|---|---|\n{equations}\n",
    )


def _meaning(operator: type) -> str:
    """What an operator denotes, in its own words."""
    return (operator.__doc__ or "").partition("\n\n")[0].replace("|", "\\|")
