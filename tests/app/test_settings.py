"""Loading `config.toml`: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.app.settings import SECTIONS, Settings, load_settings
from kesoku_actors.errors import ConfigError
from kesoku_actors.protocol import BusyMode

ORIGINAL = Path(__file__).with_name("original-config.toml")

Refuse = Callable[..., list[str]]


@pytest.fixture
def refuse(tmp_path: Path) -> Refuse:
    """Load a text that has to be refused and return the problems, without the folder of the file."""

    def refuse(text: str | bytes, **environ: str) -> list[str]:
        path = tmp_path / "config.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError) as caught:
            load_settings(path, environ=environ)
        assert caught.value.exit_code == 78
        return str(caught.value).replace(f"{tmp_path}/", "").splitlines()

    return refuse


def accept(folder: Path, text: str, environ: Mapping[str, str] = {}, **overrides: object) -> Settings:
    path = folder / "config.toml"
    path.write_text(text)
    path.chmod(0o600)
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_settings(path, environ=environ, overrides=dotted)


def test_the_sample_of_the_original_design_loads_verbatim() -> None:
    settings = load_settings(ORIGINAL, environ={})
    assert settings.agent.llm == "gemini"
    assert settings.workspace.db_path == ORIGINAL.parent / "kesoku.db"
    assert settings.shell.mode == "blocklist"
    assert settings.discord.user_allowlist == ("allowed_username",)
    [channel] = settings.discord.channels
    assert (channel.channels, channel.llm, channel.auto_thread) == (("channel_id_or_name",), "claude", False)


def test_the_placeholders_of_the_sample_count_as_not_set_and_one_warning_names_their_lines() -> None:
    settings = load_settings(ORIGINAL, environ={"GEMINI_API_KEY": "AIza-a-real-one"})
    assert settings.gemini.api_key == "AIza-a-real-one"
    assert settings.gemini.project_id is settings.claude.project_id is settings.discord.bot_token is None
    warning = settings.warnings[0]
    assert "gemini.api_key (line 12)" in warning
    assert "discord.bot_token (line 24)" in warning


def test_a_rule_of_approval_is_never_risky_or_always(refuse: Refuse) -> None:
    [problem] = refuse('[tools]\napprove = "risky"\n[tools.rules]\nread_file = "sometimes"\n')
    assert problem.startswith("config.toml:4: tools.rules.read_file: 'sometimes' is not one of")


def test_what_is_asked_for_in_vain_is_told_with_its_line(tmp_path: Path) -> None:
    text = "[discord]\nenabled = true\n"
    warnings = accept(tmp_path, text, {"DISCORD_TOKEN": "token"}).warnings
    assert [warning.removeprefix(f"{tmp_path}/").split(" yet")[0] for warning in warnings] == [
        "config.toml:2: discord.enabled: has no effect",
    ]


def test_protection_that_is_not_asked_for_is_nothing_to_tell(tmp_path: Path) -> None:
    text = '[tools]\napprove = "never"\n[shell]\nsandbox = "auto"\nnetwork = true\n'
    assert accept(tmp_path, text).warnings == accept(tmp_path, "").warnings == ()


def test_all_problems_come_together_each_with_line_key_and_remedy(refuse: Refuse) -> None:
    assert refuse(
        """\
