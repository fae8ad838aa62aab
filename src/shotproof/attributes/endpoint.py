"""The detector `endpoint`: words from captions by a server that speaks the OpenAI chat protocol with images."""

from __future__ import annotations

import asyncio
import base64
import io
import logging
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from shotproof.attributes.caption_log import Captioned, CaptionLog, file_digest
from shotproof.attributes.chat_server import ChatServer, FailedRequest
from shotproof.attributes.detector import Detector, Words
from shotproof.attributes.words import make_tagger, words_of_captions
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, UnreadableItem
from shotproof.images import open_image
from shotproof.progress import progress

logger = logging.getLogger("shotproof")

T = TypeVar("T")

PROMPT = "Describe this image in one short sentence: what it shows, its colours and its surroundings."
MAX_SIDE = 512  # pixels


class EndpointDetector(Detector):
    """Captions by a server such as vLLM, Ollama or LM Studio, one request an image, then their nouns and adjectives.

    `url` is the address before `/chat/completions`, e.g. `http://localhost:8000/v1`. A request that fails is made
    again up to `retries` times: after `backoff` seconds, then twice as many each time, or as many as the server asks.
    A key is read from the environment variable `api_key_variable`, where that is set, and kept nowhere.
    With `resume`, a file, captions are kept as they come, and those that it has already are not asked for again.
    """

    about: ClassVar[str] = "captions by a server that speaks the OpenAI chat protocol, then their words"

    def __init__(
        self,
        url: str,
        model: str,
        prompt: str = PROMPT,
        concurrency: int = 8,
        retries: int = 5,
        timeout: float = 60.0,
        backoff: float = 1.0,
        tagger: str = "hanta",
        resume: str | Path | None = None,
        api_key_variable: str = "OPENAI_API_KEY",
    ) -> None:
        if not isinstance(concurrency, int) or concurrency < 1:
            raise InputError(f"detector 'endpoint', option 'concurrency': expected 1 or more, got {concurrency!r}")
        key = os.environ.get(api_key_variable, "")
        self._server = ChatServer(url, model, prompt, key, retries, timeout, backoff)
        self._concurrency = concurrency
        self._tagger_name = tagger
        self._tagger = make_tagger(tagger)
        self._resume = resume

    def parameters(self) -> dict[str, Any]:
        """The model, what it is asked, and the tagger; neither the server nor the key."""
        return {**self._made_by(), "tagger": self._tagger_name}

    def detect(self, catalog: Catalog) -> Words:
        """The words of every item; one that gets no caption is reported by name and has None."""
        with CaptionLog(self._resume, self._made_by()) as log:
            captions = _run(self._caption_all(catalog, log))
        return words_of_captions({item: captions[item] for item in catalog.items.to_pylist()}, self._tagger)

    def _made_by(self) -> dict[str, Any]:
        return {**self._server.parameters, "max_side": MAX_SIDE}

    async def _caption_all(self, catalog: Catalog, log: CaptionLog) -> dict[str, list[str] | None]:
        """So many workers as there may be requests at once, each with one item at a time."""
        captions: dict[str, list[str] | None] = {}
        queue = zip(catalog.items.to_pylist(), catalog.paths, strict=True)
        with progress("captioning", len(catalog)) as advance:

            async def work() -> None:
                for item, path in queue:
                    row = await self._caption(item, path, log)
                    captions[item] = None if row.caption is None else [row.caption]
                    advance(1)

            async with self._server:
                workers = [asyncio.create_task(work()) for _ in range(self._concurrency)]
                try:
                    await asyncio.gather(*workers)
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)
        return captions

    async def _caption(self, item: str, path: Path, log: CaptionLog) -> Captioned:
        digest = await asyncio.to_thread(file_digest, path)
        if (known := log.caption(item, digest)) is not None:
            return Captioned(item, digest, known)
        try:
            row = Captioned(item, digest, await self._server.caption(await asyncio.to_thread(_data_url, path)))
        except (UnreadableItem, FailedRequest) as error:
            row = Captioned(item, digest, error=str(error))
            logger.warning("item '%s' is skipped: %s", item, error)
        log.append([row])
        return row


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
