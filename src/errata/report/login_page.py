"""The page that asks for a server's token: it holds all it needs, since nothing else is served without one."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache

from markupsafe import Markup

from .rendering import templates
from .static_files import STYLES, file_text

OWN = ".login { display: grid; gap: var(--s-2); max-width: 30rem; margin-top: var(--s-5); }"


def page(action: str, next: str, problem: str, people: bool) -> str:
    """The form that asks for a token.

    action: where the form goes. next: the page that was requested. problem: "wrong" after a wrong token, "many" after
    too many. people: everybody has a token of their own.
    """
    values = {"style": Markup(_style()), "action": action, "next": next, "problem": problem, "people": people}
    return templates().get_template("login.html").render(values)


def sign_out_page(action: str, name: str) -> str:
    """The form that ends a session; action: where it goes. name: of who is signed in, where it is known."""
    values = {"style": Markup(_style()), "action": action, "name": name}
    return templates().get_template("sign_out.html").render(values)


@cache
def _style() -> str:
    return "\n".join([*map(file_text, STYLES), OWN])


@cache
def policy() -> str:
    """The content policy: this style and no script; the form goes to this server alone."""
    digest = b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
