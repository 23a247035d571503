"""The HTML page: one file, no network, names as themselves, the same bytes each time; and at work in a browser."""

import base64
import hashlib
import io
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from benchmark.claims import Judgement
from benchmark.page import to_page
from benchmark.page.reliability import BINS, diagram_data
from benchmark.registry import Registry, Subject, select_tables
from benchmark.store import KnownResults, Result, ResultFolder
from benchmark.tables import GridBuilder
from tests.conftest import Command
from tests.results import failed_result, made_result, tiny_inputs, with_scores

NAMES = ["<b>x</b>", "50%", r"a{b}~^\#$", "\"quoted\" & 'so'", "</script><script>alert(1)</script>", "{{ 7 * 7 }}"]
VERDICTS = ("reproduced", "direction only", "not reproduced", "cannot be told")
JUDGEMENTS = [
    Judgement(f"claim_{number}", f"Claim {number} {NAMES[number]}", f"Table {number}", verdict, f"why {NAMES[number]}")
    for number, verdict in enumerate(VERDICTS)
]
JUDGEMENTS.append(Judgement("claim_4", "Claim 4", "Table 4", "cannot be told", "missing: a run", tested=False))
JUDGEMENTS[0] = replace(JUDGEMENTS[0], ours=-0.8, interval=(-1.93, 0.33), paper=-0.19)


@pytest.fixture(scope="module")
def results(registry: Registry) -> list[Result]:
    """Tables 1 and 5: two seeds; LS lacks one on TNEWS, PosCal failed on HWU64, AVUC has none on BANKING77."""
    made = []
    for number, method in enumerate(("bert", "ls", "poscal", "avuc", "hs_rau")):
        for place, dataset in enumerate(("tnews", "hwu64", "banking77")):
            for seed in (0, 1):
                result = made_result(registry, Subject(dataset, "base", method), seed=seed)
                ece = 0.5 - number / 10 + seed / 100
                result = with_scores(result, f1=0.8 + number / 100 + seed / 500, ece=ece, ece_if_calibrated=ece / 2)
                if (place, method) == (1, "poscal"):
                    made.append(failed_result(result.run))
                elif (place, method, seed) not in {(0, "ls", 1), (2, "avuc", 0), (2, "avuc", 1)}:
                    made.append(result)
    for role in ("albert_tiny", "xlnet", "bert_large"):
        for method in ("bert", "hs_rau"):
            made += [made_result(registry, Subject("tnews", role, method), seed=seed) for seed in (0, 1)]
    return made


def builder(registry: Registry, results: list[Result], seeds: tuple[int, ...] = (0, 1)) -> GridBuilder:
    return GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), seeds)


def render(
    registry: Registry,
    results: list[Result],
    seeds: tuple[int, ...] = (0, 1),
    judgements: list[Judgement] = JUDGEMENTS,
    names: tuple[str, ...] = ("main", "encoders"),
) -> str:
    tables = select_tables(registry, "tiny", list(names))
    made = builder(registry, results, seeds)
    return to_page(made, tables, [made.build(name, table) for name, table in tables.items()], judgements)


@pytest.fixture(scope="module")
def page(registry: Registry, results: list[Result]) -> str:
    return render(registry, results)


def markup(page: str) -> str:
    """The page without styles, scripts and data."""
    return re.sub(r"<(script|style)[ >].*?</\1>", "", page, flags=re.DOTALL)