llm = "gemini"
[agnet]
[agent]
lm = "gemini"
busy_mode = "intrrupt"
max_steps = -1
max_turn_seconds = nan
failover = ["claude", 3]
timeout_s = 3
[shell]
allowlist_patterns = [
  "^ls",
  "",
]
forbidden_patterns = ["("]
[[discord.channels]]
channels = ["a"]
[[discord.channels]]
chanels = ["b"]
[prices."gpt-4.1"]
input = "1"
"""
    ) == [
        "config.toml:1: llm: unknown key here, did you mean 'agent.llm'?",
        "config.toml:2: agnet: unknown key, did you mean 'agent'?",
        "config.toml:4: agent.lm: unknown key, did you mean 'llm'?",
        "config.toml:5: agent.busy_mode: 'intrrupt' is not one of 'interrupt', 'queue', 'collect', 'steer';"
        " did you mean 'interrupt'?",
        "config.toml:6: agent.max_steps: must be from 1 to 100,000, not -1",
        "config.toml:7: agent.max_turn_seconds: must be from 0.001 to 31,536,000, not nan",
        "config.toml:8: agent.failover[2]: must be a string in quotes, not a whole number",
        "config.toml:9: agent.timeout_s: unknown key here, did you mean 'shell.timeout_s'?",
        "config.toml:13: shell.allowlist_patterns[2]: an empty pattern would fit every command; take it out",
        "config.toml:15: shell.forbidden_patterns[1]: the pattern '(' is not a regular expression:"
        " missing ), unterminated subpattern at position 0",
        "config.toml:18: discord.channels[2].channels: is missing",
        "config.toml:19: discord.channels[2].chanels: unknown key, did you mean 'channels'?",
        'config.toml:20: prices."gpt-4.1".output: is missing',
        'config.toml:21: prices."gpt-4.1".input: must be a number, not a string in quotes',
    ]


@pytest.mark.parametrize(
    ("section", "key"), [(name, key.name) for name, it in SECTIONS.items() for key in attrs.fields(it)]
)
def test_a_value_of_the_wrong_type_is_refused_at_every_key(refuse: Refuse, section: str, key: str) -> None:
    [problem] = refuse(f"[{section}]\n{key} = 1979-05-27\n")
    assert problem.startswith(f"config.toml:2: {section}.{key}: must be ")
    assert problem.endswith(", not a date or time")


@pytest.mark.parametrize("section", [*SECTIONS, "prices"])
def test_a_section_that_is_no_table_is_refused(refuse: Refuse, section: str) -> None:
    assert refuse(f"{section} = 5") == [f"config.toml:1: {section}: must be a table, not a whole number"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('max_steps = "5"', "must be a whole number, not a string in quotes"),
        ("max_steps = 5.0", "must be a whole number, not a number"),
        ("max_steps = true", "must be a whole number, not true or false"),
        ("max_steps = 0", "must be from 1 to 100,000, not 0"),
        ("max_turn_seconds = inf", "must be from 0.001 to 31,536,000, not inf"),
        ("max_turn_seconds = -inf", "must be from 0.001 to 31,536,000, not -inf"),
        (f"max_turn_seconds = {'9' * 400}", "is too large a number"),
        ("max_cost_per_day = -0.5", "must be from 1e-06 to 1,000,000, not -0.5"),
        ('failover = "claude"', "must be a list, not a string in quotes"),
        ('llm = " "', "must not be empty"),
        ('llm = "a\\u001b[31m"', "must not hold control characters"),
    ],
)
def test_nothing_is_coerced_and_no_limit_is_nonsense(refuse: Refuse, line: str, problem: str) -> None:
    [found] = refuse(f"[agent]\n{line}\n")
    assert found == f"config.toml:2: agent.{line.split(' =')[0]}: {problem}"


@pytest.mark.parametrize("pattern", ["a*", "(?=rm)", r"(.)\1", "x{2000}"])
def test_a_pattern_that_cannot_judge_a_command_in_linear_time_is_refused_at_its_line(
    refuse: Refuse, pattern: str
) -> None:
    [problem] = refuse(f"[shell]\nblocklist_patterns = [\n  '^rm',\n  '{pattern}',\n]\n")
    assert problem.startswith("config.toml:4: shell.blocklist_patterns[2]: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[agent]\nllm = \n", "config.toml:2:7: is not valid TOML: Invalid value"),
        (
            b"[agent]\n[agent]\n",
            "config.toml:2:7: is not valid TOML: Cannot declare ('agent',) twice: "
            "put these keys under the first [agent]",
        ),
        (b'[agent]\nllm = "', "config.toml:2: is not valid TOML: Unterminated string at the end of the file"),
        (b"[agent]\r\nllm = 'caf\xe9'\r\n", "config.toml:2: is not UTF-8 (byte 0xe9); save the file as UTF-8"),
        ("[agent]".encode("utf-16"), "config.toml:1: is not UTF-8 (byte 0xff); save the file as UTF-8"),
        (b"[agent]\nmax_steps = " + b"9" * 5000, "config.toml: is not valid TOML: Exceeds the limit"),
        (b"a = " + b"[" * 100_000, "config.toml: is nested too deeply; a configuration needs three levels"),
        (b"#" * (1 << 20) + b"#", "config.toml: is larger than 1,048,576 bytes; this is no configuration"),
    ],
)
def test_what_is_not_toml_is_one_line_with_its_place(refuse: Refuse, text: bytes, problem: str) -> None:
    [found] = refuse(text)
    assert found.startswith(problem)


def test_a_byte_order_mark_and_crlf_are_accepted_and_lines_stay_right(tmp_path: Path, refuse: Refuse) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'\xef\xbb\xbf[agent]\r\nllm = "claude"\r\n')
    assert load_settings(path, environ={}).agent.llm == "claude"
    [problem] = refuse(b"\xef\xbb\xbf[agent]\r\n\r\nlm = 1\r\n")
    assert problem.startswith("config.toml:3: ")


def test_a_file_that_cannot_be_read_is_named_with_the_remedy(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("none.toml", "does not exist; write one with: kesoku-actors init -c"),
        (".", "is a folder; name the TOML file in it"),
        ("pipe", "is not a regular file; name a TOML file"),
        ("x" * 300, "cannot be read: File name too long"),
    ):
        with pytest.raises(ConfigError, match=words):
            load_settings(tmp_path / name, environ={})


def test_without_a_file_the_defaults_hold_and_data_lives_in_the_home(tmp_path: Path) -> None:
    settings = load_settings(None, environ={}, home=tmp_path)
    assert settings.source is None
    assert settings.workspace.sessions_dir == tmp_path / "sessions"
    assert list(tmp_path.iterdir()) == []


def test_without_a_path_the_file_in_the_home_is_read(tmp_path: Path) -> None:
    accept(tmp_path, '[agent]\nllm = "claude"\n')
    settings = load_settings(None, environ={}, home=tmp_path)
    assert (settings.agent.llm, settings.source) == ("claude", tmp_path / "config.toml")


def test_relative_paths_start_at_the_file_and_a_tilde_at_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    settings = accept(
        tmp_path, '[workspace]\ndb_path = "data/../k.db"\nskills_dir = "~/skills"\n[local]\nmodel_path = "m.gguf"\n'
    )
    assert settings.workspace.db_path == tmp_path / "k.db"
    assert settings.workspace.skills_dir == tmp_path / "me" / "skills"
    assert settings.local.model_path == tmp_path / "m.gguf"


@pytest.mark.parametrize(
    ("variable", "read"),
    [
        ("GEMINI_API_KEY", lambda settings: settings.gemini.api_key),
        ("GOOGLE_API_KEY", lambda settings: settings.gemini.api_key),
        ("GOOGLE_CLOUD_PROJECT", lambda settings: settings.gemini.project_id),
        ("GOOGLE_CLOUD_PROJECT", lambda settings: settings.claude.project_id),
        ("GOOGLE_CLOUD_LOCATION", lambda settings: settings.gemini.location),
        ("ANTHROPIC_API_KEY", lambda settings: settings.claude.api_key),
        ("OPENAI_API_KEY", lambda settings: settings.openai.api_key),
        ("DISCORD_TOKEN", lambda settings: settings.discord.bot_token),
    ],
)
def test_a_variable_answers_for_a_key_that_is_not_in_the_file(
    tmp_path: Path, variable: str, read: Callable[[Settings], str | None]
) -> None:
    assert read(accept(tmp_path, "", {variable: " from-env \n"})) == "from-env"
    assert read(accept(tmp_path, "", {variable: " "})) != " "


def test_the_file_wins_over_the_environment_and_the_command_line_over_both(tmp_path: Path) -> None:
    text = '[gemini]\napi_key = "from-file"\n[agent]\nllm = "gemini"\n'
    environ = {"GEMINI_API_KEY": "from-env", "GOOGLE_API_KEY": "from-env-too"}
    settings = accept(tmp_path, text, environ, agent__llm="claude")
    assert (settings.gemini.api_key, settings.agent.llm) == ("from-file", "claude")
    assert load_settings(None, environ=environ, home=tmp_path / "none").gemini.api_key == "from-env"


def test_a_problem_of_a_value_from_elsewhere_names_where_it_came_from(refuse: Refuse, tmp_path: Path) -> None:
    [problem] = refuse("", OPENAI_API_KEY="sk-secret\nsecond line")
    assert problem.startswith("environment variable OPENAI_API_KEY: openai.api_key: holds a space, a line break")
    with pytest.raises(ConfigError, match=r"^command line: agent\.llm: must not be empty$"):
        accept(tmp_path, "", agent__llm="")


def test_a_secret_is_never_shown(tmp_path: Path, refuse: Refuse) -> None:
    text = '[gemini]\napi_key = "s3cr3t-one"\n[discord]\nbot_token = "s3cr3t-two"\n'
    settings = accept(tmp_path, text, {"OPENAI_API_KEY": "s3cr3t-three"})
    assert settings.secrets() == ("s3cr3t-one", "s3cr3t-three", "s3cr3t-two")
    assert "s3cr3t" not in repr(settings)
    assert "s3cr3t" not in "".join(refuse('[claude]\napi_key = "s3cr3t one"\n'))
    assert "s3cr3t" not in "".join(refuse('[claude]\napi_key = ["s3cr3t"]\n'))


@pytest.mark.parametrize(
    ("mode", "text", "told"),
    [
        (0o644, '[openai]\napi_key = "sk-secret"\n', True),
        (0o640, '[openai]\napi_key = "sk-secret"\n', True),
        (0o600, '[openai]\napi_key = "sk-secret"\n', False),
        (0o644, '[openai]\napi_key = "your-api-key"\n', False),
        (0o644, "[openai]\n", False),
    ],
)
def test_a_file_with_secrets_that_others_can_read_is_warned_of(
    tmp_path: Path, mode: int, text: str, told: bool
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    path.chmod(mode)
    warnings = load_settings(path, environ={"GEMINI_API_KEY": "not-in-the-file"}).warnings
    asked = [warning for warning in warnings if "others can read openai.api_key; run: chmod 600" in warning]
    assert bool(asked) == told


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ('db_path = "folder"', "db_path", "is a folder"),
        ('db_path = "/dev/null"', "db_path", "is not a regular file"),
        ('db_path = "link.db"', "db_path", "is a link"),
        ('db_path = "file/kesoku.db"', "db_path", "file is not a folder"),
        ('db_path = "sessions/kesoku.db"', "db_path", "must not lie inside sessions_dir"),
        ('db_path = ""', "db_path", "must be a path"),
        ('skills_dir = "file"', "skills_dir", "is not a folder"),
        ('skills_dir = "sessions/skills"', "skills_dir", "must not lie inside sessions_dir"),
        ('skills_dir = "sessions"', "skills_dir", "must not lie inside sessions_dir"),
        ('skills_dir = "way"\nsessions_dir = "folder"', "skills_dir", "must not lie inside sessions_dir"),
        ('sessions_dir = "skills/x"', "sessions_dir", "must not lie inside skills_dir"),
    ],
)
def test_a_path_that_cannot_serve_is_refused_at_its_key(
    tmp_path: Path, refuse: Refuse, text: str, key: str, words: str
) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "elsewhere.db")
    (tmp_path / "way").symlink_to(tmp_path / "folder" / "inner")
    [problem] = refuse(f"[workspace]\n{text}\n")
    assert problem.startswith(f"config.toml:2: workspace.{key}: ")
    assert words in problem


def test_names_of_users_are_refused_only_when_discord_is_enabled(tmp_path: Path, refuse: Refuse) -> None:
    text = '[discord]\nuser_allowlist = ["123", "bob"]\nadmin_ids = ["eve"]\n'
    assert accept(tmp_path, text).discord.user_allowlist == ("123", "bob")
    assert [problem.split(";")[0] for problem in refuse(f"{text}enabled = true\n")] == [
        "config.toml:2: discord.user_allowlist[2]: 'bob' is a name, which anyone can take",
        "config.toml:3: discord.admin_ids[1]: 'eve' is a name, which anyone can take",
        "config.toml:4: discord.enabled: needs bot_token, or the environment variable DISCORD_TOKEN",
    ]


@pytest.mark.parametrize("address", ["", "host:80", "ftp://host", "http://", "https://me:pw@host", "http://h:99999/"])
def test_an_address_that_cannot_be_called_is_refused(refuse: Refuse, address: str) -> None:
    [problem] = refuse(f'[openai]\nbase_url = "{address}"\n')
    assert problem.startswith("config.toml:2: openai.base_url: must ")
    assert "pw" not in problem


def test_every_setting_reaches_its_value(tmp_path: Path) -> None:
    settings = accept(
        tmp_path,
        '[agent]\nbusy_mode = "queue"\nmax_turn_seconds = 5\n'
        '[[discord.channels]]\nchannels = ["1"]\nbusy_mode = "steer"\napprove = "never"\n'
        '[prices."a/b"]\ninput = 1\noutput = 2.5\n',
    )
    assert settings.agent.busy_mode is BusyMode.QUEUE
    assert settings.agent.max_turn_seconds == 5.0
    assert settings.discord.channels[0].busy_mode is BusyMode.STEER
    assert settings.prices["a/b"].output == 2.5


names = st.sampled_from([*SECTIONS, "prices", "agnet"])
keys = st.sampled_from(sorted({key.name for section in SECTIONS.values() for key in attrs.fields(section)} | {"x"}))
leaves = st.one_of(st.integers(-2, 3), st.floats(), st.booleans(), st.sampled_from(["", "full", "a", "\n[x]\n", "../"]))
values = st.one_of(leaves, st.lists(leaves, max_size=2), st.dictionaries(keys, leaves, max_size=2))
sections = values | st.dictionaries(keys, values, max_size=4) | st.lists(st.dictionaries(keys, values), max_size=2)


@settings(deadline=None)
@given(st.dictionaries(names, sections, max_size=4))
def test_any_document_is_accepted_or_refused_with_lines_that_hold_the_key(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(tomlkit.dumps(document))
    written = path.read_text().split("\n")
    try:
        load_settings(path, environ={})
    except ConfigError as error:
        for problem in str(error).removesuffix("\n").split(f"{path}:")[1:]:
            line, key = problem.split(": ")[:2]
            last = key.split(".")[-1].partition("[")[0]
            assert last in written[int(line) - 1] or "is missing" in problem


def test_a_forbidden_pattern_is_a_string_or_a_table_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        "[shell]\nforbidden_patterns = ['^git push', { pattern = '^npm publish', message = \"Ask a person first.\" }]\n"
    )
    first, second = load_settings(path, environ={}).shell.forbidden_patterns
    assert (first.pattern, first.message) == ("^git push", None)
    assert (second.pattern, second.message) == ("^npm publish", "Ask a person first.")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("'('", "config.toml:2: shell.forbidden_patterns[1]: the pattern '(' is not a regular expression"),
        ("{ pattern = '(a)\\1' }", "shell.forbidden_patterns[1].pattern: the pattern '(a)\\\\1' uses a back reference"),
        ("'(?<!x)y'", "shell.forbidden_patterns[1]: the pattern '(?<!x)y' uses '(?!' or '(?<!', which cannot"),
        ("{ message = 'x' }", "shell.forbidden_patterns[1].pattern: is missing"),
        (
            "{ pattern = 'a', says = 'x' }",
            "shell.forbidden_patterns[1].says: unknown key; valid here: message, pattern",
        ),
        ("5", "shell.forbidden_patterns[1]: must be a table, not a whole number"),
    ],
)
def test_a_forbidden_pattern_that_cannot_be_used_is_named_with_its_line(tmp_path: Path, value: str, told: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[shell]\nforbidden_patterns = [{value}]\n")
    with pytest.raises(ConfigError) as refused:
        load_settings(path, environ={})
    assert told in str(refused.value)
    assert "config.toml:2" in str(refused.value)
