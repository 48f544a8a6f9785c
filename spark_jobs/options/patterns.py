"""Java's regular expressions, as far as they can be judged without Java."""

import re

_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?")
# what follows the bracket of a group: its kind, its name, or flags up to a colon or the end
_GROUP = re.compile(r"\?(?:[:=!>]|<[=!]|<[a-zA-Z][a-zA-Z0-9]*>|(?P<flags>[a-zA-Z-]+)(?::|(?=\))))")
_BRACED = ("\\p{", "\\P{", "\\x{", "\\N{")
# what Java and Python read alike: no flags, look-around, references or named classes
_PLAIN = re.compile(r"(?:\\[dwsDWS]|\\[^a-zA-Z0-9]|\(\?:|\((?!\?)|[^\\(])*")


def is_pattern(text: str) -> bool:
    """Whether the text has none of the mistakes that Java certainly finds.

    These are brackets without an end, quantifiers of nothing, escapes that are cut off.

    >>> [is_pattern(t) for t in ("shop_[0-9]+", "a|(b", "*shop", "shop[", "a{b", "end\\\\")]
    [True, False, False, False, False, False]
    """
    depth, at, repeatable = 0, 0, False
    while at < len(text):
        letter = text[at]
        if letter == "(":
            group = _GROUP.match(text, at + 1)
            if group is None and text.startswith("?", at + 1):
                return False
            if group is not None and "x" in (group["flags"] or ""):
                return True  # blanks and comments are not read here
            depth, at = depth + 1, at + 1 if group is None else group.end()
        elif letter in "*+?{":
            quantifier = _QUANTIFIER.match(text, at)
            if quantifier is None or (letter != "{" and not repeatable):
                return False
            at = quantifier.end()
        else:
            depth -= letter == ")"
            at = _after(text, at)
        if depth < 0:
            return False
        repeatable = letter not in "(|*+?{"
    return at == len(text) and depth == 0


def is_plain_pattern(text: str) -> bool:
    """Whether Java and Python find the same names of topics by this expression.

    >>> [is_plain_pattern(t) for t in (r"shop[.](a|b)\\d+", "(?i)shop", "a*+", r"\\p{Lower}")]
    [True, False, False, False]
    """
    if not is_pattern(text) or _PLAIN.fullmatch(text) is None:
        return False
    if re.search(r"[*+?}]\+|&&|\[[^\]]*\[|\[\^?\]", text):  # possessive; classes within classes
        return False
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _after(text: str, at: int) -> int:
    """The place after the character, escape or class at `at`; beyond the end if it has none."""
    if text.startswith("\\Q", at):
        end = text.find("\\E", at)
        return len(text) if end < 0 else end + 2
    if text.startswith(_BRACED, at):
        end = text.find("}", at)
        return len(text) + 1 if end < 0 else end + 1
    if text[at] == "\\":
        return at + 2
    return _after_class(text, at) if text[at] == "[" else at + 1


def _after_class(text: str, at: int) -> int:
    """The place after the character class at `at`; a bracket that comes first in it is a letter."""
    at += 2 if text.startswith("^", at + 1) else 1
    at += text.startswith("]", at)
    while at < len(text):
        if text[at] == "]":
            return at + 1
        at = _after(text, at)
    return len(text) + 1
