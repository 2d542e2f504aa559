"""Gates are asked once for each question, in a way that they can verify, and are believed for that question alone."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from starling.controllers.gates import Answer, Gates
from starling.controllers.secrets import Secrets
from starling.kube import Client
from starling.local.pki import Pki
from starling.runtime import Key
from tests.integration.controllers.hub.gate import Asking, Gate, Patient, at, saying
from tests.integration.controllers.hub.stage import Hub
from tests.waiting import until

SIGNING = "the key that nobody may see"
SIGNED = {"secretRef": {"name": "gate"}}
DOCS = Path(__file__).parents[4] / "docs" / "gates.md"


@pytest.fixture
async def asking(hub: Hub) -> AsyncIterator[Asking]:
    """One with access to the hub's Secrets as the controller has it; no secret is logged."""
    clock = Patient()
    async with Client(hub.access) as client:
        gates = Gates(Secrets(client, clock=clock), clock=clock)
        try:
            yield Asking(hub, gates, clock)
        finally:
            await gates.close()
    assert not [line for line in hub.log if SIGNING in line or "v1=" in line]


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    """One that says yes."""
    async with Gate().serving() as gate:
        yield gate


async def test_the_question_is_all_that_is_sent(asking: Asking, gate: Gate) -> None:
    """As JSON, with nothing that the request doesn't need."""
    answer = await asking.answer(at(f"{gate.url}/a/b?c=d"))
    assert answer == Answer(passed=True, message=f"the gate at {gate.url} answered 204")
    [(request, body)] = gate.asked
    sent = json.loads(body)
    assert re.fullmatch("[0-9a-f]{32}", sent.pop("id"))
    assert sent == {
        "kind": "Module", "namespace": asking.hub.namespace, "name": "web", "stage": "eu", "target": "t1:a",
        "revision": "v1@sha1:a",
    }  # fmt: skip
    assert (request.method, request.path_qs) == ("POST", "/a/b?c=d")
    assert {name.lower(): value for name, value in request.headers.items()} == {
        "host": gate.url.removeprefix("http://"),
        "content-type": "application/json",
        "content-length": str(len(body)),
        "user-agent": "starling",
        "connection": "close",
    }


async def test_it_is_signed_as_the_docs_say(asking: Asking, gate: Gate) -> None:
    """The example there takes it for genuine, but not with another key, body or time."""
    await asking.hub.put_secret("gate", {"key": SIGNING})
    await asking.answer(at(gate.url, **SIGNED))
    [(request, body)] = gate.asked
    timestamp, signature = request.headers["Starling-Timestamp"], request.headers["Starling-Signature"]
    example: dict[str, Any] = {}
    [code] = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    exec(code, example)  # noqa: S102 - the example of our own docs
    is_genuine, key = example["is_genuine"], SIGNING.encode()
    assert is_genuine(key, timestamp, signature, body)
    assert not is_genuine(b"another", timestamp, signature, body)
    assert not is_genuine(key, timestamp, signature, body.replace(b"eu", b"us"))
    assert not is_genuine(key, str(int(timestamp) + 1), signature, body)
    assert not is_genuine(key, str(int(timestamp) - 301), signature, body)
    assert not is_genuine(key, "", "", body)


async def test_the_id_is_the_questions_own(asking: Asking, gate: Gate) -> None:
    """The same when it is asked again, another for any other."""
    fields = ["kind", "namespace", "name", "stage", "target", "revision"]
    questions = [asking.question(), *(asking.question(**{name: "other"}) for name in fields), asking.question()]
    for question in questions:
        await asking.answer(at(gate.url), question)
        asking.gates.forget(Key(question.namespace, question.name))
    ids = [json.loads(body)["id"] for _, body in gate.asked]
    assert ids[0] == ids[-1]
    assert len(set(ids)) == len(ids) - 1


@pytest.mark.parametrize("status", [200, 202, 299])
async def test_any_2xx_passes(asking: Asking, gate: Gate, status: int) -> None:
    """And is remembered, without another request."""
    gate.says = saying(status, "well, yes")
    assert (await asking.answer(at(gate.url))).passed
    await asking.clock.advance(3600)
    assert asking.ask(at(gate.url)) == Answer(passed=True, message=f"the gate at {gate.url} answered {status}")
    assert len(gate.asked) == 1


@pytest.mark.parametrize("status", [300, 302, 307, 308, 400, 401, 403, 404, 429, 500, 503])
async def test_anything_else_refuses(asking: Asking, gate: Gate, status: int) -> None:
    """With what it says; and wherever it points to, nobody goes there."""
    gate.says = saying(status, "not on\r\n Fridays\x1b[31m\u202e!\n", Location=f"{gate.url}/elsewhere")
    answer = await asking.answer(at(f"{gate.url}/here"))
    assert not answer.passed
    assert answer.message == f"the gate at {gate.url} answered {status}: not on Fridays [31m !"
    assert [request.path for request, _ in gate.asked] == ["/here"]