def text(page: str) -> str:
    """What the markup says, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup(page))).split())


def data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="diagrams">(.*?)</script>', page, flags=re.DOTALL)
    assert found
    return dict(json.loads(found.group(1)))


# --- the file --------------------------------------------------------------------------------------------------------


def test_the_page_is_one_small_file_that_fetches_nothing(page: str) -> None:
    assert len(page.encode()) < 5_000_000
    assert not re.search(r"https?://|//\w+\.\w|\bsrc=|@import|url\(", markup(page))
    styles = "".join(re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL))
    assert not re.search(r"https?:|@import|url\(", styles)
    assert set(re.findall(r"<link [^>]*>", page)) == {'<link rel="icon" href="data:,">'}


def test_only_the_pages_own_scripts_may_run(page: str) -> None:
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']*)'", policy) == hashes
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert not re.search(r"\son\w+=|javascript:", markup(page))


def test_the_same_results_give_the_same_bytes(registry: Registry, results: list[Result], page: str) -> None:
    assert render(registry, list(reversed(results))) == page


def test_names_come_through_as_themselves(registry: Registry, results: list[Result]) -> None:
    labels = iter(NAMES)
    methods = {
        name: method.model_copy(update={"label": next(labels, method.label)})
        for name, method in registry.methods.methods.items()
    }
    dataset = registry.datasets["tiny_tnews"].model_copy(update={"label": NAMES[4]})
    named = replace(
        registry,
        methods=registry.methods.model_copy(update={"methods": methods}),
        datasets=registry.datasets | {"tiny_tnews": dataset},
    )
    page = render(named, results)
    for name in NAMES:
        assert name in text(page)
    assert "<b>x</b>" not in page
    assert "</script><script>alert" not in page
    assert escape(NAMES[0]) in page
    assert data(page)["settings"][0]["label"] == NAMES[4]


# --- what it says ----------------------------------------------------------------------------------------------------


def test_the_top_says_what_was_run(page: str, results: list[Result]) -> None:
    shown = text(page)
    assert "Profile tiny" in shown
    assert "37 of 42 runs 2 failed 3 not run yet" in shown
    assert "Seeds 2 (seeds 0, 1) the profile declares 1 (seed 0)" in shown
    assert "Training time 37 s summed over the runs" in shown
    assert "Finished 2" in shown
    assert "LS Mueller et al., 2019: label smoothing" in shown
    assert "made up, 1 thread, float32" in shown
    assert "diverged: the loss was not finite in epoch 1" in shown
    assert "tiny tnews 165 60 60 6 none aaaaaaaaaaaa" in shown
    assert "tiny base 1 × 16 1,000 built, random weights – eeeeeeeeeeee" in shown
    assert results[0].environment.packages["numpy"] in shown


def test_noise_that_is_only_planned_was_not_run(registry: Registry, results: list[Result]) -> None:
    planned = text(render(registry, results, names=("main", "noise")))
    assert "tiny tnews 165 60 60 6 none aaaaaaaaaaaa" in planned
    noisy = [*results, made_result(registry, Subject("tnews", "base", "bert", 0.3))]
    assert "tiny tnews 165 60 60 6 none, 30 % aaaaaaaaaaaa" in text(render(registry, noisy, names=("main", "noise")))


def test_claims_are_counted_and_listed(page: str) -> None:
    shown = text(page)
    assert (
        "1 reproduced 1 direction only 1 not reproduced 1 cannot be told (within noise) 1 not tested, for want of runs"
        in shown
    )
    assert "4 of 5 claims can be tested" in shown
    assert shown.index("Claim 3") < shown.index("1 claim that these runs do not test") < shown.index("Claim 4")
    assert "ours −0.80 [−1.93, +0.33] paper −0.19" in shown
    for judgement in JUDGEMENTS:
        assert judgement.says in shown
        assert judgement.why in shown


def test_a_claim_over_fewer_seeds_than_others_says_so(registry: Registry, results: list[Result]) -> None:
    both = [replace(one, seeds=(0, 1)) for one in JUDGEMENTS]
    fewer = [replace(one, seeds=(0,) if one.interval else (0, 1)) for one in JUDGEMENTS]
    assert "ours −0.80 [−1.93, +0.33] (n=1) paper −0.19" in text(render(registry, results, judgements=fewer))
    assert "ours −0.80 [−1.93, +0.33] paper −0.19" in text(render(registry, results, judgements=both))


def test_the_top_says_in_short_what_to_use(page: str, registry: Registry, results: list[Result]) -> None:
    shown = text(page)
    found = re.search(r"tiny banking77\. Use HS-RAU: ECE 10\.50 against 50\.50 of BERT", shown)
    assert found
    assert shown.index("In short") < found.start() < shown.index("Do the paper’s claims hold here?")
    assert "Where there is one seed" not in shown[: shown.index("Table 1")]
    assert (
        "over the seeds that both have. Where there is one seed" in shown
    )  # the notes of a table in which one lacks some
    one = text(render(registry, [result for result in results if result.run.seed == 0], seeds=(0,)))
    assert one.count("Where there is one seed, noise is that of the test rows only") >= 2


def test_without_the_papers_numbers_the_switch_has_none(registry: Registry, results: list[Result], page: str) -> None:
    assert re.findall(r'name="show" value="(\w+)"', page) == ["ours", "paper", "difference", "gap"]
    own = replace(registry, paper={})
    assert re.findall(r'name="show" value="(\w+)"', render(own, results, judgements=[])) == ["ours", "gap"]


def test_without_claims_nothing_is_said_of_them(registry: Registry, results: list[Result]) -> None:
    assert "claims" not in markup(render(registry, results, judgements=[]))


def cell(page: str, title: str) -> str:
    """The detail of a cell, as text."""
    found = re.search(rf"<p>{re.escape(escape(title))}</p>(.*?)</dl></div>", page, flags=re.DOTALL)
    assert found, title
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found.group(1))).split())


def test_a_cell_tells_its_seeds_spread_lead_paper_and_files(page: str, results: list[Result]) -> None:
    found = cell(page, "HS-RAU, TNEWS F1")
    assert found.startswith("Mean 84.10, higher is better Seeds n = 2 of 2: 84.00 (seed 0), 84.20 (seed 1)")
    assert "Spread ± 0.14 (sample standard deviation), 84.00 to 84.20" in found
    assert re.search(
        r"Lead 1\.00 higher than AVUC \(95 % interval −?[\d.]+ to −?[\d.]+\), (within|beyond) noise", found
    )
    assert "Paper 56.02 Difference +28.08, ours minus the paper’s" in found
    files = re.findall(r"\S+\.json", found)
    assert [re.search(r"seed(\d)", name).group(1) for name in files] == ["0", "1"]
    assert files[0].split(".")[-2] in {result.run_id[:12] for result in results}
    assert "Missing seed 1: no result" in cell(page, "LS, TNEWS F1")


def test_missing_cells_say_why(page: str) -> None:
    assert cell(page, "AVUC, BANKING77 ECE").startswith("Missing no result")
    assert cell(page, "PosCal, HWU64 ECE").startswith("Missing the run failed (diverged)")
    assert "missing: the run failed (diverged)" in text(page)


def test_rows_of_like_names_are_told_apart_once_sorted(page: str) -> None:
    assert page.count('<span class="short">+ HS-RAU</span>') == 3
    assert '<span class="full">tiny xlnet + HS-RAU</span>' in page


def test_a_row_that_begins_several_groups_has_its_name_once(registry: Registry, results: list[Result]) -> None:
    main = registry.tables["main"]
    rows = {row.method: row for row in main.every_row}
    grouped = main.model_copy(update={"rows": tuple((rows["bert"], rows[name]) for name in ("ts", "ls"))})
    page = render(replace(registry, tables={**registry.tables, "main": grouped}), results, names=("main",))
    headings = re.findall(r"<th[^>]*>\s*(BERT[^<]*?)\s*</th>", page)
    assert headings[:2] == ["BERT", "BERT"]
    assert "BERT BERT" not in page


def test_methods_of_one_label_are_told_apart_in_the_diagrams(registry: Registry, results: list[Result]) -> None:
    methods = registry.methods.methods
    methods = methods | {"ls": methods["ls"].model_copy(update={"label": "BERT"})}
    named = replace(registry, methods=registry.methods.model_copy(update={"methods": methods}))
    found = diagram_data(builder(named, results), select_tables(named, "tiny", ["main"]), (0, 1))
    labels = [method["label"] for method in found["settings"][1]["methods"]]
    assert labels == ["BERT (bert)", "TS", "BERT (ls)", "AVUC", "HS-RAU"]


def test_every_table_of_the_profile_has_a_page(registry: Registry) -> None:
    page = render(registry, [], seeds=(), judgements=[], names=("all",))
    assert re.findall(r'<span class="number">Table (\w)</span>', page) == list("12345BCDE")
    assert "0 of 51 runs 51 not run yet" in text(page)
    assert "missing: 48 of 48 cells (no result)" in text(page)
    assert 'id="reliability"' not in page


def test_merged_bins_give_the_stored_calibration_error(registry: Registry, results: list[Result]) -> None:
    tables = select_tables(registry, "tiny", ["main"])
    found = diagram_data(builder(registry, results), tables, (0, 1))
    assert [setting["label"] for setting in found["settings"]] == ["tiny tnews", "tiny hwu64", "tiny banking77"]
    assert [method["label"] for method in found["settings"][1]["methods"]] == ["BERT", "TS", "LS", "AVUC", "HS-RAU"]
    assert found["settings"][1]["compared"] == 4
    assert all(found["fine"] % bins == 0 for bins in BINS)
    for method, view in zip(found["settings"][0]["methods"][:2], results[0].views[::1], strict=True):
        gaps = [0.0] * 10
        for position, count, confidence, right in method["seeds"][0]["bins"]:
            gaps[position // 6] += right - count * confidence
        rows = sum(count for _, count, _, _ in method["seeds"][0]["bins"])
        assert sum(map(abs, gaps)) / rows == pytest.approx(view.scores["top_label_ece"], abs=1e-5)


def test_the_command_writes_the_page(results: list[Result], benchmark_command: Command, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "results", "tiny")
    for result in results[:4]:
        folder.save(result)
    call = benchmark_command("report", "--format", "html", "--table", "main")
    assert call.returncode == 0, call.stderr
    assert call.stdout == ""
    written = tmp_path / "tables" / "tiny" / "report.main.html"  # beside that of all tables
    assert str(written) in call.stderr
    assert "Table 1" in text(written.read_text(encoding="utf-8"))


# --- in a browser ----------------------------------------------------------------------------------------------------

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromium-driver (apt-get install chromium chromium-driver)"
)


class Browser:
    """The page in a headless Chromium."""

    def __init__(self, page: Path) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars"):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # the driver's path is given, so that Selenium looks for none, here or elsewhere
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self.address = page.as_uri()

    def open(self, width: int = 1400, height: int = 1000, mobile: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(self.address)
        self.wait(lambda: self.drawings() == 1)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        return self.all(selector)[0]

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def drawings(self) -> int:
        return int(self.run("return Number(document.getElementById('reliability').dataset.drawings ?? 0)"))

    def wait(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.02)

    def colours(self, selector: str) -> dict[tuple[int, ...], int]:
        """The pixels of an element, counted by colour."""
        from PIL import Image

        image = Image.open(io.BytesIO(self.one(selector).screenshot_as_png)).convert("RGB")
        return {colour: count for count, colour in image.getcolors(1 << 24)}

    def choose(self, name: str, value: str) -> None:
        from selenium.webdriver.support.select import Select

        before = self.drawings()
        Select(self.one(f"select[name={name}]")).select_by_visible_text(value)
        self.wait(lambda: self.drawings() > before)


@pytest.fixture(scope="module")
def chromium(page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page, encoding="utf-8")
    browser = Browser(path)
    yield browser
    browser.driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The page, freshly loaded at a desk's size."""
    chromium.open()
    return chromium


