"""Numbers are found among others where halving would find them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.runtime.cache import sorted_search
from everview.runtime.cache.sorted_search import SortedInts
from everview.runtime.vector.int_encoding import Ints

small = st.integers(-40, 40)
ends = st.sampled_from([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0])


def expected(values: Ints, keys: Ints) -> list[list[int]]:
    spans = [(int(values.searchsorted(k)), int((values == k).sum())) for k in keys if k in values]
    return [[first for first, _ in spans], [size for _, size in spans]]


def found(values: Ints, keys: Ints) -> list[list[int]]:
    first, sizes = SortedInts(values).find(keys)
    return [first.tolist(), sizes.tolist()]


@given(st.lists(small | ends, max_size=300), st.lists(small | ends, unique=True, max_size=90))
@pytest.mark.parametrize("line", [2, 8, 64])
@pytest.mark.parametrize("few", [1, 1_000])
@pytest.mark.parametrize("type_", [np.int32, np.int64])
def test_keys_are_found_as_often_as_they_are_there(
    type_: type[np.signedinteger],
    few: int,
    line: int,
    values: list[int],
    keys: list[int],
) -> None:
    kept = [np.clip(each, np.iinfo(type_).min, np.iinfo(type_).max) for each in (values, keys)]
    those, asked = (np.sort(np.array(each, np.int64)).astype(type_) for each in kept)
    asked = np.unique(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_search, "BLOCK", line)
        patch.setattr(sorted_search, "PLAIN_MAX_VALUES", line)
        patch.setattr(sorted_search, "BATCH_MIN_KEYS", few)
        assert found(those, asked) == expected(those, asked)


def test_many_lines_and_a_number_that_fills_some() -> None:
    values = np.sort(np.concatenate((np.arange(0, 300_000, 3), np.full(5_000, 301))))
    keys = np.arange(-5, 300_010)
    first, sizes = SortedInts(values).find(keys)
    there = np.isin(keys, values)
    assert (first == values.searchsorted(keys[there])).all()
    assert (sizes == values.searchsorted(keys[there], "right") - first).all()
    assert sizes.max() == 5_000


def test_among_no_numbers_nothing_is_found() -> None:
    assert found(np.empty(0, np.int64), np.arange(100)) == [[], []]
    assert found(np.arange(100_000), np.empty(0, np.int64)) == [[], []]
