# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers and Fourier transforms in whole programs: arguments, weights, gradients, loops, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError, UnsupportedError  # noqa: E402
from shlo_disc.torch import backend, graph_count  # noqa: E402
from tests.pytorch.judge import close, exported  # noqa: E402
from tests.pytorch.ops import Case  # noqa: E402

nn = torch.nn
PAIR = torch.complex64
SIZES = ((4, 10), (3, 9), (7, 14), (5, 17))
WIDE = ((4, 12), (6, 11), (7, 30), (5, 17))


def compiled(function: Callable[..., Any], *shapes: str, **others: Any) -> Any:
    """A function of complex tensors, compiled for all sizes."""
    kinds = others.pop("kinds", (PAIR,) * len(shapes))
    return shlo_disc.compile(exported(Case(function, shapes, kinds=kinds, **others)))


@pytest.fixture(autouse=True)
def fresh() -> None:
    """The same numbers in each run, and nothing that Dynamo has compiled."""
    torch._dynamo.reset()
    torch.manual_seed(0)


class SpectralConvolution(nn.Module):
    """The layer of Fourier neural operators (Li et al.): a product with weights for each of the lowest frequencies."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, 4, 5, dtype=PAIR) / 3)
        self.linear = nn.Linear(5, 6, dtype=PAIR)

    def forward(self, x: Any) -> Any:
        spectrum = torch.fft.rfft(x)
        low = torch.einsum("bix,iox->box", spectrum[..., :5], self.weights)
        found = torch.zeros(x.shape[0], 4, x.shape[-1] // 2 + 1, dtype=PAIR)
        found[..., :5] = low
        return torch.fft.irfft(found, n=x.shape[-1]), self.linear(low).abs()


def test_views_as_arguments() -> None:
    run = compiled(lambda x: x * 2, "b, t")
    real = compiled(lambda x: x * 2, "b, t", kinds=(torch.float32,))
    x = torch.randn(5, 7, dtype=PAIR)
    for view in (x.conj(), x.mH, x[::2, 1:], x.conj()[:, ::3], x.T):
        close(run(view), view * 2, "complex")
    for view in (x.real, x.imag, x.conj().imag, x.mH.imag):
        close(real(view), view * 2, "real")


def test_weights() -> None:
    module = SpectralConvolution()
    dim = torch.export.Dim.DYNAMIC
    run = shlo_disc.compile(torch.export.export(module, (torch.randn(4, 3, 12),), dynamic_shapes=({0: dim, 2: dim},)))
    for b, n in WIDE:
        x = torch.randn(b, 3, n)
        with torch.no_grad():
            close(run(x), module(x), f"at {b}, {n}")
            module.weights.mul_(1j)


def test_training() -> None:
    start = graph_count()
    module = SpectralConvolution()
    run = torch.compile(module, backend=backend, dynamic=True)
    for b, n in WIDE:
        x = torch.randn(b, 3, n)
        found, wanted = (
            torch.autograd.grad(sum(part.square().mean() for part in f(x)), list(module.parameters()))
            for f in (run, module)
        )
        close(found, wanted, f"at {b}, {n}")
    assert graph_count() - start == 2  # one forwards, one backwards


GRADIENTS: dict[str, Callable[..., Any]] = {
    "rfft": lambda x: torch.fft.rfft(x).abs().square().sum(-1),
    "rfft of the first axis": lambda x: torch.fft.rfft(x, dim=0).abs().sum(-1),
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2j, n=x.shape[1]).square(),
    "ifft": lambda x: torch.fft.ifft(torch.complex(x, x * 2)).real,
    "hfft": lambda x: torch.fft.hfft(torch.complex(x, x * 2)),
    "fftn": lambda x: torch.fft.fftn(x, norm="ortho").abs().sum(-1),
    "stft": lambda x: torch.stft(x, 6, 2, window=torch.hann_window(6), return_complex=True).abs().sum((1, 2)),
    "istft": lambda x: torch.istft(
        torch.stft(x, 6, 2, window=torch.ones(6), return_complex=True), 6, 2, window=torch.ones(6)
    ),
    "makers": lambda x: (torch.complex(x, x.cos()).exp() * torch.polar(x.abs() + 1, x)).abs(),
    "views": lambda x: torch.view_as_real(torch.view_as_complex(torch.stack([x, x * 2 + 1], -1)).log()),
    "powers": lambda x: (torch.complex(x, x + 1) ** 2.5).real + (torch.complex(x, x + 1) ** (-2)).imag,
    "angles": lambda x: torch.complex(x, x + 1).angle() * torch.complex(x, x + 1).sgn().real,
    "products": lambda x: (torch.complex(x, x + 1) @ torch.complex(x, x - 1).mH).real,
    "quotients": lambda x: (torch.complex(x, x + 1) / torch.complex(x + 1, x - 1) + 1j / torch.complex(x, x - 1)).imag,
    "functions": lambda x: (torch.complex(x, x + 1).tanh() + torch.complex(x, x + 1).sin().sqrt()).imag,
    "sums": lambda x: torch.complex(x, x + 1).sum(1).abs() + torch.complex(x, x + 1).cumsum(1)[:, -1].abs(),
    "a complex result": lambda x: torch.complex(x, x + 1).conj() * 2j,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    start = graph_count()
    function = GRADIENTS[name]
    run = torch.compile(function, backend=backend, dynamic=True)
    for sizes in SIZES:
        x = torch.randn(*sizes, requires_grad=True)
        found, wanted = run(x), function(x)
        close(found.detach(), wanted.detach(), f"{name} at {sizes}")
        mine, other = (torch.autograd.grad(y.abs().square().mean(), x)[0] for y in (found, wanted))
        assert float((mine - other).abs().max()) <= 1e-5 * float(other.abs().max()), f"{name} at {sizes}"
    assert graph_count() - start == 2


AXES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -30.0)
FUNCTIONS = (
    "reciprocal", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh",
    "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "angle", "sgn",
)  # fmt: skip
LARGE = ("sin", "cos", "sinh", "cosh", "tanh", "asin", "acosh", "sqrt", "log", "exp")


@pytest.mark.parametrize("kind", [PAIR, torch.complex128])
def test_zeros_and_branch_cuts(kind: Any) -> None:
    """Both signs of zero, on both sides of every branch cut, and where a factor overflows beside a zero."""

    def function(x: Any, y: Any) -> Any:
        return [getattr(torch, name)(x) for name in FUNCTIONS], [getattr(torch, name)(y) for name in LARGE]

    run = compiled(function, "b, t", "t", kinds=(kind, kind))
    x = torch.tensor([[complex(a, b) for b in AXES] for a in AXES], dtype=kind)
    y = torch.tensor([1e5j, -1e5j, complex(-0.0, 1e5), 1e5, complex(1e5, -0.0), -1e5, 1e5, 1e5j], dtype=kind)
    found, wanted = run(x, y), function(x, y)
    for name, mine, other in zip((*FUNCTIONS, *LARGE), sum(found, []), sum(wanted, []), strict=True):
        close(mine, other, name)


def test_loops_and_branches() -> None:
    def function(x: Any) -> Any:
        powers = torch.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * z / 4), (torch.tensor(0), x))[1]
        return powers, torch.cond(x.real.sum() > 0, lambda z: z.conj() * 2, lambda z: z * 1j, (x,))

    run = compiled(function, "b, t")
    for sizes in SIZES:
        x = torch.randn(*sizes, dtype=PAIR)
        close(run(x), function(x), f"at {sizes}")


def test_random_numbers() -> None:
    run = compiled(lambda x: (torch.randn_like(x), torch.rand(x.shape, dtype=PAIR)), "b, t")
    normal, uniform = run(torch.zeros(300, 500, dtype=PAIR))
    for part in (normal.real, normal.imag):
        assert abs(float(part.mean())) < 0.01 and abs(float(part.var()) - 0.5) < 0.01
    assert abs(float((normal.real * normal.imag).mean())) < 0.01
    for part in (uniform.real, uniform.imag):
        assert float(part.min()) >= 0 and float(part.max()) < 1 and abs(float(part.mean()) - 0.5) < 0.01


def test_a_transform_of_no_elements_is_refused() -> None:
    run = compiled(torch.fft.rfft, "b, t", kinds=(torch.float32,), least=1)
    assert run(torch.zeros(0, 4)).shape == (0, 3)
    with pytest.raises(ShapeError, match="axis without elements"):
        run(torch.zeros(3, 0))


@pytest.mark.parametrize(
    ("function", "pattern"),
    [
        (lambda x: torch.softmax(x, -1, dtype=torch.float32), r"softmax\.int.*no translation of complex numbers"),
        (lambda x: x.to(torch.complex32), "the dtype torch.complex32 has no lowering"),
        (lambda x: torch.logcumsumexp(x, 0), r"logcumsumexp\.default.*no translation of complex numbers"),
        (lambda x: torch.linalg.eigvals(x @ x.mH), r"linalg_eig\.default.*and not for torch\.complex64;"),
    ],
)
def test_what_has_no_translation_is_refused(function: Callable[..., Any], pattern: str) -> None:
    with pytest.raises(UnsupportedError, match=pattern):
        compiled(function, "b, t")
