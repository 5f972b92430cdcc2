"""Case row A05: how many pages a document has is known before anybody reads it."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.files.documents import is_locked, pages_in

from ..llm.pictures import pdf


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("pages", [1, 100, 10_000])
def test_pages_are_counted_where_they_lie(pages: int, packed: bool, told: bool) -> None:
    assert pages_in(pdf(pages, packed=packed, told=told)) == pages


def test_a_packed_stream_is_unpacked_to_a_bound_only() -> None:
    stream = zlib.compress(b"<</Type/Page>>" * 3_000_000)
    huge = b"%PDF-1.7\n1 0 obj\n<</Type/ObjStm>>stream\n" + stream + b"\nendstream endobj"
    assert len(huge) < 1 << 20
    assert 100_000 < pages_in(huge) < 3_000_000


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_any_bytes_may_be_asked(before: bytes, behind: bytes) -> None:
    for marked in (b"/Type/ObjStm stream\n", b"/Type /Pages /Count 9999999999999", b"/Type/Page"):
        assert pages_in(b"%PDF-" + before + marked + behind) >= 0


def test_an_encrypted_document_is_known() -> None:
    assert is_locked(b"%PDF-1.4 trailer<</Encrypt 5 0 R>>")
    assert not is_locked(pdf(1))
