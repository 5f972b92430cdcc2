"""An access token of Google Cloud, loaded and refreshed in a thread: google-auth blocks, and never on the event loop.

Application default credentials are looked for where Google's own tools look. One refresh runs at a time; whoever asks
meanwhile waits for it, also when the one who began it has left: a refresh cannot be ended, only left behind in its
thread. A token is renewed a minute before it ends, so that none ends on its way; one that a service refuses although it
has served is given up, as it may have been withdrawn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import field

from kesoku_actors.llm.classify import Source, provider_error
from kesoku_actors.llm.port import ProviderError, Remedy
from kesoku_actors.values import define

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.auth.exceptions import GoogleAuthError

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_EARLY_S: Final = 60.0
_NEW_S: Final = 60.0
_MOST_LEFT: Final = 4
"""Refreshes left behind at once; more wait, so that dead ones do not take every thread."""


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
    _since: float = field(default=0.0, init=False)
    """When the token was asked for, UTC seconds."""
    _asking: trio.Lock = field(factory=trio.Lock, init=False, repr=False)
    _refreshing: threading.Lock = field(factory=threading.Lock, init=False, repr=False)
    _threads: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(_MOST_LEFT), init=False, repr=False)

    @property
    def value(self) -> str | None:
        """What was given last; none before and once it is given up."""
        return None if self._credentials is None else self._credentials.token

    async def get(self, source: Source) -> str:
        """Return a token that is good for a minute at least. Raises `ProviderError` when there is none.

        Bad credentials are for a person (tell); a server that does not answer now is asked again (retry).
        """
        async with self._asking:
            return await trio.to_thread.run_sync(self._get, source, abandon_on_cancel=True, limiter=self._threads)

    def doubted(self, error: ProviderError) -> ProviderError:
        """Return what a service's error asks for: another try with another token, if it refused one that is not new."""
        if error.kind == "auth" and self._credentials is not None and self.wall() - self._since >= _NEW_S:
            self._credentials.token = None
            error.remedy = Remedy.RETRY
        return error

    def _get(self, source: Source) -> str:
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request as Transport

        try:
            with self._refreshing:
                if self._credentials is None:
                    self._credentials, self.project = self._loaded(source)
                if not self._credentials.token or self._ends_soon(self._credentials):
                    self._credentials.refresh(Transport())  # type: ignore[no-untyped-call]  # it says nothing of types
                    self._since = self.wall()
                return str(self._credentials.token)
        except GoogleAuthError as error:
            raise _told(source, error) from error

    def _loaded(self, source: Source) -> tuple[Credentials, str | None]:
        try:
            return self.load()
        except (OSError, ValueError, AttributeError, LookupError, TypeError) as error:
            # A file that cannot be read, or says something else: Google's library only knows some of that.
            raise provider_error(source, "auth", f"Google credentials: {type(error).__name__} {error}") from error

    def _ends_soon(self, credentials: Credentials) -> bool:
        expiry = credentials.expiry  # in UTC, without a zone
        return expiry is not None and expiry.replace(tzinfo=UTC).timestamp() - self.wall() < _EARLY_S


def _told(source: Source, error: GoogleAuthError) -> ProviderError:
    from google.auth.exceptions import TransportError

    if error.retryable or isinstance(error, TransportError):
        return provider_error(source, "timeout", f"Google's account server did not answer: {error}")
    return provider_error(source, "auth", f"Google credentials: {error}")
