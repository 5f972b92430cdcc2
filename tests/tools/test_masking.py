"""A command that prints a secret of ours: nothing that is kept or shown has it (T6, C01)."""

from __future__ import annotations

import os

import trio

from kesoku_actors.log import mask_secrets
from kesoku_actors.tools import Settled, ToolOptions
from kesoku_actors.tools.shell import ShellOptions, shell_tool
from tests.tools.journals import bench, call

A = f"masking.{os.getpid()}"
SECRET = "sk-canary-of-ours-4711"
IN_PIECES = "printf 'first sk-canary-'; sleep 0.3; printf 'of-ours'; sleep 0.3; printf -- '-4711 last\\n'; "
FLOOD = "yes 'a line of some length' | head -c 100000; "
COLOURED = r"printf 'sk-canary-\033[1mof-ours\033[0m-4711\n'"


async def test_a_secret_that_comes_in_pieces_is_neither_staged_nor_in_the_file(tmp_path):
    tool = shell_tool(ShellOptions(environment={"PATH": os.environ["PATH"]}))
    options = ToolOptions(mask=mask_secrets([SECRET]), output_chars=2_000)
    async with bench([tool], workspace=tmp_path, options=options) as made:
        made.start(call(A, "run_shell_command", command=IN_PIECES + FLOOD + IN_PIECES + COLOURED))
        await made.heard(Settled, A)
    staged = made.outcome(A)
    whole = await trio.Path(tmp_path / staged.metadata["output_file"]).read_text()
    for text in (staged.content, whole, str(staged.metadata)):
        assert "canary" not in text
        assert "4711" not in text
    assert staged.content.startswith("first ")
    assert whole.count(" last\n") == 2
    assert whole.count("a line of some length\n") >= 4_000
    assert [path.name for path in tmp_path.iterdir()] == ["output"]