def column(browser: Browser, index: int, table: int = 0) -> list[str]:
    """A column's shown numbers from top to bottom."""
    script = """return [...document.querySelectorAll("table.grid")[arguments[0]].querySelectorAll("tbody tr")].map(
        (row) => row.querySelectorAll("td")[arguments[1]].innerText.split(/[\\s,°]/)[0])"""
    return list(browser.run(script, table, index))


@needs_browser
def test_it_loads_quietly_and_asks_nothing_of_the_network(browser: Browser) -> None:
    assert browser.driver.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")]
    asked = [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]
    assert set(asked) <= {browser.address, "data:,"}


@needs_browser
def test_one_switch_changes_the_numbers_of_all_tables(browser: Browser) -> None:
    assert (column(browser, 0)[0], column(browser, 0, table=1)[0]) != ("54.81", "54.81")
    browser.run("document.querySelector('input[value=paper]').click()")
    assert column(browser, 0) == ["54.81", "54.81", "55.29", "54.98", "55.41", "56.02"]
    assert browser.one("#table-main ~ .notes.paper").is_displayed()
    assert browser.run("return document.querySelectorAll('.grid')[0].rows[7].cells[1].querySelector('.paper strong')")
    browser.run("document.querySelector('input[value=difference]').click()")
    assert column(browser, 0)[-1] == "+28.08"
    browser.one("input[value=difference]").send_keys("\ue012")  # the left arrow key
    assert column(browser, 0)[-1] == "56.02"


