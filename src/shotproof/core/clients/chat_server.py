"""Asking a server that speaks the OpenAI chat protocol, many questions at a time, and what to do when it fails."""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from shotproof.core.errors import InputError, MissingExtra
from shotproof.core.options import Component, option
from shotproof.core.text import SHORTEST_SECRET, masked, storable
from shotproof.core.trust import Reach

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Content = Sequence[dict[str, Any]]
"""Parts of a message: {"type": "text", "text": ...}, {"type": "image_url", ...}, {"type": "input_audio", ...}."""

URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
_OF_THIS_MACHINE = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[\w./-]*)?")
LONGEST_WAIT = 300.0  # seconds; a server that asks for more is asked again after these
BYTES_PER_TOKEN = 64  # of an answer: a long word, or ten characters of which each is escaped
ENVELOPE = 2**16  # bytes of what a server sends around an answer
LONGEST_MESSAGE = 300  # characters of what a server says of an error


class FailedRequest(Exception):
    """No answer came of a request; another try, or another question, may fare better."""

    def __init__(self, message: str, connected: bool = True, wait: float = 0.0) -> None:
        super().__init__(message)
        self.connected = connected
        self.wait = wait  # seconds that the server asks for


@dataclass(frozen=True)
class ServerOptions(Component):
    """The options of whatever asks a model on a server. Neither the server nor the key is recorded."""

    model: str = option(help="the model's name on the server")
    url: str | None = option(None, f"the address before /chat/completions; None: ${URL_VARIABLE}", recorded=False)
    api_key_variable: str = option(KEY_VARIABLE, "the environment variable that holds the key", recorded=False)
    concurrency: int = option(8, "requests at a time", least=1, most=256, recorded=False)
    retries: int = option(5, "how often a failed request is made again", least=0, most=100, recorded=False)
    timeout: float = option(
        60.0, "seconds that a request may take, from connecting to the last byte", above=0, most=86_400, recorded=False
    )
    backoff: float = option(1.0, "seconds before a request is made again", least=0, most=LONGEST_WAIT, recorded=False)

    def reaches(self) -> Iterator[Reach]:
        """Add a server elsewhere, and a key from a variable of its own choice."""
        yield from super().reaches()
        if self.url is not None and not _OF_THIS_MACHINE.fullmatch(self.url):
            yield Reach(f"{self._title} sends items, and the key in ${self.api_key_variable}, to {self.url}", self.url)
        elif self.api_key_variable != KEY_VARIABLE:
            yield Reach(f"{self._title} sends ${self.api_key_variable} as the key of a server", self.api_key_variable)
        else:
            where = self.url or f"the server in ${URL_VARIABLE}"
            yield Reach(f"{self._title} sends items to {where}", self.url or "", is_data=True)

    def server(self) -> ChatServer:
        """The server; InputError where its address or the key cannot be used."""
        url = self.url or os.environ.get(URL_VARIABLE)
        if not url:
            raise InputError(f"{self._title} needs url, or the variable {URL_VARIABLE}: e.g. {self.example}")
        key = os.environ.get(self.api_key_variable, "")
        return ChatServer(url, self.model, key, self.retries, self.timeout, self.backoff, self._title)