async def test_a_refusal_is_cut_short(asking: Asking, gate: Gate) -> None:
    """Also one that never ends, of which 64 KiB are taken."""
    sent = 0

    async def go_on(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=403)
        await response.prepare(request)
        while True:
            await response.write(b"\0no" * 10_000)
            sent += 30_000

    gate.says = go_on
    answer = await asking.answer(at(gate.url, timeout="10m"))
    assert answer.message == f"the gate at {gate.url} answered 403: {('no ' * 100)[:200]}"
    assert sent < 20_000_000  # what lies in buffers


async def test_what_is_sent_back_shows_no_signature(asking: Asking, gate: Gate) -> None:
    """A gate for tests tells what it got, and then a status would show it."""
    await asking.hub.put_secret("gate", {"key": SIGNING})

    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500, text=request.headers["Starling-Signature"])

    gate.says = echo
    assert (await asking.answer(at(gate.url, **SIGNED))).message == f"the gate at {gate.url} answered 500: v1=***"


async def test_an_answer_that_is_no_http(asking: Asking) -> None:
    """What it was isn't quoted, nor is the path of the URL."""

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"root:x:0:0 " * 100 + b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        answer = await asking.answer(at(f"{url}/services/T0KEN?t=T0KEN"))
    assert answer.message == f"the gate at {url}: no answer that makes sense"
    refused = await asking.answer(at(f"{url}/T0KEN"))
    assert refused.message == f"the gate at {url}: Connection refused"


