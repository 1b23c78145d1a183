"""A cluster of real processes on this machine, shared by all tests that do not break it."""

import logging

import pytest

from on_cluster import local_cluster


@pytest.fixture(scope="session")
def client():
    for name in ("distributed.worker", "distributed.nanny", "distributed.scheduler", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with local_cluster(2) as client:
        yield client
