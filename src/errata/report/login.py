"""The page that asks for a server's token: it holds all it needs, since nothing else is served without one."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache

from markupsafe import Markup

from .home import STYLES, static_text
from .page import templates

OWN = ".door { display: grid; gap: var(--s-2); max-width: 30rem; margin-top: var(--s-5); }"


def page(action: str, next: str, wrong: bool) -> str:
    """action: where the form goes. next: the page that was asked for. wrong: a token was given, and is none."""
    shown = {"style": Markup(_style()), "action": action, "next": next, "wrong": wrong}
    return templates().get_template("door.html").render(shown)


@cache
def _style() -> str:
    return "\n".join([*map(static_text, STYLES), OWN])


@cache
def policy() -> str:
    """This style and no script; the form goes to this server alone."""
    digest = b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
