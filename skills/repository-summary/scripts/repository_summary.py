"""Summarise a folder of source code as Markdown. Standard library only; `git` is used when it is there.

It reads at most `MOST_FILES` files and `LARGEST` bytes of each, follows no link, and runs nothing of the repository:
git is asked with everything switched off by which its configuration could start a program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

MOST_FILES = 50_000
LARGEST = 4 << 20
README_LINES = 15
SKIPPED = {"node_modules", "__pycache__", "venv", "target", "dist", "build", "vendor", "site-packages"}
LANGUAGES = {
    ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".hpp": "C++", ".cs": "C#", ".css": "CSS", ".ex": "Elixir",
    ".exs": "Elixir", ".erl": "Erlang", ".go": "Go", ".hs": "Haskell", ".html": "HTML", ".java": "Java",
    ".js": "JavaScript", ".jsx": "JavaScript", ".jl": "Julia", ".kt": "Kotlin", ".lua": "Lua", ".md": "Markdown",
    ".ml": "OCaml", ".php": "PHP", ".pl": "Perl", ".py": "Python", ".pyi": "Python", ".r": "R", ".rb": "Ruby",
    ".rs": "Rust", ".rst": "reStructuredText", ".scala": "Scala", ".sh": "Shell", ".sql": "SQL", ".swift": "Swift",
    ".toml": "TOML", ".ts": "TypeScript", ".tsx": "TypeScript", ".yaml": "YAML", ".yml": "YAML", ".zig": "Zig",
}  # fmt: skip
BUILDS = (
    "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "package.json", "Cargo.toml", "go.mod", "pom.xml",
    "build.gradle", "build.gradle.kts", "CMakeLists.txt", "Makefile", "meson.build", "mix.exs", "Gemfile",
    "composer.json", "Dockerfile", "flake.nix", "justfile", "tox.ini",
)  # fmt: skip
QUIET_GIT = (
    "git", "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false",
    "-c", "core.hooksPath=/dev/null",
)  # fmt: skip


def files_of(root: Path) -> tuple[list[Path], bool]:
    """Return the regular files beneath `root`, from it, and whether there are more than `MOST_FILES`."""
    found: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(
            name
            for name in inner
            if name not in SKIPPED and not name.startswith(".") and not name.endswith(".egg-info")
        )
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                if len(found) == MOST_FILES:
                    return found, True
                found.append(path.relative_to(root))
    return found, False


def lines_of(path: Path) -> int | None:
    """Return how many lines a text file has; none for one that is no text or cannot be read."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST)
    except OSError:
        return None
    return None if b"\0" in content[:8192] else content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def is_test(path: Path) -> bool:
    """Return whether a source file looks like a test."""
    folders = {part.lower() for part in path.parts[:-1]}
    stem = path.stem.lower()
    return (
        bool(folders & {"test", "tests", "spec", "__tests__"})
        or stem.startswith("test_")
        or stem.endswith(("_test", ".test", ".spec"))
    )


def table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    """Return a section with one line for each row, or nothing when there is none."""
    return [f"## {title}", "", *(f"- {left}: {right}" for left, right in rows), ""] if rows else []


def size_sections(root: Path, files: list[Path]) -> list[str]:
    """Return languages, layout, largest files and tests."""
    lines: dict[Path, int] = {}
    for path in files:
        if path.suffix.lower() in LANGUAGES and (count := lines_of(root / path)) is not None:
            lines[path] = count
    by_language, language_files, by_folder = Counter[str](), Counter[str](), Counter[str]()
    for path, count in lines.items():
        by_language[LANGUAGES[path.suffix.lower()]] += count
        language_files[LANGUAGES[path.suffix.lower()]] += 1
    for path in files:
        by_folder[f"{path.parts[0]}/" if len(path.parts) > 1 else path.name] += 1
    largest = sorted(lines.items(), key=lambda entry: (-entry[1], str(entry[0])))[:8]
    tests = [path for path in lines if is_test(path)]
    layout = [(name, f"{count} files" if name.endswith("/") else "file") for name, count in by_folder.most_common(25)]
    return [
        *table(
            "Languages",
            [(name, f"{count} lines in {language_files[name]} files") for name, count in by_language.most_common(10)],
        ),
        *table("Layout", sorted(layout)),
        *table("Largest source files", [(path.as_posix(), f"{count} lines") for path, count in largest]),
        *table("Tests", [("files that look like tests", f"{len(tests)}, {sum(lines[path] for path in tests)} lines")]),
    ]


def named_sections(root: Path, files: list[Path]) -> list[str]:
    """Return build files, licence and the beginning of the README, as far as they lie at the top."""
    top = [path for path in files if len(path.parts) == 1]
    builds = [(path.name, f"{lines_of(root / path) or 0} lines") for path in top if path.name in BUILDS]
    legal = [path for path in top if path.stem.lower() in ("license", "licence", "copying", "unlicense")]
    licences = [(path.name, first_words(root / path)) for path in legal]
    sections = [*table("Build and dependencies", builds), *table("Licence", licences)]
    if not licences:
        sections += ["No licence file lies at the top.", ""]
    for path in top:
        if path.stem.lower() == "readme":
            head = (root / path).read_text("utf-8", "replace").splitlines()[:README_LINES]
            return [*sections, f"## Beginning of {path.name}", "", *(f"    {line[:200]}" for line in head), ""]
    return [*sections, "No README lies at the top.", ""]


def first_words(path: Path) -> str:
    """Return the first line of a file that says something."""
    text = path.read_text("utf-8", "replace")[:4096]
    return next((line.strip()[:80] for line in text.splitlines() if line.strip()), "empty")


def history_section(root: Path) -> list[str]:
    """Return what git tells of the history."""
    asked = [
        *QUIET_GIT,
        "-C",
        str(root),
        "log",
        "-n",
        "10",
        "--no-show-signature",
        "--date=short",
        "--format=%h %ad %an: %s",
        "--",
        ".",
    ]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "LC_ALL": "C"}
    try:
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return ["## History", "", f"git could not be asked: {problem}", ""]
    if done.returncode:
        reason = done.stderr.strip().splitlines()[:1] or ["no reason given"]
        return ["## History", "", f"No git history is known: {reason[0][:200]}", ""]
    return ["## History", "", "The last commits:", "", *(f"- {line[:160]}" for line in done.stdout.splitlines()), ""]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Summarise a folder of source code as Markdown.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    root = parser.parse_args(arguments).folder.resolve()
    if not root.is_dir():
        sys.stderr.write(f"repository_summary: {root} is no folder, or may not be seen from here\n")
        return 1
    files, more = files_of(root)
    lines = [f"# {root.name}: {len(files)} files{' and more' if more else ''}", ""]
    try:
        lines += [*size_sections(root, files), *named_sections(root, files), *history_section(root)]
    except OSError as problem:
        sys.stderr.write(f"repository_summary: {problem}\n")
        return 1
    sys.stdout.write("\n".join(lines).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
