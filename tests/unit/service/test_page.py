"""The page's files: served as they are, guarded, and asking nobody but the sidecar."""

import re

import pytest
from fastapi.testclient import TestClient

FILES = {
    "/": "text/html",
    "/page.js": "text/javascript",
    "/charts.js": "text/javascript",
    "/graph.js": "text/javascript",
    "/state.js": "text/javascript",
    "/page.css": "text/css",
}


@pytest.mark.parametrize("address", FILES)
def test_served_with_guards(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(FILES[address])
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("address", FILES)
def test_nothing_comes_from_elsewhere(client: TestClient, address: str) -> None:
    text = client.get(address).text
    addresses = set(re.findall(r"https?://[^'\")\s%]+", text)) | set(re.findall(r"//cdn", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in text
    assert len(text) < 16_000


def test_every_asked_address_is_there(client: TestClient) -> None:
    known = set(client.get("/openapi.json").json()["paths"])
    script = client.get("/page.js").text
    listed = re.search(r"\[(\"status\".*?)\]\.map\(fetchJson\)", script)
    assert listed is not None
    asked = re.findall(r'"([^"]+)"', listed[1])
    linked = re.findall(r'href="([a-z/.]+)[^"]*"', client.get("/").text)
    for address in [*asked, *(a for a in linked if not a.startswith(("page", "data", "openapi")))]:
        assert f"/{address}" in known
