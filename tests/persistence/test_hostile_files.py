"""Model files that are damaged or made to do harm: a ModelFileError, or a model that can be used."""

import io
import json
import random
import zipfile

import numpy as np
import pytest

import rankwise
from json_changes import copied
from model_changes import X, put_together, saved, taken_apart, whole
from rankwise import RankRLS
from rankwise.exceptions import ModelFileError
from rankwise.persistence import read_header


def refused(data, match=""):
    with pytest.raises(ModelFileError, match=rf"(?s){match}.*Hint: "):
        rankwise.load(io.BytesIO(data))


def linear():
    return saved(RankRLS().fit(np.eye(3), [0, 1, 2]))


def archive_of(members, **options):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **options) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=options.get("compression"))
    return stream.getvalue()


def test_flipped_bits_are_refused_or_change_nothing():
    data = saved(rankwise.KernelRankRLS("rbf").fit(X, np.arange(8.0)))
    expected = rankwise.load(io.BytesIO(data)).predict(X).tobytes()
    header = read_header(io.BytesIO(data))
    rng = random.Random(0)
    metadata = data.index(b"PK\1\2") * 8  # the central directory and the end of the archive
    bits = [*rng.sample(range(metadata), 2000), *range(metadata, 8 * len(data))]
    n_refused = 0
    for bit in bits:
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            again = rankwise.load(io.BytesIO(damaged))
        except ModelFileError:
            n_refused += 1
            continue
        assert again.predict(X).tobytes() == expected
        assert read_header(io.BytesIO(damaged)) == header
    assert n_refused > 0.8 * len(bits)


def test_truncated_and_foreign_files_are_refused(tmp_path):
    data = linear()
    for size in range(len(data)):
        refused(data[:size])
    for other in (b"", b"PK", b"label,a\n1,2\n", archive_of([("sheet.xml", b"<x/>")]), b"[]"):
        refused(other)
    (tmp_path / "m.rw").write_bytes(data[:-1])
    with pytest.raises(ModelFileError, match=r"m\.rw: "):
        rankwise.load(tmp_path / "m.rw")
    with pytest.raises(FileNotFoundError):
        rankwise.load(tmp_path / "none.rw")


def test_archives_that_save_does_not_write_are_refused():
    header, members = taken_apart(linear())
    text = json.dumps(header).encode()
    listed = [("model.json", text), *members.items()]
    assert rankwise.load(io.BytesIO(archive_of(listed)))
    refused(archive_of(listed, compression=zipfile.ZIP_DEFLATED), "not stored")
    refused(archive_of(listed[:1]))
    bomb = bytearray(archive_of(listed))  # a member that claims to be larger than the file
    at = bomb.rindex(b"PK\1\2")
    bomb[at + 20 : at + 28] = (2**31).to_bytes(4, "little") * 2
    refused(bytes(bomb))
    refused(archive_of([("model.json", b" " * (1 << 26) + text), *listed[1:]]), "too long")


def npy(shape, kind="<f8", content=b"", order=False):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": order, "shape": shape})
    return stream.getvalue() + content