@needs_browser
def test_the_switch_shows_how_far_rows_are_from_the_first(browser: Browser) -> None:
    ours = column(browser, 1)
    browser.run("document.querySelector('input[value=gap]').click()")
    gaps = column(browser, 1)
    assert gaps[0] == ours[0]
    assert gaps[1:] == ["+0.00", "−10.00", "−20.00", "−30.00", "−40.00"]  # LS's over the seed that it has
    interval = browser.all("table.grid tbody tr:nth-child(3) .interval")[1]
    assert interval.is_displayed()
    assert interval.text == "(−10.00 to −10.00) (n=1)"
    assert (
        "Differences from BERT, whose own values (± sample standard deviation) are shown."
        in browser.one("#table-main ~ .notes.gap").text
    )
    assert not browser.one("#table-main ~ .notes.ours").is_displayed()
    browser.run("document.querySelectorAll('table.grid tbody tr')[1].querySelectorAll('td')[1].focus()")
    assert browser.run("return document.querySelector('#detail dt').textContent") == "From the first row"
    browser.run(
        "document.querySelectorAll('table.grid')[0].querySelectorAll('button')[2].click()"
    )  # by ECE, best first
    assert column(browser, 1) == [*reversed(gaps[2:]), gaps[0], gaps[1]]


@needs_browser
def test_headings_sort_and_the_third_press_restores(browser: Browser) -> None:
    before = column(browser, 4)
    button = browser.all("table.grid thead button")[5]  # F1 on BANKING77
    assert button.accessible_name.strip() == "F1"
    header = button.find_element("xpath", "..")
    button.click()
    assert header.get_attribute("aria-sort") == "descending"
    numbers = [float(value) for value in column(browser, 4)[:-1]]
    assert numbers == sorted(numbers, reverse=True)
    assert column(browser, 4)[-1] == "–"
    shown = "return [...document.querySelectorAll('table.grid')[0].tBodies].filter((body) => !body.hidden).length"
    assert browser.run(shown) == 1
    button.send_keys("\n")
    assert header.get_attribute("aria-sort") == "ascending"
    assert [float(value) for value in column(browser, 4)[:-1]] == sorted(numbers)
    button.send_keys(" ")
    assert header.get_attribute("aria-sort") is None
    assert column(browser, 4) == before
    assert browser.run(shown) == 2


