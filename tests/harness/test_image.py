"""What survives of a file: the laws of pieces."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.harness.image import SURVIVALS, Block, Cut, Removal, Survival, applied, changed, everything, torn

blocks = st.builds(Block, st.integers(0, 3000), st.binary(min_size=1, max_size=1500))
pieces = st.lists(blocks | st.builds(Cut, st.integers(0, 3000)) | st.just(Removal()), max_size=12)
images = st.none() | st.binary(max_size=3000)


@given(images, pieces, st.sampled_from([1, 7, 512]))
def test_a_write_cut_at_sectors_is_the_same_write(image, done, sector_bytes):
    assert applied(image, torn(done, sector_bytes)) == applied(image, done)


@given(blocks, st.sampled_from([1, 7, 512]))
def test_no_piece_of_a_torn_write_crosses_a_sector(block, sector_bytes):
    for piece in torn([block], sector_bytes):
        assert isinstance(piece, Block)
        assert piece.offset // sector_bytes == (piece.offset + len(piece.data) - 1) // sector_bytes


@given(images, pieces, pieces)
def test_pieces_add_up(image, first, second):
    assert applied(applied(image, first), second) == applied(image, [*first, *second])


@given(images, pieces)
def test_a_content_that_is_changed_in_place_is_what_pieces_make_of_its_image(image, done):
    content = None if image is None else bytearray(image)
    after = changed(content, done)
    assert after == applied(image, done)
    assert after is content or any(isinstance(piece, Removal) for piece in done) or content is None


@given(st.binary(max_size=3000), st.lists(blocks, max_size=6), st.integers(0, 99), st.sampled_from(SURVIVALS))
def test_what_is_durable_and_not_written_over_is_there_whatever_survives(durable, written, seed, survival):
    cut = list(torn(written))
    survivors = [cut[number] for number in survival(random.Random(seed), len(cut))]
    image = applied(durable, survivors)
    touched = {at for block in written for at in range(block.offset, block.offset + len(block.data))}
    assert image is not None
    assert all(image[at] == byte for at, byte in enumerate(durable) if at not in touched)


@pytest.mark.parametrize("survival", SURVIVALS)
def test_survivors_are_pieces_in_the_order_they_were_done(survival: Survival):
    for seed in range(50):
        kept = list(survival(random.Random(seed), 20))
        assert kept == sorted(set(kept))
        assert set(kept) <= set(range(20))
    assert list(everything(random.Random(0), 20)) == list(range(20))