@pytest.mark.parametrize(
    "array",
    [
        npy((2**40,)),
        npy((2**62, 2**62)),
        npy((0, 2**40)),
        npy((-3,), content=bytes(24)),
        npy((4,), content=bytes(24)),
        npy((3,), "|O", bytes(24)),
        npy((3,), "<c16", bytes(48)),
        npy((3,), "<M8[s]", bytes(24)),
        npy((1, 1, 3), content=bytes(24)),
        npy((2,), content=bytes(16)),
        npy((3,), "<U1", bytes(12)),
        b"\x93NUMPY\x03\x00" + bytes(100),
        b"",
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(array):
    header, _ = taken_apart(linear())
    refused(put_together(header, {"coef_.npy": array}))


def change_linear(change):
    header, members = taken_apart(linear())
    change(header["model"])
    return put_together(header, members)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


CHANGES = {
    "a class of Python": lambda model: model.update({"$class": "eval"}),
    "a class that saves nothing": lambda model: model.update({"$class": "KFold", "parameters": {}}),
    "an unknown parameter": lambda model: model["parameters"].update(colour=3),
    "an attribute that is not fitted": lambda model: model["attributes"].update(predict=3),
    "a method": lambda model: model["attributes"].update(__class__=3),
    "a private attribute": lambda model: model["attributes"].update(_stream=3),
    "other columns": lambda model: model["attributes"].update(n_features_in_=4),
    "columns without end": lambda model: model["attributes"].update(n_features_in_=10**20),
    "columns as a number with a point": lambda model: model["attributes"].update(n_features_in_=3.0),
    "a name for a number": lambda model: model["parameters"].update(alpha="much"),
    "no coefficients": lambda model: model["attributes"].pop("coef_"),
    "an array that is not there": lambda model: model["attributes"].update(coef_={"$array": "beta"}),
    "another file": lambda model: model["attributes"].update(coef_={"$array": "../../etc/passwd"}),
    "names of other columns": lambda model: model["attributes"].update(
        feature_names_in_={"$objects": ["a", "b"], "shape": [2]}
    ),
    "an unknown kind": lambda model: model["parameters"].update(alpha={"$code": "1"}),
    "a kernel of Python": lambda model: model["parameters"].update(
        alpha={"$class": "Kernel", "parameters": {"name": "os.system"}, "attributes": {}}
    ),
    "a number that is none": lambda model: model["parameters"].update(alpha={"$float": "1e999"}),
    "deep nesting": lambda model: model["parameters"].update(alpha=nested(200)),
    "very deep nesting": lambda model: model["parameters"].update(alpha=nested(900)),
    "keys that are lists": lambda model: model["parameters"].update(alpha={"$dict": [[[1], 2]]}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_models_are_refused(name):
    refused(change_linear(CHANGES[name]))


def test_a_file_does_not_say_how_a_computation_runs():
    model = rankwise.load(
        io.BytesIO(change_linear(lambda model: model["parameters"].update(n_threads=100_000)))
    )
    assert model.n_threads is None
    header, members = whole()["ColumnTransformer"]
    text = json.dumps(header).replace('"steps": [', '"memory": "/tmp/pickles", "steps": [', 1)
    again = rankwise.load(io.BytesIO(put_together(json.loads(text), members)))
    assert again.memory is None


def test_a_newer_version_is_told():
    header, members = taken_apart(linear())
    refused(put_together({**header, "format": 2}, members), "format 2, and this version reads format 1")
    newer = change_linear(lambda model: model["parameters"].update(colour="red"))
    refused(newer, "RankRLS has no parameter colour")


@pytest.mark.parametrize(
    ("part", "values"),
    [
        (2, [0, 10**6, 10**6, 10**6, 10**6, 10**6, 10**6, 10**6, 0]),  # SciPy accepts these pointers
        (2, [0, 2**62, -(2**62), 2**62, -(2**62), 0, 0, 0, 0]),  # differences overflow
        (2, [0, 1, 1, 1, 1, 1, 1, 1, 10**6]),
        (1, [-1]),
        (1, [3]),
    ],
)
def test_sparse_rows_that_point_outside_are_refused(part, values):
    header, members = copied(whole()["sparse"])
    parts = header["model"]["attributes"]["X_fit_"]["parts"]
    names = [one["$array"] for one in parts]
    array = np.array(values if part == 2 else values * len(np.load(io.BytesIO(members[f"{names[1]}.npy"]))))
    members[f"{names[part]}.npy"] = npy(array.shape, "<i8", array.tobytes())
    refused(put_together(header, members))


def test_more_columns_than_the_file_has_numbers_are_refused():
    """An export would list them all."""
    header, members = taken_apart(linear())
    header["model"]["attributes"]["n_features_in_"] = 2**31
    del header["tried"]
    refused(put_together(header, members), "2147483648 columns")


def _curve(model):
    return model["attributes"]["terms_"]["parameters"]["curves"]["$tuple"][0]["parameters"]


def _columns(model):
    return model["parameters"]["steps"][0]["$tuple"][1]["attributes"]["transformers_"][1]["$tuple"]


def _first_step(model):
    return model["parameters"]["steps"][0]["$tuple"][1]["attributes"]


def _first_of_mean(model):
    return model["attributes"]["rankers_"][0]["attributes"]


@pytest.mark.parametrize(
    ("name", "place", "changes"),
    [
        ("basis", lambda model: model["attributes"], {"n_features_in_": 10**20}),
        ("precomputed", lambda model: model["attributes"], {"n_features_in_": 2}),
        ("sparse", lambda model: model["attributes"]["X_fit_"], {"shape": [8, 2]}),
        ("sparse", lambda model: model["attributes"]["X_fit_"], {"shape": [8, 2**53]}),
        ("AdditiveRanker", lambda model: model["attributes"], {"n_features_in_": 2}),
        ("AdditiveRanker", lambda model: model["attributes"], {"n_features_in_": 10**20}),
        ("AdditiveRanker", lambda model: model["attributes"], {"values_": {"$array": "importances_"}}),
        ("AdditiveRanker", _curve, {"column": -1}),
        ("ColumnTransformer", lambda model: _columns(model)[1]["attributes"], {"_n_features_outs": [900]}),
        (
            "ColumnTransformer",
            lambda model: _columns(model)[1]["attributes"],
            {"_drop_idx_after_grouping": [70]},
        ),
        ("ColumnTransformer", lambda model: _columns(model)[1]["attributes"], {"n_features_in_": 7}),
        ("ColumnTransformer", _first_step, {"n_features_in_": 2**53}),
        ("mean", _first_of_mean, {"coef_": {"$array": "two_outputs"}}),
        *(("ColumnTransformer", None, beyond) for beyond in (10**20, 3, [3], 2, False, ["size"], [0, ""])),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(name, place, changes):
    header, members = whole()[name]
    header, members = copied(header), {**members, "two_outputs.npy": npy((2, 3), content=bytes(48))}
    if place:
        place(header["model"]).update(changes)
    else:
        _columns(header["model"])[2] = changes
    refused(put_together(header, members))