class ChatServer:
    """A model on a server. Use it as an async context; several questions may be under way at once.

    A request that takes longer than `timeout` seconds in all has failed, however steadily its answer trickles in. One
    that fails is made again: after `backoff` seconds, then twice as many each time, or as many as the server asks for.
    Redirects are not followed, and neither messages nor answers repeat the key. An answer may have as many bytes as
    `max_tokens` can take, and is asked for, and taken, without compression.
    """

    def __init__(
        self, url: str, model: str, key: str, retries: int, timeout: float, backoff: float, asked_by: str
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra(asked_by, "endpoint") from error
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{asked_by}: the key in the environment has characters that no key has")
        self._httpx = httpx
        self._model = model
        self._url = self._completions_url(url, asked_by)
        self._shown_url = str(self._url.copy_with(userinfo=b"", query=None))
        self._key = key
        self._retries = retries
        self._timeout = timeout
        self._backoff = backoff

    async def __aenter__(self) -> Self:
        headers = {"Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        limits = self._httpx.Limits(max_connections=None)  # the caller bounds how many questions are under way
        # Half of the time to connect, so that a server that is not there is told from one that is slow.
        timeout = self._httpx.Timeout(None, connect=self._timeout / 2)
        self._client = self._httpx.AsyncClient(headers=headers, timeout=timeout, limits=limits)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def ask(self, content: Content, max_tokens: int, *, may_be_empty: bool = False) -> str:
        """The model's answer, at temperature 0.

        Args:
            content: the parts of the question
            max_tokens: the longest answer
            may_be_empty: whether an answer without text is one, and is not asked for again

        Raises:
            FailedRequest: after all tries.
            InputError: no other question would fare better.
        """
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": list(content)}],
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        failures: list[FailedRequest] = []
        while len(failures) <= self._retries:
            try:
                answer = await self._try(body)
                if answer.strip() or may_be_empty:
                    return answer
                raise FailedRequest("the server's answer has no text")
            except FailedRequest as failure:
                failures.append(failure)
            if len(failures) <= self._retries:
                delay = self._backoff * 2 ** (len(failures) - 1)
                await asyncio.sleep(min(max(delay, failures[-1].wait), LONGEST_WAIT))
        if not any(failure.connected for failure in failures):
            raise InputError(f"no server can be reached at {self._shown_url}: {failures[-1]}")
        raise FailedRequest(f"{failures[-1]} (after {len(failures)} tries)")

    def ask_all(self, questions: Iterable[T], answer: Callable[[T], Awaitable[None]], at_once: int) -> None:
        """Do what `answer` does for each question, so many at once; the first error ends it.

        It runs to the end also from a notebook, where an event loop is running already.
        """
        work = self._answer_all(iter(questions), answer, at_once)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(work)
            return
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, work).result()

    async def _answer_all(self, questions: Iterable[T], answer: Callable[[T], Awaitable[None]], at_once: int) -> None:
        """So many workers as there may be requests at once, each with one question at a time."""

        async def work() -> None:
            for question in questions:
                await answer(question)

        async with self:
            workers = [asyncio.create_task(work()) for _ in range(at_once)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _try(self, body: dict[str, Any]) -> str:
        largest = ENVELOPE + BYTES_PER_TOKEN * body["max_tokens"]
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, json=body) as response,
            ):
                said = await _read(response, largest)
        except TimeoutError as error:
            raise FailedRequest(f"no whole answer within timeout={self._timeout:g} seconds") from error
        except (self._httpx.ConnectError, self._httpx.ConnectTimeout) as error:
            raise FailedRequest(self._shown(_described(error)), connected=False) from error
        except self._httpx.HTTPError as error:
            raise FailedRequest(self._shown(_described(error))) from error
        if response.is_success:
            return self._answer_in(response, said, largest)
        message = self._shown(f"{response.status_code} {response.reason_phrase}: {_message_in(said)}")
        if response.status_code in (408, 429) or response.is_server_error:
            raise FailedRequest(f"the server answered {message}", wait=_retry_after(response))
        raise InputError(f"the server at {self._shown_url} refuses: {message}")

    def _answer_in(self, response: httpx.Response, body: bytes, largest: int) -> str:
        """The text of an answer, which may be kept: without the key, and of whole characters."""
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.strip().lower() not in ("", "identity"):
            raise InputError(
                f"the server at {self._shown_url} compresses its answers ({self._shown(encoding)}) though asked not to"
            )
        if len(body) > largest:
            raise FailedRequest(f"the server's answer has more than {largest:,} bytes, too many for max_tokens")
        try:
            answer = json.loads(body)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise FailedRequest("the server's answer is no chat completion") from error
        if not isinstance(answer, str):
            return ""  # null: a refusal, or all tokens went into thinking
        # A placeholder in place of a key is no secret, and may be the name of a class.
        return storable(masked(answer, self._key) if len(self._key) >= SHORTEST_SECRET else answer)

    def _shown(self, text: str) -> str:
        """What a server or the connection says, on one line: the key is masked before the line is cut."""
        return storable(masked(" ".join(text.split()), self._key)[:LONGEST_MESSAGE])

    def _completions_url(self, url: str, asked_by: str) -> httpx.URL:
        try:
            parsed = self._httpx.URL(url)
        except (self._httpx.InvalidURL, TypeError):
            parsed = self._httpx.URL("")
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InputError(f"{asked_by}: url: expected an address such as http://localhost:8000/v1")
        return parsed.copy_with(path=parsed.path.rstrip("/") + "/chat/completions")


async def _read(response: httpx.Response, largest: int) -> bytes:
    """The body as it was sent, not decompressed; of one that is too large no more than shows that it is."""
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > largest:
            break
    return bytes(body)


def _message_in(body: bytes) -> str:
    """What the server says of an error."""
    try:
        said = json.loads(body)
        said = said.get("error") or said.get("message") or said.get("detail") or said
        return str(said.get("message", said) if isinstance(said, dict) else said)
    except (ValueError, AttributeError, RecursionError):
        return body.decode("utf-8", "replace")


def _retry_after(response: httpx.Response) -> float:
    """Seconds that a server asks for, as a number or as a date; 0 where it asks for none."""
    asked = response.headers.get("Retry-After", "")
    if asked.strip().isdecimal():
        return float(asked)
    try:
        until = email.utils.parsedate_to_datetime(asked)
    except (ValueError, OverflowError):
        return 0.0
    now = datetime.datetime.now(until.tzinfo)
    return max((until - now).total_seconds(), 0.0)


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__