async def test_no_answer_in_time(asking: Asking, gate: Gate) -> None:
    """A gate that keeps silent, or stops in the middle, is one that refuses."""

    async def wait(_: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async def stop(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=403)
        await response.prepare(request)
        await response.write(b"beca")
        return await wait(request)

    for gate.says in (wait, stop):
        answer = await asking.answer(at(gate.url, timeout="1s"))
        assert (answer.passed, answer.message) == (False, f"the gate at {gate.url}: no answer within 1s")
        asking.forget()
    await until(lambda: gate.left == 2)


async def test_a_refusal_is_asked_again_in_time(asking: Asking, gate: Gate) -> None:
    """After five seconds at first, later every two minutes; meanwhile it stands, and then it may be a yes."""
    gate.says = saying(403, "not yet")
    waits = []
    for number in range(1, 9):
        answer = await asking.answer(at(gate.url))
        waits.append(answer.retry_after)
        await asking.clock.advance(answer.retry_after - 0.1)
        again = asking.ask(at(gate.url))
        assert again is not None
        assert (again.message, round(again.retry_after, 6)) == (answer.message, 0.1)
        assert len(gate.asked) == number
        await asking.clock.advance(0.2)
    expected = [5, 10, 20, 40, 80, 120, 120, 120]
    assert all(0.9 * most <= wait <= most for wait, most in zip(waits, expected, strict=True)), waits
    gate.says = saying(200)
    assert (await asking.answer(at(gate.url))).passed


async def test_a_refusal_stands_while_it_is_asked_again(asking: Asking, gate: Gate) -> None:
    """One request is under way at a time, and nobody needs to come back sooner than it can take."""
    gate.says = saying(403, "not yet")
    first = await asking.answer(at(gate.url))
    release = asyncio.Event()

    async def hold(_: web.BaseRequest) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    gate.says = hold
    await asking.clock.advance(5)
    for _ in range(3):
        assert asking.ask(at(gate.url)) == Answer(passed=False, message=first.message, retry_after=10.0)
    await until(lambda: len(gate.asked) == 2)
    release.set()
    await until(lambda: asking.told == 2)
    assert asking.ask(at(gate.url)) == Answer(passed=True, message=f"the gate at {gate.url} answered 200")
    assert len(gate.asked) == 2


@pytest.mark.parametrize("change", ["kind", "stage", "target", "revision", "gate"])
async def test_an_answer_is_for_its_own_question(asking: Asking, gate: Gate, change: str) -> None:
    """A yes, whether it was given already or comes late, is no yes to anything else."""

    async def only_usual(request: web.BaseRequest) -> web.StreamResponse:
        usual = request.path == "/" and b"other" not in gate.asked[-1][1]
        return web.Response(status=200 if usual else 403)

    gate.says = only_usual
    usual, question = at(gate.url), asking.question()
    other = (at(f"{gate.url}/other"), question) if change == "gate" else (usual, asking.question(**{change: "other"}))
    assert (await asking.answer(usual, question)).passed
    assert asking.ask(*other) is None
    assert not (await asking.answer(*other)).passed

    asking.forget()
    release = asyncio.Event()

    async def hold_usual(request: web.BaseRequest) -> web.StreamResponse:
        answer = await only_usual(request)
        await release.wait()
        return answer

    gate.says, before = hold_usual, len(gate.asked)
    asking.ask(usual, question)
    await until(lambda: len(gate.asked) == before + 1)
    asking.ask(*other)
    await until(lambda: len(gate.asked) == before + 2)
    release.set()
    await until(lambda: asking.ask(*other) is not None)
    late = asking.ask(*other)
    assert late is not None
    assert not late.passed


async def test_stages_are_asked_side_by_side(asking: Asking, gate: Gate) -> None:
    """The answer for one isn't lost to the other."""
    for stage in ("eu", "us"):
        assert (await asking.answer(at(gate.url), asking.question(stage=stage))).passed
    assert asking.ask(at(gate.url), asking.question(stage="eu")) is not None
    assert len(gate.asked) == 2


@pytest.mark.parametrize("end", ["forget", "close", "another target", "another revision"])
async def test_what_is_under_way_is_ended(asking: Asking, gate: Gate, end: str) -> None:
    """The gate sees them leave, and nobody is told."""

    async def wait(_: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    gate.says = wait
    asking.ask(at(gate.url, timeout="10m"))
    await until(lambda: len(gate.asked) == 1)
    match end:
        case "forget":
            asking.forget()
        case "close":
            await asking.gates.close()
        case "another target":
            asking.ask(at(gate.url, timeout="10m"), asking.question(target="t1:b", stage="us"))
        case _:
            asking.ask(at(gate.url, timeout="10m"), asking.question(revision="v2@sha1:b"))
    await until(lambda: gate.left == 1)
    assert asking.told == 0


async def test_a_yes_is_forgotten_with_its_object(asking: Asking, gate: Gate) -> None:
    """One of the same name is asked about anew; after the end nothing is."""
    assert (await asking.answer(at(gate.url))).passed
    asking.forget()
    gate.says = saying(403)
    assert not (await asking.answer(at(gate.url))).passed
    await asking.gates.close()
    assert asking.ask(at(gate.url)) is None
    assert len(gate.asked) == 2


def serving_tls(pki: Pki) -> ssl.SSLContext:
    """A server's side, with a certificate for 127.0.0.1."""
    pki.ensure({})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server.certificate, pki.server.key)
    return context


async def test_tls_is_verified(asking: Asking, tmp_path: Path) -> None:
    """With the Secret's authority if it has one, else the machine's; and for the name that the URL has."""
    pki, stranger = Pki(tmp_path / "pki"), Pki(tmp_path / "stranger")
    stranger.ensure({})
    async with Gate().serving(serving_tls(pki)) as good, Gate().serving(serving_tls(pki), "127.0.0.2") as misnamed:
        own, other = (each.authority.certificate.read_text() for each in (pki, stranger))
        await asking.hub.put_secret("own", {"key": SIGNING, "ca.crt": own})
        await asking.hub.put_secret("other", {"key": SIGNING, "ca.crt": other})
        await asking.hub.put_secret("none", {"key": SIGNING})
        for secret in ("other", "none"):
            answer = await asking.answer(at(good.url, secretRef={"name": secret}))
            assert "certificate not trusted" in answer.message
        assert "certificate not trusted" in (await asking.answer(at(good.url))).message
        answer = await asking.answer(at(misnamed.url, secretRef={"name": "own"}))
        assert "not valid for '127.0.0.2'" in answer.message
        assert not good.asked
        assert not misnamed.asked
        assert (await asking.answer(at(good.url, secretRef={"name": "own"}))).passed


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(None, "there is no Secret {}/gate", id="no Secret"),
        pytest.param({"other": SIGNING}, "Secret {}/gate has no entry key to sign with", id="no key"),
        pytest.param({"key": ""}, "Secret {}/gate has no entry key to sign with", id="an empty key"),
        *(
            pytest.param(
                {"key": SIGNING, "ca.crt": wrong},
                "the entry ca.crt of Secret {}/gate holds no certificates as PEM",
                id=f"no authority: {name}",
            )
            for name, wrong in {
                "empty": "",
                "words": "nonsense",
                "umlaut": "ä",
                "damaged": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            }.items()
        ),
    ],
)
async def test_without_what_its_secret_should_hold(
    asking: Asking, gate: Gate, data: dict[str, str] | None, message: str
) -> None:
    """Nothing is sent, unsigned or to someone who isn't known; once it is mended, it is."""
    if data is not None:
        await asking.hub.put_secret("gate", data)
    answer = await asking.answer(at(gate.url, **SIGNED))
    assert answer.message == f"the gate can't be asked: {message.format(asking.hub.namespace)}"
    assert not answer.passed
    assert not gate.asked
    await asking.hub.put_secret("gate", {"key": SIGNING})
    await asking.clock.advance(20)
    assert (await asking.answer(at(gate.url, **SIGNED))).passed
