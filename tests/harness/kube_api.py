"""An API server for the pods of one namespace, as far as Spark's scheduler asks for one.

It answers as Kubernetes does: rights by a Role, the pod security standard `restricted`, selectors,
watches, and a deleted pod that stays until its kubelet has ended it. What it does not know is
refused, so that a test cannot pass by an answer that no API server would give.
"""

import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.harness.http_server import body_of, serving
from tests.harness.manifests import Manifest, breaches

_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?")
_TERM = re.compile(r"\s*([\w./-]+)\s*(?:(!=|==?)\s*([\w./-]*)|(in|notin)\s*\(([^)]*)\))?\s*(?:,|$)")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_WATCH_S = 300.0


class Refused(Exception):
    """An answer that is no success, with the status of HTTP and Kubernetes' word for the reason."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class Pods:
    """The pods of a namespace, and what has happened to them."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.created: list[Manifest] = []
        self._pods: dict[str, Manifest] = {}
        self._events: list[tuple[int, str, Manifest]] = []
        self._changed = threading.Condition()

    def create(self, pod: Manifest) -> Manifest:
        name = pod["metadata"]["name"]
        with self._changed:
            if name in self._pods:
                raise Refused(409, "AlreadyExists", f'pods "{name}" already exists')
            if problems := breaches(pod):
                raise Refused(403, "Forbidden", f"violates PodSecurity restricted: {problems}")
            pod["metadata"] |= {
                "namespace": self.namespace,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": _now(),
            }
            pod["status"] = {"phase": "Pending"}
            self._pods[name] = pod
            self.created.append(deepcopy(pod))
            return self._tell("ADDED", pod)

    def get(self, name: str) -> Manifest:
        with self._changed:
            if name not in self._pods:
                raise Refused(404, "NotFound", f'pods "{name}" not found')
            return deepcopy(self._pods[name])

    def select(self, matches: Callable[[Manifest], bool]) -> tuple[list[Manifest], int]:
        """Those that match, and the version of the whole at that moment."""
        with self._changed:
            return [deepcopy(p) for p in self._pods.values() if matches(p)], len(self._events)

    def delete(self, name: str) -> Manifest:
        """The kubelet ends it, and only then it is gone."""
        with self._changed:
            self.get(name)
            pod = self._pods[name]
            pod["metadata"].setdefault("deletionTimestamp", _now())
            return self._tell("MODIFIED", pod)

    def set_status(self, name: str, status: Mapping[str, Any]) -> None:
        """Of a pod that is still there."""
        with self._changed:
            if name in self._pods:
                self._pods[name]["status"] |= status
                self._tell("MODIFIED", self._pods[name])

    def remove(self, name: str) -> None:
        with self._changed:
            if name in self._pods:
                self._tell("DELETED", self._pods.pop(name))

    def events(self, after: int, within_s: float) -> list[tuple[int, str, Manifest]]:
        """What came after a version; waits until there is something, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) > after, within_s)
            return self._events[after:]

    def _tell(self, kind: str, pod: Manifest) -> Manifest:
        pod["metadata"]["resourceVersion"] = str(len(self._events) + 1)
        told = deepcopy(pod)
        self._events.append((len(self._events) + 1, kind, told))
        self._changed.notify_all()
        return told


class ApiServer:
    """Answers requests about pods, for whom a Role gives rights."""

    def __init__(self, pods: Pods, role: Manifest) -> None:
        self.pods = pods
        self.verbs: set[str] = set()
        self.refused: list[str] = []
        self._role = role
        self.is_closed = False

    def allow(self, verb: str, namespace: str, resource: str) -> None:
        for rule in self._role["rules"]:
            granted = "" in rule["apiGroups"] and resource in rule["resources"]
            if granted and verb in rule["verbs"] and namespace == self.pods.namespace:
                self.verbs.add(verb)
                return
        message = f"cannot {verb} {resource} in {namespace}"
        self.refused.append(message)
        raise Refused(403, "Forbidden", message)

    def answer(self, method: str, path: str, options: dict[str, str], body: bytes) -> Manifest:
        """To every request but a watch."""
        found = _PATH.fullmatch(path)
        if found is None:
            self.refused.append(f"{method} {path}")
            raise Refused(404, "NotFound", path)
        namespace, resource, name = found[1], found[2], found[3]
        self.allow(verb_of(method, name, options), namespace, resource)
        matches = selection(options)
        if method == "POST":
            return self.pods.create(json.loads(body))
        if method == "GET" and name:
            return self.pods.get(name)
        if method == "DELETE" and name:
            return self.pods.delete(name)
        items, version = self.pods.select(matches)
        if method == "DELETE":
            items = [self.pods.delete(pod["metadata"]["name"]) for pod in items]
        elif method != "GET":
            raise Refused(405, "MethodNotAllowed", method)
        listed = {"resourceVersion": str(version)}
        return {"apiVersion": "v1", "kind": "PodList", "metadata": listed, "items": items}

    def watch(self, path: str, options: dict[str, str]) -> Iterator[Manifest]:
        """What happens to the selected pods; without a version, what there is comes first."""
        found = _PATH.fullmatch(path)
        assert found is not None
        self.allow("watch", found[1], found[2])
        return self._happenings(options)

    def _happenings(self, options: dict[str, str]) -> Iterator[Manifest]:
        matches = selection(options)
        seen = int(options.get("resourceVersion") or 0)
        if seen == 0:
            items, seen = self.pods.select(matches)
            yield from ({"type": "ADDED", "object": pod} for pod in items)
        until = time.monotonic() + float(options.get("timeoutSeconds", _WATCH_S))
        while not self.is_closed and time.monotonic() < until:
            for version, kind, pod in self.pods.events(seen, 0.2):
                seen = version
                if matches(pod):
                    yield {"type": kind, "object": pod}


def verb_of(method: str, name: str | None, options: Mapping[str, str]) -> str:
    """As Kubernetes' authorization names a request."""
    if method == "GET":
        return "get" if name else "watch" if is_watch(options) else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    return _VERBS[method]


