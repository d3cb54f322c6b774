# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mock driver, and a client over it, for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shlo_disc.runtime import Client
from tests.gpu import mock_fft, mock_solver
from tests.gpu.emulated import fresh_client
from tests.gpu.mock_driver import MockDriver, mock_driver


@pytest.fixture
def driver() -> Iterator[MockDriver]:
    """The driver, whose caller must make no mistake."""
    found = mock_driver()
    found.mistakes.clear()
    found.launches.clear()
    yield found
    assert found.mistakes == []


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find the mocks of cuFFT, cuSOLVER and cuBLAS, which are built for the first that looks for them."""
    found = {
        "fft_names": mock_fft.library, "solver_names": mock_solver.solver_library,
        "cublas_names": mock_solver.cublas_library,
    }  # fmt: skip
    for name, library in found.items():
        monkeypatch.setattr(f"shlo_disc.runtime.cuda_libraries.{name}", lambda library=library: [str(library())])


@pytest.fixture
def client(driver: MockDriver) -> Client:
    """One for a GPU that has done nothing yet."""
    return fresh_client()
