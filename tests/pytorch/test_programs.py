# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported modules of PyTorch: state, structures, checks of sizes, errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.api.compile import ExportedByTorch  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

B = torch.export.Dim("b")
T = torch.export.Dim("t", max=512)


class Mixed(torch.nn.Module):
    """Layers with parameters and with buffers that a call changes; several results in a structure."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(16, 32)
        self.norm = torch.nn.LayerNorm(32)
        self.batch_norm = torch.nn.BatchNorm1d(32)

    def forward(self, x: Any) -> Any:
        y = self.norm(torch.relu(self.linear(x)))
        y = self.batch_norm(y.reshape(-1, 32))
        return y.reshape(x.shape[0], -1), {"sums": y.square().sum(0), "count": x.shape[0]}


def exported(module: Any) -> Any:
    return torch.export.export(module, (torch.randn(4, 6, 16),), dynamic_shapes={"x": {0: B, 1: T}})


def test_checkers_tell_exported_programs_by_attributes_that_they_have() -> None:
    for name in ("graph_signature", "range_constraints"):
        assert name in ExportedByTorch.__dict__ and hasattr(torch.export.ExportedProgram, name)


def test_buffers_are_written_back_and_results_have_their_structure() -> None:
    module = Mixed()
    program = exported(module)
    executable = shlo_disc.compile(program)
    reference = copy.deepcopy(module)
    for sizes in ((4, 6), (1, 2), (3, 5), (7, 33)):
        x = torch.randn(*sizes, 16)
        close(executable(x), reference(x), f"at {sizes}")
        close(executable.program.state_dict["batch_norm.running_var"], reference.batch_norm.running_var, "statistics")
    assert executable.program.state_dict["batch_norm.num_batches_tracked"] == 4
    assert executable.compile_count == 1
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot pickle or copy a compiled program of PyTorch: .*torch.export.save"):
            duplicate(executable)


def test_changed_parameters_are_seen() -> None:
    module = torch.nn.Linear(16, 4)
    executable = shlo_disc.compile(torch.export.export(module, (torch.randn(3, 16),), dynamic_shapes=({0: B},)))
    x = torch.randn(5, 16)
    with torch.no_grad():
        close(executable(x), module(x), "before")
        module.weight.mul_(2)
        close(executable(x), module(x), "after a change")
        module.weight.data.add_(1)
        executable.rebind()
        close(executable(x), module(x), "after a change that is not counted")


def test_sizes_outside_of_the_range_are_refused() -> None:
    module = torch.nn.Flatten(0, 1)
    program = torch.export.export(module, (torch.randn(4, 6, 16),), dynamic_shapes=({0: B, 1: T},))
    executable = shlo_disc.compile(program)
    with pytest.raises(shlo_disc.ShapeError, match="above its range, which ends at 512"):
        executable(torch.randn(1, 513, 16))


def test_other_arguments_are_refused() -> None:
    executable = shlo_disc.compile(torch.export.export(torch.nn.ReLU(), (torch.randn(3, 16),)))
    with pytest.raises(shlo_disc.ArgumentTypeError, match="structure"):
        executable(torch.randn(3, 16), torch.randn(3, 16))
    with pytest.raises(shlo_disc.ArgumentTypeError, match="not a tensor"):
        executable(1.5)
    with pytest.raises(shlo_disc.ArgumentTypeError, match="dtype|float64|f64"):
        executable(torch.randn(3, 16, dtype=torch.float64))
    with pytest.raises(shlo_disc.ShapeError):
        executable(torch.randn(4, 16))


def test_views_and_tensors_in_other_orders_are_arguments() -> None:
    executable = shlo_disc.compile(
        torch.export.export(torch.nn.ReLU(), (torch.randn(3, 16),), dynamic_shapes=({0: B},))
    )
    whole = torch.randn(16, 9)
    close(executable(whole.t()), torch.relu(whole.t()), "transposed")
    close(executable(whole.t()[::2]), torch.relu(whole.t()[::2]), "every second row")
    parameter = torch.nn.Parameter(torch.randn(2, 16))
    with torch.no_grad():
        assert not executable(parameter).requires_grad


@pytest.mark.parametrize("name", ["rows", "columns", "transposed", "with gaps", "broadcast"])
def test_examples_may_be_views(name: str) -> None:
    """PyTorch has guards then on the tensor that an example is a view of; calls with other tensors have no such one."""
    whole = torch.randn(9, 12)
    view = {"rows": whole[:5], "columns": whole[:, 2:9], "transposed": whole.t(), "with gaps": whole[::2, ::3],
            "broadcast": whole[:1].expand(4, 12)}[name]  # fmt: skip
    module = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten(0), torch.nn.Softmax(0))
    dynamic = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    run = shlo_disc.compile(torch.export.export(module, (view,), dynamic_shapes=dynamic))
    for x in (view, whole, whole.t()[3:], torch.randn(2, 3), torch.randn(12, 9)):
        close(run(x), module(x), f"{name}, {list(x.shape)}")


def test_an_op_without_translation_is_named_with_its_line() -> None:
    class Special(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.special.erfcx(x)

    with pytest.raises(shlo_disc.UnsupportedError, match=r"aten\.special_erfcx\.default.* at .*test_programs\.py:\d+"):
        shlo_disc.compile(torch.export.export(Special(), (torch.randn(3),)))


def test_arguments_of_jax_are_refused() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.randn(3),))
    with pytest.raises(shlo_disc.OptionError, match="ExportedProgram"):
        shlo_disc.compile(program, args=(("b", "float32"),))


def test_arguments_that_the_program_changes_are_written() -> None:
    class Adding(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            x.add_(y)
            return x * 2

    program = torch.export.export(Adding(), (torch.randn(3, 4), torch.randn(3, 4)), dynamic_shapes=({0: B}, {0: B}))
    executable = shlo_disc.compile(program)
    x, y = torch.randn(5, 4), torch.randn(5, 4)
    mine, other = x.clone(), x.clone()
    close(executable(mine, y), Adding()(other, y), "result")
    close(mine, other, "argument")


def test_what_pytorch_took_for_granted_is_checked() -> None:
    class Halves(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            if x.shape[0] % 2 == 0 and y.shape[0] == x.shape[0] // 2:
                return x.reshape(2, -1, 3).sum(0) + y
            return x[: y.shape[0]] - y

    axes = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(Halves(), (torch.randn(8, 3), torch.randn(4, 3)), dynamic_shapes=(axes, axes))
    executable = shlo_disc.compile(program)
    for rows in (4, 6, 20):
        values = torch.randn(rows, 3), torch.randn(rows // 2, 3)
        close(executable(*values), Halves()(*values), f"{rows} rows")
    for rows, others in ((7, 3), (8, 3), (8, 5)):
        with pytest.raises(shlo_disc.ShapeError):
            executable(torch.randn(rows, 3), torch.randn(others, 3))


def test_limits_of_a_size_from_data() -> None:
    class Counted(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            n = x.sum().to(torch.int64).item()
            torch._check(n >= 0)
            torch._check(n <= 100)
            return torch.ones(n)

    executable = shlo_disc.compile(torch.export.export(Counted(), (torch.ones(5),), dynamic_shapes=({0: B},)))
    assert executable(torch.ones(7)).shape == (7,)
    with pytest.raises(shlo_disc.ShapeError):
        executable(torch.ones(101))


def test_arguments_that_require_gradients_are_refused() -> None:
    run = shlo_disc.compile(torch.export.export(Scaled(), (torch.randn(3, 4),)))
    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(shlo_disc.ArgumentTypeError, match="x requires a gradient, and none flows"):
        run(x)
    with torch.no_grad():
        close(run(x), Scaled()(x), "without gradients")


class Scaled(torch.nn.Module):
    """Twice the argument."""

    def forward(self, x: Any) -> Any:
        return x * 2


class Convolutions(torch.nn.Module):
    """Kernels that convolutions alone read, of groups and transposed too, and one that is read by something else."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.grouped = torch.nn.Conv2d(8, 8, (1, 3), groups=4)
        self.back = torch.nn.ConvTranspose2d(8, 6, 2)
        self.line = torch.nn.Conv1d(6, 5, 3)
        self.read = torch.nn.Conv2d(5, 5, 1, bias=False)

    def forward(self, x: Any) -> Any:
        x = self.back(self.grouped(self.wide(x)))
        x = self.line(x.flatten(2))[..., None]
        return self.read(x) * self.read.weight.sum()


