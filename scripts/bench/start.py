"""Goals 18 and 20: processor time until the daemon is ready on an empty store, and its memory then.

The floor imports what no daemon on this stack can do without. Ours is the tree as the settings' defaults compose it,
in a child process of its own; memory needs /proc. Run `python -m scripts.bench.start` in the root of the repository.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from scripts.bench.children import resident_kib, run_child
from scripts.bench.report import Row, row, show

ROUNDS: Final = 7
_IMPORTS: Final = "import trio, apsw, attrs, cattrs"
_FLOOR: Final = f"{_IMPORTS}; from scripts.bench.children import resident_kib; print(resident_kib())"


def serve() -> None:
    """Start the daemon on an empty store, say how much memory it has, and end it in order."""
    from kesoku_actors.cli.collector import collect_rarely

    collect_rarely()  # as the command line does before it imports a command
    import trio
    from attrs import evolve

    from kesoku_actors.actors import run_system
    from kesoku_actors.app.house import build_house
    from kesoku_actors.app.plan import plan_run
    from kesoku_actors.app.prelude import prepare, stderr_log
    from kesoku_actors.app.settings import Settings
    from scripts.bench.folders import folder

    async def run() -> None:
        with folder() as path:
            settings = Settings()
            places = evolve(settings.workspace, db_path=path / "kesoku.db", sessions_dir=path / "sessions")
            settings = evolve(settings, workspace=places, agent=evolve(settings.agent, llm="scripted"))
            prelude = prepare(settings, *stderr_log(settings, False))
            plan = plan_run(
                settings,
                prelude.provider,
                world=prelude.world,
                log=prelude.log,
                channels=None,
                edges=lambda _gateway: (),
                probe=lambda _point: None,
                shelter=prelude.shelter,
            )
            async with run_system(build_house(plan).spec, log=prelude.log_actors):
                print(json.dumps(resident_kib()))

    trio.run(run)


def rows() -> list[Row]:
    """Measure goals 18 and 20; takes about ten seconds."""
    floor, ours = [], []
    for _ in range(ROUNDS):
        floor.append(run_child("-c", _FLOOR))
        ours.append(run_child("-c", "from scripts.bench.start import serve; serve()"))
    return [
        row(
            18,
            "start to ready / imports of trio, apsw, attrs",
            limit=1.8,
            ours=[child.processor_s for child in ours],
            floor=[child.processor_s for child in floor],
        ),
        row(
            20,
            "memory when ready / of the imports",
            limit=1.6,
            ours=[float(child.said) for child in ours],
            floor=[float(child.said) for child in floor],
        ),
    ]


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
