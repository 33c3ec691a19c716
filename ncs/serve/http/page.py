"""The page at `/`: one file, with a policy that lets run what stands in it and nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from ncs.serve.http.refusals import Refusal

PAGE = Path(__file__).parent / "web" / "index.html"
_BLOCK = re.compile(r"<(script|style)[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)


def page() -> tuple[bytes, str]:
    """The page and its Content-Security-Policy. Raises Refusal where this installation has none."""
    try:
        html = PAGE.read_bytes()
    except OSError:
        remedy = "ask /api/search?query=...; what else there is: /openapi.json"
        raise Refusal(404, "no_page", "there is no page in this installation", remedy) from None
    return html, policy(html.decode("utf-8"))


def policy(html: str) -> str:
    """Inline scripts and styles of the page by their hash, requests to this server only.

    >>> policy("<style>a{}</style>").split("; ")[:2]
    ["default-src 'none'", "style-src 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"]
    """
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for match in _BLOCK.finditer(html):
        digest = b64encode(sha256(match[2].encode()).digest()).decode()
        hashes[match[1].lower()].append(f"'sha256-{digest}'")
    sources = [f"{kind}-src {' '.join(found)}" for kind, found in hashes.items() if found]
    rest = ["connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    return "; ".join(["default-src 'none'", *sources, *rest])
