"""An account of Google's: a key file made here, and a loopback server that gives out its tokens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs

from attrs import define, field
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from .loopback import Answer, LoopbackServer, Part, serving

PROJECT = "band-project"
_JSON = (("content-type", "application/json"),)


@cache
def _key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@define
class TokenDesk:
    """Gives out tokens, numbered, and counts who asked."""

    lasts_s: int = 3600
    before: tuple[Part, ...] = ()
    """What happens before the token comes."""
    refusal: Answer | None = None
    given: list[str] = field(factory=list)

    def __call__(self, target: str, headers: dict[str, str], body: bytes) -> Answer | None:
        form = parse_qs(body.decode())
        if target != "/token" or form.get("grant_type") != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
            return Answer(status=400, headers=_JSON, parts=(b'{"error": "invalid_request"}',))
        self.given.append(f"ya29.{len(self.given)}")
        if self.refusal is not None:
            return self.refusal
        token = {"access_token": self.given[-1], "expires_in": self.lasts_s, "token_type": "Bearer"}
        return Answer(headers=_JSON, parts=(*self.before, json.dumps(token).encode()))


REFUSED = Answer(
    status=400, headers=_JSON, parts=(b'{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}',)
)


@asynccontextmanager
async def serving_tokens(folder: Path, desk: TokenDesk) -> AsyncIterator[tuple[LoopbackServer, Path]]:
    """Run the server; give the path of a key file that leads to it."""
    async with serving(desk) as server:
        path = folder / "account.json"
        account = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "1",
            "private_key": _key(),
            "client_email": f"bocchi@{PROJECT}.iam.gserviceaccount.com",
            "token_uri": f"{server.origin}/token",
        }
        path.write_text(json.dumps(account))
        yield server, path
