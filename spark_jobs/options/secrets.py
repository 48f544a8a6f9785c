"""Which options hold secrets, and whether SQL text has a secret where a reference has to stand.

An option's value is copied into plans and checkpoints, so it may refer to a secret but not be one.
"""

import re

from spark_jobs.options.kinds import REFERENCE

_SECRET = re.compile(
    r".*(password|basic-auth\.user-info|bearer-auth\.token|client\.secret|ssl\.keystore\.key)"
)
_JAAS = "sasl.jaas.config"
_URL = re.compile(r"(?:.*\.)?url")
_JAAS_SECRET = re.compile(
    r'\b(\w*(?:password|secret)\w*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))', re.I
)
_USER_INFO = re.compile(r"//([^/@]*)@")
_URL_PASSWORD = re.compile(r"[?&](\w*password)=([^&]*)", re.I)


def holds_secret(name: str) -> bool:
    """Whether an option's value, or a part of it, may be a secret."""
    return bool(name.endswith(_JAAS) or _SECRET.fullmatch(name) or _URL.fullmatch(name))


def literal_secret(name: str, value: str) -> str | None:
    """The part of the value that is a secret instead of a reference to one; None if there is none.

    >>> literal_secret("properties.sasl.jaas.config", 'M required username="u" password="p";')
    "'password' of the JAAS entry"
    >>> literal_secret("properties.ssl.key.password", "${file:/run/secrets/key}")
    """
    if name.endswith(_JAAS):
        for found in _JAAS_SECRET.finditer(value):
            if not REFERENCE.fullmatch(found[2] or found[3] or ""):
                return f"'{found[1]}' of the JAAS entry"
        return None
    if _URL.fullmatch(name):
        for found in _URL_PASSWORD.finditer(value):
            if not REFERENCE.fullmatch(found[2]):
                return f"'{found[1]}'"
        in_url = _USER_INFO.search(value)
        return "the user and password" if in_url and not _is_named(in_url[1]) else None
    if _SECRET.fullmatch(name) is None:
        return None
    named = _is_named(value) if name.endswith("user-info") else REFERENCE.fullmatch(value.strip())
    return None if named else "the value"


def _is_named(user_info: str) -> bool:
    """`user:${...}`, or one reference for both."""
    rest = REFERENCE.sub("\0", user_info)
    return rest == "\0" or rest.endswith(":\0")
