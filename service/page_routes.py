"""Serves the live page, which consists of six files and loads nothing from other hosts."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter, Response

FOLDER = Path(__file__).parent / "page"
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/graph.js": ("graph.js", "text/javascript; charset=utf-8"),
    "/state.js": ("state.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def build_page() -> APIRouter:
    """The page at `/`; it gets its data from the other endpoints."""
    router = APIRouter(include_in_schema=False)
    for address, (name, kind) in _FILES.items():
        router.get(address)(_file((FOLDER / name).read_bytes(), kind))
    return router


def _file(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def serve() -> Response:
        return Response(content, media_type=kind, headers=_HEADERS)

    return serve
