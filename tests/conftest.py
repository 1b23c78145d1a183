"""What every test relies on."""

import gc
import os
import signal

import pytest
from hypothesis import settings

from browser import Browser

# Before NumPy is imported: the matrices of tests are small, and two processes share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples in every run of `make test`, so that what fails is the change at hand; `make test-long` looks for
# new ones. Machines are slow at times: no example has a deadline.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None)
settings.load_profile(os.environ.get("RANKWISE_EXAMPLES", "same"))

# A job in the background is started with Ctrl-C ignored, and so would be the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def pytest_collection_finish():
    """Leave ten thousand tests out of every garbage collection."""
    gc.collect()
    gc.freeze()
