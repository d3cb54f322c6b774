# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`completion`: the scripts, run by the shells that are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from shlo_disc.tools.cli import main, parser

CASES = {
    "co": ["compile", "completion"],
    "compile --opt": ["--opt-level"],
    "info --target cuda:": ["cuda:sm_80", "cuda:sm_90", "cuda:sm_90a"],
    "diff --color a": ["auto", "always"],
    "disasm --stage opt": ["optimized-llvm"],
    "completion ": ["bash", "zsh", "fish"],
    "ops --j": ["--json"],
    "compile -o fi": ["file.disc"],
    "info fi": ["file.disc"],
    "tune --budget ": [],
    "ops ": [],
}
"""Texts typed behind `shlo_disc`, and the shell's completions of the last word of each."""


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The script of a shell, in a folder with a file."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    (tmp_path / "file.disc").touch()
    path = tmp_path / f"complete.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash(script: Path) -> None:
    # compopt tells a shell that completes to add files; here it is done as such a shell does.
    lines = [
        f"source {script}",
        'compopt() { COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); }',
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shlo_disc; echo "${COMPREPLY[*]}"; }',
    ]
    for typed in CASES:
        *words, last = typed.split(" ")
        lines.append(f"try shlo_disc {' '.join(words)} '{last}'")
    done = subprocess.run(
        ["bash", "-u", "-c", "\n".join(lines)], cwd=script.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == list(CASES.values())


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish(script: Path) -> None:
    lines = [f"source {script}", *(f"echo '>'; complete -C 'shlo_disc {typed}'" for typed in CASES)]
    done = subprocess.run(
        ["fish", "--no-config", "-c", "\n".join(lines)], cwd=script.parent, capture_output=True, text=True, check=True
    )
    answers = [[line.split("\t")[0] for line in part.splitlines() if line] for part in done.stdout.split(">\n")[1:]]
    for found, expected in zip(answers, CASES.values(), strict=True):
        assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh(script: Path) -> None:
    subprocess.run(["zsh", "-n", str(script)], check=True)
    text = script.read_text()
    assert text.startswith("#compdef shlo_disc\n") and "compile) _arguments" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for name, command in parser()._subparsers._group_actions[0].choices.items():
        assert name in text
        for option in command._option_string_actions:
            assert (option.lstrip("-") if shell == "fish" else option) in text


def test_another_shell_is_refused() -> None:
    with pytest.raises(SystemExit) as exit:
        main(["completion", "tcsh"])
    assert exit.value.code == 2
