# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names that completion offers after `shlo_disc.`."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types

import pytest

import shlo_disc


def test_they_are_the_public_ones() -> None:
    offered = set(dir(shlo_disc)) - {"torch"}  # which is there where PyTorch is
    assert offered == {*shlo_disc.__all__, "numpy", "ragged", "runtime"}
    assert {"compile", "jit", "load", "Options"} <= offered


@pytest.mark.parametrize("name", sorted(set(dir(shlo_disc)) - {"torch"}))
def test_each_is_there(name: str) -> None:
    value = getattr(shlo_disc, name)
    assert value.__doc__
    if isinstance(value, types.ModuleType):
        assert value.__name__ == f"shlo_disc.{shlo_disc._PLACES.get(name, name)}"


def test_a_module_with_another_place_is_imported_by_its_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "shlo_disc.ragged", raising=False)
    import shlo_disc.ragged as module
    from shlo_disc.ragged import softmax

    assert module is shlo_disc.ragged is sys.modules["shlo_disc.api.ragged"]
    assert softmax is module.softmax
    assert importlib.import_module("shlo_disc.ragged") is module
    assert shlo_disc.ragged.__spec__.name == "shlo_disc.api.ragged"


def test_no_module_of_another_name_is_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="shlo_disc.rugged"):
        importlib.import_module("shlo_disc.rugged")


@pytest.mark.parametrize("module", [shlo_disc.numpy, shlo_disc.runtime], ids=lambda module: module.__name__)
def test_modules_offer_what_is_public(module: types.ModuleType) -> None:
    assert dir(module) == sorted(module.__all__)


def test_modules_without_their_packages_are_not_offered() -> None:
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["runtime"]


HIDDEN = """
import sys
sys.modules.update(jax=None, torch=None)
import shlo_disc
print(*sorted({"numpy", "runtime", "torch"} & set(dir(shlo_disc))))
"""
