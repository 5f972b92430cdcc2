"""An access token of Google Cloud, loaded and refreshed in a thread: google-auth blocks, and never on the event loop.

Application default credentials are looked for where Google's own tools look. One refresh runs at a time; whoever asks
meanwhile waits for it. A token is renewed a minute before it ends, so that none ends on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import define, field

from kesoku_actors.llm.classify import Source, provider_error

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_EARLY_S: Final = 60.0


def default_credentials() -> tuple[Any, str | None]:
    """Return the application default credentials and their project. Blocks."""
    import google.auth

    found: tuple[Any, str | None] = google.auth.default(scopes=list(SCOPES))
    return found


@define(eq=False)
class GoogleToken:
    """The token of one account."""

    wall: Callable[[], float]
    """UTC seconds."""
    load: Callable[[], tuple[Credentials, str | None]] = default_credentials
    project: str | None = field(default=None, init=False)
    """The project the credentials name, once they are loaded."""
    _credentials: Credentials | None = field(default=None, init=False, repr=False)
    _lock: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    async def get(self, source: Source) -> str:
        """Return a token that is good for a minute at least. Raises `ProviderError` (tell) when there is none."""
        async with self._lock:
            # Left behind when cancelled: the refresh is bounded by google-auth's own time limits.
            return await trio.to_thread.run_sync(self._get, source, abandon_on_cancel=True)

    def _get(self, source: Source) -> str:
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request as Transport

        try:
            if self._credentials is None:
                self._credentials, self.project = self.load()
            if not self._credentials.token or self._ends_soon(self._credentials):
                self._credentials.refresh(Transport())  # type: ignore[no-untyped-call]  # it says nothing of its types
        except TransportError as error:
            raise provider_error(source, "connect", f"the Google account could not be asked: {error}") from error
        except GoogleAuthError as error:
            raise provider_error(source, "auth", f"Google credentials: {error}") from error
        return str(self._credentials.token)

    def _ends_soon(self, credentials: Credentials) -> bool:
        expiry = credentials.expiry  # in UTC, without a zone
        return expiry is not None and expiry.replace(tzinfo=UTC).timestamp() - self.wall() < _EARLY_S
