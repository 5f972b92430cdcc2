"""Table P2: of what kind a provider's error is, and what to do about it. Pure.

Tables and nothing else decide: `KIND_OF_CODE`, `KIND_OF_PHRASE` and `KIND_OF_STATUS` name the kind (the server's own
words are more exact than its HTTP status, so they are asked first), `REMEDY` says what a kind asks for. A kind not
listed is retried, as an unknown failure of a server usually passes.

`Retry-After` is read in both its forms, seconds and HTTP date, and so is what Google says in an error's details; the
wall clock comes as a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final, TypeGuard

from attrs import field

from kesoku_actors.llm.port import ProviderError, Remedy
from kesoku_actors.llm.wellformed import whole_text
from kesoku_actors.values import frozen

REMEDY: Final[Mapping[str, Remedy]] = {
    "rate_limit": Remedy.RETRY,
    "overloaded": Remedy.RETRY,
    "server": Remedy.RETRY,
    "timeout": Remedy.RETRY,
    "conflict": Remedy.RETRY,
    "connect": Remedy.RETRY,
    "cut": Remedy.RETRY,
    "stall": Remedy.RETRY,
    "garbage": Remedy.RETRY,
    "quota": Remedy.FAIL_OVER,
    "context": Remedy.COMPACT,
    "request": Remedy.REPAIR,
    "tools": Remedy.REPAIR,
    "auth": Remedy.TELL,
    "model": Remedy.TELL,
    "address": Remedy.TELL,
    "filtered": Remedy.TELL,
    "project": Remedy.TELL,
    "package": Remedy.TELL,
}

KIND_OF_STATUS: Final[Mapping[int, str]] = {
    301: "address",
    302: "address",
    307: "address",
    308: "address",
    400: "request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "model",
    405: "address",
    408: "timeout",
    409: "conflict",
    413: "context",
    422: "request",
    425: "conflict",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}

KIND_OF_CODE: Final[Mapping[str, str]] = {
    "context_length_exceeded": "context",
    "exceed_context_size_error": "context",
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "model_not_found": "model",
    "content_filter": "filtered",
    "content_policy_violation": "filtered",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "overloaded_error": "overloaded",
    "not_found_error": "model",
    "billing_error": "quota",
    "timeout_error": "timeout",
    "request_too_large": "context",
    "api_error": "server",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "overloaded",
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "auth",
    "NOT_FOUND": "model",
    "DEADLINE_EXCEEDED": "timeout",
    "INTERNAL": "server",
    "server_error": "server",
    "unavailable_error": "overloaded",
}

KIND_OF_PHRASE: Final[Mapping[str, str]] = {
    "not support tools": "tools",
    "not support tool": "tools",
    "support tool use": "tools",
    "not support function": "tools",
    "enable-auto-tool-choice": "tools",
    "tools param requires": "tools",
    "maximum context length": "context",
    "prompt is too long": "context",
    "exceeds the maximum number of tokens": "context",
    "api key not valid": "auth",
    "api key expired": "auth",
    "exceed context limit": "context",
    "request exceeds the maximum size": "context",
    "credit balance is too low": "quota",
    "reached your specified api usage limits": "quota",
    "function calling is not enabled": "tools",
    "not support function calling": "tools",
}
"""What servers without a code for it write instead, in lower case."""

_LENGTHS: Final = (
    re.compile(
        r"maximum context length is (?P<context>\d+) tokens.*?(?P<prompt>\d+) tokens", re.IGNORECASE | re.DOTALL
    ),
    re.compile(r"too long: (?P<prompt>\d+) tokens > (?P<context>\d+)", re.IGNORECASE),
    re.compile(r"token count \(?(?P<prompt>\d+)\)? exceeds .*?(?P<context>\d+)", re.IGNORECASE | re.DOTALL),
)
"""How servers write how long a prompt was and may be."""
_LONGEST_DETAIL: Final = 300
_SHORTEST_KEY: Final = 6
_DELAY: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s\Z")


@frozen(kw_only=True)
class Source:
    """Where a provider's settings came from: the names that its error messages tell a person to change."""

    provider: str
    key: str = "the API key"
    """Where the key was looked for: `[openai] api_key or OPENAI_API_KEY`."""
    has_key: bool = True
    """Whether one was found there."""
    model: str = "the model name"
    """The setting that names the model: `[openai] model_name`."""
    address: str = "the address"
    """The setting that names the server: `[openai] base_url`."""
    secret: str | None = field(default=None, repr=False)
    """The key itself: no error repeats it (T6)."""


_ADVICE: Final[Mapping[str, str]] = {
    "auth": "the key was refused; it is looked for in {key}",
    "no_key": "the server wants a key and none is set; it is looked for in {key}",
    "model": "there is no such model or address; change {model} or {address}",
    "address": "the server does not speak this protocol there; change {address}",
    "connect": "the server cannot be reached; {address} says where it is",
    "tools": "the model cannot use tools",
    "package": "its SDK cannot be imported; install kesoku-actors again, or ask another provider (--llm)",
    "project": "no project of Google Cloud is named; set [{provider}] project_id, or use credentials that name one",
    "quota": "the account behind the key has no credit left; the key is looked for in {key}",
    "context": "the conversation is longer than the model can read",
}


