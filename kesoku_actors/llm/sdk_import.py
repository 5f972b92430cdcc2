"""Importing a large SDK in a thread without stalling the event loop.

Every import makes values that live for ever, and Python looks for garbage the more often the more there are: with the
loop waiting, for some tenths of a second in all. So it does not look meanwhile, and takes what is there then for alive.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from kesoku_actors.llm.classify import Source, provider_error


@contextmanager
def undisturbed(source: Source) -> Iterator[None]:
    """Look for no garbage while the block imports, and never again among what there is at its end.

    Raises `ProviderError` (package) where it cannot import.
    """
    was_enabled = gc.isenabled()  # not by the second of two that import at once: the first turns it on again
    gc.disable()
    try:
        yield
    except ImportError as error:
        raise provider_error(source, "package", str(error)) from error
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