def test_kernels_are_kept_in_the_order_of_their_convolutions() -> None:
    module = Convolutions().eval()
    shapes = ({0: B, 2: torch.export.Dim("h", min=2), 3: torch.export.Dim("w", min=4)},)
    run = shlo_disc.compile(torch.export.export(module, (torch.randn(2, 3, 9, 11),), dynamic_shapes=shapes))
    shapes_of = [[str(d) for d in spec.dims] for spec in run.executable.signature.arguments]
    assert ["3", "3", "3", "8"] in shapes_of and ["5", "5", "1", "1"] in shapes_of
    for sizes in ((2, 3, 9, 11), (1, 3, 4, 4), (3, 3, 17, 8)):
        x = torch.randn(sizes)
        with torch.no_grad():
            close(run(x), module(x), f"at {sizes}")
            module.wide.weight.mul_(0.5)
            module.grouped.weight.add_(0.1)
            close(run(x), module(x), f"at {sizes}, after a change")


def test_the_tools_of_other_executables() -> None:
    run = shlo_disc.compile(exported(Mixed()))
    x = torch.randn(3, 5, 16)
    found = run(x)
    assert run.seen_shapes()[0] == {"b": 3, "t": 5}
    assert "[b, t, 16]" in str(run.signature)
    shapes = run.out_shape(b=3, t=5)
    assert shapes[0].shape == found[0].shape and shapes[0].dtype == found[0].dtype and shapes[0].is_meta
    assert shapes[1]["sums"].shape == found[1]["sums"].shape
    run.prepare({"b": 3, "t": 9})
    assert run.memory(b=3, t=5).arena_bytes == run.executable.memory(b=3, t=5).arena_bytes
    largest = run.max_dim("b", memory=10_000, t=5)
    assert run.peak_memory(b=largest, t=5) <= 10_000 < run.peak_memory(b=largest + 1, t=5)
    assert "stablehlo" in run.as_text() and run.kernels and run.timings and run.target == "cpu"
    assert {"explain", "report", "listing", "peak_memory_formula"} <= set(dir(run))
    with pytest.raises(shlo_disc.errors.ShapeError, match="by name, as in memory"):
        run.memory(3, 5)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bind", r"shlo_disc.load\(path\).bind\(weights=...\)"),
        ("loaded", "use run.executable.loaded"),
        ("nope", "'nope'"),
    ],
)
def test_attributes_that_programs_of_tensors_lack(name: str, text: str) -> None:
    run = shlo_disc.compile(exported(Mixed()))
    with pytest.raises(AttributeError, match=text):
        getattr(run, name)


@pytest.mark.filterwarnings("error::FutureWarning")
def test_programs_are_compiled_without_warnings_of_pytorch() -> None:
    lstm = torch.nn.LSTM(4, 8)
    recurrent = shlo_disc.torch.export(lstm, (torch.randn(3, 2, 4),), dynamic_shapes=({0: T},))
    for program, x in ((exported(Mixed()), torch.randn(2, 3, 16)), (recurrent, torch.randn(5, 2, 4))):
        with torch.no_grad():
            shlo_disc.compile(program)(x)
