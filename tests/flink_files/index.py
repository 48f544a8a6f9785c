"""INDEX.md: what each file is, and whether it runs or with which code it is refused."""

import re

from tests.flink_files.files import HERE

_ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (runs|`[A-Z_]+`.*) \|$", re.MULTILINE)
_CODE = re.compile(r"`([A-Z_]+)`")


def listed() -> dict[str, str]:
    """By file: `runs`, or the codes and the reason."""
    text = (HERE / "INDEX.md").read_text(encoding="utf-8")
    return {found[1]: found[3] for found in _ROW.finditer(text)}


def refused() -> dict[str, list[str]]:
    """The codes of the files that rejoin refuses."""
    return {name: _CODE.findall(said) for name, said in listed().items() if said != "runs"}
