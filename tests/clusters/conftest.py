"""A cluster of real processes on this machine, shared by all tests that do not break it."""

import pytest

from on_cluster import local_cluster, save_coverage


@pytest.fixture(scope="session")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture(autouse=True)
def _coverage_of_workers(request):
    """Keep what is measured in the shared workers, of which a test may lose one."""
    yield
    if "client" in request.fixturenames:
        save_coverage(request.getfixturevalue("client"))
