"""Each tiny pipeline is built once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    from support.diffusion import built  # which skips where diffusers is not installed

    folder = tmp_path_factory.mktemp("tokens")
    return cache(lambda name: built(name, folder))
