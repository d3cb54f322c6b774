# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Set-up shared by all tests: import path, reference platform, golden files, Hypothesis profiles, optional tools."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The reference is XLA on the CPU. JAX reads this when it is first imported, so it is set before any test module is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Most of its programs are small and run once, for one shape: XLA takes a third of the time without optimising LLVM IR.
# Its passes over HLO are the same. A flag that XLA does not know ends the process.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
# What a pattern raises is a defect, though users get a program without that pattern.
os.environ.setdefault("SHLO_DISC_STRICT", "1")
os.environ.setdefault("SHLO_DISC_CODE_CACHE_DIR", "")  # tests compile what they test
os.environ.setdefault("SHLO_DISC_TUNING_DIR", "")  # and record nothing
os.environ.setdefault("SHLO_DISC_INTERPRETED_MICROSECONDS", "0")  # on the plugin as well
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --update-golden, which rewrites the expected text of golden tests, and --cpu, a level of processors."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected text of golden tests")
    parser.addoption("--cpu", metavar="LEVEL", help="compile for this level unless a test names one: SHLO_DISC_CPU")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers used here, and makes Hypothesis repeatable: no deadline, examples derived from the test."""
    config.addinivalue_line("markers", "slow: takes more than a few seconds; left out by -m 'not slow'")
    config.addinivalue_line("markers", "ptxas: needs NVIDIA's assembler; skipped where it is absent")
    if config.getoption("--cpu"):
        os.environ["SHLO_DISC_CPU"] = config.getoption("--cpu")
    from hypothesis import settings

    settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
    settings.register_profile("thorough", deadline=None, max_examples=1000)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def ptxas_available() -> bool:
    """Tells whether ptxas is on the PATH, under CUDA_HOME or CUDA_PATH, or comes from the package nvidia-cuda-nvcc."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    if shutil.which("ptxas") or any((Path(home) / "bin" / "ptxas").exists() for home in homes):
        return True
    spec = importlib.util.find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    return any(next(Path(place).glob("**/bin/ptxas"), None) is not None for place in places or ())


THINNED = {
    "tests/commands/test_closed_pipes": 6,
    "tests/fuzz/": 8,
    "tests/gpu/test_linear_algebra": 6,
    "tests/gpu/test_lines": 20,
    "tests/gpu/test_ops": 320,
    "tests/gpu/": 32,
    "tests/ir/test_gpu_": 32,
    "tests/ir/test_lowering_gpu": 32,
    "tests/ir/test_opt_stages": 2,
    "tests/ir/test_reentry": 3,
    "tests/pjrt/test_functions": 860,
    "tests/pjrt/test_gpu_processes": 32,
    "tests/pjrt/test_interpreted": 1,
    "tests/pjrt/": 8,
    "tests/proofs/test_mutants": 6,
    "tests/run/test_dequantized_16_bits": 20,
    "tests/run/test_few_columns": 30,
    "tests/run/test_functions_of_jax": 700,
    "tests/run/test_jax_harnesses": 10,
    "tests/run/test_models": 20,
    "tests/run/test_ops_": 60,
    "tests/run/test_remedies": 6,
    "tests/run/test_tied_tables": 30,
    "tests/run/": 60,
    "tests/unit/lowering_cpu/test_vector_math": 4,
    "tests/unit/runtime/test_dot": 4,
    "tests/unit/transforms/test_recompute": 2,
    "tests/unit/transforms/test_shared_functions": 3,
    "tests/unit/transforms/test_siblings": 2,
}
"""Tests that are many rows of a table: one of so many runs by default, the others count as slow."""

WHOLE = ("::test_fixed_defect[", "::test_lengths_around_a_block[", "::test_gradients_by_symbolic_lengths[")
"""Tests in these files of which all rows run: each was wrong once."""


OF_ANY_LEVEL = (
    "bad_input", "bisect", "cache_store", "child", "compile_cache", "described", "doctor", "error_codes",
    "held_errors", "interrupt", "isolated", "jit_stages", "logging", "newer_artifacts", "option_names", "progress",
    "reader", "recovery", "reduce", "remedies", "reproducers", "words_of_faults",
)  # fmt: skip
"""Files of tests/run about messages, processes and files, not about generated code: left out with --cpu."""


def _is_left_for_later(item: pytest.Item) -> bool:
    """Tells whether a row of a large table is not in its sample, which depends on the row's name alone."""
    if any(name in item.nodeid for name in WHOLE):
        return False
    every = next((n for start, n in THINNED.items() if item.nodeid.startswith(start)), 1)
    return "[" in item.nodeid and zlib.crc32(item.nodeid.encode()) % every != 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks most rows of large tables slow; skips the tests marked ptxas, with a message, where it is absent."""
    if config.getoption("--cpu"):
        files = tuple(f"tests/run/test_{name}.py" for name in OF_ANY_LEVEL)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid.startswith(files)])
        items[:] = [item for item in items if not item.nodeid.startswith(files)]
    for item in items:
        if _is_left_for_later(item):
            item.add_marker(pytest.mark.slow)
    marked = [item for item in items if item.get_closest_marker("ptxas")]
    if not marked or ptxas_available():
        return
    reason = "ptxas is absent: install CUDA, or pip install '.[cuda]', to assemble GPU code"
    for item in marked:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares text with tests/.../golden/NAME next to the test; --update-golden writes the file instead."""
    folder = Path(request.path).parent / "golden"
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        path = folder / name
        if update:
            folder.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"no golden file {path.name}; run pytest with --update-golden and review the difference"
        assert text == path.read_text(), f"{path.name} differs; if intended, run pytest with --update-golden"

    return check
