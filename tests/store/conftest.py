from __future__ import annotations

import pytest

from fedplan.store import Store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fedplan.db"


@pytest.fixture
def url(path):
    return f"sqlite:///{path}"


@pytest.fixture
def store(url):
    with Store(url) as store:
        yield store
