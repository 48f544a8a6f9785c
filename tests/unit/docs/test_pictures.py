"""The pictures of the pages: as tools/pictures draws them, for light and dark, and all there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.pictures import PICTURES
from tools.pictures.drawing import THEMES

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "docs" / "images"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
SHOWN = re.compile(r'(?:src|srcset)="([^"]+)"')


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", PICTURES)
def test_drawn(name: str, theme: str, golden: Callable[[Path, str], None]) -> None:
    golden(IMAGES / f"{name}-{theme}.svg", PICTURES[name]().svg(THEMES[theme]))


def test_pages_show_each_picture_in_light_and_dark() -> None:
    shown = {
        (page.parent / path).resolve()
        for page in PAGES
        for path in SHOWN.findall(page.read_text(encoding="utf-8"))
    }
    assert shown == set(IMAGES.iterdir())
