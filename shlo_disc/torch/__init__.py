# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's programs: what `shlo_disc.compile` makes of a `torch.export.ExportedProgram`. Needs the extra `torch`."""

from torch._dynamo import trace_rules

from shlo_disc.torch.backend import backend, graph_count
from shlo_disc.torch.exported import ExportedExecutable, compile_exported
from shlo_disc.torch.left_out import watch
from shlo_disc.torch.recurrent import as_scans, export

for _module in ("shlo_disc.torch.exported", "shlo_disc.runtime"):  # a call of a program is no code to be traced
    trace_rules.add(_module)

watch()


def ops_page() -> str:
    """The page of the ops that have a translation, in Markdown."""
    from shlo_disc.importer.aten.page import page

    return page()


def __dir__() -> list[str]:
    """The public names: what completion offers."""
    return __all__


__all__ = ["ExportedExecutable", "as_scans", "backend", "compile_exported", "export", "graph_count", "ops_page"]
