# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc completion bash|zsh|fish`: a script by which a shell completes the command line.

source <(shlo_disc completion bash)                                 in ~/.bashrc
source <(shlo_disc completion zsh)                                  in ~/.zshrc, after compinit
shlo_disc completion fish > ~/.config/fish/completions/shlo_disc.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from shlo_disc.driver.stages import STAGES
from shlo_disc.options import TARGETS
from shlo_disc.tools.commands.common import add_command, put

PROGRAM = "shlo_disc"

_VIEWS = ("llvm", "optimized-llvm", "asm", "ptx", "host-llvm")
_WORDS = {"target": TARGETS, "stage": (*STAGES, *_VIEWS), "stages": (*STAGES, *_VIEWS)}
"""Values of options whose choices the parser does not list."""


class _Option(NamedTuple):
    """An option: its names, its help, and whether a value follows, which are `words`, or files."""

    names: tuple[str, ...]
    help: str
    has_value: bool
    words: tuple[str, ...]
    is_file: bool


class _Command(NamedTuple):
    """A command, and what it takes in places without a name: `words`, or files, or nothing."""

    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]
    has_files: bool


def add_completion(commands: Any, parser: argparse.ArgumentParser) -> None:
    """Add the command, which completes what `parser` has when it runs."""

    def run(arguments: argparse.Namespace) -> None:
        put("\n".join(_SHELLS[arguments.shell](_commands(parser))))

    command = add_command(commands, "completion", run, "print a script for a shell's completion", __doc__)
    command.add_argument("shell", choices=tuple(_SHELLS))


def _commands(parser: argparse.ArgumentParser) -> list[_Command]:
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    return [_command(name, helps[name], sub._actions) for name, sub in commands.choices.items()]


def _command(name: str, help: str, actions: Sequence[argparse.Action]) -> _Command:
    options = tuple(_option(action) for action in actions if action.option_strings)
    places = [action for action in actions if not action.option_strings]
    words = tuple(word for action in places for word in action.choices or ())
    return _Command(name, help, options, words, any(action.choices is None for action in places))


def _option(action: argparse.Action) -> _Option:
    words = tuple(action.choices or _WORDS.get(action.dest, ()))
    is_file = any(kind in str(action.metavar) for kind in ("FILE", "DIR"))
    return _Option(tuple(action.option_strings), action.help or "", action.nargs != 0, words, is_file)


# ---- bash -----------------------------------------------------------------------------------------------------------


def _bash(commands: Sequence[_Command]) -> Iterator[str]:
    yield f"_{PROGRAM}() {{"
    yield "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}"
    yield "    local words= files="
    yield "    COMPREPLY=()"
    yield "    if ((COMP_CWORD == 1)); then command=; fi"
    yield '    case "$command:$previous" in'
    for command in commands:
        yield from (f"        {_bash_value(command.name, option)}" for option in command.options if option.has_value)
    yield "    esac"
    yield '    case "$command" in'
    yield f'        "") words="{" ".join(command.name for command in commands)} --help --version" ;;'
    for command in commands:
        names = [name for option in command.options for name in option.names]
        files = " files=yes" if command.has_files else ""
        yield f'        {command.name}) words="{" ".join([*command.words, *names])}"{files} ;;'
    yield "    esac"
    yield '    if [[ $current == -* || $command == "" ]]; then'
    yield '        COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "    else"
    yield '        COMPREPLY=($(compgen -W "${words//-*/}" -- "$current"))'
    yield "        if [[ $files ]]; then compopt -o default 2>/dev/null; fi"
    yield "    fi"
    yield "}"
    yield f"complete -F _{PROGRAM} {PROGRAM}"


def _bash_value(command: str, option: _Option) -> str:
    """The Bash case that completes the value after an option."""
    places = "|".join(f"{command}:{name}" for name in option.names)
    if option.words:
        return f'{places}) COMPREPLY=($(compgen -W "{" ".join(option.words)}" -- "$current")); return ;;'
    return f"{places}) {'compopt -o default 2>/dev/null; ' if option.is_file else ''}return ;;"


# ---- zsh ------------------------------------------------------------------------------------------------------------


def _zsh(commands: Sequence[_Command]) -> Iterator[str]:
    yield f"#compdef {PROGRAM}"
    yield f"_{PROGRAM}() {{"
    yield "    local context state line"
    own = "'(- *)--help[show the help]' '(- *)--version[show the version]'"
    yield f"    _arguments -C {own} '1: :->command' '*:: :->rest'"
    yield "    case $state in"
    yield "        command)"
    yield "            local -a commands=("
    yield from (f"                {_quoted(f'{command.name}:{_zsh_text(command.help)}')}" for command in commands)
    yield "            )"
    yield "            _describe command commands ;;"
    yield "        rest) case $line[1] in"
    for command in commands:
        rest = ["*:file:_files"] if command.has_files else [f"*: :({' '.join(command.words)})"] if command.words else []
        specs = [_zsh_option(option, name) for option in command.options for name in option.names]
        yield f"            {command.name}) _arguments {' '.join(map(_quoted, [*specs, *rest]))} ;;"
    yield "        esac ;;"
    yield "    esac"
    yield "}"
    yield f'if [ "$funcstack[1]" = _{PROGRAM} ]; then _{PROGRAM} "$@"; else compdef _{PROGRAM} {PROGRAM}; fi'


def _zsh_option(option: _Option, name: str) -> str:
    text = f"*{name}[{_zsh_text(option.help)}]"
    if not option.has_value:
        return text
    values = f"({' '.join(word.replace(':', chr(92) + ':') for word in option.words)})" if option.words else "_files"
    return f"{text}:value:{values if option.words or option.is_file else ' '}"


def _zsh_text(text: str) -> str:
    """Text in a specification of zsh's."""
    for sign in "\\[]:":
        text = text.replace(sign, f"\\{sign}")
    return text


# ---- fish -----------------------------------------------------------------------------------------------------------


def _fish(commands: Sequence[_Command]) -> Iterator[str]:
    for command in commands:
        text = _quoted(command.help)
        yield f"complete -c {PROGRAM} -n __fish_use_subcommand -f -a {command.name} -d {text}"
    for command in commands:
        inside = f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {command.name}'"
        if not command.has_files:
            yield f"{inside} -f -a {_quoted(' '.join(command.words))}"
        yield from (f"{inside} {_fish_option(option)}" for option in command.options)


def _fish_option(option: _Option) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = [f"-x -a {_quoted(' '.join(option.words))}"] if option.words else ["-r -F" if option.is_file else "-x"]
    return " ".join([*names, *(value if option.has_value else []), f"-d {_quoted(option.help)}"])


def _quoted(text: str) -> str:
    """In single quotes, for all three shells."""
    return "'" + text.replace("'", "'\\''") + "'"


_SHELLS: dict[str, Callable[[Sequence[_Command]], Iterator[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
