"""One request per image to a server that speaks the OpenAI chat protocol, and what to do when it fails."""

from __future__ import annotations

import asyncio
import datetime
import email.utils
from types import TracebackType
from typing import TYPE_CHECKING, Self

from shotproof.core.errors import InputError, MissingExtra

if TYPE_CHECKING:
    import httpx

MAX_TOKENS = 100
LONGEST_WAIT = 300.0  # seconds; a server that asks for more is asked again after these


class FailedRequest(Exception):
    """No caption came of a request; another try, or another image, may fare better."""

    def __init__(self, message: str, connected: bool = True, wait: float = 0.0) -> None:
        super().__init__(message)
        self.connected = connected
        self.wait = wait  # seconds that the server asks for


class ChatServer:
    """A server that captions images. Use it as an async context; several captions may be under way at once."""

    def __init__(
        self, url: str, model: str, prompt: str, key: str, retries: int, timeout: float, backoff: float
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra("detector 'endpoint'", "endpoint") from error
        if not (key.isascii() and key.isprintable()):
            raise InputError("detector 'endpoint': the key in the environment has characters that no key has")
        self._httpx = httpx
        self._model = model
        self._prompt = prompt
        self._url = self._completions_url(url)
        self._shown_url = str(self._url.copy_with(userinfo=b"", query=None))
        self._key = key
        self._retries = retries
        self._timeout = timeout
        self._backoff = backoff

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = self._httpx.Limits(max_connections=None)  # the caller bounds how many captions are under way
        self._client = self._httpx.AsyncClient(headers=headers, timeout=self._timeout, limits=limits)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def caption(self, image_url: str) -> str:
        """The caption of an image; FailedRequest after all tries, InputError where no image would fare better."""
        failures: list[FailedRequest] = []
        while len(failures) <= self._retries:
            try:
                return await self._try(image_url)
            except FailedRequest as failure:
                failures.append(failure)
            if len(failures) <= self._retries:
                delay = self._backoff * 2 ** (len(failures) - 1)
                await asyncio.sleep(min(max(delay, failures[-1].wait), LONGEST_WAIT))
        if not any(failure.connected for failure in failures):
            raise InputError(f"no server can be reached at {self._shown_url}: {failures[-1]}")
        raise FailedRequest(f"{failures[-1]} (after {len(failures)} tries)")

    async def _try(self, image_url: str) -> str:
        content = [
            {"type": "text", "text": self._prompt},
            {"type": "image_url", "image_url": {"url": image_url}},
        ]
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": MAX_TOKENS,
            "temperature": 0,
        }
        try:
            response = await self._client.post(self._url, json=body)
        except (self._httpx.ConnectError, self._httpx.ConnectTimeout) as error:
            raise FailedRequest(_described(error), connected=False) from error
        except self._httpx.HTTPError as error:
            raise FailedRequest(_described(error)) from error
        if response.is_success:
            return _caption_in(response)
        message = f"{response.status_code} {response.reason_phrase}: {self._server_message(response)}"
        if response.status_code in (408, 429) or response.is_server_error:
            raise FailedRequest(f"the server answered {message}", wait=_retry_after(response))
        raise InputError(f"the server at {self._shown_url} refuses: {message}")

    def _completions_url(self, url: str) -> httpx.URL:
        try:
            parsed = self._httpx.URL(url)
        except (self._httpx.InvalidURL, TypeError):
            parsed = self._httpx.URL("")
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InputError("detector 'endpoint': url: expected an address such as http://localhost:8000/v1")
        return parsed.copy_with(path=parsed.path.rstrip("/") + "/chat/completions")

    def _server_message(self, response: httpx.Response) -> str:
        """What the server says of an error, on one line, without the key."""
        try:
            said = response.json()
            said = said.get("error") or said.get("message") or said.get("detail") or said
            said = said.get("message", said) if isinstance(said, dict) else said
        except (ValueError, AttributeError, RecursionError):
            said = response.text
        line = " ".join(str(said).split())[:300]
        return line.replace(self._key, "***") if self._key else line


def _caption_in(response: httpx.Response) -> str:
    try:
        caption = response.json()["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise FailedRequest("the server's answer is no chat completion") from error
    if not isinstance(caption, str) or not caption.strip():
        raise FailedRequest("the server's answer has no text")
    return " ".join(caption.split())


def _retry_after(response: httpx.Response) -> float:
    """Seconds that a server asks for, as a number or as a date; 0 where it asks for none."""
    asked = response.headers.get("Retry-After", "")
    if asked.strip().isdecimal():
        return float(asked)
    try:
        until = email.utils.parsedate_to_datetime(asked)
    except ValueError:
        return 0.0
    now = datetime.datetime.now(until.tzinfo)
    return max((until - now).total_seconds(), 0.0)


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__
