"""`rankwise report` with a second model."""

import pytest

from command_line import call
from rankwise.report.markup import without_folders


def test_two_models(searches, tmp_path, capsys):
    other = tmp_path / "old.rw"
    fit = ("fit", searches / "vali.txt", "--method", "rls", "--scaling", "none", "-o", other)
    assert call(capsys, *fit)[0] == 0
    page = tmp_path / "r.html"
    code, _, err = call(
        capsys, "report", searches / "model.rw", searches / "test.txt", "--against", other, "-o", page
    )
    assert (code, err) == (0, "")
    written = page.read_text(encoding="utf-8")
    assert "Against old.rw" in written
    assert "<bdi>model.rw</bdi>" in written


def test_what_is_named_must_be_what_it_is_named_as(searches, tmp_path, capsys):
    page = tmp_path / "r.html"
    rows = (searches / "model.rw", searches / "test.txt")
    code, _, err = call(capsys, "report", *rows, "--against", searches / "vali.txt", "-o", page)
    assert code != 0
    assert "vali.txt: The model file is damaged, or is not one" in err
    assert not page.exists()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("rankwise fit /home/me/a/train.txt -o /tmp/m.rw", "rankwise fit …/train.txt -o …/m.rw"),
        ("rankwise fit data/train.txt -o ../m.rw", "rankwise fit data/train.txt -o ../m.rw"),
        ("rankwise fit '/home/me/a/b c.txt'", "rankwise fit '…/b c.txt'"),
        ("--valid=/x/y.txt and 1/2", "--valid=…/y.txt and 1/2"),
    ],
)
def test_folders_of_this_machine_are_left_out(line, shown):
    assert without_folders(line) == shown
