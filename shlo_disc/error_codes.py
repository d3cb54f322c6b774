# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The codes of errors: stable names for what can go wrong, each with a page in docs/errors.

An error's code follows from its class and its words, which tests fix. So the errors of the native runtime, which knows
classes and words only, have codes as those of Python do, and no place that raises names one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Code(NamedTuple):
    """name: such as "DISC-S101". error: the class of the errors. words: a regular expression that is found in their
    messages; "" for all that no code above has. title: what it means, in a line."""

    name: str
    error: str
    words: str
    title: str


CODES = (
    # The program.
    Code("DISC-P101", "ProgramError", r"takes more than .* allow more", "reading the program exceeds a limit"),
    Code("DISC-P102", "ProgramError", r"cannot be parsed|is neither text", "the text or bytes are not a program"),
    Code("DISC-P103", "ProgramError", r"^cannot read the program", "the program's file cannot be read"),
    Code("DISC-P104", "ProgramError", r"^cannot compile an object|^a torch.nn.Module", "the object is not a program"),
    Code("DISC-P105", "ProgramError", r"needs args=|^args= |^constraints= ", "a JAX function needs argument shapes"),
    Code("DISC-P106", "ProgramError", r"was exported for", "the program was exported for another platform"),
    Code("DISC-P107", "ProgramError", r"never does|never are|no call can satisfy", "no sizes satisfy the program"),
    Code("DISC-P108", "ProgramError", r"a stage has printed", "the program is the output of a compiler stage"),
    Code("DISC-P109", "ProgramError", r"is a compiled artifact", "the program is already compiled"),
    Code("DISC-P100", "ProgramError", "", "the program cannot be compiled as it stands"),
    Code("DISC-U101", "UnsupportedError", "", "the program uses constructs that cannot be compiled"),
    # What is chosen.
    Code("DISC-O101", "OptionError", r"^the hint for .* names no symbol", "a hint names an unknown symbol"),
    Code("DISC-O102", "OptionError", r"to a JAX function|^an Exp", "shapes were given for a program that has its own"),
    Code("DISC-O103", "OptionError", r"cache holds native|^the cache directory", "the cache directory is not safe"),
    Code("DISC-O104", "OptionError", r"^no stage|no pass of ours", "a stage or a pass does not exist"),
    Code("DISC-O105", "OptionError", r"^static_arg|^donate_arg|^dynamic|is static", "invalid arguments of `jit`"),
    Code("DISC-O106", "OptionError", r"^unknown target", "the target does not exist"),
    Code("DISC-O107", "OptionError", r"needs --dims", "the sizes of the arguments are missing"),
    Code("DISC-O108", "OptionError", r"the program does not fail", "the program to reduce does not fail"),
    Code(
        "DISC-O109", "OptionError", r": no schedule: |: not an archive of|has no recorded programs|no \.mlir file in",
        "a file or folder lacks what it must contain",
    ),
    Code("DISC-O110", "OptionError", r"which the options add after .* failed", "a pass that the options add failed"),
    Code("DISC-O100", "OptionError", "", "an option has an invalid value"),
    # Calls.
    Code("DISC-S101", "ShapeError", r"^Rank mismatch", "an array has the wrong rank"),
    Code("DISC-S102", "ShapeError", r"^Shape mismatch", "an array has the wrong size in a fixed dimension"),
    Code("DISC-S103", "ShapeError", r"symbolic shape constraint", "sizes violate a constraint"),
    Code("DISC-S104", "ShapeError", r"polymorphic shapes spec|The program was exported", "sizes contradict each other"),
    Code("DISC-S105", "ShapeError", r"64 bits", "a size or a number of bytes does not fit in 64 bits"),
    Code("DISC-S100", "ShapeError", "", "symbols or shapes do not match the program"),
    Code("DISC-T101", "ArgumentTypeError", r"^Dtype mismatch", "an array has the wrong dtype"),
    Code("DISC-T102", "ArgumentTypeError", r"pytree structure|other structure", "arguments have the wrong structure"),
    Code("DISC-T103", "ArgumentTypeError", r"^the static argument", "a static argument is not hashable"),
    Code("DISC-T100", "ArgumentTypeError", "", "an argument is not an array that the program accepts"),
    Code("DISC-R102", "RecompileError", r"would have more than \d+ programs", "a function has too many programs"),
    Code("DISC-R101", "RecompileError", "", "a call does not fit the one compiled program"),
    Code("DISC-M101", "AllocationError", "", "not enough memory for a call"),
    Code("DISC-X101", "CustomCallError", "", "a registered function reports an error"),
    Code("DISC-D101", "DeviceError", "", "a GPU is missing, or work on it failed"),
    # Files.
    Code("DISC-A101", "ArtifactError", r"native code from outside", "native code from outside is not trusted"),
    Code("DISC-A102", "ArtifactError", r"^artifact format|\bversion\b", "the artifact has an unsupported version"),
    Code("DISC-A103", "ArtifactError", r"made for", "the artifact is for another processor or device"),
    Code("DISC-A104", "ArtifactError", r"not registered in this process", "a custom call is not registered"),
    Code("DISC-A105", "ArtifactError", r"has a node of type", "the pytree of the artifact contains a class of yours"),
    Code(
        "DISC-A106", "ArtifactError", r"which no other process has", "the program calls functions that cannot be saved",
    ),
    Code("DISC-A100", "ArtifactError", "", "the artifact is damaged"),
    # What is no fault of the user's.
    Code("DISC-C101", "CompilerError", r"^the process that compiles ended", "the compiler process ended unexpectedly"),
    Code("DISC-C102", "CompilerError", r"^compiling takes more", "a compile exceeds a limit"),
    Code("DISC-C100", "CompilerError", "", "a stage of the compiler failed"),
    Code("DISC-I101", "ReaderError", "", "the process that reads programs does not work"),
)  # fmt: skip
"""Of those for one class, the first whose words are found."""

_COMPILED = tuple((code, re.compile(code.words, re.DOTALL)) for code in CODES)


def code_of(classes: Iterable[str], message: str) -> str:
    """The code of an error, by the names of its class and of those that it derives from; "" where there is none."""
    names = set(classes)
    return next((code.name for code, words in _COMPILED if code.error in names and words.search(message)), "")


_PACKAGE = Path(__file__).parent
PLACES_OF_PAGES = (_PACKAGE / "pages" / "errors", _PACKAGE.parent / "docs" / "errors")
"""Folders of the pages: in an installed package, and in the source tree."""


def page_of(name: str) -> str | None:
    """The page of a code, in Markdown; None where there is none."""
    found = next((place / f"{name}.md" for place in PLACES_OF_PAGES if (place / f"{name}.md").is_file()), None)
    return found.read_text() if name and found else None


def advice_of(name: str) -> str:
    """The text of a code's page below its example; "" where there is no page."""
    return (page_of(name) or "").rpartition("```\n")[2].strip()


__all__ = ["CODES", "PLACES_OF_PAGES", "Code", "advice_of", "code_of", "page_of"]