def is_watch(options: Mapping[str, str]) -> bool:
    return options.get("watch") in ("true", "1")


def selection(options: Mapping[str, str]) -> Callable[[Manifest], bool]:
    """Of `labelSelector` and `fieldSelector`."""
    labels = _terms(options.get("labelSelector", ""))
    fields = _terms(options.get("fieldSelector", ""))

    def matches(pod: Manifest) -> bool:
        mine = pod["metadata"].get("labels", {})
        return all(holds(mine.get(key)) for key, holds in labels) and all(
            holds(_field(pod, key)) for key, holds in fields
        )

    return matches


def _terms(text: str) -> list[tuple[str, Callable[[str | None], bool]]]:
    found: list[tuple[str, Callable[[str | None], bool]]] = []
    at = 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            raise Refused(400, "BadRequest", f"selector {text!r}")
        at = term.end()
        found.append((term[1], _condition(term)))
    return found


def _condition(term: re.Match[str]) -> Callable[[str | None], bool]:
    if term[4]:
        given = {word.strip() for word in term[5].split(",")}
        return (lambda v: v in given) if term[4] == "in" else (lambda v: v not in given)
    value = term[3]
    if term[2] is None:
        return lambda v: v is not None
    return (lambda v: v != value) if term[2] == "!=" else (lambda v: v == value)


def _field(pod: Manifest, path: str) -> str | None:
    found: Any = pod
    for word in path.split("."):
        found = found.get(word, {})
    return found or None


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def api_server(pods: Pods, role: Manifest) -> Iterator[tuple[ApiServer, str]]:
    """The server and its address."""
    server = ApiServer(pods, role)
    with serving(type("Handler", (_Handler,), {"api": server})) as address:
        try:
            yield server, address
        finally:
            server.is_closed = True


class _Handler(BaseHTTPRequestHandler):
    api: ClassVar[ApiServer]
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        options = {key: values[-1] for key, values in parse_qs(url.query).items()}
        body = body_of(self)
        try:
            if self.command == "GET" and is_watch(options):
                self._watch(unquote(url.path), options)
            else:
                self._send(200, self.api.answer(self.command, unquote(url.path), options, body))
        except Refused as refused:
            self._send(refused.code, _status(refused))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    def _send(self, code: int, answer: Manifest) -> None:
        text = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def _watch(self, path: str, options: dict[str, str]) -> None:
        if self.headers.get("Upgrade", "").lower() == "websocket":
            # as through a proxy that knows no web sockets: the client asks again without
            self.close_connection = True
            self._send(200, {})
            return
        events = self.api.watch(path, options)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in events:
                self._chunk(event)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True  # nobody listens any more

    def _chunk(self, event: Manifest) -> None:
        text = json.dumps(event).encode() + b"\n"
        self.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Requests are counted, not printed."""


def _status(refused: Refused) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": refused.code,
        "reason": refused.reason,
        "message": str(refused),
    }
