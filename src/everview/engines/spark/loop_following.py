"""Follows a change through a loop in process where the rest of a program runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from everview.engines.spark import actions
from everview.engines.spark.relations import Relations, as_frame
from everview.program.steps import Loop
from everview.runtime.protocol import LoopNotFollowedError, TooLarge
from everview.runtime.report import RunReport

FOLLOWED_ROWS = 200_000
"""A change that moves more rows of what a loop reads is not followed: its views are recomputed."""

FollowLoop: TypeAlias = Callable[[Loop, Mapping[str, pa.Table], RunReport], Mapping[str, pa.Table]]
"""Follows a change through a loop in process: what is known after it, from what was before."""


def follow_loop(
    loop: Loop,
    session: SparkSession,
    relations: Relations,
    follow: FollowLoop | None,
    report: RunReport,
) -> None:
    """Follow a change that is computed on executors through a loop.

    However large the change is, what it moves in the loop may be little: then that is collected,
    and followed in process over slices, as that of a small change is.
    """
    if follow is None:
        raise LoopNotFollowedError
    given: dict[str, pa.Table] = {}
    room = FOLLOWED_ROWS
    for name in loop.reads:
        given[name] = actions.collect_some(session.table(relations.names[name]), room + 1)
        room -= given[name].num_rows
        if room < 0:
            raise LoopNotFollowedError
    try:
        for name, rows in follow(loop, given, report).items():
            relations.give(name, as_frame(session, rows))
    except TooLarge:
        raise LoopNotFollowedError from None
