"""One cluster inside this process for the quick tests, and one of real processes for tests that kill workers."""

import pytest

from on_cluster import local_cluster


@pytest.fixture(scope="session")
def client():
    with local_cluster(2, processes=False) as client:
        yield client


@pytest.fixture(scope="session")
def processes():
    with local_cluster(2) as client:
        yield client
