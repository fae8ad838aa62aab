"""The detector `endpoint`: words from captions by a server that speaks the OpenAI chat protocol with images."""

from __future__ import annotations

import asyncio
import base64
import io
import os
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from shotproof.attributes.detector import Detector, Words
from shotproof.attributes.detectors.captioning import Keep, caption_catalog
from shotproof.attributes.detectors.chat_server import MAX_TOKENS, ChatServer, FailedRequest
from shotproof.attributes.detectors.words import TAGGER_EXTRAS, TAGGERS, make_tagger, words_of_captions
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime
from shotproof.media.images import open_image

T = TypeVar("T")

PROMPT = "Describe this image in one short sentence: what it shows, its colours and its surroundings."
MAX_SIDE = 512  # pixels
URL_VARIABLE = "OPENAI_BASE_URL"


@dataclass(frozen=True)
class EndpointDetector(Detector):
    """Captions by a server such as vLLM, Ollama or LM Studio, one request per image, then their nouns and adjectives.

    A request that fails is made again: after `backoff` seconds, then twice as many each time, or as many as the server
    asks for. Neither the server nor the key is recorded. Captions are kept in the cache as they come, and none is asked
    for twice.
    """

    about = "captions by a server that speaks the OpenAI chat protocol, then their words"
    example = "endpoint(model='llava', url='http://localhost:8000/v1')"

    model: str = option(help="the model's name on the server")
    prompt: str = option(PROMPT, "what the model is asked for")
    tagger: str = option("hanta", "what tells nouns and adjectives", choices=TAGGERS)
    url: str | None = option(None, f"the address before /chat/completions; None: ${URL_VARIABLE}", recorded=False)
    api_key_variable: str = option("OPENAI_API_KEY", "the environment variable that holds the key", recorded=False)
    concurrency: int = option(8, "requests at a time", least=1, recorded=False)
    retries: int = option(5, "how often a failed request is made again", least=0, recorded=False)
    timeout: float = option(60.0, "seconds to wait for an answer", least=0, recorded=False)
    backoff: float = option(1.0, "seconds before a request is made again", least=0, recorded=False)

    def extras(self) -> Mapping[str, str]:
        """The tagger, and what makes the captions."""
        return {**TAGGER_EXTRAS[self.tagger], "httpx": "endpoint"}

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """The words of every item; one that gets no caption is reported by name and has None."""
        tagger = make_tagger(self.tagger)
        server = self._server()

        def caption(paths: Sequence[Path], keep: Keep) -> None:
            _run(self._caption_all(server, paths, keep, runtime))

        made_by = {"model": self.model, "prompt": self.prompt, "max_tokens": MAX_TOKENS, "max_side": MAX_SIDE}
        return words_of_captions(caption_catalog(catalog, made_by, caption, runtime), tagger)

    def _server(self) -> ChatServer:
        url = self.url or os.environ.get(URL_VARIABLE)
        if not url:
            raise InputError(f"detector 'endpoint' needs url, or the variable {URL_VARIABLE}: e.g. {self.example}")
        key = os.environ.get(self.api_key_variable, "")
        return ChatServer(url, self.model, self.prompt, key, self.retries, self.timeout, self.backoff)

    async def _caption_all(self, server: ChatServer, paths: Sequence[Path], keep: Keep, runtime: Runtime) -> None:
        """So many workers as there may be requests at once, each with one image at a time."""
        queue = enumerate(paths)
        with runtime.progress_bar("captioning", len(paths)) as advance:

            async def work() -> None:
                for place, path in queue:
                    try:
                        keep(place, await server.caption(await asyncio.to_thread(_data_url, path)))
                    except (UnreadableItem, FailedRequest) as error:
                        keep(place, error)
                    advance(1)

            async with server:
                workers = [asyncio.create_task(work()) for _ in range(self.concurrency)]
                try:
                    await asyncio.gather(*workers)
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)


def _data_url(path: Path) -> str:
    """The image, scaled down to at most MAX_SIDE pixels, as a JPEG in a data: URL."""
    image = open_image(path)
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also from a notebook, where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
