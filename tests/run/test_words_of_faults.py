# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of keys, constraints and sizes are named with what is there, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, OptionError, ProgramError, ShapeError
from tests.run.remedies.case import command


def doubled(x: Any) -> Any:
    """2 * x."""
    return 2 * x


def test_a_part_of_a_dict_in_place_of_the_dict() -> None:
    variables = {"params": {"w": np.ones((3, 2), np.float32), "b": np.ones(2, np.float32)}}
    layer = shlo_disc.compile(
        lambda v, x: x @ v["params"]["w"] + v["params"]["b"], args=(variables, ("n, 3", "float32"))
    )
    with pytest.raises(ArgumentTypeError, match="v lacks 'params', and has more keys: 'b', 'w'\n"):
        layer.bind(variables["params"])(np.ones((4, 3), np.float32))


@pytest.mark.parametrize(
    "constraint, fault",
    [
        ("n < ", "write it as 'b <= 64'"),
        ("< 4", "write it as 'b <= 64'"),
        ("n < 4", "write 'n <= 3'"),
        ("m < 4", "has a size 'm' in 'm < 4', and args= has none of that name"),
    ],
)
def test_constraints_that_are_none(constraint: str, fault: str) -> None:
    with pytest.raises(ProgramError, match=fault):
        shlo_disc.compile(doubled, args=(("n", "float32"),), constraints=[constraint])
    with pytest.raises(OptionError, match=fault.replace("args=", "dynamic=")):
        shlo_disc.jit(doubled, dynamic=("n",), constraints=[constraint])


def test_sizes_of_a_report_are_named_as_those_of_a_call(tmp_path: Path) -> None:
    executable = shlo_disc.compile(doubled, args=(("b, t", "float32"),), constraints=["t <= 400"])
    with pytest.raises(ShapeError, match=r"^the sizes do not satisfy the constraint t <= 400: t is 500"):
        executable.report(tmp_path / "page.html", dims=[{"b": 2, "t": 500}])


def test_a_command_says_why_a_result_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    means = shlo_disc.compile(
        lambda x, lens: jnp.where(jnp.arange(x.shape[1]) < lens[:, None], x, 0).sum(1) / lens,
        args=(("b, s", "float32"), ("b", "int32")),
    )
    means.save("means.shlodisc")
    printed = command("run", "means.shlodisc", "--dims", "b=8,s=4", "--trust")
    assert "0 or 1 where they are integers, such as lengths: give others by --inputs FILE.npz" in printed
    np.savez("inputs.npz", x=np.ones((8, 4), np.float32), lens=np.full(8, 2, np.int32))
    assert "nan" not in command("run", "means.shlodisc", "--inputs", "inputs.npz", "--trust")


def test_a_saved_program_of_filtered_arguments_takes_one_list(tmp_path: Path) -> None:
    scaled = shlo_disc.jit(lambda m, x: m["w"] * x if m["k"] else x, filter=True)
    x = np.ones((2, 3), np.float32)
    scaled({"w": x, "k": True}, x)
    scaled.executable.save(tmp_path / "scaled.disc")
    loaded = shlo_disc.load(tmp_path / "scaled.disc", trust=True)
    with pytest.raises(ArgumentTypeError, match="takes list_of_arrays: the call gives 2 by position"):
        loaded({"w": x, "k": True}, x)
    np.testing.assert_array_equal(loaded([x, 2 * x])[0], 2 * x)
