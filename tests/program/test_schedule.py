"""The order of a program's steps, and which of them are one."""

from __future__ import annotations

from everview.plan.build import add, filter_, map_, negate
from everview.plan.nodes import Output, Ref
from everview.program.schedule import schedule
from everview.program.steps import Add, Check, Compute, Fetch, KeySet, Loop, Looped, Publish
from strategies import T

CHANGE = Ref("Δt", T.schema)


def slice_(name: str, keys: str) -> Fetch:
    return Fetch(name, "u", T.schema, "a", (KeySet(keys, "a"),))


def positive(name: str) -> Compute:
    return Compute(f"p{name}", filter_(Ref(name, T.schema), "`a` > 0"))


def test_results_that_become_equal_when_slices_are_shared_are_computed_once():
    both = Compute("t", add(Ref("ps1", T.schema), negate(Ref("ps2", T.schema))))
    steps = (slice_("s1", "Δt"), slice_("s2", "Δt"), positive("s1"), positive("s2"), both)
    first, once, made = schedule(steps)
    assert (first, once) == (slice_("s1", "Δt"), positive("s1"))
    assert made == Compute("t", add(Ref("ps1", T.schema), negate(Ref("ps1", T.schema))))


def test_slices_by_keys_that_are_one_are_one():
    steps = (positive("Δt"), Compute("q", positive("Δt").plan), slice_("s1", "pΔt"))
    assert schedule((*steps, slice_("s2", "q"), positive("s2"))) == (
        positive("Δt"),
        slice_("s1", "pΔt"),
        Compute("ps2", filter_(Ref("s1", T.schema), "`a` > 0")),
    )


def test_slices_by_different_keys_are_not_one():
    named = map_(CHANGE, (Output("a", "int", "`b`"),))
    steps = (Compute("k", named), slice_("s1", "Δt"), slice_("s2", "k"))
    found = [step for step in schedule(steps) if isinstance(step, Fetch)]
    assert [key.relation for step in found for key in step.keys] == ["Δt", "k"]


def test_what_is_written_keeps_its_name_and_what_is_checked_follows():
    steps = (positive("Δt"), Compute("Δv", positive("Δt").plan), Compute("w", CHANGE))
    check = Check("rule", "t", (), Ref("q", T.schema))
    twin = Compute("q", positive("Δt").plan)
    made = schedule((*steps, twin, check, Publish("v", "Δv"), Add("s", "Δv")))
    assert made == (
        positive("Δt"),
        Compute("Δv", Ref("pΔt", T.schema), consolidated=True),
        Compute("w", CHANGE),
        Check("rule", "t", (), Ref("pΔt", T.schema)),
        Publish("v", "Δv"),
        Add("s", "Δv"),
    )


def test_what_a_loop_asks_for_keeps_its_name():
    looped = Looped("x", T.schema, "start", "later", "now", "before", "touched", "sums", "changes")
    twins = [Compute(name, CHANGE) for name in ("one", "start", "later")]
    *computed, loop = schedule((*twins, Loop("loop", (looped,), ())))
    assert [step.result for step in computed if isinstance(step, Compute)] == [
        "one",
        "start",
        "later",
    ]
    assert loop == Loop("loop", (looped,), ())


def test_what_is_asked_for_keeps_its_name():
    twins = [Compute(name, CHANGE) for name in ("one", "two", "three")]
    found = schedule(twins, ("three",))
    assert found == (Compute("one", CHANGE), Compute("three", Ref("one", T.schema)))


def test_keys_that_want_some_rows_of_those_that_others_want_all_of_are_not_looked_up():
    """Only a cost: the slice is the same, but its keys would be looked up twice."""

    def fetch(name: str, *keys: KeySet) -> Fetch:
        return Fetch(name, "u", T.schema, "a", keys)

    whole, part = KeySet("Δt", "a"), KeySet("Δt", "a", (("b", "b"),))
    other = KeySet("Δu", "a", (("b", "b"),))
    assert schedule((fetch("s1", part, other), fetch("s2", whole))) == (fetch("s1", other, whole),)
    assert schedule((fetch("s1", part), fetch("s2", other))) == (fetch("s1", part, other),)
