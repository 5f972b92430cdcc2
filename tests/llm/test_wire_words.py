"""The words that the rules know of each wire are those of its SDK."""

from __future__ import annotations

from typing import get_args

from anthropic.types.content_block import ContentBlock
from anthropic.types.content_block_param import ContentBlockParam
from google.genai import types
from typing_extensions import get_type_hints

from kesoku_actors.llm import claude_rules, gemini_rules


def test_an_assistant_message_may_hold_every_block_that_claude_says() -> None:
    blocks = get_args(get_args(ContentBlock)[0])
    said = {get_args(block.model_fields["type"].annotation)[0] for block in blocks}
    assert said == claude_rules.IN_ASSISTANT


def test_the_rules_know_every_block_that_claude_takes() -> None:
    taken = {get_args(get_type_hints(block)["type"])[0] for block in get_args(ContentBlockParam)}
    assert taken == claude_rules.IN_ASSISTANT | claude_rules.IN_USER


def test_the_rules_know_every_field_of_a_part_of_gemini() -> None:
    fields = {field.alias or name for name, field in types.Part.model_fields.items()}
    assert fields == gemini_rules.IN_MODEL | gemini_rules.IN_USER | gemini_rules.BESIDE
