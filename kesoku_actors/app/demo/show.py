"""The whole demonstration: a folder of its own, four scenes in two lives and one death, and the trace of it all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from string import Template
from typing import Final

import trio

from kesoku_actors.actors import SystemFailed
from kesoku_actors.app.chat_request import TERMINAL
from kesoku_actors.app.config_context import use_settings
from kesoku_actors.app.demo import scenes
from kesoku_actors.app.demo.narrator import Narrator
from kesoku_actors.app.demo.stage import DemoFailed, life
from kesoku_actors.app.history.finding import reading
from kesoku_actors.app.locations import make_folder, write_new
from kesoku_actors.app.prelude import Prelude, most_telling, prepare, stderr_log
from kesoku_actors.app.settings import load_settings
from kesoku_actors.app.trace import make_trace
from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import Channel
from kesoku_actors.trace import render_page, trace_data
from kesoku_actors.values import frozen

_CONFIG: Final = """\
[agent]
llm = "scripted"

[scripted]
scenario_path = "scenario.toml"
"""


@frozen(kw_only=True)
class DemoRequest:
    """Show what the program can do."""

    folder: Path | None = None
    """A new folder for everything it makes; none: a temporary one, which stays."""
    fast: bool = False
    """Without pauses to read."""


@frozen(kw_only=True)
class Pace:
    """How fast it goes, seconds."""

    pause: float
    """To read what is said of a scene."""
    word: float
    """Before each word of the model."""
    tool: float
    """What a tool takes."""


SLOW: Final = Pace(pause=14.0, word=0.2, tool=6.0)
FAST: Final = Pace(pause=0.0, word=0.01, tool=0.5)


def run_demo(request: DemoRequest) -> int:
    """Show it and return the exit code. Raises `DemoFailed` when something was not as promised, and `KesokuError`."""
    pace = FAST if request.fast else SLOW
    folder = _make_folder(request.folder)
    config = _write_config(folder, pace)
    is_coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    narrator = Narrator(out=sys.stdout, is_coloured=is_coloured, pause_s=pace.pause)
    settings = load_settings(config, environ={}, overrides={})
    prelude = prepare(settings, *stderr_log(settings, sys.stdout.isatty()))
    with use_settings(settings):
        try:
            trio.run(_show, prelude, narrator, config, folder)
        except SystemFailed as failed:
            raise most_telling(failed) from failed
    return 0


async def _show(prelude: Prelude, narrator: Narrator, config: Path, folder: Path) -> None:
    channel = Channel(chatbot_id=TERMINAL, channel_id=prelude.world.ids())
    count = len(scenes.FIRST_LIFE) + 1
    await narrator.say(
        "This is a tour of about two minutes. The engine, its store and its tools are real; only the model is a "
        f"script, so that no key is needed. Everything happens in {folder}."
    )
    async with life(prelude, channel, narrator) as stage:
        for number, scene in enumerate(scenes.FIRST_LIFE, 1):
            await narrator.scene(number, count, scene.title, scene.words)
            await scene.play(stage)
        session_id = next(iter(stage.rows.values())).session_id
    workspace = prelude.settings.workspace.sessions_dir / session_id
    await narrator.scene(count, count, scenes.KILL_TITLE, scenes.KILL_WORDS)
    await scenes.killed(config, workspace, session_id, narrator)
    async with life(prelude, channel, narrator) as stage:
        await scenes.goes_on(stage, workspace)
    await _trace(prelude, narrator, session_id, folder)


async def _trace(prelude: Prelude, narrator: Narrator, session_id: str, folder: Path) -> None:
    async with reading(prelude.settings) as reader:
        scenes.must(reader is not None, "the store is there")
        record = await reader.record(session_id) if reader is not None else None
    if record is None:
        raise DemoFailed("the session is gone")
    trace = make_trace(record, prelude.settings, prelude.world.clock)
    scenes.must(len(trace.turns) == len(scenes.FIRST_LIFE) + 2, "every turn is in the trace")
    path = folder / "trace.html"
    write_new(path, render_page(trace_data(trace)), replace=True)
    narrator.kept(f"all of it can be looked at in one page: {path}")


def _make_folder(wanted: Path | None) -> Path:
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="kesoku-demo-"))
    if os.path.lexists(wanted):
        raise UsageError(f"{wanted} exists already; name a new folder")
    make_folder(wanted)
    return wanted.resolve()


def _write_config(folder: Path, pace: Pace) -> Path:
    script = Path(__file__).with_name("scenario.toml").read_text(encoding="utf-8")
    played = Template(script).substitute(word=f"{pace.word:g}", tool=f"{pace.tool:g}")
    write_new(folder / "scenario.toml", played, replace=False)
    write_new(folder / "config.toml", _CONFIG, replace=False)
    return folder / "config.toml"
