"""Client for servers with the OpenAI chat API: concurrent requests, retries, and limits on the answers."""

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
from shotproof.core.nouns import counted
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
_LOCAL_URL = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[\w./-]*)?")
LONGEST_WAIT = 300.0  # seconds; a server that asks for a longer wait is asked again after these
BYTES_PER_TOKEN = 64  # of an answer: enough for a long word, or ten escaped characters
ENVELOPE = 2**16  # bytes that a server sends around an answer
LONGEST_MESSAGE = 300  # characters of a server's error message


class FailedRequest(Exception):
    """Request without a usable answer; a retry, or another question, may succeed."""

    def __init__(self, message: str, connected: bool = True, wait: float = 0.0) -> None:
        super().__init__(message)
        self.connected = connected
        self.wait = wait  # seconds to wait, as requested by the server


@dataclass(frozen=True)
class ServerOptions(Component):
    """Options of components that query a model on a server. Neither the server nor the key is recorded."""

    model: str = option(help="name of the model on the server")
    url: str | None = option(
        None, f"the server's address, without /chat/completions; None: ${URL_VARIABLE}", recorded=False
    )
    api_key_variable: str = option(KEY_VARIABLE, "environment variable that holds the API key", recorded=False)
    concurrency: int = option(8, "concurrent requests", least=1, most=256, recorded=False)
    retries: int = option(5, "how often a failed request is repeated", least=0, most=100, recorded=False)
    timeout: float = option(
        60.0, "seconds that a request may take, from connecting to the last byte", above=0, most=86_400, recorded=False
    )
    backoff: float = option(1.0, "seconds before the first retry", least=0, most=LONGEST_WAIT, recorded=False)

    def reaches(self) -> Iterator[Reach]:
        """Yield the server that items are sent to, and the variable of the key if it is not the default."""
        yield from super().reaches()
        if self.url is not None and not _LOCAL_URL.fullmatch(self.url):
            yield Reach(f"{self._title} sends items, and the key in ${self.api_key_variable}, to {self.url}", self.url)
        elif self.api_key_variable != KEY_VARIABLE:
            yield Reach(f"{self._title} sends ${self.api_key_variable} to a server as its key", self.api_key_variable)
        else:
            address = self.url or f"the server in ${URL_VARIABLE}"
            yield Reach(f"{self._title} sends items to {address}", self.url or "", is_data=True)

    def server(self) -> ChatServer:
        """Create the client. Raise InputError if the address or the key is invalid."""
        url = self.url or os.environ.get(URL_VARIABLE)
        if not url:
            raise InputError(
                f"{self._title} needs url, or the environment variable {URL_VARIABLE}: e.g. {self.example}"
            )
        key = os.environ.get(self.api_key_variable, "")
        return ChatServer(url, self.model, key, self.retries, self.timeout, self.backoff, self._title)


