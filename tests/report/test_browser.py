# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports in a headless Chromium: `pip install '.[browser]'`, and `apt-get install chromium` or
`python -m playwright install chromium`.

With SHLO_DISC_SCREENSHOTS naming a directory, pictures of the pages are left there.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shlo_disc
from examples import bert
from tests.report.large_program import large_program

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[browser]'")

pytestmark = pytest.mark.slow

SECONDS = 20
"""The most that opening a page or a panel may take: it takes about one, and machines of tests are busy."""

LAYERS = 240
"""Layers of the large program: more than 5,000 ops."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as on:
        found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            started = on.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: apt-get install chromium, or python -m playwright install chromium ({error})")
        yield started
        started.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page each: BERT, a program of more than 5,000 ops, and the same with a kernel for each op."""
    folder = tmp_path_factory.mktemp("reports")
    small = shlo_disc.compile(bert.export(bert.SMALL), options=shlo_disc.Options(cpu="x86-64-v3"))
    large = shlo_disc.compile(large_program(LAYERS))
    assert large.as_text("import").count("= stablehlo.") > 5000
    plain = shlo_disc.compile(large_program(LAYERS), options=shlo_disc.Options(max_fusions=0))
    sizes = {"b": 2, "s": 16, "t": 8}
    return {
        "bert": small.report(folder / "bert.html", [{"b": 2, "s": 16}, {"b": 8, "s": 48}]),
        "large": large.report(folder / "large.html", [sizes]),
        "plain": plain.report(folder / "plain.html", [sizes]),
    }


class Opened:
    """A page, what it has said on the console, and the helpers of the tests."""

    def __init__(self, browser: Any, path: Path, scheme: str = "light", width: int = 1400):
        self.page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.set_default_timeout(SECONDS * 1000)
        start = time.perf_counter()
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#tab-overview[aria-selected=true]")
        self.seconds = time.perf_counter() - start
        self.name = f"{path.stem}-{scheme}" if width == 1400 else f"{path.stem}-{scheme}-{width}"

    def open(self, tab: str) -> Any:
        """The panel, once it shows something."""
        self.page.click(f"#tab-{tab}")
        panel = self.page.locator(f"#panel-{tab}")
        panel.locator("*").first.wait_for(state="visible")
        return panel

    def picture(self, name: str) -> None:
        folder = os.environ.get("SHLO_DISC_SCREENSHOTS")
        if folder:
            self.page.wait_for_timeout(300)
            self.page.screenshot(path=f"{folder}/{self.name}-{name}.png")

    def close(self) -> None:
        assert self.said == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []
        self.page.close()


@pytest.mark.parametrize(("name", "query", "found"), [
    ("bert", "attention", "attention_0"), ("large", "attention", "attention_33"), ("plain", "stablehlo tanh", ""),
    ("plain", "reduce", "row_reduce_"),
])  # fmt: skip
def test_search_and_click(browser: Any, reports: dict[str, Path], name: str, query: str, found: str) -> None:
    opened = Opened(browser, reports[name])
    panel = opened.open("graph")
    panel.locator(".found input").fill(query)
    hits = panel.locator(".found li button")
    if not found:
        playwright.expect(hits).to_have_count(0)
        opened.close()
        return
    hits.filter(has_text=re.compile(f"^{found}")).first.click()
    playwright.expect(panel.locator(".detail h3")).to_contain_text(found)
    assert re.search(r"func\.func private @", panel.locator(".line").nth(1).inner_text())
    for chip, text in (("kernel", "scf.for"), ("machine code", "retq")):
        panel.get_by_role("button", name=chip, exact=True).click()
        panel.locator(".detail input[type=search]").fill(text)
        panel.locator(".detail input[type=search]").press("Enter")
        playwright.expect(panel.locator(".detail .line.found")).to_contain_text(text)
    playwright.expect(panel.locator(".detail dl")).to_contain_text(".py:")
    opened.picture("graph")
    opened.close()


def test_a_click_into_the_picture_chooses_a_box(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["bert"])
    panel = opened.open("graph")
    panel.locator(".found li button").filter(has_text="gemm_15").click()
    panel.locator(".found li button").filter(has_text="gemm_4").click()
    box = panel.locator("canvas").bounding_box()
    opened.page.wait_for_timeout(200)
    opened.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 5)
    playwright.expect(panel.locator(".detail")).to_be_hidden()
    panel.locator(".found li button").filter(has_text="gemm_4").click()
    opened.page.wait_for_timeout(200)
    opened.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    playwright.expect(panel.locator(".detail h3")).to_contain_text("gemm_4")
    panel.locator("canvas").press("n")
    playwright.expect(panel.locator(".detail h3")).to_contain_text("attention_0")
    before = opened.page.evaluate("document.querySelector('canvas').toDataURL()")
    panel.locator("canvas").press("+")
    opened.page.wait_for_timeout(200)
    assert before != opened.page.evaluate("document.querySelector('canvas').toDataURL()")
    opened.close()


@pytest.mark.parametrize("name", ["bert", "large", "plain"])
def test_diffs(browser: Any, reports: dict[str, Path], name: str) -> None:
    opened = Opened(browser, reports[name])
    panel = opened.open("stages")
    for stage in ("annotate", "fuse", "plan", "codegen"):
        panel.get_by_role("button", name=stage, exact=True).click()
        playwright.expect(panel.locator(".bar").nth(1)).to_contain_text(f"to {stage}: ")
        panel.locator(".line .added, .line .removed").first.wait_for(state="visible")
    panel.get_by_role("button", name="plan", exact=True).click()
    playwright.expect(panel.locator(".bar").nth(1)).to_contain_text("fuse to plan: ")
    panel.locator(".line .added mark").first.wait_for(state="visible")
    panel.locator("input[type=search]").fill("disc.buffers")
    panel.locator("input[type=search]").press("Enter")
    panel.locator(".line.found .t-op", has_text="disc.buffers").first.wait_for(state="visible")
    opened.picture("stages")
    rows = panel.locator(".line").count()
    assert rows < 200  # what is out of sight is not in the page
    panel.get_by_role("button", name="asm", exact=True).click()
    playwright.expect(panel.locator(".bar").nth(1)).to_contain_text("lines")
    panel.locator(".lines").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    panel.locator(".line").last.wait_for(state="visible")
    opened.close()


