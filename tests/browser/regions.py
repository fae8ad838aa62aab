"""Regions of a page that scroll sideways: which are cut, whether they show it, and whether a keyboard reaches them."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from playwright.sync_api import Locator, Page

_WIDE = """() => [...document.querySelectorAll("*")].filter((box) => box.checkVisibility()
  && ["auto", "scroll"].includes(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth)"""


def cut_regions(page: Page) -> list[str]:
    """Name the regions whose content is wider than they are, by their labels or classes."""
    named: list[str] = page.evaluate(
        f"({_WIDE})().map((box) =>"
        " box.getAttribute('aria-label') ?? box.getAttribute('aria-labelledby') ?? box.className)"
    )
    return named


def unreachable_regions(page: Page) -> list[str]:
    """Name the elements that scroll sideways but are no labeled region that the keyboard can focus."""
    named: list[str] = page.evaluate(
        f"""({_WIDE})().filter((box) => {{
          const label = box.getAttribute("aria-label")
            ?? document.getElementById(box.getAttribute("aria-labelledby"))?.textContent;
          return box.tabIndex !== 0 || box.getAttribute("role") !== "region" || !label;
        }}).map((box) => box.outerHTML.slice(0, 100))"""
    )
    return named


def shaded_edges(page: Page, region: Locator) -> tuple[float, float]:
    """Measure how much of the left and of the right edge of a region has another color than the page."""
    region.scroll_into_view_if_needed()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    pixels = np.asarray(Image.open(io.BytesIO(region.screenshot())).convert("RGB"), dtype=int)
    other = np.abs(pixels - np.array(paper[:3])).max(axis=2) > 12
    return float(other[:, 1].mean()), float(other[:, -2].mean())
