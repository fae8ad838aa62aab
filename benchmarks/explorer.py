"""100,000 tasks in the explorer: its start, its memory, and how fluid its page is in a browser (needs chromium)."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import shotproof as sp
from benchmarks.scrolling import FRAMES

TASKS, CLASSES, ITEMS, WORDS = 100_000, 100, 60, 40
METHODS = ["ncc", "cosine", "ridge", "knn"]
# Whether the middle of the list shows no row.
BLANK = """() => {
  const box = document.getElementById("list").getBoundingClientRect();
  return document.elementFromPoint(box.left + 40, box.top + box.height / 2).closest(".row") === null;
}"""


def run() -> None:
    """Write a run's folder, serve it in its own process, and measure the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_run(folder)
        command = [sys.executable, "-m", "shotproof", "view", str(folder), "--no-open", "--port", "0"]
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split()[0]
            size = sum(file.stat().st_size for file in folder.rglob("*.parquet")) / 1e6
            print(f"{TASKS:,} tasks, {len(METHODS)} methods, {size:.0f} MB of files: ", end="")
            print(f"served after {time.perf_counter() - start:.1f} s")
            process = psutil.Process(server.pid)
            print(f"memory of the server: {process.memory_info().rss / 1e6:.0f} MB")
            try:
                _measure_page(url)
            finally:
                print(f"memory of the server at the end: {process.memory_info().rss / 1e6:.0f} MB")
                server.terminate()


def _measure_page(url: str) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        start = time.perf_counter()
        page.goto(url)
        page.wait_for_selector(".row")
        print(f"page: first rows after {time.perf_counter() - start:.2f} s")
        frames = page.evaluate(FRAMES, ["list", 4])
        page.wait_for_timeout(50)
        assert not page.evaluate(BLANK), "no row is visible after scrolling"
        print(f"scrolling through all tasks in 4 s: {len(frames) / 4:.0f} frames per second, ", end="")
        print(f"95% of frames within {np.quantile(frames, 0.95):.0f} ms, the longest {max(frames):.0f} ms")
        _choose(page, "class", "3", "one class")
        _choose(page, "class", "", "all classes again")
        _choose(page, "order", "lowest", "by accuracy")
        _choose(page, "b", "2", "a second method, its counts loaded")
        _choose(page, "order", "lead", "by the lead over it")
        opened = []
        page.focus("#list")
        page.keyboard.press("Home")
        for _ in range(20):
            before = page.locator("#task h2").inner_text() if page.locator("#task h2").count() else ""
            start = time.perf_counter()
            page.keyboard.press("PageDown")
            page.wait_for_function("before => document.querySelector('#task h2')?.textContent !== before", arg=before)
            opened.append(time.perf_counter() - start)
        print(f"20 tasks opened one after the other: median {1000 * statistics.median(opened):.0f} ms, ", end="")
        print(f"the longest {1000 * max(opened):.0f} ms")
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        nodes = page.evaluate("document.querySelectorAll('*').length")
        print(f"page: {heap:.0f} MB of script memory, {nodes:,} elements")


def _choose(page: Page, control: str, value: str, label: str) -> None:
    """Measure the time from a choice to the drawn list, in the page's own clock."""
    milliseconds = page.evaluate(
        """async ([control, value]) => {
        const [select, rows] = [document.getElementById(control), document.getElementById("rows")];
        const changed = new Promise((done) => new MutationObserver(done).observe(rows, { childList: true }));
        const start = performance.now();
        select.value = value;
        select.dispatchEvent(new Event("change"));
        await changed;
        await new Promise(requestAnimationFrame);
        return performance.now() - start;
      }""",
        [control, value],
    )
    print(f"{label}: {milliseconds:.0f} ms")


def _write_run(folder: Path) -> None:
    """Write random tasks on Gaussian features; fifty images stand for all items."""
    catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=CLASSES, items=ITEMS)
    random = np.random.default_rng(0)
    (folder / "images").mkdir()
    for number in range(50):
        Image.fromarray(random.integers(0, 255, (96, 96, 3), dtype=np.uint8)).save(folder / f"images/{number}.jpg")
    paths = [f"images/{number % 50}.jpg" for number in range(len(catalog))]
    table = catalog.table.set_column(catalog.table.column_names.index("path"), "path", pa.array(paths))
    catalog = sp.Catalog(table, folder, catalog.record)
    catalog.write(folder / "catalog.parquet")
    words = [f"word {number}" for number in range(WORDS)]
    sp.Attributes.from_words({item: random.choice(words, 8).tolist() for item in catalog.items}).write(
        folder / "attributes.parquet"
    )
    tasks = sp.sample(catalog, "random", tasks=TASKS, shot=5, query=15)
    tasks.write(folder / "tasks.parquet")
    sp.evaluate(tasks, features, METHODS).write(folder / "results.parquet")


if __name__ == "__main__":
    run()
