"""Tools of one's own, and the file tools, in real processes: configured, listed, called by a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

Shell = Callable[..., tuple[int, str, str]]

TOOLS = '''
"""Tools of mine."""

from pathlib import Path

from attrs import frozen

from kesoku_actors.tools import ToolContext


@frozen
class Place:
    """A place.

    Attributes:
        name: Its name.
    """

    name: str
    height: int = 0


def greet(place: Place, times: int = 1) -> list[str]:
    """Greet a place."""
    return [f"hello {place.name} at {place.height} m"] * times


async def note(text: str, context: ToolContext) -> str:
    """Keep a note in the session's folder."""
    (context.workspace / "note.txt").write_text(text)
    return "kept"


def run_shell_command(command: str) -> str:
    """Take the name of another tool."""
    return "mine"


def untyped(text):
    """Say nothing of its type."""
'''


@pytest.fixture
def configured(tmp_path: Path) -> Callable[[str, str], None]:
    def configured(inferences: str, more: str = "") -> None:
        (tmp_path / "my_tools.py").write_text(TOOLS)
        (tmp_path / "my_tools.py").chmod(0o644)
        (tmp_path / "broken.py").write_text("x = 1\nx.y\n")
        (tmp_path / "scenario.toml").write_text(f"inferences = {inferences}\n")
        (tmp_path / "config.toml").write_text(
            dedent(f"""
            [scripted]
            scenario_path = "scenario.toml"

            [tools]
            modules = ["broken.py", "my_tools.py"]
            {more}
            """)
        )

    return configured


def results(output: str) -> list[str]:
    """Return what tools said among the events of `chat --json`."""
    events = [json.loads(line) for line in output.splitlines()]
    return [event["content"] for event in events if event["event"] == "message" and event["type"] == "tool_result"]


def test_a_chat_calls_ones_own_tools_and_names_what_was_left_out(configured, shell: Shell, tmp_path: Path) -> None:
    configured(
        '[[{ call = "greet", arguments = { place = { name = "Oslo", height = "23" }, times = 2.0 } },'
        ' { call = "note", arguments = { text = "remember" } },'
        ' { call = "greet", arguments = { place = "Oslo" } }],'
        ' [{ say = "Done." }]]'
    )
    code, output, errors = shell("$K chat -c config.toml --json --llm scripted 'Greet.'")
    assert code == 0, errors
    assert results(output) == [
        '["hello Oslo at 23 m", "hello Oslo at 23 m"]',
        "kept",
        'greet was not run: place must be an object with the keys name, height, not "Oslo"',
    ]
    warnings = [line for line in errors.splitlines() if "tools: " in line]
    assert any("broken.py was left out: " in line and "broken.py:2: AttributeError" in line for line in warnings)
    assert any("untyped() is no tool" in line and "it has no annotation" in line for line in warnings)
    assert "'run_shell_command' of my_tools.py is taken by kesoku" in errors
    [workspace] = (tmp_path / "sessions").iterdir()
    assert (workspace / "note.txt").read_text() == "remember"


def test_the_list_of_tools_says_whose_they_are(configured, shell: Shell) -> None:
    configured("[]")
    code, output, errors = shell("$K tools list -c config.toml")
    assert code == 0
    assert "greet(place, times=...)  [my_tools.py]\n    Greet a place." in output
    assert "read_file(path, first_line=..., last_line=...)  [kesoku]" in output
    assert "broken.py:2: AttributeError" in errors
    assert "is taken by kesoku" in errors
    code, output, _ = shell("$K tools list -c config.toml --json 2>/dev/null")
    tools = {tool["name"]: tool for tool in map(json.loads, output.splitlines())}
    assert tools["greet"]["parameters"]["properties"]["place"]["properties"]["name"]["description"] == "Its name."
    assert tools["run_shell_command"]["owner"] == "kesoku"


def test_a_model_writes_edits_and_reads_files_and_looks_at_nothing_else(
    configured, shell: Shell, tmp_path: Path
) -> None:
    project, secret = tmp_path / "project", tmp_path / "config.toml"
    project.mkdir()
    (project / "a.py").write_text("x = 1\n")
    configured(
        '[[{ call = "write_file", arguments = { path = "in/a.txt", content = "one\\ntwo\\n" } }],'
        ' [{ call = "edit_file", arguments = { path = "in/a.txt", old_text = "two", new_text = "three" } }],'
        ' [{ call = "read_file", arguments = { path = "in/a.txt" } },'
        f' {{ call = "edit_file", arguments = {{ path = "{project}/a.py", old_text = "1", new_text = "2" }} }},'
        f' {{ call = "read_file", arguments = {{ path = "{secret}" }} }}],'
        ' [{ say = "Done." }]]',
        'roots = ["project"]',
    )
    code, output, errors = shell("$K chat -c config.toml --json --llm scripted 'Write.'")
    assert code == 0, errors
    wrote, edited, read, other, refused = results(output)
    assert wrote == "wrote in/a.txt: 2 lines, 8 bytes, a new file"
    assert edited == "edited in/a.txt at line 2: 1 lines became 1"
    assert read == "     1\tone\n     2\tthree\n[in/a.txt: lines 1 to 2 of 2]"
    assert other.startswith(f"edited {project}/a.py")
    assert refused.startswith(f"{secret} lies outside of what file tools may touch: the session's folder, {project}")
    assert (project / "a.py").read_text() == "x = 2\n"


def test_a_picture_that_a_tool_looked_at_is_attached_to_its_result(configured, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "cat.gif").write_bytes(b"GIF89a\x03\x00\x02\x00" + bytes(8))
    configured(
        '[[{ call = "read_file", arguments = { path = "attachments/cat.gif" } }], [{ say = "A cat." }]]',
    )
    code, output, errors = shell("$K chat -c config.toml --json --llm scripted --attach cat.gif 'Look.'")
    assert code == 0, errors
    events = [json.loads(line) for line in output.splitlines()]
    [result] = [event for event in events if event.get("type") == "tool_result"]
    assert result["metadata"]["attachments"] == [
        {"filename": "cat.gif", "mime_type": "image/gif", "path": "attachments/cat.gif"}
    ]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('roots = ["."]', "tools.roots[1]: must not hold"),
        ('roots = ["sessions/x"]', "must not lie inside sessions_dir"),
        ('read_only_roots = ["/"]', "tools.read_only_roots[1]: must not hold"),
        ('roots = ["skills/mine"]', "must not lie among skills"),
        ('roots = ["my_tools.py"]', "is not a folder"),
        ('modules = ["two words"]', "must be the path of a Python file, like 'my_tools.py', or the dotted name"),
        ("files = 1", "tools.files: must be true or false"),
    ],
)
def test_folders_that_hold_what_no_tool_may_touch_are_refused(shell: Shell, tmp_path: Path, setting, said) -> None:
    (tmp_path / "my_tools.py").write_text("")
    (tmp_path / "config.toml").write_text(f"[tools]\n{setting}\n")
    code, _, errors = shell("$K check -c config.toml")
    assert code == 78
    assert "config.toml:2: " in errors
    assert said in errors


def test_without_file_tools_there_are_none(configured, shell: Shell) -> None:
    configured("[]", "files = false")
    _, output, _ = shell("$K tools list -c config.toml 2>/dev/null")
    assert "read_file" not in output
    assert "greet" in output


def test_who_wrote_a_tool_finds_in_the_log_where_it_raised(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(
        'def divide(by: int) -> float:\n    """Divide one."""\n    return 1 / by\n\n\n'
        'async def find(name: str) -> str:\n    """Find a thing."""\n    return {}[name]\n'
    )
    (tmp_path / "my_tools.py").chmod(0o644)
    calls = '{ call = "divide", arguments = { by = 0 } }, { call = "find", arguments = { name = "x" } }'
    (tmp_path / "s.toml").write_text(f'inferences = [[{calls}], [{{ say = "Done." }}]]\n')
    (tmp_path / "c.toml").write_text('[scripted]\nscenario_path = "s.toml"\n[tools]\nmodules = ["my_tools.py"]\n')
    chat = "$K chat -c c.toml --llm scripted go"
    code, _, errors = shell(chat, KESOKU_LOG="info")
    told = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    raised = {entry["tool"]: entry["traceback"] for entry in told if entry["event"] == "a tool raised"}
    assert (code, set(raised)) == (0, {"divide", "find"})
    assert 'my_tools.py", line 3, in divide' in raised["divide"]
    assert 'my_tools.py", line 8, in find' in raised["find"]
    assert "Traceback" not in shell(chat)[2]
