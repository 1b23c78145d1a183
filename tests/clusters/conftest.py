"""A cluster of real processes on this machine, shared by all tests that do not break it."""

import pytest

from on_cluster import local_cluster


@pytest.fixture(scope="session")
def client():
    with local_cluster(2) as client:
        yield client
