# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every op of PyTorch that is translated, at symbolic sizes, against PyTorch itself."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from tests.pytorch.complex_ops import COMPLEX  # noqa: E402
from tests.pytorch.core_ops import CORE  # noqa: E402
from tests.pytorch.judge import SIZES, arguments, close, exported  # noqa: E402
from tests.pytorch.linear_ops import LINEAR  # noqa: E402
from tests.pytorch.more_ops import MORE  # noqa: E402
from tests.pytorch.ops import CASES  # noqa: E402

ALL = CASES | CORE | COMPLEX | MORE | LINEAR
assert len(ALL) == len(CASES) + len(CORE) + len(COMPLEX) + len(MORE) + len(LINEAR)


@pytest.mark.parametrize("name", ALL)
def test_an_op(name: str) -> None:
    case = ALL[name]
    executable: Any = shlo_disc.compile(exported(case))
    assert executable.compile_count == 1
    for number, sizes in enumerate(SIZES):
        values = arguments(case, sizes, number)
        with torch.no_grad():
            close(executable(*values), case.function(*values), f"{name} at {sizes}")
