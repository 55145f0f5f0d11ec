"""Slips in the store, in what engines share, and in single rewrites: each with the test it breaks.

No one law covers these layers, so every slip names the test that is there to catch it.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from mutation.planting import Fault, planted, source

TESTS = Path(__file__).parent.parent


@dataclass(frozen=True)
class NamedSlip:
    """What is written in a module, what was nearly written, and the test that would tell."""

    module: str
    what: str
    right: str
    wrong: str
    test: str


SLIPS = (
    NamedSlip(
        "store.pruning",
        "a file that ends with the key is left out",
        "self.values[first] <= high)",
        "self.values[first] < high)",
        "store/test_pruning.py::test_a_file_that_holds_a_key_survives",
    ),
    NamedSlip(
        "store.pruning",
        "a file with a null is left out",
        "(self.has_null and file.has_null) or",
        "",
        "store/test_pruning.py::test_a_file_that_holds_a_key_survives",
    ),
    NamedSlip(
        "store.pruning",
        "bounds of another column are believed",
        "segment.sort_by[:1] != (key,)",
        "False",
        "store/test_pruning.py::test_bounds_speak_only_about_the_column_a_segment_is_sorted_by",
    ),
    NamedSlip(
        "store.manifest_codec",
        "a checksum does not cover the format",
        'blake2b(b"%d\\n" % format_ + body,',
        "blake2b(body,",
        "store/test_manifest.py::test_a_damaged_format_number_is_damage_not_a_newer_format",
    ),
    NamedSlip(
        "store.manifest_codec",
        "a segment of the feed is taken for one that was added",
        "each.id if ids.get(each.id) == each else",
        "each.id if each.id in ids else",
        "store/test_manifest.py::test_decoding_undoes_encoding",
    ),
    NamedSlip(
        "store.retention",
        "the files of a kept epoch are deleted",
        "for epoch in kept for file",
        "for epoch in kept[:1] for file",
        "store/test_upkeep.py::test_retention_deletes_only_what_no_kept_epoch_names",
    ),
    NamedSlip(
        "store.retention",
        "the files of a running writer are deleted",
        "is not None and epoch <= newest",
        "is not None",
        "store/test_upkeep.py::test_a_running_writer_loses_nothing_and_a_crashed_one_is_cleaned_up",
    ),
    NamedSlip(
        "store.compaction",
        "what was folded stays beside its sum",
        "before + middle + after",
        "relation.segments + middle",
        "store/test_upkeep.py::test_compaction_keeps_every_epoch_and_the_feed",
    ),
    NamedSlip(
        "store.compaction",
        "a change is lost when it is folded",
        "first, *others = run.segments",
        "first, *others = run.segments[:-1]",
        "store/test_upkeep.py::test_compaction_keeps_every_epoch_and_the_feed",
    ),
    NamedSlip(
        "store.compaction",
        "what was added while a run was folded is lost",
        "before + middle + after",
        "before + middle",
        "store/test_compaction.py::test_a_run_that_is_gone_is_not_replaced_and_what_came_later_stays",
    ),
    NamedSlip(
        "store.compaction",
        "files of the base that stay are lost",
        "(*run.kept, *new.files)",
        "new.files",
        "store/test_compaction.py::test_only_files_that_a_change_meets_are_rewritten",
    ),
    NamedSlip(
        "store.compaction_policy",
        "a NULL key meets no file",
        "if self.has_null and other.has_null:",
        "if False:",
        "store/test_compaction.py::test_a_null_key_meets_the_file_with_null_keys",
    ),
    NamedSlip(
        "store.sorted_merge",
        "rows of a key that goes on in another batch come too early",
        "compare: Any = pc.less_equal if inclusive else pc.less",
        "compare: Any = pc.less_equal",
        "store/test_compaction.py::test_a_run_that_is_folded_range_by_range_is_consolidated",
    ),
    NamedSlip(
        "runtime.constraints.primary_key",
        "a row that goes need not be the row that came",
        "bad[deletes] = ~_equal(rows, order[deletes - 1], order[deletes])",
        "bad[deletes] = False",
        "runtime/test_primary_key.py::test_every_key_that_breaks_a_rule_is_in_doubt",
    ),
    NamedSlip(
        "runtime.constraints.primary_key",
        "a key may come twice",
        "bad = weights != 1 - 2 * (turn % 2)",
        "bad = weights == 0",
        "runtime/test_primary_key.py::test_every_key_that_breaks_a_rule_is_in_doubt",
    ),
    NamedSlip(
        "runtime.constraints.primary_key",
        "three rows with one key are said to differ",
        "(places[1:] - places[:-1] == 1).any() or",
        "",
        "runtime/test_primary_key.py::test_three_rows_with_one_key_are_not_said_to_differ",
    ),
    NamedSlip(
        "runtime.constraints.primary_key",
        "what goes is not held against what is stored",
        "return bool(removed.equals(",
        "return True or bool(gone.equals(",
        "runtime/test_primary_key.py::test_what_goes_is_held_against_what_is_there_row_by_row",
    ),
    NamedSlip(
        "runtime.cache.relation_cache",
        "a change is not added to what is in memory",
        "for segment in fresh:",
        "for segment in fresh[1:]:",
        "runtime/test_relation_cache.py::test_what_is_in_memory_stays_the_sum_of_what_was_written",
    ),
    NamedSlip(
        "runtime.cache.relation_cache",
        "runs that became one are still there",
        "later=(*later, (merged,))",
        "later=(*copy.later, (merged,))",
        "runtime/test_relation_cache.py::test_what_is_in_memory_stays_the_sum_of_what_was_written",
    ),
    NamedSlip(
        "runtime.cache.relation_cache",
        "what is emptied is in memory still",
        "copy is None or not copy.ids or",
        "copy is None or",
        "runtime/test_relation_cache.py::"
        "test_what_was_emptied_and_compacted_is_in_memory_what_comes_afterwards",
    ),
    NamedSlip(
        "runtime.recursion.worklist",
        "a row is there with a sum of zero",
        "before = (new > 0)",
        "before = (new >= 0)",
        "runtime/test_worklist.py::test_rows_of_a_set_come_and_go_when_their_sums_say",
    ),
    NamedSlip(
        "runtime.recursion.worklist",
        "what came before is lost at an iteration",
        "= new + came + change",
        "= new + change",
        "runtime/test_worklist.py::test_rows_of_a_set_come_and_go_when_their_sums_say",
    ),
    NamedSlip(
        "runtime.recursion.worklist",
        "of several changes of a row the first counts",
        "np.add.reduceat(weights, first, axis=-1)",
        "weights[..., first]",
        "runtime/test_worklist.py::test_a_bag_is_its_sum",
    ),
    NamedSlip(
        "runtime.vector.join",
        "of rows with equal keys only the last meets",
        "np.arange(len(ours)).repeat(sizes), order[expand_ranges(first, sizes)]",
        "np.flatnonzero(sizes), order[(first + sizes - 1)[sizes > 0]]",
        "runtime/test_grouping.py::test_rows_meet_where_their_keys_are_equal",
    ),
    NamedSlip(
        "runtime.vector.aggregate",
        "consolidation on columns keeps only insertions",
        "kept = weights(summed).to_numpy() != 0",
        "kept = weights(summed).to_numpy() > 0",
        "runtime/test_vector.py::test_each_operator_on_columns_is_its_meaning",
    ),
    NamedSlip(
        "runtime.generated.codegen",
        "a null key finds null keys",
        "if plan.on and not plan.nulls:",
        "if plan.on and plan.nulls is None:",
        "runtime/test_generated.py::test_pairs_by_rows_are_those_of_equal_keys",
    ),
    NamedSlip(
        "runtime.generated.codegen",
        "a sum forgets the weights of rows",
        "else {row[column]} * {weight}",
        "else {row[column]}",
        "runtime/test_generated.py::test_groups_of_totals_by_rows_are_their_meaning",
    ),
    NamedSlip(
        "runtime.generated.scalars",
        "a decimal product keeps the scale of its left side",
        'if node.name != "*":',
        'if node.name == "*":',
        "runtime/test_generated.py::test_a_generated_scalar_has_the_value_that_duckdb_gives",
    ),
    NamedSlip(
        "rewrite.join_order",
        "joins that WHERE connects are not arranged",
        "conditions += scalar.conjuncts(predicate)",
        "pass",
        "laws/test_join_order.py::test_a_product_is_left_only_where_nothing_is_equal",
    ),
    NamedSlip(
        "program.schedule",
        "keys are looked up twice",
        "keys=_without_subsumed(keys)",
        "keys=keys",
        "program/test_schedule.py::"
        "test_keys_that_want_some_rows_of_those_that_others_want_all_of_are_not_looked_up",
    ),
)


def faults() -> list[Fault]:
    """Every slip, each in a copy of its own."""
    return [
        Fault(import_module(f"everview.{slip.module}"), "slip", slip.what, partial(_planted, slip))
        for slip in SLIPS
    ]


def test_of(fault: Fault) -> str:
    """The test that is there to catch a fault."""
    return next(slip.test for slip in SLIPS if slip.what == fault.what)


def fails(test: str) -> bool:
    """Whether a test fails in this process, as it is now."""
    shown = io.StringIO()
    plain = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not spark"]
    plain += ["--hypothesis-profile", "quick"]  # which shrinks nothing
    with contextlib.redirect_stdout(shown):
        code = pytest.main([*plain, str(TESTS / test)])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), shown.getvalue()
    return code == pytest.ExitCode.TESTS_FAILED


@contextmanager
def _planted(slip: NamedSlip) -> Iterator[None]:
    module = import_module(f"everview.{slip.module}")
    text = source(module)
    assert text.count(slip.right) == 1, f"not once in the source: {slip.right}"
    with planted(module, text.replace(slip.right, slip.wrong)):
        yield
