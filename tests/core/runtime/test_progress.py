import io
import threading
from contextlib import redirect_stderr

import pytest

from shotproof.core.runtime.progress import TRIAL_SECONDS, cost_note, duration, progress_bar, timed
from shotproof.core.runtime.runtime import Runtime


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_a_terminal_shows_the_title_and_the_steps(terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress_bar("reading", 10) as advance:
        advance(3)
        advance(7)
    assert "reading" in terminal.getvalue()
    assert "10/10" in terminal.getvalue()


def test_a_pipe_is_silent_unless_bars_are_asked_for() -> None:
    pipe = io.StringIO()
    with redirect_stderr(pipe):
        assert list(Runtime(workers=1).map(abs, [-1], title="reading")) == [1]
        assert pipe.getvalue() == ""
        assert list(Runtime(workers=1, progress=True).map(abs, [-1], title="reading")) == [1]
    assert "reading" in pipe.getvalue()


def test_a_terminal_is_silent_where_bars_are_not_wanted(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        assert list(Runtime(workers=1, progress=False).map(abs, [-1], title="reading")) == [1]
    assert terminal.getvalue() == ""


def test_a_map_advances_by_the_steps_of_its_inputs(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        list(Runtime(workers=1).map(len, [range(4), range(6)], title="reading", steps=len))
    assert "10/10" in terminal.getvalue()


def test_bars_may_be_nested_and_in_threads(terminal: Terminal) -> None:
    errors = []

    def show(name: str) -> None:
        try:
            with progress_bar(f"outer {name}", 2) as outer, progress_bar(f"inner {name}", 1) as inner:
                inner(1)
                outer(2)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=show, args=(str(number),)) for number in range(4)]
    with redirect_stderr(terminal), progress_bar("above", 1):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    assert "above" in terminal.getvalue()


def test_a_display_of_the_user_goes_on(terminal: Terminal) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with (
        redirect_stderr(terminal),
        Progress(console=Console(stderr=True)) as theirs,
        progress_bar("ours", 1) as advance,
    ):
        task = theirs.add_task("theirs", total=1)
        advance(1)
        theirs.advance(task)
    assert theirs.finished


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3, "10 seconds"),
        (34, "30 seconds"),
        (89, "90 seconds"),
        (2_380, "40 minutes"),
        (5_000, "83 minutes"),
        (7_300, "2 hours"),
        (200_000, "56 hours"),
        (900_000, "10 days"),
    ],
)
def test_a_duration_is_in_the_unit_that_people_would_use(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_the_note_names_the_time_the_device_and_the_amount() -> None:
    assert cost_note("method 'lora'", 310, "cpu", "6 tasks") == (
        "method 'lora': about 5 minutes on this CPU for 6 tasks"
    )
    assert "on this GPU" in cost_note("training protonet", 310, "cuda", "2 epochs")


@pytest.mark.parametrize(("seconds_per_step", "expected"), [(1.0, [200.0]), (0.1, []), (20.0, [4000.0])])
def test_long_work_is_told_once_after_a_trial(seconds_per_step: float, expected: list[float]) -> None:
    now, reported, bar = [0.0], [], []
    step = timed(bar.append, 200, reported.append, clock=lambda: now[0])
    for _ in range(20):
        now[0] += seconds_per_step
        step(1)
        assert not reported or now[0] >= TRIAL_SECONDS
    assert reported == expected
    assert sum(bar) == 20
