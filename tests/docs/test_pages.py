# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every block of the documentation runs and prints what its page shows, or its page says why it does not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.page import ROOT, Page, matches, names, programs, read

NAMES, PROGRAMS = names(), programs()
LEFT_OUT = {
    "README.md": 1, "docs/compile-cache.md": 1, "docs/failures.md": 1, "docs/gpu.md": 3,
    "docs/guides/adding-an-op.md": 1, "docs/guides/serving.md": 2, "docs/guides/triton.md": 2, "docs/install.md": 3,
    "docs/plugin.md": 2,
}  # fmt: skip
"""Number of blocks of a page that do not run, each for the reason that stands above it."""


@pytest.mark.slow  # `make docs`, which every change has to pass, runs them
@pytest.mark.parametrize("name", PROGRAMS)
def test_page(name: str, tmp_path: Path) -> None:
    read(name).check(tmp_path)


def test_what_does_not_run() -> None:
    counts = {name: len(read(name).left_out) for name in NAMES}
    assert {name: count for name, count in counts.items() if count} == LEFT_OUT
    assert {"README.md", "docs/tutorial.md"} <= set(PROGRAMS)


@pytest.mark.parametrize("name", [name for name in NAMES if "decisions/" not in name and name != "docs/ops.md"])
def test_files_that_pages_name_are_there(name: str) -> None:
    """Files of the repository, or of the package. Records of decisions speak of their time; docs/ops.md has a test."""
    for path in re.findall(r"`((?:[a-z_.-]+/)+[\w.-]+\.(?:py|md|cpp|h|mlir))`", read(name).text):
        assert "NAME" in path or (ROOT / path).exists() or (ROOT / "shlo_disc" / path).exists(), path


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_outside_of_the_site(name: str) -> None:
    """Those of its own pages are checked when the site is built."""
    links = re.findall(r"\]\(([^)#]+)", (ROOT / name).read_text())
    assert links or name == "CONTRIBUTING.md"
    assert not [link for link in links if not link.startswith("http") and not (ROOT / link).exists()]


MEASURED = ("docs/benchmarks.md", "docs/gpu.md", "docs/install.md", "docs/testing.md")
"""The pages where measurements stand, with the command, the machine and the date. Others may repeat them."""
PRINTED = (*MEASURED, "docs/ops.md")
FIGURE = re.compile(
    r"(?<![\w.-])(\d(?:[\d,]*\d)?(?:\.\d+)?)[\s-]?"
    r"(?:seconds?|s|ms|[uµ]s|ns|(?:micro|milli)seconds|minutes|[kKMG]i?B|times|%)(?!\w)"
)


@pytest.mark.parametrize("name", [name for name in NAMES if "decisions/" not in name and name not in PRINTED])
def test_figures_are_those_that_were_measured(name: str) -> None:
    """So that no page says what a later measurement has changed."""
    prose = re.sub(r"```.*?```", "", (ROOT / name).read_text(), flags=re.DOTALL)
    figures = set(FIGURE.findall(prose))
    if name in ("README.md", "docs/index.md", "docs/comparison.md"):  # ratios too
        versions = {"3.11", "3.13", "2.0", "0.1"}  # of Python, of the licence, of this package
        figures |= set(re.findall(r"(?<![\d.-])\d{1,3}\.\d{1,2}(?!\d|\.\d)", prose)) - versions
    measured = "\n".join((ROOT / page).read_text() for page in MEASURED)
    for made in re.findall(r"<!-- measured: .*? -->(.*?)<!-- end of ", prose, flags=re.DOTALL):
        measured += made  # whose figures tests/unit/benchmarks/test_comparison.py compares with the results
    assert not [figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", measured)]


# ---- the pages' own rules -------------------------------------------------------------------------------------------

PAGE = """\
# A page

<!-- file: words.txt -->
```text
three
```

```python
total = 1 + 1
print("total", total)
```

It prints

```text
total  ...
```

<!-- left out: it ends the process -->
```python
raise SystemExit(1)
```

```sh
cat words.txt; echo "$COLOUR"
```

```text
three
green
```

<!-- environment: COLOUR=green -->
<!-- needs: no_module_of_this_name -->
```python
import no_module_of_this_name
```
"""


def test_blocks_share_names_files_and_variables(tmp_path: Path) -> None:
    page = Page("page.md", PAGE)
    assert page.run(tmp_path) == {8: "total 2\n", 24: "three\ngreen\n"}
    assert [(program.line, shown.line) for program, shown in page.printed] == [(8, 15), (24, 28)]
    assert page.left_out == ["it ends the process"]


def test_a_page_that_shows_something_else_fails(tmp_path: Path) -> None:
    (tmp_path / "right").mkdir()
    Page("page.md", PAGE).check(tmp_path / "right")
    with pytest.raises(AssertionError, match=r"page\.md:8 prints\ntotal 2\n\nand line 15 shows\ntotal 3"):
        Page("page.md", PAGE.replace("total  ...", "total 3")).check(tmp_path)


def test_a_failing_block_names_the_line_of_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r'page\.md", line 10'):
        Page("page.md", PAGE.replace("print(", "print(1 / 0, ")).run(tmp_path)


def test_a_failing_command_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md fails"):
        Page("page.md", PAGE.replace("cat words.txt", "cat no_words.txt")).run(tmp_path)


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("a  b\nc\n", "a b\nc", True),
        ("a b\nc\n", "a c\nc", False),
        ("1 us in 2 commands\nrest", "... us in 2 commands\n...", True),
        ("1 us in 3 commands\nrest", "... us in 2 commands\n...", False),
        ("a\nb\n", "a", False),
        ("(1, 2)", "(1. 2)", False),
    ],
)
def test_matches(printed: str, shown: str, same: bool) -> None:
    assert matches(printed, shown) is same


@pytest.mark.parametrize("text", ["```bash\n```\n", "  ```python\n  ```\n", "```python\n1\n", "```\n```\n"])
def test_blocks_that_nobody_would_run_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"page\.md:1"):
        _ = Page("page.md", text).blocks
