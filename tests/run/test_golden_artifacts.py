# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs of released versions: this one loads them, and they compute what they did.

`scripts/make_golden_artifacts.py` has written them; CONTRIBUTING.md says when it is run again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import shlo_disc
from shlo_disc.runtime import Artifact, Client, TreeSpec
from shlo_disc.runtime.cpu_features import missing_features
from tests.c import c_api

FOLDER = Path(__file__).resolve().parent.parent / "golden"
FILES = sorted(FOLDER.glob("*/*.disc"))


def calls(path: Path) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """The arguments and the results of each recorded call, as leaves."""
    recorded = np.load(path.with_suffix(".npz"))

    def leaves(prefix: str) -> list[np.ndarray]:
        return [recorded[f"{prefix}-{i}"] for i in range(sum(name.startswith(prefix) for name in recorded.files))]

    count = len({name.partition("-")[0] for name in recorded.files})
    return [(leaves(f"{call}-argument"), leaves(f"{call}-result")) for call in range(count)]


def test_every_version_has_its_files() -> None:
    assert {path.parent.name for path in FILES} >= {"0.1.0"}
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 100_000 * len(
        {path.parent for path in FILES}
    )


def test_python_loads_and_calls_them() -> None:
    for path in FILES:
        artifact = Artifact.open(path, trust=True)
        flat = [TreeSpec("tuple", (TreeSpec("leaf"),) * len(artifact.header[key])) for key in ("arguments", "results")]
        for level in artifact.levels():
            if missing_features(level.header["target"]["features"]):
                continue  # this processor is an older one
            program = Client(threads=1).load(
                artifact, in_tree=TreeSpec("tuple", (flat[0], TreeSpec("dict"))), out_tree=flat[1],
                cpu=level.header["target"]["cpu"],
            )  # fmt: skip
            for arguments, results in calls(path):
                for got, want in zip(program(*arguments), results, strict=True):
                    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=str(path))


def test_c_loads_and_calls_them() -> None:
    for path in FILES:
        program = c_api.Program(path, cpu=b"x86-64-v3")
        for arguments, results in calls(path):
            for got, want in zip(program(*arguments), results, strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=str(path))


def test_their_trees_are_kept() -> None:
    arguments, results = calls(FOLDER / "0.1.0" / "layers.disc")[0]
    found = shlo_disc.load(FOLDER / "0.1.0" / "layers.disc", trust=True)(
        {"b": arguments[0], "w": arguments[1]}, arguments[2]
    )
    assert list(found) == ["norm", "y"]
    np.testing.assert_allclose(found["y"], results[1], rtol=2e-5, atol=2e-5)
