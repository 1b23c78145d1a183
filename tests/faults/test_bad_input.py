"""Damaged files and command lines: a right answer, or one of our errors with a hint."""

import os

import pytest

import bad_input
from rankwise.cli.entry import COMMANDS


@pytest.mark.parametrize("kind", sorted(bad_input.CHECKS))
@pytest.mark.parametrize("n", [6, pytest.param(3000, marks=pytest.mark.long)], ids=["few", "many"])
def test_damaged_files_and_command_lines(kind, n, campaign, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_input.make_files(tmp_path)
    for seed in campaign.faults(n):
        bad_input.run(kind, seed, tmp_path)
        campaign.count("answered or refused")
    os.chdir("/")


@pytest.mark.parametrize(
    "argv",
    [
        *([command, "--"] for command in COMMANDS),  # nothing behind it
        ["inspect", ""],  # this folder: tables that have nothing to do with each other
    ],
    ids=" ".join,
)
def test_what_the_fuzzer_found(argv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_input.make_files(tmp_path)
    bad_input.check_command(argv)
