"""The detector `endpoint`: words from captions by a server that speaks the OpenAI chat protocol with images."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from shotproof.attributes.detector import Words
from shotproof.attributes.detectors.captioning import CaptionDetector, Keep
from shotproof.catalog.catalog import Catalog
from shotproof.core.clients.chat_server import ChatServer, Content, FailedRequest, ServerOptions
from shotproof.core.errors import UnreadableItem
from shotproof.core.options import option
from shotproof.core.runtime.runtime import Runtime
from shotproof.media.data_urls import image_data_url

PROMPT = "Describe this image in one short sentence: what it shows, its colours and its surroundings."
MAX_SIDE = 512  # pixels
MAX_TOKENS = 100


@dataclass(frozen=True)
class EndpointDetector(ServerOptions, CaptionDetector):
    """Captions by a server such as vLLM, Ollama or LM Studio, one request per image, then their nouns and adjectives.

    A failed request is retried: after `backoff` seconds, then twice as many each time, or after as many as the server
    asks for. Neither the server nor the key is recorded. Captions are cached as they arrive, and none is requested
    twice.
    """

    about = "captions by a server that speaks the OpenAI chat protocol, then their words"
    example = "endpoint(model='llava', url='http://localhost:8000/v1')"

    prompt: str = option(PROMPT, "instruction to the model")

    def extras(self) -> Mapping[str, str]:
        """Return the packages that the tagger and the requests need."""
        return {"httpx": "endpoint", **super().extras()}

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Return the words of every item. An item that gets no caption has None and a warning."""
        settings = {"model": self.model, "prompt": self.prompt, "max_tokens": MAX_TOKENS, "max_side": MAX_SIDE}
        return self.caption(catalog, settings, partial(self._caption_all, self.server(), runtime), runtime)

    def _caption_all(self, server: ChatServer, runtime: Runtime, paths: Sequence[Path], keep: Keep) -> None:
        with runtime.progress_bar("captioning", len(paths)) as advance:

            async def caption(numbered_path: tuple[int, Path]) -> None:
                index, path = numbered_path
                try:
                    image = await asyncio.to_thread(image_data_url, path, MAX_SIDE)
                    content: Content = [
                        {"type": "text", "text": self.prompt},
                        {"type": "image_url", "image_url": {"url": image}},
                    ]
                    keep(index, " ".join((await server.ask(content, MAX_TOKENS)).split()))
                except (UnreadableItem, FailedRequest) as error:
                    keep(index, error)
                advance(1)

            server.ask_all(enumerate(paths), caption, self.concurrency)
