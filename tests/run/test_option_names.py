# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that do not exist: each place that takes options by name proposes the nearest one."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shlo_disc
from shlo_disc import options
from shlo_disc.errors import OptionError
from shlo_disc.tools.cli import main


def _torch_options() -> Any:
    torch = pytest.importorskip("torch")
    from shlo_disc.torch import backend

    return backend(torch.fx.symbolic_trace(torch.nn.ReLU()), [], options={"fallbck": True})


CASES: dict[str, tuple[Callable[..., Any], str]] = {
    "Options": (lambda: shlo_disc.Options(thread=2), "'thread' of shlo_disc.Options; did you mean 'threads'?"),  # type: ignore[call-arg]
    "replace": (lambda: replace(shlo_disc.Options(), hint={}), "did you mean 'hints'?"),
    "schedule": (lambda: options.KernelSchedule(unrol=2), "did you mean 'unroll'?"),  # type: ignore[call-arg]
    "compile": (lambda: shlo_disc.compile("", option=1), "of shlo_disc.compile; did you mean 'options'?"),  # type: ignore[call-overload]
    "jit": (lambda: shlo_disc.jit(abs, dynamics="b"), "of shlo_disc.jit; did you mean 'dynamic'?"),  # type: ignore[call-overload]
    "load": (lambda: shlo_disc.load("x", trsut=True), "of shlo_disc.load; did you mean 'trust'?"),  # type: ignore[call-arg]
    "a field of Options": (
        lambda: shlo_disc.compile("", threads=2),  # type: ignore[call-overload]
        "of shlo_disc.compile; give options=shlo_disc.Options(threads=...)",
    ),
    "dynamic of compile": (
        lambda: shlo_disc.compile(abs, dynamic="b"),  # type: ignore[call-overload]
        """'dynamic' of shlo_disc.compile; names of sizes go into args=, as in args=(("b, 768", "float32"),)""",
    ),
    "filter of compile": (
        lambda: shlo_disc.compile(abs, filter=True),  # type: ignore[call-overload]
        "'filter' of shlo_disc.compile; shlo_disc.jit has it",
    ),
    "args of jit": (
        lambda: shlo_disc.jit(abs, args=()),  # type: ignore[call-overload]
        "shlo_disc.compile has it, and here names of sizes go into dynamic=",
    ),
    "nothing like it": (lambda: shlo_disc.load("x", q=1), "of shlo_disc.load; there are path, trust, threads"),  # type: ignore[call-arg]
    "torch.compile": (_torch_options, "'fallbck' of options= of torch.compile; did you mean 'fallback'?"),
}


@pytest.mark.parametrize("name", CASES)
def test_names(name: str) -> None:
    work, words = CASES[name]
    with pytest.raises(OptionError) as caught:
        work()
    assert words in str(caught.value) and caught.value.code == "DISC-O111"


def test_options_by_position() -> None:
    with pytest.raises(OptionError, match=r"shlo_disc.compile takes program by position, .* by name: .*\bargs="):
        shlo_disc.compile(abs, (("b", "float32"),))  # type: ignore[call-overload]
    with pytest.raises(OptionError, match=r"shlo_disc.jit takes function by position, .* by name: dynamic="):
        shlo_disc.jit(abs, ("b",))  # type: ignore[call-overload]


def test_functions_look_as_they_were() -> None:
    assert "constraints" in inspect.signature(shlo_disc.compile).parameters
    assert shlo_disc.Options(2).threads == 2 and "threads" in inspect.signature(shlo_disc.Options).parameters


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compile", "x", "-o", "y", "--treads", "3"], "did you mean --threads?"),
        (["bench", "x", "--dimz=b=2"], "did you mean --dims?"),
        (["info", "x", "--qqqqq"], "unrecognized arguments: --qqqqq\n"),
    ],
)
def test_the_command_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and words in capsys.readouterr().err


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    options.warn_of_variables.cache_clear()
    monkeypatch.setenv("SHLO_DISC_CACHEDIR", "/somewhere")
    with pytest.warns(UserWarning, match=r"SHLO_DISC_CACHEDIR; did you mean SHLO_DISC_CACHE_DIR\? \[DISC-O111\]"):
        shlo_disc.Options()
    monkeypatch.delenv("SHLO_DISC_CACHEDIR")
    monkeypatch.setenv("SHLO_DISC_STRICT", "0")
    monkeypatch.setenv("SHLO_DISC_OF_SOMEONE", "1")
    options.warn_of_variables.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shlo_disc.Options()


def test_all_environment_variables_are_known() -> None:
    """The variables that the sources name, each a word in quotes, are the ones that warnings know."""
    root = Path(shlo_disc.__file__).parent
    texts = (path.read_text() for suffix in ("py", "cpp") for path in root.rglob(f"*.{suffix}"))
    named = {name for text in texts for name in re.findall(r'"SHLO_DISC_([A-Z_]+)"', text)}
    assert named == set(options._VARIABLES)


def test_the_page_lists_the_options_of_the_cache_key() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/compile-cache.md").read_text()
    (row,) = re.findall(r"the options that change the code: ([^;]*);", page)
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(name for name, _ in shlo_disc.Options().code_key())


@pytest.mark.parametrize("name", [name for name, _ in shlo_disc.Options().code_key()])
def test_options_that_change_the_code_change_the_key(name: str) -> None:
    others: dict[str, Any] = {
        "hints": {"b": 2}, "opt_level": 0, "max_fusions": 1, "reuse": False, "hoist": False, "deterministic": True,
        "schedule": shlo_disc.Schedule(default=shlo_disc.KernelSchedule(unroll=1)), "cpu": "sapphirerapids",
        "symbolic": True, "tuned": True, "memory_limit": 1 << 20, "matmul_precision": "highest",
    }  # fmt: skip
    assert replace(shlo_disc.Options(), **{name: others[name]}).code_key() != shlo_disc.Options().code_key()
