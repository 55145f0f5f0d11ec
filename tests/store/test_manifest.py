"""A manifest is a value: it moves by addition, and its text says exactly what it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import UserError
from everview.store.manifest import FORMAT, DataFile, Kind, Manifest, Relation, Segment
from everview.store.manifest_codec import decode, encode, sealed

bounds = (
    st.none() | st.tuples(st.just("int"), st.integers()) | st.tuples(st.just("string"), st.text())
)
files = st.builds(
    DataFile,
    path=st.text(),
    rows=st.integers(0),
    bytes=st.integers(0),
    checksum=st.text(),
    low=bounds,
    high=bounds,
    has_null=st.booleans(),
    start=st.none() | st.integers(0),
)
segments = st.builds(
    Segment,
    id=st.text(),
    epoch=st.integers(0),
    kind=st.sampled_from(("change", "base")),
    files=st.lists(files, max_size=2).map(tuple),
    sort_by=st.lists(st.text(), max_size=2).map(tuple),
)
opaque = st.dictionaries(st.text(), st.integers() | st.text() | st.none(), max_size=3)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    many = st.lists(segments, max_size=3).map(tuple)
    names = draw(st.lists(st.text(), max_size=3, unique=True))
    relations = {n: Relation(n, draw(many), draw(many), draw(st.integers(0))) for n in names}
    epoch = draw(st.integers(1))
    return Manifest(epoch, epoch - 1, draw(st.text()), draw(opaque), relations, draw(opaque))


def segment(id_: str, kind: Kind = "change", rows: int = 1) -> Segment:
    return Segment(id_, 1, kind, (DataFile(f"{id_}.parquet", rows, 10, "crc32:0"),) if rows else ())


@settings(deadline=None)
@given(manifests())
def test_decoding_undoes_encoding(manifest: Manifest) -> None:
    raw = encode(manifest)
    assert decode(raw, "m") == manifest
    assert encode(decode(raw, "m")) == raw
    assert json.loads(raw)["body"]["epoch"] == manifest.epoch


@settings(deadline=None)
@given(manifests(), st.data())
def test_no_flipped_bit_goes_unnoticed(manifest: Manifest, data: st.DataObject) -> None:
    raw = bytearray(encode(manifest))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(UserError) as caught:
        decode(bytes(raw), "manifests/7.json")
    assert caught.value.code == "S002"
    assert "manifests/7.json" in caught.value.problem
    assert "earlier epoch" in caught.value.remedy


def test_a_damaged_format_number_is_damage_not_a_newer_format() -> None:
    raw = encode(Manifest(1, 0, "t")).replace(b'"format":5', b'"format":6')
    with pytest.raises(UserError, match="S002"):
        decode(raw, "m")


@pytest.mark.parametrize("cut", [0, 1, 40, 100, -1, -2])
def test_a_torn_manifest_is_damaged(cut: int) -> None:
    with pytest.raises(UserError, match="S002"):
        decode(encode(Manifest(1, 0, "t"))[:cut], "m")


def test_a_manifest_with_a_field_missing_is_damaged() -> None:
    with pytest.raises(UserError, match=r"S002.*parent"):
        decode(sealed(b'{"epoch":1}', 1), "m")
    with pytest.raises(UserError, match=r"S002.*created"):
        decode(sealed(b'{"epoch":1,"checkpoint":0}'), "m")


@pytest.mark.parametrize(
    "raw", [encode(Manifest(1, 0, "t", format=FORMAT + 1)), b'{"anything":"else","format":99}']
)
def test_a_newer_format_asks_for_an_upgrade(raw: bytes) -> None:
    with pytest.raises(UserError) as caught:
        decode(raw, "m")
    assert (caught.value.code, caught.value.remedy) == ("S001", "upgrade everview")


def test_a_change_is_added_to_the_value_and_told_to_the_feed() -> None:
    one = Manifest(0, None, "t").advance(epoch=1, created="t", changes={"r": segment("a")})
    two = one.advance(epoch=2, created="t", changes={"r": segment("b")})
    assert two.relations["r"].segments == (segment("a"), segment("b"))
    assert two.relations["r"].feed == (segment("b"),)
    assert (two.parent, two.relations["r"].since) == (1, 1)


def test_an_untouched_relation_keeps_its_value_and_has_nothing_to_tell() -> None:
    one = Manifest(0, None, "t").advance(epoch=1, created="t", changes={"r": segment("a")})
    two = one.advance(epoch=2, created="t")
    assert two.relations["r"] == Relation("r", (segment("a"),), (), 1)


def test_a_base_replaces_the_value_and_is_no_change() -> None:
    one = Manifest(0, None, "t").advance(epoch=1, created="t", changes={"r": segment("a")})
    two = one.advance(epoch=2, created="t", bases={"r": segment("b", "base")})
    assert two.relations["r"] == Relation("r", (segment("b", "base"),), (), 1)


def test_the_base_of_a_new_relation_is_its_first_change() -> None:
    base = segment("a", "base")
    one = Manifest(0, None, "t").advance(epoch=1, created="t", bases={"r": base})
    assert one.relations["r"] == Relation("r", (base,), (base,), 1)


def test_a_base_with_a_change_is_the_value_and_the_change_only_told() -> None:
    one = Manifest(0, None, "t").advance(epoch=1, created="t", changes={"r": segment("a")})
    both = one.advance(
        epoch=2, created="t", bases={"r": segment("b", "base")}, changes={"r": segment("c")}
    )
    assert both.relations["r"] == Relation("r", (segment("b", "base"),), (segment("c"),), 1)


def test_a_relation_dropped_and_made_again_begins_again() -> None:
    one = Manifest(0, None, "t").advance(epoch=1, created="t", changes={"r": segment("a")})
    two = one.advance(epoch=2, created="t", dropped={"r"}, changes={"r": segment("b")})
    assert two.relations["r"] == Relation("r", (segment("b"),), (segment("b"),), 2)
    assert two.advance(epoch=3, created="t", dropped={"r"}).relations == {}


def test_a_change_of_nothing_leaves_no_segment() -> None:
    one = Manifest(0, None, "t").advance(epoch=1, created="t", changes={"r": segment("a", rows=0)})
    assert one.relations["r"] == Relation("r", (), (), 1)


def test_a_manifest_does_not_grow_with_history() -> None:
    manifest, sizes = Manifest(0, None, "t"), []
    for epoch in range(1, 200):
        base = Segment(f"{epoch:010d}", epoch, "base", segment("a").files)
        manifest = manifest.advance(
            epoch=epoch, created="t", bases={"r": base}, changes={"r": base}
        )
        sizes.append(len(encode(manifest)))
    assert max(sizes) - min(sizes) < 10
    assert max(sizes) < 800
