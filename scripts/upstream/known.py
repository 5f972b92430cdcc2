"""What is known to fail: the test, and what it comes to in a sentence. Pure."""

from __future__ import annotations

from typing import Final

KNOWN: Final = {
    "with_anyio:test_lru_cache_returns_what_the_function_returns": (
        "a call raises KeyError: it waited for the lock of an entry that another key's call evicted meanwhile"
    ),
    "with_anyio:test_lru_cache_holds_no_more_than_its_size": (
        "an entry that is evicted while it is computed is put back afterwards: more stay than maxsize"
    ),
    "with_tricycle:test_rwlock_stays_exclusive_when_it_becomes_read_biased": (
        "the setter wakes readers while a writer holds the lock (known upstream: oremanj/tricycle issue 22)"
    ),
    "with_tricycle:test_rwlock_is_fair_after_a_writer_in_line_was_cancelled": (
        "the readers behind a cancelled writer stay in line, and a reader that comes later is let in before them"
    ),
    "with_trio_util:test_generator_in_a_task_gives_every_value_once": (
        "left early, a generator that yields from a nursery ends in a group of GeneratorExit, under any schedule"
    ),
    "with_anyioutils:test_resource_lock_is_held_by_one": (
        "whoever leaves forgets the lock although others wait for it, and the next to come makes another one"
    ),
    "with_chanio:test_select_takes_from_one_channel_only": (
        "when two channels deliver to a waiting select, the second item is taken and thrown away"
    ),
}
