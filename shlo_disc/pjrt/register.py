# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the platform `shlo_disc` known to JAX. Imports no compiler: that happens with the first program."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.util
import os
import re
import socket
from typing import Any

from shlo_disc.runtime import callbacks
from shlo_disc.shape_dialect.custom_calls import register_custom_call

from . import exported

PLATFORM = "shlo_disc"
GPU_PLATFORM = "shlo_disc_cuda"
"""There when JAX_PLATFORMS names it: asking for GPUs takes memory of each."""
ADDRESS_VARIABLE = "SHLO_DISC_EXCHANGE_ADDRESS"
_PRIORITY = -100  # below the CPU's 0: the platform is used when JAX_PLATFORMS names it first, or on request


def initialize() -> None:
    """Register the plugin with JAX, which calls this when it looks for plugins."""
    from jax._src import xla_bridge
    from jaxlib import xla_client

    library = importlib.util.find_spec("shlo_disc.runtime._native")
    if library is None or library.origin is None:
        raise ImportError("shlo_disc is installed without its native library")
    options: dict[str, Any] = {PLATFORM: client_options, GPU_PLATFORM: gpu_client_options}
    for platform in (PLATFORM, GPU_PLATFORM) if _is_asked_for(GPU_PLATFORM) else (PLATFORM,):
        _declare_stable(xla_bridge, platform)
        xla_bridge.register_plugin(platform, priority=_PRIORITY, library_path=library.origin, options=options[platform])
        _share_lowerings_of_cpu(platform)
        callbacks.install(platform)
        exported.install(platform)
        _lower_by_own_rules(platform)
    xla_client.register_custom_call_handler(PLATFORM, _register_ffi_target)


def _is_asked_for(platform: str) -> bool:
    """Tells whether JAX_PLATFORMS, or the option of JAX, names a platform."""
    import jax

    return platform in (getattr(jax.config, "jax_platforms", None) or "").split(",")


def gpu_client_options() -> dict[str, int | str | list[int]]:
    """The options of the client of GPUs: the numbers of all, or of JAX's flag `jax_cuda_visible_devices`.

    With `jax.distributed`, those of `client_options`, with XLA's time limit for GPUs.
    """
    from jax._src import xla_bridge

    from shlo_disc.runtime.native_module import Gpu

    visible = xla_bridge.CUDA_VISIBLE_DEVICES.value or "all"
    gpus = list(range(Gpu.count())) if visible == "all" else [int(number) for number in str(visible).split(",")]
    if not gpus:
        raise RuntimeError("there is no GPU on this machine")
    job = _job_options(GPU_PLATFORM, "xla_gpu_nccl_termination_timeout_seconds")
    return {"gpus": gpus, "trusts_programs": 1, **job}


def client_options() -> dict[str, int | str]:
    """The options of the client.

    As many devices as JAX users ask for with the settings for CPU devices: the JAX option `jax_num_cpu_devices`, or
    XLA's flag `--xla_force_host_platform_device_count`. So it is with asynchronous calls, by the option
    `jax_cpu_enable_async_dispatch`. With `jax.distributed`, why MPI cannot be used, if so, and where the other
    processes find this one.
    """
    import jax
    from jax._src import xla_bridge

    options: dict[str, int | str] = {}
    count = getattr(jax.config, "jax_num_cpu_devices", -1)
    if count is None or count < 1:
        count = _xla_flag("xla_force_host_platform_device_count") or 1
    options["device_count"] = count
    options["trusts_programs"] = 1  # jaxlib has serialised them from modules in memory, whatever JAX was given
    options.update(_job_options(PLATFORM, "xla_cpu_collective_timeout_seconds"))
    wanted = getattr(xla_bridge, "_CPU_ENABLE_ASYNC_DISPATCH", None)
    options["asynchronous"] = int(wanted is None or wanted.value)
    _wait_at_exit()  # the last to be registered is the first to be called: before the process leaves its job
    return options


def _job_options(platform: str, timeout_flag: str) -> dict[str, int | str]:
    """The options by which the processes of a job find each other; none without `jax.distributed`."""
    from jax._src import distributed

    options: dict[str, int | str] = {}
    if distributed.global_state.client is None:
        return options
    timeout = _xla_flag(timeout_flag)
    if timeout:
        options["collective_timeout_seconds"] = timeout
    failure = _load_mpi(platform)
    if failure:
        options["mpi_failure"] = failure
    if _is_asked_for(platform):
        options["address"] = os.environ.get(ADDRESS_VARIABLE) or _own_address(distributed.global_state)
        _leave_at_exit()
    return options


