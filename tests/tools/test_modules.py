"""A person's own tools: which functions become tools, and that nothing a module does stops the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from kesoku_actors.tools import ToolRegistry
from kesoku_actors.tools.modules import OwnTools

GOOD = '''
"""Tools of mine."""

from __future__ import annotations

from dataclasses import dataclass
from json import dumps

print("hello")


@dataclass
class Place:
    """A place."""

    name: str


def weather(place: Place, days: int = 3) -> str:
    """Tell the weather."""
    return f"{days} days of rain in {place.name}"


async def wait(seconds: float) -> None:
    """Wait."""


def now() -> str:
    """Tell the time."""
    return "noon"


def _hidden(text: str) -> str:
    """Not for the model."""
    return text


again = now
'''


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "my_tools.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text), encoding="utf-8")
        path.chmod(0o644)
        return path

    return write


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return OwnTools(registry=ToolRegistry(), folder=tmp_path, writable=(tmp_path / "sessions",))


def test_the_public_annotated_functions_of_a_module_become_tools(own, write, capsys):
    write(GOOD)
    own.add("my_tools.py")
    assert own.problems == []
    assert own.registry.owners() == {"weather": "my_tools.py", "wait": "my_tools.py", "now": "my_tools.py"}
    weather = own.registry.find("weather")
    assert weather is not None
    assert weather.function(**weather.signature.bind({"place": {"name": "Oslo"}})) == "3 days of rain in Oslo"
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "hello\n")
    assert not (own.folder / "__pycache__").exists()


def test_absolute_paths_home_paths_and_dotted_names_are_found(own, write, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "pack").mkdir()
    write('def first() -> None:\n    """First."""\n', "first.py")
    write('def second() -> None:\n    """Second."""\n', "second.py")
    write('def third() -> None:\n    """Third."""\n', "pack/third.py")
    sys.path.append(str(tmp_path))
    for entry in (str(tmp_path / "first.py"), "~/second.py", "pack.third"):
        own.add(entry)
    assert own.problems == []
    assert own.registry.names() == ("first", "second", "third")


def test_what_lies_beside_the_file_can_be_imported(own, write):
    write("WORD = 'from beside'\n", "beside_of_it.py")
    write('from beside_of_it import WORD\ndef say() -> str:\n    """Say it."""\n    return WORD\n')
    own.add("my_tools.py")
    tool = own.registry.find("say")
    assert tool is not None
    assert tool.function() == "from beside"


def test_only_what_is_exported_counts_where_the_module_says_so(own, write):
    write('__all__ = ["one"]\ndef one() -> int:\n    """One."""\ndef two() -> int:\n    """Two."""\n')
    own.add("my_tools.py")
    assert own.registry.names() == ("one",)


def test_decorated_functions_are_tools_and_imported_ones_are_not(own, write):
    write(
        """
        import functools
        from os.path import join

        def logged(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper

        @logged
        def shout(text: str) -> str:
            '''Shout.'''
            return text.upper()

        @functools.lru_cache
        def count(to: int) -> int:
            '''Count.'''
            return to
        """
    )
    own.add("my_tools.py")
    assert own.registry.names() == ("shout", "count")
    assert [problem.split(": ")[1:2] for problem in own.problems] == [["logged() is no tool"]]


BAD = [
    ("def broken(:\n", "my_tools.py:1: SyntaxError: invalid syntax"),
    ("x = 1\n\nx.y\n", "my_tools.py:3: AttributeError: 'int' object has no attribute 'y'"),
    ("def f():\n    return nope\n\nf()\n", "my_tools.py:2: NameError: name 'nope' is not defined"),
    ("import there_is_no_such_thing\n", "my_tools.py:1: ModuleNotFoundError"),
    ("import sys\nsys.exit('bye')\n", "my_tools.py:2: SystemExit: bye"),
    ("raise BaseException('odd')\n", "my_tools.py:1: BaseException: odd"),
    ("raise GeneratorExit\n", "my_tools.py:1: GeneratorExit"),
    ("def f():\n    f()\nf()\n", "RecursionError"),
    ("import json\njson.loads('{')\n", "my_tools.py:2: JSONDecodeError"),
    ("\0", "source code string cannot contain null bytes"),
    ("# -*- coding: nonsense -*-\n", "SyntaxError"),
]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_a_module_that_fails_is_named_with_its_line_and_the_others_load(own, write, text, said):
    write(text)
    write('def good() -> None:\n    """Good."""\n', "good.py")
    own.add("my_tools.py")
    own.add("good.py")
    (problem,) = own.problems
    assert problem.startswith("my_tools.py was left out: ")
    assert said in problem
    assert "\n" not in problem
    assert own.registry.names() == ("good",)
    assert not [name for name in sys.modules if name.startswith("kesoku_own_my_tools")]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("missing.py", "No such file"),
        ("folder.py", "is not a regular file"),
        ("pipe.py", "is not a regular file"),
        ("sessions/planted.py", "where the model may write"),
        ("link.py", "where the model may write"),
        ("open.py", "chmod o-w"),
        ("no.such.module", "ModuleNotFoundError: No module named 'no'"),
        ("beside", "write beside.py"),
        ("./tools.txt", "must end in .py"),
        ("json.decoder", "has no tools"),
    ],
)
def test_what_cannot_or_must_not_be_loaded_is_left_out(own, write, tmp_path, entry, said):
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "sessions").mkdir()
    planted = write('def planted() -> None:\n    """Planted."""\n', "sessions/planted.py")
    (tmp_path / "link.py").symlink_to(planted)
    write("", "open.py").chmod(0o666)
    write("", "beside.py")
    write("", "tools.txt")
    own.add(entry)
    assert said in "\n".join(own.problems)
    assert own.registry.names() == ()


def test_one_bad_function_is_named_and_left_out_while_the_rest_load(own, write):
    write(
        """
        def good(text: str) -> str:
            '''Good.'''
            return text

        def untyped(text):
            '''Untyped.'''

        def endless(*texts: str):
            '''Endless.'''

        def unsaid(text: str) -> str:
            return text
        """
    )
    own.add("my_tools.py")
    assert own.registry.names() == ("good",)
    untyped, endless, unsaid = own.problems
    assert untyped.startswith(
        "my_tools.py:6: untyped() is no tool: tool 'untyped', parameter 'text': it has no annotation"
    )
    assert endless.startswith("my_tools.py:9: endless() is no tool: tool 'endless', parameter '*texts': it cannot be")
    assert unsaid.startswith("my_tools.py:12: unsaid() is no tool: it has no docstring")


def test_a_name_that_is_taken_is_named_with_its_owner(own, write):
    write('def same() -> None:\n    """Same."""\n', "one.py")
    write('def same() -> None:\n    """Same."""\n', "two.py")
    own.add("one.py")
    own.add("two.py")
    assert own.registry.owners() == {"same": "one.py"}
    assert own.problems == ["two.py:1: same() is no tool: tool 'same' of two.py is taken by one.py; rename one of them"]


def test_two_files_of_one_name_are_two_modules(own, write, tmp_path):
    (tmp_path / "other").mkdir()
    write('def one() -> None:\n    """One."""\n')
    write('def two() -> None:\n    """Two."""\n', "other/my_tools.py")
    own.add("my_tools.py")
    own.add("other/my_tools.py")
    assert own.registry.owners() == {"one": "my_tools.py", "two": "other/my_tools.py"}


def test_a_module_without_tools_is_told(own, write):
    write("x = 1\n")
    own.add("my_tools.py")
    assert "has no tools" in own.problems[0]


def test_ctrl_c_while_a_module_loads_is_the_persons(own, write):
    write("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        own.add("my_tools.py")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "class Error(Exception):\n    def __str__(self):\n        raise ValueError\nraise Error",
            "my_tools.py:4: Error:",
        ),
        ("__all__ = 3\ndef say() -> str:\n    'Say.'\n", "TypeError: argument of type 'int'"),
        ("def say() -> str:\n    '\\ud800'\n", "its docstring or its parameters hold half a character, '\\ud800'"),
        ("def say(x: str = '\\ud800') -> str:\n    'Say.'\n", "hold half a character"),
        ("def say() -> str:\n    'Say.'\nsay.__wrapped__ = say\n", "wrapper loop"),
        ("def say() -> str:\n    'Say.'\nsay.__signature__ = 3\n", "TypeError: unexpected object 3"),
    ],
)
def test_what_is_odd_about_a_module_is_named_and_the_next_one_is_loaded(own, write, text, said):
    write(text)
    write('def other() -> None:\n    """Other."""\n', "other.py")
    own.add("my_tools.py")
    own.add("other.py")
    assert said in "\n".join(own.problems)
    assert own.registry.names() == ("other",)


def test_an_object_that_answers_no_question_hides_no_function(own, write):
    write(
        """
        class Lazy:
            def __getattr__(self, name):
                raise RuntimeError("not connected")

        connection = Lazy()

        def say() -> str:
            '''Say it.'''
            return "said"
        """
    )
    own.add("my_tools.py")
    assert own.problems == []
    assert own.registry.names() == ("say",)
