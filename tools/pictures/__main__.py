"""`python -m tools.pictures` draws every picture anew into docs/images."""

from pathlib import Path

from tools.pictures import PICTURES
from tools.pictures.drawing import THEMES

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"

for name, draw in PICTURES.items():
    for theme, colours in THEMES.items():
        (IMAGES / f"{name}-{theme}.svg").write_text(draw().svg(colours), encoding="utf-8")
