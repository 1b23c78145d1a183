"""A cluster of real processes on this machine, shared by all tests.

Workers inside this process would draw from its random numbers in the background, which Hypothesis forbids.
"""

import pytest

from on_cluster import local_cluster


@pytest.fixture(scope="session")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def processes(client):
    """Return the same client, for tests that kill its workers."""
    return client
