"""Settings of a measured job: name=value on a command line, SET statements in its file."""

import argparse
from collections.abc import Mapping


def setting(text: str) -> tuple[str, str]:
    """The name and the value of one; raises ArgumentTypeError.

    >>> setting("rejoin.parallelism=2")
    ('rejoin.parallelism', '2')
    """
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"'{text}' has no '=': give name=value")
    return name, value


def set_statements(settings: Mapping[str, str]) -> str:
    """A line for each.

    >>> set_statements({"rejoin.parallelism": "2"})
    "SET 'rejoin.parallelism' = '2';\\n"
    """
    return "".join(f"SET '{name}' = '{value}';\n" for name, value in settings.items())
