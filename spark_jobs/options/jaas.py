"""A JAAS entry, `module flag name="value" ...;`, read as Kafka's Java client reads it."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([=;])|([^\s=;"\']+))', re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module by its class's simple name, and its options, which may be secrets."""

    module: str
    options: dict[str, str]


def parse_jaas(text: str) -> JaasEntry | None:
    """The entry; None if the text is not one entry.

    >>> parse_jaas('a.b.PlainLoginModule required username="u" password="p\\\\"";')
    JaasEntry(module='PlainLoginModule', options={'username': 'u', 'password': 'p"'})
    """
    tokens = _tokens(text.strip())
    if tokens is None or len(tokens) < 3 or tokens[-1] != ";":
        return None
    words = tokens[2:-1]
    if len(words) % 3 or any(words[i + 1] != "=" for i in range(0, len(words), 3)):
        return None
    options = {words[i]: words[i + 2] for i in range(0, len(words), 3)}
    return JaasEntry(tokens[0].rpartition(".")[2], options)


def _tokens(text: str) -> list[str] | None:
    found: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        quoted = token[1] if token[1] is not None else token[2]
        plain = re.sub(r"\\(.)", _unescape, quoted, flags=re.S) if quoted is not None else None
        found.append(plain if plain is not None else token[3] or token[4])
    return found


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])
