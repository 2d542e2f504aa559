"""Tokens: a cluster's token for its hub is renewed at half of the life that it was granted."""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Backoff, Clock
from starling.controllers.credentials import KUBECONFIG, Secret, kubeconfig_in
from starling.controllers.following import Troubles
from starling.controllers.secrets import SECRETS
from starling.errors import StarlingError
from starling.kube import Client, Resource
from starling.runtime import Key

__all__ = ["TOKEN_LIFE", "Renewal", "expires_at", "life_of", "renew_at", "request_token", "token_in", "with_token"]

TOKEN_LIFE: Final = timedelta(days=30)
"""What is asked for at first; a hub may grant less, and a renewal asks for what was granted."""

LEAST_LIFE: Final = timedelta(minutes=10)
"""What an API server grants at least."""

NEVER: Final = datetime.max.replace(tzinfo=UTC)
LONGEST_SLEEP: Final = 3600.0
"""Seconds; wall clocks are put right meanwhile, and machines sleep."""

SERVICE_ACCOUNTS: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)


class _Claims(msgspec.Struct):
    exp: float | None = None
    iat: float | None = None


class _TokenStatus(msgspec.Struct):
    token: str

    def __repr__(self) -> str:
        return "_TokenStatus()"


class _TokenRequest(msgspec.Struct):
    status: _TokenStatus


def expires_at(token: str) -> datetime | None:
    """When a token expires; None if it doesn't, or doesn't say."""
    exp = _claims(token).exp
    return None if exp is None else datetime.fromtimestamp(exp, UTC)


def renew_at(token: str, now: datetime) -> datetime:
    """When half of a token's life is over; from now on if it doesn't say when it began, never if it doesn't end."""
    claims = _claims(token)
    if claims.exp is None:
        return NEVER
    began = now.timestamp() if claims.iat is None else claims.iat
    return datetime.fromtimestamp(began + (claims.exp - began) / 2, UTC)


def life_of(token: str) -> timedelta:
    """How long a token lives in all; what is asked for at first if it doesn't say."""
    claims = _claims(token)
    if claims.exp is None or claims.iat is None:
        return TOKEN_LIFE
    return max(LEAST_LIFE, timedelta(seconds=claims.exp - claims.iat))


def _claims(token: str) -> _Claims:
    """What a token says of itself, unverified: its signature is its server's business."""
    _, _, rest = token.partition(".")
    payload = rest.partition(".")[0]
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return _Claims()
    return claims if _sensible(claims.exp) and _sensible(claims.iat) else _Claims()


def _sensible(moment: float | None) -> bool:
    return moment is None or 0 <= moment < NEVER.timestamp() - 86_400


def token_in(kubeconfig: Mapping[str, Any]) -> str:
    """The token of a kubeconfig's current user; empty if it has none."""
    user = _current_user(kubeconfig)
    return str(user.get("token") or "")


def with_token(kubeconfig: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The same kubeconfig with another token for its current user."""
    copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(kubeconfig))
    _current_user(copied)["token"] = token
    return copied


def _current_user(kubeconfig: Mapping[str, Any]) -> dict[str, Any]:
    """The user's own map inside the kubeconfig, which has the shape that `kubeconfig_in` sees to."""
    current = kubeconfig.get("current-context")
    contexts = {each.get("name"): each["context"] for each in kubeconfig.get("contexts") or ()}
    name = contexts.get(current, {}).get("user")
    users: dict[str, dict[str, Any]] = {each.get("name"): each["user"] for each in kubeconfig.get("users") or ()}
    return users.get(name, {})


async def request_token(client: Client, account: Key, life: timedelta = TOKEN_LIFE) -> str:
    """A new token for an account."""
    path = f"{SERVICE_ACCOUNTS.ref(account.name, account.namespace).path}/token"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": int(life.total_seconds())},
    }
    return (await client.raw("POST", path, body=body)).decode(_TokenRequest).status.token


class Renewal:
    """Keeps the token in a kubeconfig Secret fresh. Who connects with that Secret does so anew when it has changed."""

    def __init__(
        self,
        hub: Client,
        local: Client,
        *,
        secret: Key,
        kubeconfig: Mapping[str, Any],
        account: Key,
        settle: float,
        troubles: Troubles,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._hub, self._local = hub.once(), local.once()
        self._secret, self._kubeconfig, self._account = secret, kubeconfig, account
        self._settle, self._troubles, self._clock = settle, troubles, clock

    async def run(self) -> None:
        """Wait until it is time, renew, and end: another connection has the new one.

        The first look is `settle` seconds from now: where clocks disagree, every new token is old already.
        """
        await self._clock.sleep(self._settle)
        due = renew_at(token_in(self._kubeconfig), self._clock.now())
        while (left := (due - self._clock.now()).total_seconds()) > 0:
            await self._clock.sleep(min(left, LONGEST_SLEEP))
        backoff = Backoff(1.0, 300.0)
        while True:
            try:
                with self._troubles.of("renew the token"):
                    await self.renew()
            except StarlingError:  # told as trouble
                await self._clock.sleep(backoff.next())
            else:
                return

    async def renew(self) -> None:
        """Ask for a new token and put it into the Secret, unless another kubeconfig has come there meanwhile."""
        ref = SECRETS.ref(self._secret.name, self._secret.namespace)
        there = (await self._local.get(ref)).decode(Secret)
        if kubeconfig_in(there, self._secret) != self._kubeconfig:
            return
        life = life_of(token_in(self._kubeconfig))
        fresh = with_token(self._kubeconfig, await request_token(self._hub, self._account, life))
        data = {KUBECONFIG: base64.b64encode(msgspec.json.encode(fresh)).decode()}
        await self._local.merge_patch(
            ref, {"metadata": {"resourceVersion": there.metadata.resource_version}, "data": data}
        )