class ChatServer:
    """Model on a server. Use it as an async context manager; several requests may run at once.

    A request fails if it takes longer than `timeout` seconds in total, even if data keeps arriving. A failed request is
    repeated after `backoff` seconds, twice as many after each further failure, or as many as the server asks for.
    Redirects are not followed, and the key never appears in messages or answers. Answers are limited to the bytes that
    `max_tokens` can need, and are requested and accepted only without compression.
    """

    def __init__(
        self, url: str, model: str, key: str, retries: int, timeout: float, backoff: float, requester: str
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra(requester, "endpoint") from error
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{requester}: the key in the environment is invalid: expected printable ASCII characters")
        self._httpx = httpx
        self._model = model
        self._url = self._completions_url(url, requester)
        self._public_url = str(self._url.copy_with(userinfo=b"", query=None))
        self._key = key
        self._retries = retries
        self._timeout = timeout
        self._backoff = backoff

    async def __aenter__(self) -> Self:
        headers = {"Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        limits = self._httpx.Limits(max_connections=None)  # the caller limits concurrency
        # Half of the time for connecting, so that an unreachable server is distinguished from a slow one.
        timeout = self._httpx.Timeout(None, connect=self._timeout / 2)
        self._client = self._httpx.AsyncClient(headers=headers, timeout=timeout, limits=limits)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def ask(self, content: Content, max_tokens: int, *, may_be_empty: bool = False) -> str:
        """Send a question, and return the model's answer at temperature 0.

        Args:
            content: the parts of the question
            max_tokens: the maximum length of the answer
            may_be_empty: whether to accept an answer without text instead of asking again

        Raises:
            FailedRequest: all attempts failed.
            InputError: the server cannot be reached or refuses the request, so other questions would fail too.
        """
        request = {
            "model": self._model,
            "messages": [{"role": "user", "content": list(content)}],
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        failures: list[FailedRequest] = []
        while len(failures) <= self._retries:
            try:
                answer = await self._try(request)
                if answer.strip() or may_be_empty:
                    return answer
                raise FailedRequest("the server's answer has no text")
            except FailedRequest as failure:
                failures.append(failure)
            if len(failures) <= self._retries:
                delay = self._backoff * 2 ** (len(failures) - 1)
                await asyncio.sleep(min(max(delay, failures[-1].wait), LONGEST_WAIT))
        if not any(failure.connected for failure in failures):
            raise InputError(f"cannot reach a server at {self._public_url}: {failures[-1]}")
        raise FailedRequest(f"{failures[-1]} (after {counted(len(failures), 'attempt')})")

    def ask_all(self, questions: Iterable[T], answer: Callable[[T], Awaitable[None]], at_once: int) -> None:
        """Call `answer` for each question, several at once, until all are done or one raises an error.

        It also works in a notebook, where an event loop is already running.

        Args:
            questions: the questions
            answer: asks one question and stores its answer
            at_once: the number of concurrent questions
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
        """Answer all questions with `at_once` workers, each with one question at a time."""

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

    async def _try(self, request: dict[str, Any]) -> str:
        largest = ENVELOPE + BYTES_PER_TOKEN * request["max_tokens"]
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, json=request) as response,
            ):
                body = await _read(response, largest)
        except TimeoutError as error:
            raise FailedRequest(f"no complete answer within the timeout of {self._timeout:g} seconds") from error
        except (self._httpx.ConnectError, self._httpx.ConnectTimeout) as error:
            raise FailedRequest(self._excerpt(_describe(error)), connected=False) from error
        except self._httpx.HTTPError as error:
            raise FailedRequest(self._excerpt(_describe(error))) from error
        if response.is_success:
            return self._extract_answer(response, body, largest)
        message = self._excerpt(f"{response.status_code} {response.reason_phrase}: {_extract_error(body)}")
        if response.status_code in (408, 429) or response.is_server_error:
            raise FailedRequest(f"the server answered {message}", wait=_retry_after(response))
        raise InputError(f"the server at {self._public_url} refused the request: {message}")

    def _extract_answer(self, response: httpx.Response, body: bytes, largest: int) -> str:
        """Extract the text of an answer, with the key masked and invalid characters replaced."""
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.strip().lower() not in ("", "identity"):
            raise InputError(
                f"the server at {self._public_url} compresses its answers ({self._excerpt(encoding)}); "
                "expected no compression"
            )
        if len(body) > largest:
            raise FailedRequest(f"the server's answer has more than {largest:,} bytes, too many for max_tokens")
        try:
            answer = json.loads(body)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise FailedRequest("the server's answer is not a chat completion") from error
        if not isinstance(answer, str):
            return ""  # null: a refusal, or all tokens were used for reasoning
        # A placeholder instead of a key is no secret, and may be the name of a class.
        return storable(masked(answer, self._key) if len(self._key) >= SHORTEST_SECRET else answer)

    def _excerpt(self, text: str) -> str:
        """Shorten a message of the server or the connection to one line, with the key masked first."""
        return storable(masked(" ".join(text.split()), self._key)[:LONGEST_MESSAGE])

    def _completions_url(self, url: str, requester: str) -> httpx.URL:
        try:
            parsed = self._httpx.URL(url)
        except (self._httpx.InvalidURL, TypeError):
            parsed = self._httpx.URL("")
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InputError(f"{requester}: url: expected an address such as http://localhost:8000/v1")
        return parsed.copy_with(path=parsed.path.rstrip("/") + "/chat/completions")


async def _read(response: httpx.Response, largest: int) -> bytes:
    """Read the body as sent, without decompression; stop as soon as it is larger than allowed."""
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > largest:
            break
    return bytes(body)


def _extract_error(body: bytes) -> str:
    """Extract the error message from the body of a response."""
    try:
        document = json.loads(body)
        message = document.get("error") or document.get("message") or document.get("detail") or document
        return str(message.get("message", message) if isinstance(message, dict) else message)
    except (ValueError, AttributeError, RecursionError):
        return body.decode("utf-8", "replace")


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds in the Retry-After header, given as a number or a date; 0 if there is none."""
    header = response.headers.get("Retry-After", "")
    if header.strip().isdecimal():
        return float(header)
    try:
        until = email.utils.parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return 0.0
    now = datetime.datetime.now(until.tzinfo)
    return max((until - now).total_seconds(), 0.0)


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
