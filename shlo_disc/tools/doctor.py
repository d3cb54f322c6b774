# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check what works on this machine by doing it, and say what to do about the rest: `python -m shlo_disc doctor`."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from shlo_disc.errors import DiscError
from shlo_disc.runtime.installed import DEPENDENCIES, is_installed

WORKS, ABSENT, BROKEN = "works", "absent", "broken"

_PROGRAM = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = stablehlo.add %x, %x : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
"""


_COMPILER = ("torch_mlir", "llvmlite")
"""Packages with which programs are compiled, and without which saved ones are loaded."""


class _AbsentError(Exception):
    """Something is not installed that this installation can do without."""


@dataclass(frozen=True)
class Finding:
    """One thing that was tried: `state` is "works"; "absent", which nobody needs to mend; or "broken".

    `fix`: what would change that, or empty.
    """

    topic: str
    state: str
    detail: str
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        """The fields."""
        return asdict(self)

    def __str__(self) -> str:
        line = f"{self.state:<7} {self.topic:<20} {self.detail}"
        return line if not self.fix else f"{line}\n{'':<28} -> {self.fix}"


def examine() -> Iterator[Finding]:
    """Try everything, one after the other; a failure is a finding, too."""
    for topic, fix, is_needed, check in _CHECKS:
        try:
            yield Finding(topic, WORKS, check())
        except _AbsentError as error:
            yield Finding(topic, ABSENT, str(error), fix)
        except (DiscError, ImportError, OSError, metadata.PackageNotFoundError) as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            yield Finding(topic, BROKEN if is_needed else ABSENT, text, fix)


def package_versions() -> dict[str, str]:
    """The versions of this package and of those that it stands on, as far as they are installed."""
    names = ("shlo_disc", "numpy", "jax", "jaxlib", "torch-mlir", "llvmlite", "nanobind")
    return {name: found for name in names if (found := _version(name))}


def _versions() -> str:
    return ", ".join(f"{name} {version}" for name, version in package_versions().items())


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _need(*modules: str) -> None:
    """Raises _AbsentError where none of some modules is installed, and so none is meant to be."""
    if not any(map(is_installed, modules)):
        raise _AbsentError(f"{' and '.join(modules)} {'are' if len(modules) > 1 else 'is'} not installed")


def _processor() -> str:
    from shlo_disc.runtime.clients import client
    from shlo_disc.runtime.cpu_features import host_flags

    known = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8")
    if not {"avx2", "fma"} <= host_flags():
        raise DiscError("this processor has no AVX2, which compiled programs need")
    threads = client(0).devices()[0].threads
    return f"{platform.machine()}, {threads} threads, {' '.join(n for n in known if n in host_flags())}"


def _compile() -> str:
    _need(*_COMPILER)
    import numpy as np

    from shlo_disc.api.compile import compile
    from shlo_disc.options import Options

    executable = compile(_PROGRAM, options=Options(cache_store=""))
    for shape in ((1, 1), (3, 5)):
        if not (executable(np.ones(shape, np.float32)) == 2).all():
            raise DiscError("a compiled program gives wrong numbers: please report this")
    return f"compiled once in {sum(executable.timings.values()):.2f} s, right at 2 sizes"


def _jax() -> str:
    _need("jax")
    _need(*_COMPILER)
    import jax
    import numpy as np

    from shlo_disc.api.compile import compile
    from shlo_disc.options import Options

    executable = compile(lambda x: x @ x.T, args=(("b, 3", "float32"),), options=Options(cache_store=""))
    if executable(np.ones((2, 3), np.float32)).sum() != 12:
        raise DiscError("a compiled function of JAX gives wrong numbers: please report this")
    return f"JAX {jax.__version__}: functions are exported and compiled"


def _serialized() -> str:
    _need("jax")
    _need("flatbuffers")
    return f"flatbuffers {_version('flatbuffers')}: `serialize` of jax.export, and the files that it writes"


def _plugin() -> str:
    _need("jax")
    _need(*_COMPILER)
    found = [point.value for point in metadata.entry_points(group="jax_plugins") if "shlo_disc" in point.value]
    if not found:
        raise DiscError("JAX does not find the plugin")
    return "JAX_PLATFORMS=shlo_disc,cpu serves jax.jit"


def _blas() -> str:
    if not is_installed("scipy"):
        raise _AbsentError("SciPy is not installed: vectors times matrices are slower, and LAPACK is missing")
    from shlo_disc.runtime.native_module import install_blas

    if not install_blas():
        raise DiscError("SciPy has no BLAS to share")
    return f"SciPy {_version('scipy')} multiplies vectors and matrices in f32 and f64, and has LAPACK"


def _cache_store() -> str:
    _need("jax")
    from shlo_disc.driver.cache.shared import shared_entries
    from shlo_disc.options import Options

    shared = shared_entries(Options())
    if shared is None:
        raise _AbsentError("no store is named: compiled programs stay on this machine")
    return shared.client.examine()


def _c_library() -> str:
    from shlo_disc.runtime.c_api import get_include, get_library

    return f"header in {get_include()}, library in {get_library()}"


def _gpu_code() -> str:
    _need(*_COMPILER)
    from shlo_disc.lowering.codegen.cuda_toolkit import find_libdevice

    return f"programs compile for NVIDIA GPUs; libdevice is {find_libdevice().name}"


def _gpu() -> str:
    from shlo_disc.runtime.clients import gpu_client

    device = gpu_client().devices()[0]
    major, minor = device.compute_capability
    return f"{device.device_kind}, compute capability {major}.{minor}"


_OLDEST_TORCH = (2, 13)


def _torch() -> str:
    version = _version("torch")
    if not version:
        raise DiscError("PyTorch is not installed")
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST_TORCH:
        raise DiscError(f"PyTorch {version} is older than {'.'.join(map(str, _OLDEST_TORCH))}")
    return f'PyTorch {version}: torch.compile(backend="shlo_disc")'


Check = tuple[str, str, bool, Callable[[], str]]

_CHECKS: tuple[Check, ...] = (
    ("versions", "", True, _versions),
    ("processor", "use a machine with AVX2: x86-64-v3 or later", True, _processor),
    ("compile and run", f"pip install {DEPENDENCIES}; only saved programs run without", True, _compile),
    ("JAX", f"pip install {DEPENDENCIES}", False, _jax),
    ("files of jax.export", "pip install jax flatbuffers", False, _serialized),
    ("plugin for jax.jit", "reinstall shlo_disc and JAX into one environment", False, _plugin),
    ("BLAS", "pip install scipy", False, _blas),
    ("cache store", "docs/compile-cache.md: SHLO_DISC_CACHE_STORE and SHLO_DISC_CACHE_KEY_FILE", True, _cache_store),
    ("C library", "reinstall from a wheel", False, _c_library),
    ("code for GPUs", f"pip install {DEPENDENCIES} nvidia-nvvm", False, _gpu_code),
    ("GPU", "programs for GPUs run where NVIDIA's driver is, of CUDA 12.0 or later", False, _gpu),
    ("PyTorch", "pip install 'torch>=2.13'; docs/install.md says how to do without NVIDIA's libraries", False, _torch),
)
"""The topic, the fix, whether nothing works without it or the user asks for it, and what tries it."""


def report(findings: Iterator[Finding]) -> dict[str, Any]:
    """Findings as JSON has them."""
    return {"findings": [finding.to_json() for finding in findings]}


__all__ = ["ABSENT", "BROKEN", "WORKS", "Finding", "examine", "package_versions", "report"]
