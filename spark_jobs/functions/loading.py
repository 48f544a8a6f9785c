"""From `module.name` to the function of that name, for planning and for running it."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class NoFunctionError(Exception):
    """There is no such module, it cannot be imported, or it has no such function."""


def load(target: str, folder: Path | None = None) -> Callable[..., Any]:
    """The function; modules are looked for beside the job file as well.

    Raises:
        NoFunctionError: there is none.
    """
    module, _, name = target.rpartition(".")
    if not module or not name:
        raise NoFunctionError(f"'{target}' is not 'module.function'")
    try:
        with _found_in(folder):
            found = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        raise NoFunctionError(
            f"the module {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise NoFunctionError(f"the module {module} has no function {name}")
    function: Callable[..., Any] = found
    return function


@contextmanager
def _found_in(folder: Path | None) -> Iterator[None]:
    """Look for modules in the folder, too, behind all others."""
    if folder is None:
        yield
        return
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
