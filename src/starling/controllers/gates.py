"""Gates: URLs that are asked whether a rollout's stage may start.

    ask → None                          it is being asked; `answered` is called when there is an answer
    ask → Answer(passed=False, …)       it said no, or nothing; asked again by whoever asks after `retry_after`
    ask → Answer(passed=True, …)        remembered until `forget`, or until the object asks about another target

Whoever may write a policy chooses the URL, so the hub gives away as little as it can: one POST of the question, no
credentials, no cookies, no redirects, and of what comes back the status and 200 characters of text. Neither the path
nor the query of a URL is told, since for some services these are the secret.
"""

import asyncio
import hashlib
import hmac
import logging
import os
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import aiohttp
import msgspec
from yarl import URL

from starling.aio import SYSTEM_CLOCK, Backoff, Clock
from starling.api.durations import seconds
from starling.api.v1alpha1 import RolloutGate
from starling.controllers.secrets import Secrets
from starling.errors import InputError, StarlingError
from starling.runtime import Key

__all__ = ["Answer", "Gates", "Question"]

LOG = logging.getLogger(__name__)

FIRST_RETRY: Final = 5.0
LONGEST_RETRY: Final = 120.0
MOST_READ: Final = 64 * 1024
MOST_TOLD: Final = 200
KEY: Final = "key"
CA: Final = "ca.crt"


class Question(msgspec.Struct, frozen=True):
    """Whether this stage of this rollout may start."""

    kind: str
    namespace: str
    name: str
    stage: str
    target: str
    revision: str

    @property
    def body(self) -> bytes:
        """What is sent. The id is the question's own: however often it is asked, and by which process."""
        fields = msgspec.structs.asdict(self)
        return msgspec.json.encode(fields | {"id": hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:32]})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate said, in one line; `retry_after` is in how many seconds to come again, if it isn't passed."""

    passed: bool
    message: str
    retry_after: float = 0.0


@dataclass(slots=True)
class _Asked:
    """One question to one gate. Mutable: the last answer, when to ask again, and the asking that is under way."""

    question: Question
    gate: RolloutGate
    answered: Callable[[], None]
    answer: Answer | None = None
    due: float = 0.0
    task: asyncio.Task[None] | None = None
    backoff: Backoff = field(default_factory=lambda: Backoff(FIRST_RETRY, LONGEST_RETRY, jitter=0.1))

    def drop(self) -> None:
        """Have nobody hear of it any more."""
        if self.task is not None:
            self.task.cancel()


