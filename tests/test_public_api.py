"""Public names, signatures and options are those of `public_api.txt`: every change of them is meant, and shows."""

import pytest

from public_api import FILE, public_api


def test_the_public_api_is_as_written():
    pytest.importorskip("distributed")  # rankwise.distributed is part of it
    found, written = public_api(), FILE.read_text(encoding="utf-8").splitlines()
    gone, new = sorted(set(written) - set(found)), sorted(set(found) - set(written))
    assert (gone, new) == ([], []), "python tests/public_api.py writes the file again"
    assert found == written
