"""The manifests of a store as they lie on disk: which epochs there are, and what each says."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from everview.errors import UserError
from everview.store import errors, manifest_codec
from everview.store.filesystem import Place
from everview.store.manifest import Manifest
from everview.store.manifest_checks import wrong_with

FOLDER = "manifests"
_NAME = re.compile(r"(\d{20})\.json")


def manifest_path(epoch: int) -> str:
    """Zero-padded, so that the order of the names is the order of the epochs."""
    return f"{FOLDER}/{epoch:020d}.json"


@dataclass(frozen=True, slots=True)
class Manifests:
    """The epochs of a place that can be read."""

    place: Place

    @errors.told
    def epochs(self) -> list[int]:
        """The epochs, ascending and without gaps."""
        found = (_NAME.fullmatch(name) for name in self.place.names(FOLDER))
        return [int(each[1]) for each in found if each]

    def read(self, epoch: int) -> Manifest:
        """The manifest of a retained epoch, if it could be one of ours."""
        path = manifest_path(epoch)
        shown = self.place.absolute(path)
        self.place.require_no_links(path)
        try:
            with errors.explained(self.place.shown, but=FileNotFoundError):
                raw = self.place.last_line(path)
        except FileNotFoundError:
            raise self.not_retained(f"epoch {epoch}", "read one of those epochs") from None
        except OSError as problem:
            raise errors.damaged_manifest(shown, str(problem)) from problem
        found = manifest_codec.decode(raw, shown)
        if wrong := wrong_with(found, epoch):
            raise errors.damaged_manifest(shown, wrong)
        return found

    def newest(self) -> Manifest:
        """The newest manifest; if it is damaged, the error names the last epoch that is not."""
        epochs = self.epochs()
        if not epochs:
            raise errors.no_store(self.place.shown)
        try:
            return self.read(epochs[-1])
        except UserError as problem:
            raise errors.naming_good(problem, self.last_without(())) from problem

    def last_without(self, damaged: Collection[str]) -> int | None:
        """The newest epoch that can be read and names none of some files."""
        for epoch in reversed(self.epochs()):
            try:
                manifest = self.read(epoch)
            except UserError:
                continue
            if not any(file.path in damaged for file in manifest.files):
                return epoch
        return None

    def not_retained(self, wanted: str, remedy: str) -> Exception:
        """The error for what retention has removed, or is still to come."""
        epochs = self.epochs()
        if not epochs:
            return errors.no_store(self.place.shown)
        return errors.not_retained(wanted, epochs[0], epochs[-1], remedy)
