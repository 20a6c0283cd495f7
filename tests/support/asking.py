"""How the tests ask an app: without a socket, one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from errata.app.served_audit import OtherAudit
from errata.app.server import create_app
from errata.core import Audit
from errata.people.records import Records
from errata.workflow import ComparisonWith

Ask = Callable[..., httpx.Response]
PAGE = {"accept": "text/html"}


def ask(app: Any, method: str, path: str, base: str = "http://127.0.0.1:8421", **given: Any) -> httpx.Response:
    """What an app answers to one request."""

    async def go() -> httpx.Response:
        way = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=way, base_url=base) as client:
            return await client.request(method, path, **given)

    return asyncio.run(go())


def opened(audit: Audit, folder: Path, **more: Any) -> tuple[Records, Ask]:
    records = Records(folder, fingerprint="f", slices={found.id: found.name for found in audit.slices})
    return records, partial(ask, create_app(audit, records, **more))


def other_audit(name: str, audit: Audit) -> OtherAudit:
    """An audit to compare with, as `errata serve --with` makes it."""
    return OtherAudit(name, audit, ComparisonWith(audit))


def sentence(got: httpx.Response) -> str:
    told = got.json()["detail"]
    assert isinstance(told, str)
    return told
