# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs on the machines of a Ray cluster: those of the kind of machine that is tuned for, one job at a time on each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.driver.cache import TunedMachine
from shlo_disc.errors import OptionError
from shlo_disc.options import Options
from shlo_disc.tools.tune.measure import Job, Pair, run


class RayMeasurer:
    """Runs jobs on a cluster. address: that of its head, such as "auto"; "local" starts one on this machine.

    Raises OptionError where Ray is not installed, or no machine has as many processors as the program has threads.
    """

    def __init__(self, address: str, options: Options):
        threads = TunedMachine.here(options).threads
        try:
            import ray
        except ImportError:
            raise OptionError("tuning over machines needs Ray: pip install 'shlo_disc[ray]'") from None
        self._ray: Any = ray
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
        nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= threads]
        if not nodes:
            raise OptionError(f"no machine of the Ray cluster {address!r} has {threads} processors")
        self.width = len(nodes)
        self._run = ray.remote(num_cpus=threads)(run_if_alike)

    def measure(self, jobs: Sequence[Job]) -> list[Pair | None]:
        """The times of each job; None from a machine of another kind."""
        found: list[Pair | None] = self._ray.get([self._run.remote(job) for job in jobs])
        return found


def run_if_alike(job: Job) -> Pair | None:
    """Run a job, if this machine is of the kind that it is for."""
    here = TunedMachine.here(Options(threads=job.machine.threads))
    return run(job) if here.processor == job.machine.processor else None


__all__ = ["RayMeasurer"]
