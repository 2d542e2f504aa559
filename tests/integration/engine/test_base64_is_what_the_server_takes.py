"""A Secret's value is base64 to us just when the API server can decode it."""

import random

from starling.engine.prepare import prepare
from starling.engine.unit import Unit
from starling.kube import ApiError, Client
from starling.objects import Manifest, ManifestError
from tests.integration.engine.edits import SECRETS, Json
from tests.rounds import ROUNDS

UNIT = Unit(id="home/shop/Sync.web@edge", cluster="edge")
SIGNS = ("A", "Q", "z", "7", "+", "/", "=", "=", "\n", "\r", " ", "-", "_", "ü", "\t")
WEIGHTS = (6, 6, 6, 6, 2, 2, 4, 4, 2, 1, 0.3, 0.2, 0.2, 0.2, 0.2)


async def taken(client: Client, namespace: str, content: Json) -> bool:
    """Whether the server takes a Secret."""
    try:
        await client.apply(SECRETS.ref("web", namespace), content, dry_run=True)
    except ApiError as error:
        if "base64" in error.message:
            return False
        raise
    return True


def prepared(content: Json) -> bool:
    """Whether we take it."""
    try:
        prepare([Manifest(content)], UNIT, {SECRETS.gvk: SECRETS})
    except ManifestError:
        return False
    return True


async def test_random_values(client: Client, namespace: str) -> None:
    """Texts of the alphabet, of padding and of what is passed over or isn't."""
    rng = random.Random(ROUNDS)
    verdicts = set()
    for _ in range(150 * ROUNDS):
        value = "".join(rng.choices(SIGNS, WEIGHTS, k=rng.randrange(10)))
        content = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": {"value": value}}
        verdict = await taken(client, namespace, content)
        assert prepared(content) is verdict, repr(value)
        verdicts.add(verdict)
    assert verdicts == {True, False}
