# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks of an artifact before it is loaded on the devices of a client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import ArtifactError
from shlo_disc.options import runs_on

from .artifact import Artifact

if TYPE_CHECKING:
    from .client import Client


def check_replicas(count: int, devices: int) -> None:
    """Check that there are enough devices. Raises ValueError."""
    if count > devices:
        raise ValueError(f"the program runs on {count} devices; the client has {devices}: Client(device_count={count})")


def trusted(artifact: Artifact) -> Artifact:
    """An artifact whose native code may be loaded. Raises ArtifactError for others."""
    if not artifact.trusted:
        raise ArtifactError("the artifact holds native code from outside: pass trust=True if you know who made it")
    return artifact


def check_device(name: Any, client: Client) -> None:
    """Check that code is for the client's kind of device, and for its GPU. Raises ArtifactError.

    name: of the target, None for CPUs.
    """
    (device, *_) = client.devices()
    if (name is None) != (device.platform == "cpu"):
        raise ArtifactError(f"made for {name or 'the CPU'}; this client's device is {device}")
    if name is None:
        return
    match = re.fullmatch(r"cuda:(sm_\d\d+a?)", name) if isinstance(name, str) else None
    if match is None:
        raise ArtifactError(f"header: {name!r} is no device")
    major, minor = device.compute_capability
    if not runs_on(match[1], (major, minor)):
        raise ArtifactError(f"made for {name}; {device.device_kind} is an sm_{major}{minor}")


__all__ = ["check_device", "check_replicas", "trusted"]
