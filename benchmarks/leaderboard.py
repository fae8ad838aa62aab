"""5,000 classifiers on a leaderboard: made, written, and how fluid its page is in a browser (needs chromium)."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks.scrolling import FRAMES
from shotproof.comparison.card import Card, CardAxis, CardTasks
from shotproof.comparison.leaderboard import make_leaderboard
from shotproof.comparison.leaderboard_rows import measure_card
from shotproof.core.records import Source
from shotproof.pipeline.leaderboard_files import write_site
from shotproof.stats.intervals import Interval

CLASSIFIERS, ENCODERS = 5_000, 25
FIRST_PAINT, SORTED = 2.0, 0.2  # seconds that it may take
TASKS, FREEDOM = 600, 60
# From a press on a column's head to the next frame that has the new rows.
SORT = """async (place) => {
  const rows = document.getElementById("rows");
  const changed = new Promise((done) => new MutationObserver(done).observe(rows, { childList: true }));
  const start = performance.now();
  document.querySelectorAll("#columns .sort")[place].click();
  await changed;
  await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""
SEARCH = """async (text) => {
  const [rows, search] = [document.getElementById("rows"), document.getElementById("search")];
  const changed = new Promise((done) => new MutationObserver(done).observe(rows, { childList: true }));
  const start = performance.now();
  search.value = text;
  search.dispatchEvent(new Event("input"));
  await changed;
  await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""
PAINTED = 'performance.getEntriesByName("first-contentful-paint")[0]?.startTime'
ROWS = """() => new Promise((done) => {
  const look = () => document.querySelector("#rows a") ? done(performance.now()) : requestAnimationFrame(look);
  look();
})"""


def run() -> None:
    """Build the leaderboard and open it; fail if a time exceeds its limit."""
    random = np.random.default_rng(0)
    start = time.process_time()
    measured = [row for number in range(CLASSIFIERS) for row in measure_card(_card(number, random), f"{number}.json")]
    board = make_leaderboard(measured)
    print(f"{len(board.entries):,} classifiers, {len(board.columns)} columns: ranked in ", end="")
    print(f"{time.process_time() - start:.0f} s of one core", flush=True)
    with tempfile.TemporaryDirectory() as name:
        site = Path(name) / "site"
        start = time.process_time()
        write_site(board, "Made up", site)
        size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) / 1e6
        data = (site / "data.js").stat().st_size / 1e6
        print(f"written in {time.process_time() - start:.0f} s: {size:.0f} MB, data.js {data:.1f} MB", flush=True)
        too_slow = _measure_page((site / "index.html").as_uri())
    if too_slow:
        sys.exit(f"too slow: {', '.join(too_slow)}")


def _measure_page(address: str) -> list[str]:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        page.goto(address, wait_until="commit")
        rows = page.evaluate(ROWS) / 1000
        page.wait_for_timeout(1000)
        painted = page.evaluate(PAINTED) / 1000
        print(f"opened as a file: first paint after {painted:.2f} s, first rows after {rows:.2f} s")
        columns = page.locator("#columns .sort").count()
        times = [_script_seconds(page, SORT, place) for place in range(columns)]
        print(f"sorted by {columns} columns: median {statistics.median(times):.3f} s, the longest {max(times):.3f} s")
        searches = [_script_seconds(page, SEARCH, text) for text in ("m", "method-12", "encoder-7", "")]
        print(f"searched: median {statistics.median(searches):.3f} s, the longest {max(searches):.3f} s")
        frames = page.evaluate(FRAMES, ["table", 4])
        print(f"scrolling through all in 4 s: {len(frames) / 4:.0f} frames per second, ", end="")
        print(f"95% of frames within {np.quantile(frames, 0.95):.0f} ms, the longest {max(frames):.0f} ms")
        print(f"{page.evaluate('document.querySelectorAll(`*`).length'):,} elements")
    limits = {"first paint": (max(painted, rows), FIRST_PAINT), "sorting": (max(times), SORTED)}
    return [f"{quantity} {duration:.2f} s" for quantity, (duration, limit) in limits.items() if duration > limit]


def _script_seconds(page: Page, script: str, argument: int | str) -> float:
    """Measure the seconds of a script, after everything before it has been drawn."""
    page.wait_for_timeout(300)
    duration: float = page.evaluate(script, argument) / 1000
    return duration


def _card(number: int, random: np.random.Generator) -> Card:
    accuracy, lost = random.normal(70, 8), random.uniform(0, 60, 3)
    axes = [_axis(f"random-{shot}-shot", accuracy + change, shot, None) for shot, change in ((1, -12), (5, 0), (10, 4))]
    axes += [
        _axis(name, accuracy - 0.5 * share, 5, share)
        for name, share in zip(("fewstab", "hard-ood", "semantic"), lost, strict=True)
    ]
    return Card(
        name="birds",
        sources={"catalog": Source("made up")},
        encoder=f"encoder-{number % ENCODERS}",
        method=f"method-{number}",
        medium="image",
        axes=tuple(axes),
    )


def _axis(name: str, accuracy: float, shot: int, lost: float | None) -> CardAxis:
    estimates = {"accuracy": {"acc": _number(min(accuracy, 98.0)), "wacc": _number(max(accuracy - 20, 2.0))}}
    if lost is not None:
        estimates["skill_lost"] = {"acc": _number(lost), "wacc": _number(lost + 5)}
    return CardAxis(
        name=name,
        axis="shots" if lost is None else "attributes",
        way=5,
        shot=shot,
        query=15,
        tasks=CardTasks(name, f"made up {name}", TASKS),
        estimates=estimates,
        chance={"acc": 20.0},
        rank={},
        verdict=f"Made up, on {name} tasks.",
        reference=None if lost is None else CardTasks("random", "made up random-5-shot", TASKS),
    )


def _number(mean: float) -> Interval:
    return Interval(mean, mean - 2, mean + 2, "images", 0.95, None, 1.0, 2.0 / FREEDOM, 0.0, 0.5)


if __name__ == "__main__":
    run()
