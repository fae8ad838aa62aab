"""Method `chat`: a model on a server sees the support set in its prompt and classifies one query per request."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from shotproof.catalog.item_files import item_digests
from shotproof.core import draws
from shotproof.core.arrays import IntArray
from shotproof.core.clients.chat_server import FailedRequest, ServerOptions
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.plain_values import plain
from shotproof.core.runtime.runtime import Runtime
from shotproof.learners.incontext.answer_log import AnswerLog
from shotproof.learners.incontext.class_names import anonymous_names, named_class, shown_names
from shotproof.learners.items import ItemsMethod, ItemsTask
from shotproof.media.clip import SECONDS, is_sound
from shotproof.media.data_urls import image_data_url, wav_base64
from shotproof.media.images import image_size
from shotproof.media.unwritten import ItemFile

logger = logging.getLogger("shotproof")

PROMPT = (
    "Below are examples of some classes, each followed by its class. After them comes one more, whose class you are to "
    "tell. Answer with the name of its class alone."
)
# An image takes one token per patch of the size it is sent in: 28 x 28 pixels in Qwen's models, and similar for
# Anthropic (750 pixels per token) and OpenAI's newer models (32 x 32); providers that cut images into tiles count more.
PATCH = 28
TOKENS_PER_SECOND = 25  # for sounds
CHARACTERS_PER_TOKEN = 4
RENDER_CACHE = 512  # encoded images and sounds held in memory for further questions


@dataclass(frozen=True)
class Estimate:
    """Estimated cost: number of requests, of images and sounds in them, and approximate number of tokens."""

    requests: int
    items: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.requests:,} requests with {self.items:,} images or sounds, about {self.tokens:,} tokens"


@dataclass(frozen=True)
class Question:
    """Question about one query of a task.

    request: digest of everything that determines the answer
    digests: digests of the items
    """

    task: ItemsTask
    query: ItemFile
    request: str
    digests: Mapping[ItemFile, str]


@dataclass(frozen=True)
class Chat(ServerOptions, ItemsMethod):
    """In-context classification: one request per query, with the support items and their classes in the prompt.

    The order of the support items is drawn by the task's seed. Images are downscaled and sent as JPEG, sounds as WAV
    (`input_audio`), at temperature 0.

    An answer that names none of the classes, or several, counts as wrong; the record states how many there were.
    Answers are saved as they arrive, by a digest of the whole request: no question is asked twice, and an interrupted
    evaluation can resume. The estimated cost is logged before the first request; more than `max_requests` new requests
    are an error.
    """

    about = "a vision-language model on a server, with the support and its labels in the prompt (extra: endpoint)"
    example = "chat(model='qwen2.5-vl-7b', url='http://localhost:8000/v1')"

    labels: Literal["names", "anonymous"] = option(
        "names", "names of the classes in the prompt: their labels, or class A, class B"
    )
    prompt: str = option(PROMPT, "instruction to the model; the names of the classes follow it")
    max_side: int = option(512, "maximum side of an image, in pixels", least=1, most=10_000)
    seconds: float = option(SECONDS, "length of sounds", above=0, most=60)
    max_tokens: int = option(
        32, "maximum length of an answer in tokens; more for models that think first", least=1, most=131_072
    )
    max_requests: int = option(
        1000, "most new requests; 0: only show the estimate", least=0, most=10_000_000, recorded=False
    )
    log: Path | None = option(None, "file of saved answers, JSON lines; None: in the cache", path=True, recorded=False)

    def predict(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[IntArray]:
        """Ask the model for the class of each query, unless the answer is in the log."""
        names = [self.names(task) for task in tasks]
        questions = self._questions(tasks, runtime)
        with AnswerLog(self.log or self._default_log(runtime)) as log:
            new_questions = {
                question.request: question
                for task_questions in questions
                for question in task_questions
                if question.request not in log.answers
            }
            if new_questions:
                self._ask(list(new_questions.values()), log, runtime)
            return [
                np.array(
                    [named_class(log.answers[question.request], class_names) for question in task_questions],
                    dtype=np.int64,
                )
                for task_questions, class_names in zip(questions, names, strict=True)
            ]

    def names(self, task: ItemsTask) -> list[str]:
        """Return the name of each class in the prompt."""
        return shown_names(task.classes) if self.labels == "names" else anonymous_names(len(task.classes))

    def parts(self, task: ItemsTask, query: ItemFile) -> list[str | ItemFile]:
        """Return the parts of a question. All queries of a task share the first ones, which servers may cache."""
        names = self.names(task)
        order = np.argsort(draws.bits(task.seed, np.arange(len(task.support))), kind="stable")
        examples = [part for index in order for part in (task.support[index], f"Class: {names[task.labels[index]]}")]
        return [f"{self.prompt}\nThe classes: {', '.join(names)}.", *examples, query, "Class:"]

    def estimate(self, questions: Sequence[Question]) -> Estimate:
        """Estimate the cost of questions before they are asked."""
        items, tokens = 0, 0.0
        tokens_by_part: dict[str | ItemFile, float] = {}
        for question in questions:
            parts = self.parts(question.task, question.query)
            tokens_by_part |= {part: self._tokens(part) for part in parts if part not in tokens_by_part}
            items += sum(not isinstance(part, str) for part in parts)
            tokens += self.max_tokens + sum(tokens_by_part[part] for part in parts)
        return Estimate(len(questions), items, round(tokens))

    def _tokens(self, part: str | ItemFile) -> float:
        if isinstance(part, str):
            return len(part) / CHARACTERS_PER_TOKEN
        if is_sound(part):
            return self.seconds * TOKENS_PER_SECOND
        return _image_tokens(part, self.max_side)

    def _questions(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[list[Question]]:
        """Build one question per query, grouped by task."""
        clips = list(dict.fromkeys(clip for task in tasks for clip in (*task.support, *task.query)))
        digests = dict(zip(clips, item_digests(clips, runtime).to_pylist(), strict=True))
        return [
            [Question(task, query, self._request(task, query, digests), digests) for query in task.query]
            for task in tasks
        ]

    def _request(self, task: ItemsTask, query: ItemFile, digests: Mapping[ItemFile, str]) -> str:
        parts = [
            {"text": part} if isinstance(part, str) else {"item": digests[part]} for part in self.parts(task, query)
        ]
        settings = {"model": self.model, "max_tokens": self.max_tokens, "temperature": 0}
        rendering = {"max_side": self.max_side, "seconds": self.seconds}
        return hashlib.sha256(json.dumps([settings, rendering, parts], sort_keys=True).encode()).hexdigest()

    def _ask(self, questions: Sequence[Question], log: AnswerLog, runtime: Runtime) -> None:
        """Ask all questions, `concurrency` at a time, and save each answer as it arrives."""
        estimate = self.estimate(questions)
        if len(questions) > self.max_requests:
            raise InputError(
                f"method '{self}' would make {estimate}, more than max_requests={self.max_requests}: raise "
                "max_requests, or evaluate fewer tasks"
            )
        server = self.server()
        logger.info("method '%s': %s", self, estimate)
        with runtime.progress_bar(f"asking {self.model}", len(questions)) as advance:

            async def answer(question: Question) -> None:
                content = await asyncio.to_thread(self._content, question)
                try:
                    log.add(question.request, await server.ask(content, self.max_tokens, may_be_empty=True))
                except FailedRequest as failure:
                    fate = "saved; run the same command again to resume" if log.path else "lost, as there is no cache"
                    raise InputError(
                        f"method '{self}': a query of task {question.task.number} got no answer: {failure}; earlier "
                        f"answers are {fate}"
                    ) from failure
                advance(1)

            server.ask_all(questions, answer, self.concurrency)

    def _content(self, question: Question) -> list[dict[str, Any]]:
        """Return the question in the format of the chat protocol."""
        return [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else _render(part, question.digests[part], self.max_side, self.seconds)
            for part in self.parts(question.task, question.query)
        ]

    def _default_log(self, runtime: Runtime) -> Path | None:
        if runtime.cache is None:
            return None
        settings = json.dumps(plain(self.parameters()), sort_keys=True)
        return runtime.cache / "chat" / f"{hashlib.sha256(settings.encode()).hexdigest()[:32]}.jsonl"


def _image_tokens(path: ItemFile, max_side: int) -> int:
    width, height = image_size(path)
    scale = min(1.0, max_side / max(width, height))
    return math.ceil(width * scale / PATCH) * math.ceil(height * scale / PATCH)


@lru_cache(maxsize=RENDER_CACHE)
def _render(clip: ItemFile, digest: str, max_side: int, seconds: float) -> dict[str, Any]:
    """Encode an image or a sound as part of a message; the digest is in the cache key, in case a file changes."""
    if not is_sound(clip):
        return {"type": "image_url", "image_url": {"url": image_data_url(clip, max_side)}}
    return {"type": "input_audio", "input_audio": {"data": wav_base64(clip, seconds), "format": "wav"}}