@needs_browser
def test_sorted_rows_keep_their_groups_name(browser: Browser) -> None:
    browser.run("document.querySelectorAll('table.grid')[1].querySelectorAll('thead button')[1].click()")
    labels = browser.run(
        "return [...document.querySelectorAll('table.grid')[1].querySelectorAll('tbody th')].map((th) => th.innerText)"
    )
    assert sorted(labels) == sorted(
        name for encoder in ("albert", "xlnet", "large") for name in (f"tiny {encoder}", f"tiny {encoder} + HS-RAU")
    )


@needs_browser
def test_diagrams_are_drawn_and_follow_the_choices(browser: Browser, results: list[Result]) -> None:
    for side in ("left", "right"):
        for part in ("bars", "histogram"):
            assert len(browser.colours(f"#{side} .{part}")) > 10
    assert browser.one("#left figcaption").text.startswith("BERT tiny tnews, top-label ECE")
    assert browser.one("#right figcaption").text.startswith("HS-RAU")
    stored = sum(100 * result.views[0].scores["top_label_ece"] for result in results[:2]) / 2
    scores = browser.run(
        "return [...document.querySelectorAll('#scores tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    assert [row[0] for row in scores] == ["Method", "BERT", "TS", "LS", "PosCal", "AVUC", "HS-RAU"]
    place = scores[0].index("Top-label ECE, 10 bins")
    assert scores[1][place].startswith(f"{stored:.2f} ± ")
    shots = [browser.one("#left .bars").screenshot_as_png]
    for name, value in (("bins", "30"), ("left", "LS"), ("setting", "tiny banking77")):
        browser.choose(name, value)
        shots.append(browser.one("#left .bars").screenshot_as_png)
        assert shots[-1] != shots[-2]
    assert browser.one("#left figcaption").text.startswith("LS tiny banking77")
    assert "tiny banking77, 30 bins. LS is" in browser.one("#summary").text
    assert browser.run("return document.querySelectorAll('#bins tbody tr').length") == 30


@needs_browser
def test_the_keyboard_reaches_what_is_behind_a_cell(browser: Browser) -> None:
    browser.run(
        "document.querySelectorAll('table.grid')[0].querySelector('thead tr:last-child th:last-child button').focus()"
    )
    detail = browser.one("#detail")
    browser.press("\ue004")  # Tab
    assert detail.text.startswith("BERT, TNEWS F1")
    assert "n = 2 of 2" in detail.text
    assert browser.run(
        "return document.getElementById(document.activeElement.getAttribute('aria-describedby')) !== null"
    )
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("\ue015", "\ue014")  # down, right
    assert detail.text.startswith("TS, TNEWS ECE")
    browser.press("\ue010")  # End
    assert detail.text.startswith("TS, Average ECE")
    browser.press("\ue00c")  # Escape
    assert not detail.is_displayed()
    browser.press("\ue004")
    assert browser.run("return document.activeElement.closest('table') === document.querySelectorAll('table.grid')[1]")


@needs_browser
def test_what_is_behind_a_cell_leads_with_the_number_shown_and_stands_beside_the_table(chromium: Browser) -> None:
    browser = chromium
    browser.open(width=2200)

    def first_term() -> str:
        browser.run("document.activeElement.blur(); document.querySelectorAll('table.grid td')[0].focus()")
        return str(browser.run("return document.querySelector('#detail dt').textContent"))

    assert first_term() == "Mean"
    edges = """const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        return [box('#detail').left, box('.scroll:has(.grid)').right]"""
    left, right = browser.run(edges)
    assert left > right
    for shown, term in (("paper", "Paper"), ("difference", "Difference")):
        browser.run("document.querySelector(`input[value=${arguments[0]}]`).click()", shown)
        assert first_term() == term


@needs_browser
def test_the_pointer_reaches_it_too(browser: Browser) -> None:
    from selenium.webdriver import ActionChains

    target = browser.all("table.grid tbody td")[0]
    browser.run("arguments[0].scrollIntoView({block: 'center'})", target)
    ActionChains(browser.driver).move_to_element(target).perform()
    detail = browser.one("#detail")
    browser.wait(detail.is_displayed)
    assert "Files" in detail.text
    box = browser.run("return document.getElementById('detail').getBoundingClientRect().toJSON()")
    assert box["left"] >= 0
    assert box["right"] <= 1400
    ActionChains(browser.driver).move_to_element(browser.one("#tables-heading")).perform()
    browser.wait(lambda: not detail.is_displayed())


CONTRAST = """
const luminance = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((value) => {
  const share = value / 255; return share <= .04045 ? share / 12.92 : ((share + .055) / 1.055) ** 2.4; });
  return .2126 * r + .7152 * g + .0722 * b; };
const behind = (node) => { for (; node; node = node.parentElement) {
  const colour = getComputedStyle(node).backgroundColor;
  if (!/, 0\\)$|transparent/.test(colour)) return colour; } return "rgb(255, 255, 255)"; };
const low = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
  const [a, b] = [getComputedStyle(node).color, behind(node)].map(luminance);
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) low.push([walker.currentNode.data.trim(), ratio]);
}
return low;
"""


@needs_browser
def test_dark_and_light_in_both_all_text_stands_out(browser: Browser) -> None:
    def paper() -> str:
        return str(browser.run("return getComputedStyle(document.body).backgroundColor"))

    assert paper() == "rgb(255, 255, 255)"
    assert browser.run(CONTRAST) == []
    bright = browser.colours("#left .bars")
    browser.one("#theme").click()
    browser.wait(lambda: browser.drawings() == 2)
    assert browser.one("#theme").text == "Light colours"
    assert paper() == "rgb(22, 24, 27)"
    assert browser.run(CONTRAST) == []
    dark = browser.colours("#left .bars")
    assert max(bright, key=bright.get) == (255, 255, 255)
    assert max(dark, key=dark.get) == (22, 24, 27)
    browser.one("#theme").click()
    assert paper() == "rgb(255, 255, 255)"


@needs_browser
def test_on_a_phone_tables_scroll_and_the_page_does_not(chromium: Browser) -> None:
    chromium.open(width=390, height=844, mobile=True)
    assert chromium.run("return [document.documentElement.scrollWidth, window.innerWidth]") == [390, 390]
    assert chromium.run(
        "return [...document.querySelectorAll('.scroll')].some((box) => box.scrollWidth > box.clientWidth)"
    )
    width = chromium.run("return document.querySelector('#left .plot svg, #left .bars').getBoundingClientRect().width")
    assert 300 < width <= 390
    chromium.run("document.querySelectorAll('table.grid td')[3].focus()")
    box = chromium.run("return document.getElementById('detail').getBoundingClientRect().toJSON()")
    assert (box["left"], box["right"], box["bottom"]) == (0, 390, 844)


@needs_browser
def test_it_prints_without_controls_and_uncut(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        for selector in (".top", ".switch", ".choices"):
            assert not browser.one(selector).is_displayed()
        assert browser.run("return getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
        assert browser.one("#left .plot").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False, "preferCSSPageSize": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
