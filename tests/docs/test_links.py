"""Every link of the documents leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "examples", "bench", ".github")
PAGES = sorted(
    {*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))}
)
FENCES = re.compile(r"^(```+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+")
SPANS = re.compile(r"`[^`\n]+`")
LINKS = re.compile(r"(?<!!)\[[^\]]*\]\(([^()\s]+)\)")
ELSEWHERE = ("http://", "https://", "mailto:")


def links(page: Path) -> list[str]:
    """The targets of a page's links that lie in the repository; code such as σ[p](S) is no link."""
    prose = INDENTED.sub("", FENCES.sub("", page.read_text(encoding="utf-8")))
    prose = SPANS.sub("", prose)
    return [link for link in LINKS.findall(prose) if not link.startswith(ELSEWHERE)]


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    text = FENCES.sub("", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+?)\s*#*$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = next(n for n in range(1000) if (f"{slug}-{n}" if n else slug) not in found)
        found.add(f"{slug}-{number}" if number else slug)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link


@pytest.mark.parametrize(
    "name", ["architecture", "where", "life-of-a-view", "life-of-a-transaction"]
)
def test_a_page_that_leads_through_the_code_links_it_and_stays_short(name: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    assert len(page.read_text(encoding="utf-8").splitlines()) < 150
    assert sum("/src/everview/" in link for link in links(page)) > 10


def test_files_that_a_page_names_in_code_are_there() -> None:
    # `database/maintain.py` in a page is a path below src/everview, or from the root.
    wrong = []
    for page in PAGES:
        if page.name == "CHANGELOG.md" or "decisions" in page.parts:
            continue
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text):
            roots = (ROOT, ROOT / "src", ROOT / "src/everview", page.parent)
            if not any((root / name).exists() for root in roots):
                wrong.append((str(page.relative_to(ROOT)), name))
    assert not wrong