class Gates:
    """Asks the gates of one kind of object, by its keys. Mutable: what was asked and answered, and the session."""

    def __init__(self, secrets: Secrets, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._secrets = secrets
        self._clock = clock
        self._asked: dict[Key, list[_Asked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    def ask(self, key: Key, question: Question, gate: RolloutGate, answered: Callable[[], None]) -> Answer | None:
        """The answer to this very question by this very gate, if there is one; at once.

        If there is none, or it was a no and its time is over, the gate is asked meanwhile, and then `answered` called.
        """
        asked = self._entry(key, question, gate, answered)
        asked.answered = answered
        now = self._clock.monotonic()
        answer = asked.answer
        if answer is not None and (answer.passed or now < asked.due):
            return answer if answer.passed else replace(answer, retry_after=asked.due - now)
        if asked.task is None and not self._closed:
            asked.task = asyncio.get_running_loop().create_task(self._find_out(asked))
            self._tasks.add(asked.task)
            asked.task.add_done_callback(self._tasks.discard)
        return None if answer is None else replace(answer, retry_after=seconds(gate.timeout))

    def forget(self, key: Key) -> None:
        """Drop what an object has asked and heard, and end what is under way; its `answered` isn't called."""
        for asked in self._asked.pop(key, ()):
            asked.drop()

    async def run(self) -> None:
        """End all that is under way when this is cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """End all that is under way; nothing is asked any more."""
        self._closed = True
        for key in list(self._asked):
            self.forget(key)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # aborted TLS connections give up their sockets in the loop's next turn

    def _entry(self, key: Key, question: Question, gate: RolloutGate, answered: Callable[[], None]) -> _Asked:
        """What is known of the question. What was asked for another target, or of another gate, is no longer wanted."""
        entries = self._asked.setdefault(key, [])
        for each in [each for each in entries if _outdated(each, question, gate)]:
            entries.remove(each)
            each.drop()
        for each in entries:
            if each.question == question:
                return each
        entries.append(_Asked(question, gate, answered))
        return entries[-1]

    async def _find_out(self, asked: _Asked) -> None:
        """Ask, and keep the answer where the question is: once that was dropped, nobody finds it."""
        try:
            asked.answer = await self._answer(asked.question, asked.gate)
        except StarlingError as error:
            asked.answer = Answer(passed=False, message=f"the gate can't be asked: {error.message}")
        except Exception:
            # The gate's answer may be what brought it about, and mustn't hold the rollout up without a word.
            LOG.exception("gate of %s: an error that nobody expected", _whose(asked.question))
            asked.answer = Answer(passed=False, message="the gate can't be asked: an error that nobody expected")
        finally:
            asked.task = None
        if not asked.answer.passed:
            asked.due = self._clock.monotonic() + asked.backoff.next()
        asked.answered()

    async def _answer(self, question: Question, gate: RolloutGate) -> Answer:
        key, tls = await self._trust(question.namespace, gate)
        body = question.body
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers |= _signed(key, int(self._clock.now().timestamp()), body)
        place = _origin(gate.url)
        try:
            status, text = await self._post(gate, body, headers, tls)
        except (aiohttp.ClientError, TimeoutError) as error:
            return Answer(passed=False, message=f"the gate at {place}: {_describe(error, gate)}")
        if 200 <= status < 300:
            return Answer(passed=True, message=f"the gate at {place} answered {status}")
        # A gate for tests may well send back what it got.
        told = _told(text, headers.get("Starling-Signature", ""))
        return Answer(passed=False, message=f"the gate at {place} answered {status}{': ' if told else ''}{told}")

    async def _trust(self, namespace: str, gate: RolloutGate) -> tuple[bytes | None, ssl.SSLContext | None]:
        """What to sign with, and whom to trust; absent: nothing, and the machine's own authorities."""
        if gate.secret_ref is None:
            return None, None
        name = f"{namespace}/{gate.secret_ref.name}"
        data = await self._secrets.data(namespace, gate.secret_ref.name)
        if data is None:
            raise InputError(f"there is no Secret {name}")
        if not data.get(KEY):
            raise InputError(f"Secret {name} has no entry {KEY} to sign with")
        return data[KEY], _trusting(data[CA], name) if CA in data else None

    async def _post(
        self, gate: RolloutGate, body: bytes, headers: dict[str, str], tls: ssl.SSLContext | None
    ) -> tuple[int, bytes]:
        """The status, and the beginning of what a refusal says."""
        response = await self._opened_session().post(
            URL(gate.url),
            data=body,
            headers=headers,
            ssl=tls if tls is not None else True,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=seconds(gate.timeout)),
        )
        text = b""
        try:
            while response.status >= 300 and (more := await response.content.read(MOST_READ - len(text))):
                text += more
        finally:
            _let_go(response)
        return response.status, text

    def _opened_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A stage that waits has one request under way: nobody queues behind another's gate, or stays connected.
                connector=aiohttp.TCPConnector(
                    limit=0, force_close=True, enable_cleanup_closed=sys.version_info < (3, 12, 7)
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "starling"},
                skip_auto_headers=("Accept", "Accept-Encoding"),
                auto_decompress=False,
            )
        return self._session


def _outdated(asked: _Asked, question: Question, gate: RolloutGate) -> bool:
    if asked.question.target != question.target:
        return True
    return asked.question.stage == question.stage and (asked.question, asked.gate) != (question, gate)


def _whose(question: Question) -> str:
    return f"{question.kind} {question.namespace}/{question.name}, stage {question.stage}"


def _signed(key: bytes, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers by which a gate knows that it is us who ask, and now."""
    signature = hmac.new(key, b"%d." % timestamp + body, hashlib.sha256).hexdigest()
    return {"Starling-Timestamp": str(timestamp), "Starling-Signature": f"v1={signature}"}


def _trusting(authority: bytes, secret: str) -> ssl.SSLContext:
    """Trust in that authority and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise InputError(f"the entry {CA} of Secret {secret} holds no certificates as PEM") from error
    return context


def _origin(url: str) -> str:
    """Whom a URL is about: scheme, host and port."""
    try:
        return str(URL(url).origin())
    except ValueError as error:
        raise InputError("its URL can't be read", hint="write it as https://gate.example/path") from error


def _told(text: bytes, signature: str) -> str:
    """What people get to see of an answer: one short line."""
    words = text.decode(errors="replace")
    if signature:
        words = words.replace(signature.removeprefix("v1="), "***")
    line = " ".join("".join(each if each.isprintable() else " " for each in words).split())
    return line[:MOST_TOLD]


def _describe(error: Exception, gate: RolloutGate) -> str:
    """A short sentence; aiohttp's own quote the answer, or the URL."""
    match error:
        case TimeoutError():
            return f"no answer within {gate.timeout}"
        case aiohttp.ClientConnectorCertificateError():
            return f"certificate not trusted ({error.certificate_error})"
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError() as cause):
            return f"TLS failed ({cause.reason or 'no reason given'})"
        case aiohttp.ClientConnectorError(os_error=cause):
            known = os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror
            return known or "no connection"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | aiohttp.ClientPayloadError():
            return "the connection was closed before the answer was complete"
        case _:
            return "no answer that makes sense"


def _let_go(response: aiohttp.ClientResponse) -> None:
    """End an exchange at once: a polite end would wait for a server that may not be polite."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()