@functools.cache
def _wait_at_exit() -> None:
    """Have the process wait for runs before it ends, until it is interrupted."""
    from shlo_disc.runtime.native_module import finish_runs

    def wait() -> None:
        while not finish_runs(milliseconds=100):
            pass

    atexit.register(wait)


def _xla_flag(name: str) -> int | None:
    """The number that XLA_FLAGS gives to a flag."""
    found = re.search(rf"--{name}=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return int(found[1]) if found else None


def _load_mpi(platform: str) -> str:
    """Load and initialise the MPI library that mpi4py finds, which also finalises it. Returns why it is not."""
    if not _is_asked_for(platform):  # other platforms' jobs are no concern of ours
        return f"JAX_PLATFORMS does not name {platform}"
    try:
        importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        return str(error) or type(error).__name__
    return ""


@functools.cache
def _leave_at_exit() -> None:
    """Have the process tell the others that it ends, before MPI is finalised, and before JAX waits for them."""
    from shlo_disc.runtime.native_module import leave_job

    atexit.register(leave_job)


def _own_address(state: Any) -> str:
    """The address by which this machine reaches JAX's coordinator, as other processes do; empty: none was found."""
    host, _, port = (getattr(state, "coordinator_address", None) or "").rpartition(":")
    with contextlib.suppress(OSError, ValueError):
        for family, kind, *_, place in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as probe:
                probe.connect(place)  # sends nothing
                return str(probe.getsockname()[0])
    return ""


def _register_ffi_target(name: str, function: Any, platform: str, /, api_version: int = 1, traits: Any = None) -> None:
    """Implement `jax.ffi.register_ffi_target(name, function, platform="shlo_disc")`."""
    if api_version != 1:
        raise NotImplementedError(f"the function {name!r} is no typed FFI handler, and others are not supported")
    stages = function if isinstance(function, dict) else {"execute": function}
    if set(stages) != {"execute"}:
        raise NotImplementedError(f"the function {name!r} has stages other than execution, which are not supported")
    register_custom_call(name, stages["execute"], convention="ffi")


def _declare_stable(xla_bridge: Any, platform: str) -> None:
    """JAX warns of every plugin that it does not know itself, also where the plugin is installed but not used."""
    known = getattr(xla_bridge, "_nonexperimental_plugins", None)
    if isinstance(known, set):
        known.add(platform)


def _share_lowerings_of_cpu(platform: str) -> None:
    """Lower programs for a platform of ours as for the CPU: linear algebra becomes the calls of LAPACK that we have.

    Not so products, whose rule for the CPU refuses algorithms that XLA has not there; ours are at least as exact.
    """
    from jax._src.interpreters import mlir
    from jax._src.lax.lax import dot_general_p

    lowerings = mlir._platform_specific_lowerings
    own = {dot_general_p: mlir._lowerings[dot_general_p], **lowerings.get(platform, {})}
    lowerings[platform] = _SharedRules(lowerings["cpu"], own)
    if platform not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(platform)


def _lower_by_own_rules(platform: str) -> None:
    """Lower by our rules what JAX has no good form of for us; they are imported when a program needs one."""
    from jax._src.interpreters import mlir
    from jax._src.lax.lax import ragged_dot_general_p
    from jax._src.lax.linalg import tridiagonal_solve_p

    def ragged_dot(*values: Any, **parameters: Any) -> Any:
        from shlo_disc.importer.jax_ragged_dot import lower_ragged_dot

        return lower_ragged_dot(*values, **parameters)

    def tridiagonal_solve(*values: Any, **parameters: Any) -> Any:
        from shlo_disc.importer.jax_tridiagonal import lower_tridiagonal_solve

        return lower_tridiagonal_solve(*values, **parameters)

    mlir.register_lowering(ragged_dot_general_p, ragged_dot, platform=platform)
    mlir.register_lowering(tridiagonal_solve_p, tridiagonal_solve, platform=platform)


class _SharedRules(dict[Any, Any]):
    """A platform's own rules, and behind them those of another, also the ones that come later."""

    def __init__(self, shared: dict[Any, Any], own: dict[Any, Any]):
        super().__init__(own)
        self._shared = shared

    def __contains__(self, primitive: object) -> bool:
        return super().__contains__(primitive) or primitive in self._shared

    def __missing__(self, primitive: Any) -> Any:
        return self._shared[primitive]
