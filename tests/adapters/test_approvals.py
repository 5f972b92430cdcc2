"""What a person is shown of a waiting call, and told of an answer (T7)."""

from __future__ import annotations

import pytest

from kesoku_actors.adapters.approvals import ALWAYS, NO, ONCE, Decision, chosen, question, told
from kesoku_actors.protocol import Approval, CallState
from kesoku_actors.store import ApprovalAnswer


def waiting(parts: tuple[str, ...] | None = ("git",), **arguments: object) -> Approval:
    return Approval(
        call_id="01HXYZK7QX",
        session_id="s",
        root_id="m",
        tool="run_shell_command",
        arguments=arguments,
        expires=4_600.0,
        parts=parts,
    )


def test_the_card_shows_the_whole_command_and_every_choice() -> None:
    command = "git push --force origin main\n" + "echo " + "x" * 5_000
    headline, what, choices = question(waiting(command=command, background=True), 1_000.0, 2)
    assert headline == "run_shell_command waits for your yes (60 min left; 2 more wait)"
    assert what == ("$ git push --force origin main", "  echo " + "x" * 5_000, "background: true")
    assert choices == (
        "1  allow once               /approve K7QX",
        "2  allow for this session   /approve K7QX session   (git)",
        "3  deny                     /deny K7QX",
    )


def test_a_yes_that_cannot_be_given_for_the_session_is_not_offered() -> None:
    approval = waiting(None, command="a | b")
    assert len(question(approval, 1_000.0, 0)[2]) == 2
    assert chosen(approval, "2") is None


def test_a_tool_as_a_whole_is_named_by_its_name() -> None:
    assert "(run_shell_command)" in question(waiting((), path="x"), 1_000.0, 0)[2][1]


@pytest.mark.parametrize(
    ("text", "decision"), [("1", ONCE), (" 2 ", ALWAYS), ("3", NO), ("4", None), ("1!", None), ("", None)]
)
def test_only_a_number_alone_is_a_choice(text: str, decision: Decision | None) -> None:
    assert chosen(waiting(), text) == decision


@pytest.mark.parametrize(
    ("decision", "answer", "line"),
    [
        (
            ONCE,
            ApprovalAnswer(accepted=True, state=CallState.COMMITTED, decided_by="Ada"),
            "allowed once: run_shell_command K7QX",
        ),
        (
            ALWAYS,
            ApprovalAnswer(accepted=True, state=CallState.COMMITTED, decided_by="Ada", is_for_session=True),
            "allowed for this session: git",
        ),
        (
            ALWAYS,
            ApprovalAnswer(accepted=True, state=CallState.COMMITTED, decided_by="Ada"),
            "allowed once: run_shell_command K7QX; this one cannot be allowed for longer",
        ),
        (
            NO,
            ApprovalAnswer(accepted=True, state=CallState.SETTLED, decided_by="Ada"),
            "denied: run_shell_command K7QX",
        ),
        (
            ONCE,
            ApprovalAnswer(accepted=False, state=CallState.SETTLED, decided_by="Bob"),
            "Bob has decided about run_shell_command K7QX already: denied, or gone on from there",
        ),
        (
            ONCE,
            ApprovalAnswer(accepted=False, state=CallState.SETTLED, decided_by=None),
            "run_shell_command K7QX waits no more: nobody answered in time, or it was withdrawn",
        ),
        (
            ONCE,
            ApprovalAnswer(accepted=False, state=CallState.WAITING, decided_by=None, is_allowed=False),
            "only who asked, or an admin, decides about run_shell_command K7QX",
        ),
    ],
)
def test_an_answer_is_told_what_became_of_it(decision: Decision, answer: ApprovalAnswer, line: str) -> None:
    assert told(waiting(), decision, answer) == line
