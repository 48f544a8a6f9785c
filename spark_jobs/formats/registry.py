"""Registers the schemas of sinks. Reading schemas by id is the kernel's: it meets the ids."""

import time
from collections.abc import Mapping
from urllib.parse import quote

import httpx

from spark_jobs.access.registry import registry_access
from spark_jobs.errors import FormatError, KafkaError

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
PATIENCE_S = 20.0
_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 0.2
_MOST_PAUSE_S = 3.0


class RegistryClient:
    """A Confluent-compatible registry, as the options of an avro-confluent format describe it."""

    def __init__(self, options: Mapping[str, str], patience_s: float = PATIENCE_S) -> None:
        access = registry_access(options, _TIMEOUT_S, {"Content-Type": CONTENT_TYPE})
        self._urls = access.urls
        self._client = access.client
        self._patience_s = patience_s

    def register(self, subject: str, schema: str) -> int:
        """The id of the schema under the subject; the same again if it is there already."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        answer = self._post(path, {"schema": schema}, f"subject {subject}")
        return int(str(answer["id"]))

    def close(self) -> None:
        self._client.close()

    def _post(self, path: str, body: dict[str, str], what: str) -> dict[str, object]:
        """A registry that is down is asked again, with growing pauses, for a while."""
        deadline = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            problem = ""
            for url in self._urls:
                try:
                    response = self._client.post(url + path, json=body)
                except httpx.TransportError as error:
                    problem = f"{url} does not answer: {error}"
                    continue
                if response.status_code < 500 and response.status_code != 429:
                    return _judge(response, what)
                problem = f"{url} answers {response.status_code}"
            if time.monotonic() + pause_s > deadline:
                raise KafkaError("REGISTRY_UNREACHABLE", f"{what}: the registry at {problem}")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _MOST_PAUSE_S)


def _judge(response: httpx.Response, what: str) -> dict[str, object]:
    if response.is_success:
        answer: dict[str, object] = response.json()
        return answer
    detail = response.text[:500]
    match response.status_code:
        case 401 | 403:
            raise KafkaError(
                "REGISTRY_REFUSED",
                f"{what}: the registry refuses access ({response.status_code})",
                hint="set the format's 'basic-auth.*' or 'bearer-auth.*' options",
            )
        case 409:
            raise FormatError(
                "SCHEMA_INCOMPATIBLE",
                f"{what}: the sink's columns do not fit the registered schema: {detail}",
                hint="write to another topic, or change the subject's compatibility level",
            )
        case status:
            raise FormatError("SCHEMA_REFUSED", f"{what}: the registry says {status}: {detail}")
