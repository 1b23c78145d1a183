"""Packages that only `make test-long` installs: a test that calls one of them is skipped where it is absent."""

import pytest


class _Package:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, function):
        def call(*args, **kwargs):
            return getattr(pytest.importorskip(self._name), function)(*args, **kwargs)

        return call


polars = _Package("polars")
