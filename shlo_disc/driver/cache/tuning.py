# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules that were measured on machines like this one, by the content of a kernel, for other programs that have it.

One JSON file for each kind of machine: the processor's name, the level of its instructions and the number of threads.
"""

from __future__ import annotations

import functools
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.options import KernelSchedule, Options
from shlo_disc.runtime.cpu_features import host_level, processor_name
from shlo_disc.runtime.digests import digest_of

from .files import CacheDirectory, user_directory
from .shared import SharedEntries, shared_entries
from .store import CacheWarning

ENVIRONMENT_VARIABLE = "SHLO_DISC_TUNING_DIR"
LIMIT = 64 << 20  # bytes
MOST_KERNELS = 4096  # of a machine, those that were measured last
MOST_SAMPLES = 64  # of a kernel
_FORMAT = 1


class TunedMachine(NamedTuple):
    """A kind of machine: on another one, other schedules may be faster."""

    processor: str
    level: str
    threads: int

    @property
    def key(self) -> str:
        """The name of its file."""
        return digest_of([str(part).encode() for part in self])

    @staticmethod
    def here(options: Options) -> TunedMachine:
        """This machine, with the level and the threads that options ask for. Raises OptionError for several levels."""
        if len(options.cpus) != 1:
            raise OptionError(f"schedules are measured for one level of processors, not for {options.cpus!r}")
        (level,) = options.cpus
        threads = options.threads or len(os.sched_getaffinity(0))
        return TunedMachine(processor_name(), host_level() if level == "host" else level, threads)


@dataclass(frozen=True)
class TuningRecord:
    """The measurements of a kernel.

    seconds: of the kernel by default. schedule: the best one. samples: each schedule that was tried, with its time over
    the default's.
    """

    kind: str
    seconds: float
    schedule: KernelSchedule
    samples: tuple[tuple[KernelSchedule, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form that `from_json` reads."""
        samples = [[asdict(schedule), ratio] for schedule, ratio in self.samples[-MOST_SAMPLES:]]
        own = {"kind": self.kind, "seconds": self.seconds, "schedule": asdict(self.schedule)}
        return {**own, "samples": samples}

    @staticmethod
    def from_json(data: Any) -> TuningRecord:
        """The record from JSON data. Raises OptionError, KeyError, TypeError and ValueError where they are none."""
        samples = tuple((KernelSchedule(**schedule), _positive(ratio)) for schedule, ratio in data["samples"])
        schedule = KernelSchedule(**data["schedule"])
        return TuningRecord(str(data["kind"]), _positive(data["seconds"]), schedule, samples)


@dataclass(frozen=True)
class TuningRecords(CacheDirectory):
    """The records of all machines in a directory. Damaged files are ignored, with a warning."""

    suffix = ".json"

    limit: int = field(default=LIMIT)

    @staticmethod
    def here(options: Options | None = None) -> TuningRecords | None:
        """The directory that the environment names, by default one below the user's cache directory, before the store
        that the options name.

        None where the variable is empty or the user has no home. Raises OptionError when it is not the user's alone.
        """
        directory = user_directory(ENVIRONMENT_VARIABLE, "tuning")
        if not directory:
            return None
        records = TuningRecords(Path(directory), shared=shared_entries(options or Options()))
        records.prepare()
        return records

    def load(self, machine: TunedMachine) -> dict[str, TuningRecord]:
        """The records of a machine by content, the oldest first; none where there are none or they are damaged.

        Those of the store are read once in a process, so that its programs agree. Those of the directory take
        precedence.
        """
        shared = {} if self.shared is None else _shared_records(self.shared, machine, self.limit)
        try:
            data = self.read_here(machine.key)
            return {**shared, **({} if data is None else _records_in(json.loads(data), machine))}
        except (OSError, *_NO_RECORDS) as error:
            text = f"the tuning records {self.directory / (machine.key + self.suffix)} are ignored: {error}"
            warnings.warn(text, CacheWarning, stacklevel=2)
            return dict(shared)

    def store(self, machine: TunedMachine, found: Mapping[str, TuningRecord]) -> None:
        """Add records to those of a machine, of which the last are kept. Raises OSError and OptionError."""
        _shared_records.cache_clear()  # other machines may have measured in the meantime
        kept = {content: record for content, record in self.load(machine).items() if content not in found}
        rows = list({**kept, **found}.items())[-MOST_KERNELS:]
        kernels = {content: record.to_json() for content, record in rows}
        document = {"format": _FORMAT, "machine": machine._asdict(), "kernels": kernels}
        self.write(machine.key, json.dumps(document, indent=1).encode())
        _shared_records.cache_clear()


def recorded_schedules(options: Options) -> dict[str, KernelSchedule]:
    """The schedules other than the default that were recorded on this machine, by content; none without
    `Options(tuned=True)`."""
    records = TuningRecords.here(options) if options.tuned else None
    if records is None:
        return {}
    found = {content: record.schedule for content, record in records.load(TunedMachine.here(options)).items()}
    return {content: schedule for content, schedule in found.items() if schedule != KernelSchedule()}


@functools.lru_cache(maxsize=8)
def _shared_records(shared: SharedEntries, machine: TunedMachine, limit: int) -> dict[str, TuningRecord]:
    """The records of a machine in a store. None where they are no records, though signed."""
    data = shared.load(machine.key, TuningRecords.suffix, limit)
    try:
        return {} if data is None else _records_in(json.loads(data), machine)
    except _NO_RECORDS as error:
        warnings.warn(f"the tuning records of the cache store are ignored: {error}", CacheWarning, stacklevel=2)
        return {}


_NO_RECORDS = (ArtifactError, AttributeError, KeyError, OptionError, TypeError, ValueError)
"""Errors of data that are no records."""


def _records_in(document: Any, machine: TunedMachine) -> dict[str, TuningRecord]:
    if document["format"] != _FORMAT:
        raise OptionError(f"they are of format {document['format']!r}; this release reads format {_FORMAT}")
    if document["machine"] != machine._asdict():
        raise OptionError(f"they are of another machine, {document['machine']}")
    return {str(content): TuningRecord.from_json(row) for content, row in document["kernels"].items()}


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"a time must be a positive number, not {value!r}")
    return float(value)


__all__ = ["ENVIRONMENT_VARIABLE", "TunedMachine", "TuningRecord", "TuningRecords", "recorded_schedules"]
