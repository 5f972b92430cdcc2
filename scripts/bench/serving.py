"""The program of goals 18 and 20: the tree as the settings' defaults compose it, on an empty store.

A module of its own, so that what is measured imports nothing of what measures.
"""

from __future__ import annotations

import json


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
    from scripts.bench.children import resident_kib
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