def test_folds_open(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["bert"])
    panel = opened.open("stages")
    fold = panel.locator(".line.fold").first
    before = re.fullmatch(r"(\d+) equal lines", fold.inner_text())
    place = panel.locator(".space").evaluate("space => space.offsetHeight")
    fold.click()
    assert before is not None
    opened.page.wait_for_timeout(200)
    lines = (panel.locator(".space").evaluate("space => space.offsetHeight") - place) / 18
    assert lines == int(before[1]) - 1
    opened.close()


@pytest.mark.parametrize("name", ["bert", "large", "plain"])
def test_everything_opens_soon(browser: Any, reports: dict[str, Path], name: str) -> None:
    assert reports[name].stat().st_size < 20_000_000
    opened = Opened(browser, reports[name])
    assert opened.seconds < SECONDS
    for tab in ("overview", "stages", "graph", "facts", "arena", "kernels"):
        start = time.perf_counter()
        opened.open(tab)
        assert time.perf_counter() - start < SECONDS
        opened.picture(tab)
    start = time.perf_counter()
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for tab in ("overview", "facts", "arena", "kernels"):
        assert opened.page.locator(f"#panel-{tab}").is_visible()
    assert not opened.page.locator("#panel-stages").is_visible()
    assert time.perf_counter() - start < SECONDS
    opened.close()


def test_the_arena_and_the_kernels_of_other_sizes(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["bert"], "dark")
    panel = opened.open("arena")
    playwright.expect(panel.locator("h2")).to_contain_text("Arena at b=2, s=16: 57.4 kB")
    panel.locator("rect.value").first.hover()
    playwright.expect(panel.locator(".told")).to_contain_text("bytes at")
    opened.picture("arena")
    panel.locator("select").select_option("1")
    playwright.expect(panel.locator("h2")).to_contain_text("Arena at b=8, s=48: 688 kB")
    kernels = opened.open("kernels")
    playwright.expect(kernels.locator("h2")).to_contain_text("Kernels at b=8, s=48")
    rows = kernels.locator("tbody tr")
    playwright.expect(rows).to_have_count(14)
    kernels.get_by_role("button", name="MFLOP").click()
    flops = [float(text) for text in kernels.locator("tbody td:nth-child(9)").all_inner_texts()]
    assert flops == sorted(flops, reverse=True)
    playwright.expect(kernels.locator("th").nth(8)).to_have_attribute("aria-sort", "descending")
    opened.picture("kernels")
    kernels.get_by_role("button", name="attention_0").click()
    playwright.expect(opened.page.locator("#panel-graph .detail h3")).to_contain_text("attention_0")
    opened.close()


CUT = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const columns = [0, canvas.width - 1].map(x => copy.getImageData(x, 0, 1, canvas.height).data);
  return columns.some(column => column.some(value => value > 0));
}"""
"""Tells whether something is drawn at the left or right edge of a canvas."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1400])
def test_every_panel_has_room(browser: Any, reports: dict[str, Path], width: int, scheme: str) -> None:
    opened = Opened(browser, reports["bert"], scheme, width)
    for tab in ("overview", "stages", "graph", "facts", "arena", "kernels"):
        panel = opened.open(tab)
        opened.page.wait_for_timeout(200)
        assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth"), tab
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
        if tab == "graph":
            assert not panel.locator("canvas").evaluate(CUT)
        opened.picture(tab)
    opened.close()


def test_light_and_dark(browser: Any, reports: dict[str, Path]) -> None:
    def ground() -> int:
        colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    opened = Opened(browser, reports["bert"], "dark")
    assert ground() < 200
    opened.page.click("#theme")
    assert ground() > 600
    opened.page.click("#theme")
    assert ground() < 200
    opened.close()


def test_the_keyboard_reaches_all_panels(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["bert"])
    opened.page.locator("#tab-overview").focus()
    for tab in ("stages", "graph", "facts", "arena", "kernels", "overview"):
        opened.page.keyboard.press("ArrowRight")
        playwright.expect(opened.page.locator(f"#tab-{tab}")).to_be_focused()
        assert opened.page.locator(f"#panel-{tab}").is_visible()
    opened.page.goto(f"{reports['bert'].as_uri()}#facts")
    opened.page.reload()
    assert opened.page.locator("#panel-facts").is_visible()
    playwright.expect(opened.page.locator("#panel-facts")).to_contain_text("mod(s, 16) == 0")
    opened.close()


def test_missing_facts_lead_to_the_graph(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["bert"], "dark")
    panel = opened.open("facts")
    playwright.expect(panel.locator(".card").first).to_contain_text('constraint: "mod(s, 16) == 0"')
    panel.locator("details", has_text="reuse-slot").locator("summary").click()
    playwright.expect(panel.locator("details[open]")).to_contain_text("256*b*s >= 256*s")
    opened.picture("facts")
    panel.get_by_role("button", name="attention_1").click()
    playwright.expect(opened.page.locator("#panel-graph .detail h3")).to_contain_text("attention_1")
    opened.close()
