"""Which exit code ends a command."""

from __future__ import annotations

import traceback
from typing import Any

import click

from everview.errors import UserError
from everview.store.errors import of_system

USER_ERROR = 1
DIFFERENCE = 3
OUR_BUG = 70


class ExitCodes(click.Group):
    """Commands whose exit code tells what the user can fix from what is our bug."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a new user needs them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn what it raises into a message and an exit code."""
        try:
            return super().invoke(ctx)
        except UserError as problem:
            click.echo(problem.render(), err=True)
            ctx.exit(USER_ERROR)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click has its own way with these
        except Exception as problem:
            if (system_error := of_system(problem, None)) is not None:
                click.echo(system_error.render(), err=True)
                ctx.exit(USER_ERROR)
            click.echo(traceback.format_exc(), err=True, nl=False)
            click.echo("This is a bug in everview: please report it with the text above.", err=True)
            ctx.exit(OUR_BUG)
