"""The storage of the embedded registry: Avro schemas by subject, version and id, in a folder.

Each schema is in `<folder>/<subject>/<version>.avsc`; ids, soft deletes and compatibility levels
are in `<folder>/ids.json`. A schema file that was added by hand gets an id at the next start.
"""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import quote, unquote

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from spark_jobs.embedded.compatibility import Schema, incompatibilities

CompatibilityLevel: TypeAlias = Literal[
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
]
LEVELS: tuple[CompatibilityLevel, ...] = get_args(CompatibilityLevel)
DEFAULT_LEVEL: CompatibilityLevel = "BACKWARD"
_GLOBAL = ""  # key of the global level among the levels by subject


class Refusal(Exception):
    """An error response with Confluent's error code; the registry turns it into HTTP."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Reference:
    """A named type that another subject defines and a schema uses."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject; `text` is the schema as compact JSON."""

    subject: str
    version: int
    id: int
    text: str
    deleted: bool = False
    references: tuple[Reference, ...] = field(default=())


class SchemaStore:
    """All operations of the registry; each is atomic and on disk when it returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mutex = threading.RLock()
        self._versions: list[Version] = []
        self._levels: dict[str, CompatibilityLevel] = {}
        self._next_id = 1
        folder.mkdir(parents=True, exist_ok=True)
        self._load()

    def subjects(self, deleted: bool = False) -> list[str]:
        with self._mutex:
            return sorted({v.subject for v in self._versions if deleted or not v.deleted})

    def versions(self, subject: str, deleted: bool = False) -> list[Version]:
        """All versions in order; refused if there are none."""
        with self._mutex:
            of_subject = [v for v in self._versions if v.subject == subject]
        found = [v for v in of_subject if deleted or not v.deleted]
        if not found:
            raise Refusal(404, 40401, f"Subject '{subject}' not found.")
        return sorted(found, key=lambda v: v.version)

    def version(self, subject: str, number: str, deleted: bool = False) -> Version:
        """A version by its number in the request path: 1, 2, ..., or `latest` or -1."""
        wanted = _version_number(number)
        found = self.versions(subject, deleted)
        for v in found:
            if v.version == wanted:
                return v
        if wanted == -1:
            return found[-1]
        raise Refusal(404, 40402, f"Version {number} not found.")

    def by_id(self, schema_id: int) -> list[Version]:
        """All versions with this id, soft-deleted ones too, because records still carry the id."""
        with self._mutex:
            found = [v for v in self._versions if v.id == schema_id]
        if not found:
            raise Refusal(404, 40403, f"Schema {schema_id} not found")
        return found

    def lookup(self, subject: str, text: str, references: tuple[Reference, ...]) -> Version:
        wanted = _compact(text)
        for v in reversed(self.versions(subject)):
            if v.text == wanted and v.references == references:
                return v
        raise Refusal(404, 40403, "Schema not found")

    def level(self, subject: str | None = None) -> CompatibilityLevel | None:
        """The level set for the subject, or None; the global level without a subject."""
        with self._mutex:
            if subject is None:
                return self._levels.get(_GLOBAL, DEFAULT_LEVEL)
            return self._levels.get(subject)

    def problems(
        self,
        subject: str,
        text: str,
        references: tuple[Reference, ...],
        against: str | None = None,
    ) -> list[str]:
        """Why the schema violates the subject's level; `against` compares with one version only."""
        with self._mutex:
            level = self.level(subject) or self.level() or DEFAULT_LEVEL
            if against is not None:
                earlier = [self.version(subject, against)]
            else:
                earlier = [v for v in self._versions if v.subject == subject and not v.deleted]
                earlier = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
            new, new_names = self._parse(text, references)
            found: list[str] = []
            for v in reversed(earlier):
                old, old_names = self._parse(v.text, v.references)
                if level.startswith(("BACKWARD", "FULL")):
                    found += incompatibilities(new, old, new_names, old_names)
                if level.startswith(("FORWARD", "FULL")):
                    found += incompatibilities(old, new, old_names, new_names)
            return found

    def register(self, subject: str, text: str, references: tuple[Reference, ...]) -> Version:
        """The version with this schema; created if the subject has none."""
        with self._mutex:
            self._parse(text, references)
            compact = _compact(text)
            of_subject = [v for v in self._versions if v.subject == subject]
            for v in of_subject:
                if not v.deleted and (v.text, v.references) == (compact, references):
                    return v
            problems = self.problems(subject, text, references)
            if problems:
                raise Refusal(
                    409,
                    409,
                    "Schema being registered is incompatible with an earlier schema for subject "
                    f"'{subject}', details: {problems}",
                )
            number = max((v.version for v in of_subject), default=0) + 1
            made = Version(subject, number, self._id_of(compact, references), compact, False)
            made = replace(made, references=references)
            _write(self._path(made), json.dumps(json.loads(compact), indent=2) + "\n")
            self._versions.append(made)
            self._save_index()
            return made

    def delete(self, to_delete: list[Version], permanent: bool) -> list[int]:
        """Soft-delete versions; `permanent` removes versions that are soft-deleted already."""
        with self._mutex:
            for v in to_delete:
                self._check_delete(v, permanent)
            for v in to_delete:
                at = self._versions.index(v)
                if permanent:
                    del self._versions[at]
                    self._path(v).unlink(missing_ok=True)
                else:
                    self._versions[at] = replace(v, deleted=True)
            self._save_index()
            return [v.version for v in to_delete]

    def set_level(self, level: str, subject: str = _GLOBAL) -> None:
        known = next((name for name in LEVELS if name == level.upper()), None)
        if known is None:
            raise Refusal(422, 42203, f"Invalid compatibility level. Valid: {', '.join(LEVELS)}")
        with self._mutex:
            self._levels[subject] = known
            self._save_index()

    def unset_level(self, subject: str) -> CompatibilityLevel | None:
        with self._mutex:
            removed = self._levels.pop(subject, None)
            self._save_index()
            return removed

    def _check_delete(self, v: Version, permanent: bool) -> None:
        what = f"Subject '{v.subject}' Version {v.version}"
        if permanent and not v.deleted:
            raise Refusal(404, 40407, f"{what} was not deleted first before permanent deletion")
        if v.deleted and not permanent:
            raise Refusal(404, 40406, f"{what} was soft deleted. Set permanent=true to delete it")
        if permanent and any(
            (r.subject, r.version) == (v.subject, v.version)
            for other in self._versions
            for r in other.references
        ):
            raise Refusal(422, 42206, f"{what} is referenced by another schema")

    def _parse(self, text: str, references: tuple[Reference, ...]) -> tuple[Schema, dict[str, Any]]:
        names: dict[str, Any] = {}
        try:
            for defined in self._referenced(references):
                fastavro.parse_schema(json.loads(defined), named_schemas=names)
            return fastavro.parse_schema(json.loads(text), named_schemas=names), names
        except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError) as cause:
            raise Refusal(422, 42201, f"Invalid schema: {cause}") from cause

    def _referenced(self, references: tuple[Reference, ...]) -> Iterator[str]:
        """Referenced schemas in order of dependency, each once."""
        seen: set[str] = set()
        for r in references:
            v = self.version(r.subject, str(r.version), deleted=True)
            for text in (*self._referenced(v.references), v.text):
                if text not in seen:
                    seen.add(text)
                    yield text

    def _id_of(self, compact: str, references: tuple[Reference, ...]) -> int:
        for v in self._versions:
            if (v.text, v.references) == (compact, references):
                return v.id
        self._next_id += 1
        return self._next_id - 1

    def _path(self, v: Version) -> Path:
        # subjects may contain any character; "." and ".." must not be used as path elements
        folder = quote(v.subject, safe="").replace(".", "%2E", 1 if v.subject[:1] == "." else 0)
        return self._folder / folder / f"{v.version}.avsc"

    def _load(self) -> None:
        index = self._folder / "ids.json"
        if index.exists():
            saved = json.loads(index.read_text(encoding="utf-8"))
            self._next_id = saved["next_id"]
            self._levels = saved["compatibility"]
            for entry in saved["versions"]:
                references = tuple(Reference(**r) for r in entry.pop("references"))
                v = Version(**entry, text="", references=references)
                if self._path(v).exists():
                    text = _compact(self._path(v).read_text(encoding="utf-8"))
                    self._versions.append(replace(v, text=text))
        known = {(v.subject, v.version) for v in self._versions}
        for path in sorted(self._folder.glob("*/*.avsc"), key=_by_subject_and_number):
            name = (unquote(path.parent.name), int(path.stem) if path.stem.isdigit() else 0)
            if name[1] > 0 and name not in known:
                text = _compact(path.read_text(encoding="utf-8"))
                self._versions.append(Version(*name, self._id_of(text, ()), text))
        if len(self._versions) > len(known):
            self._save_index()

    def _save_index(self) -> None:
        entries = [asdict(v) for v in self._versions]
        for entry in entries:
            del entry["text"]
        saved = {
            "next_id": self._next_id,
            "compatibility": self._levels,
            "versions": entries,
        }
        _write(self._folder / "ids.json", json.dumps(saved, indent=2) + "\n")


def _by_subject_and_number(path: Path) -> tuple[str, int, str]:
    return (path.parent.name, len(path.stem), path.stem)


def _version_number(number: str) -> int:
    """The number in a request path; -1 is the latest version."""
    if number in ("latest", "-1"):
        return -1
    if number.isascii() and number.isdigit() and 0 < int(number) < 2**31:
        return int(number)
    raise Refusal(
        422,
        42202,
        f"The specified version '{number}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def _compact(text: str) -> str:
    try:
        return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    except ValueError as cause:
        raise Refusal(422, 42201, f"Invalid schema: {cause}") from cause


def _write(path: Path, text: str) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)