def provider_error(source: Source, kind: str, detail: str, *, retry_after_s: float | None = None) -> ProviderError:
    """Return the error of this kind, saying which provider failed, how, and what to do (P2)."""
    advice = _ADVICE.get("no_key" if kind == "auth" and not source.has_key else kind)
    hidden = detail.replace(source.secret, "***") if _is_key(source.secret) else detail
    said = whole_text(" ".join(hidden.split())[:_LONGEST_DETAIL])
    parts = [part for part in (advice and advice.format(**_words(source)), said) if part]
    return ProviderError(
        f"{source.provider}: {': '.join(parts) or kind}",
        remedy=REMEDY.get(kind, Remedy.RETRY),
        retry_after_s=retry_after_s,
        kind=kind,
    )


def _words(source: Source) -> dict[str, str]:
    return {"provider": source.provider, "key": source.key, "model": source.model, "address": source.address}


def check_key(source: Source, key: str) -> None:
    """Raise `ProviderError` (auth) for a key that no header can hold; the library's own error would repeat it (T6)."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise provider_error(source, "auth", "it holds characters that no key has")


def without_key(said: bytes, key: str | None) -> bytes:
    """Return what a server said without the key: some repeat the one they refuse (T6).

    One that is a word at most hides nothing, and without it the server's own words might be others.
    """
    return said.replace(key.encode(), b"***") if _is_key(key) else said


def _is_key(key: str | None) -> TypeGuard[str]:
    return key is not None and len(key) >= _SHORTEST_KEY


def check_page(source: Source, content_type: str) -> None:
    """Raise `ProviderError` (address) for an answer that is a web page."""
    if content_type.partition(";")[0].strip().lower() == "text/html":
        raise provider_error(source, "address", "it answered with a web page")


def from_status(source: Source, status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> ProviderError:
    """Return what an HTTP answer that is no success means.

    `headers` are looked up by lower-case name; `now` is UTC seconds, for a `Retry-After` that is a date.
    """
    error = error_of(body)
    kind = kind_of_error(error) or KIND_OF_STATUS.get(status) or ("server" if status >= 500 else "request")
    detail = str(error.get("message") or body[:_LONGEST_DETAIL].decode("utf-8", "replace"))
    wait_s = retry_after(headers.get("retry-after"), now=now)
    wait_s = retry_delay(error) if wait_s is None else wait_s
    return _measured(provider_error(source, kind, f"HTTP {status} {detail}".rstrip(), retry_after_s=wait_s), error)


def from_error_object(source: Source, error: Any) -> ProviderError:
    """Return what an `error` sent inside a stream means; `error` is an object or a bare sentence."""
    fields = error if isinstance(error, Mapping) else {"message": str(error)}
    code = fields.get("code")
    status_kind = KIND_OF_STATUS.get(code) if isinstance(code, int) else None
    kind = kind_of_error(fields) or status_kind or "server"
    told = provider_error(source, kind, str(fields.get("message") or fields), retry_after_s=retry_delay(fields))
    return _measured(told, fields)


def lengths_in(error: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return how many tokens a refused prompt had and how many the model reads, if the server says both."""
    fields = error.get("n_prompt_tokens"), error.get("n_ctx")
    message = str(error.get("message"))
    found = next((match for pattern in _LENGTHS if (match := pattern.search(message))), None)
    prompt, context = (found["prompt"], found["context"]) if found is not None else fields
    try:
        known = int(prompt or 0), int(context or 0)
    except (TypeError, ValueError, OverflowError):
        return None
    return known if min(known) > 0 else None


def _measured(error: ProviderError, fields: Mapping[str, Any]) -> ProviderError:
    lengths = lengths_in(fields) if error.remedy is Remedy.COMPACT else None
    if lengths is not None:
        error.prompt_tokens, error.context_tokens = lengths
    return error


def kind_of_error(error: Mapping[str, Any]) -> str | None:
    """Return the kind that the server's own words name, or none when it used no word of the tables."""
    if any("PerDay" in str(violation.get("quotaId")) for violation in _violations(error)):
        return "quota"  # Google calls it a rate, too
    for key in ("code", "type", "status"):
        word = error.get(key)
        if isinstance(word, str) and word in KIND_OF_CODE:
            return KIND_OF_CODE[word]
    message = str(error.get("message")).lower()
    return next((kind for phrase, kind in KIND_OF_PHRASE.items() if phrase in message), None)


def _violations(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return which quotas of Google's were used up."""
    failures = [one for one in _objects(error.get("details")) if "QuotaFailure" in str(one.get("@type"))]
    return [violation for failure in failures for violation in _objects(failure.get("violations"))]


def retry_after(value: str | None, *, now: float) -> float | None:
    """Return the seconds a `Retry-After` header asks for, never below 0; none when it is absent or unreadable."""
    if value is None:
        return None
    text = value.strip()
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    from email.utils import parsedate_to_datetime  # dates are rare here, and it takes long to import

    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def retry_delay(error: Mapping[str, Any]) -> float | None:
    """Return the seconds that Google's `RetryInfo` among an error's details asks for; none without one."""
    details = error.get("details")
    delays = [detail.get("retryDelay") for detail in _objects(details) if "RetryInfo" in str(detail.get("@type"))]
    found = [match for delay in delays if (match := _DELAY.match(str(delay)))]
    return float(found[0][1]) if found else None


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def error_of(body: bytes) -> Mapping[str, Any]:
    """Return the `error` object of a body, whatever the server wrapped it in; empty when there is none."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(data, list) and data:  # some servers answer a list of one
        data = data[0]
    error = data.get("error", data) if isinstance(data, Mapping) else data
    return error if isinstance(error, Mapping) else {"message": str(error)}
