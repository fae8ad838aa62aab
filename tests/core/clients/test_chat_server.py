"""Misbehavior of chat servers, tested with a real HTTP server on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from shotproof.core.clients.chat_server import ChatServer, FailedRequest
from shotproof.core.errors import InputError
from tests.chat_servers import ChatStandIn, chat_server

KEY = "sk-proj-0123456789abcdefghijklmnopqr"


@pytest.fixture
def stand_in() -> Iterator[ChatStandIn]:
    with chat_server() as server:
        server.answer = lambda content: "fine"
        yield server


def ask_once(stand_in: ChatStandIn, timeout: float = 20.0, max_tokens: int = 8, key: str = KEY) -> str:
    """Ask one question without retries, and return the answer."""
    server = ChatServer(stand_in.url, "tiny", key, retries=0, timeout=timeout, backoff=0.0, requester="a test")
    answers: list[str] = []

    async def answer(question: str) -> None:
        answers.append(await server.ask([{"type": "text", "text": question}], max_tokens))

    server.ask_all(["what?"], answer, at_once=1)
    return answers[0]


def completion(content: str) -> str:
    return json.dumps({"choices": [{"message": {"content": content}}]})


def test_a_server_that_sends_a_byte_at_a_time_does_not_hold_a_request(stand_in: ChatStandIn) -> None:
    stand_in.faults = ["drip"]
    with pytest.raises(FailedRequest, match=r"no .* answer within .*0.3 seconds"):
        ask_once(stand_in, timeout=0.3)
    assert ask_once(stand_in) == "fine"


def test_half_a_surrogate_pair_in_an_answer_can_be_stored(stand_in: ChatStandIn) -> None:
    stand_in.faults = ["raw " + completion("a \ud83d bird \U0001f426")]
    answer = ask_once(stand_in)
    assert answer == "a \ufffd bird \U0001f426"
    answer.encode()


def test_half_a_surrogate_pair_in_a_refusal_can_be_printed(stand_in: ChatStandIn) -> None:
    stand_in.faults = ["refuse " + json.dumps({"error": "no \ud800"})]
    with pytest.raises(InputError, match=r"refuse.*: 400 Bad Request: no \ufffd"):
        ask_once(stand_in)


@pytest.mark.parametrize("before", [0, 200, 280, 290, 300, 5000])
def test_the_key_is_masked_before_a_message_is_cut(stand_in: ChatStandIn, before: int) -> None:
    stand_in.faults = [f"refuse {'x' * before} {KEY} is no key"]
    with pytest.raises(InputError, match=r"refuse.*: 400") as refusal:
        ask_once(stand_in)
    assert KEY[:8] not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    "fault",
    [
        f"refuse {json.dumps({'error': f'no {KEY}'})[:-4]}",  # JSON that was cut off, and the key with it
        "refuse " + json.dumps({"error": {"code": KEY}}),
        "refuse " + "".join(f"\\u{ord(one):04x}" for one in KEY).join(('{"error": "', '"}')),
        f"reason no {KEY}",
        f"garbage {KEY}",
        f"500 {KEY}",
    ],
)
def test_the_key_is_masked_wherever_a_server_repeats_it(stand_in: ChatStandIn, fault: str) -> None:
    stand_in.faults = [fault]
    with pytest.raises((InputError, FailedRequest)) as refusal:
        ask_once(stand_in)
    assert "***" in str(refusal.value)
    assert not any(KEY[start : start + 8] in str(refusal.value) for start in range(len(KEY) - 7))


def test_a_key_that_no_header_can_hold_is_not_shown(stand_in: ChatStandIn) -> None:
    with pytest.raises(FailedRequest, match=r"Illegal header value") as refusal:
        ask_once(stand_in, key=f"{KEY} ")
    assert KEY not in str(refusal.value)


def test_answers_are_masked_too_but_for_placeholders(stand_in: ChatStandIn) -> None:
    stand_in.answer = lambda content: f"your key is {KEY}, or EMPTY"
    assert ask_once(stand_in) == "your key is ***, or EMPTY"
    assert ask_once(stand_in, key="EMPTY") == f"your key is {KEY}, or EMPTY"


def test_an_answer_is_limited_by_max_tokens(stand_in: ChatStandIn) -> None:
    stand_in.answer = lambda content: "x" * 100_000
    with pytest.raises(FailedRequest, match=r"more than 66,048 bytes, too many for max_tokens"):
        ask_once(stand_in)
    assert len(ask_once(stand_in, max_tokens=1000)) == 100_000


def test_a_compressed_answer_is_refused_and_not_unpacked(stand_in: ChatStandIn) -> None:
    stand_in.faults = ["gzip " + completion("fine")]
    with pytest.raises(InputError, match=r"compresses its answers \(gzip\)"):
        ask_once(stand_in)
    assert stand_in.headers[0]["Accept-Encoding"] == "identity"


def test_a_date_that_is_none_asks_for_no_wait(stand_in: ChatStandIn) -> None:
    stand_in.faults = ["429 Sat, 01 Jan 2000 00:00:00 +99999999999999999999"]
    with pytest.raises(FailedRequest, match="429"):
        ask_once(stand_in)
