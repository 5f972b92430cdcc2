"""Every command: its name, the module it lives in, and its line of help. Imports nothing."""

COMMANDS = {
    "chat": ("kesoku_actors.cli.chat", "Ask the agent something; the answer is streamed."),
    "check": ("kesoku_actors.cli.check", "Check a configuration, or a trio program under many schedules."),
    "history": ("kesoku_actors.cli.history", "List, show, search, export and import what was said."),
    "demo": ("kesoku_actors.cli.demo", "Show in two minutes what it does; needs no key."),
    "init": ("kesoku_actors.cli.init", "Write a commented configuration."),
    "model": ("kesoku_actors.cli.model", "List and fetch the models that run on this machine."),
    "skills": ("kesoku_actors.cli.skills", "List the agent's skills, and what is wrong with those it cannot use."),
    "tools": ("kesoku_actors.cli.tools", "List the tools that a model is offered, your own among them."),
    "trace": ("kesoku_actors.cli.trace", "Write what happened in a session as one HTML file."),
}


def help_text(program: str) -> str:
    """Return what `kesoku-actors --help` prints to somebody who calls it `program`."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {line}" for name, (_, line) in COMMANDS.items()]
    return "\n".join(
        [
            f"Usage: {program} COMMAND [OPTIONS] ...",
            "",
            "An autonomous AI agent that never loses a message and never kills a tool half-way.",
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  --help     Show this text; after a command, its own.",
            "  --version  Show the version.",
            "",
            f'Try: {program} chat "Say hello in one sentence."',
        ]
    )
