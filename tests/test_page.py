"""``page.html`` of ``ucbf learn``: what it says, what it must not fetch, and how it looks on a phone and on paper."""

import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import commands
import ucbf
from ucbf import advice, data, figures
from ucbf.advice.judging import FEWEST_EPISODES
from ucbf.advice.remarks import binding_capacity, losing_sales, nothing_ordered
from ucbf.advice.sections import Compared, Judgement, Line, Rules, check_lines, sections_of, source_line, verdict_on
from ucbf.systems import Inventory, Queue

PRICES = ["--price", "9", "--unit-cost", "4"]
EVIL = "<script>alert(1)</script>"
INLINE = {"b", "span", "wbr"}


class Reader(HTMLParser):
    """The text of a page as it is read, and its elements with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.text, self.elements = "", []
        self.feed(page)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.text += "" if tag in INLINE else " "

    def handle_endtag(self, tag):
        self.text += "" if tag in INLINE else " "

    def handle_data(self, text):
        self.text += text

    def of(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]


def weeks(values, name="units", source="memory"):
    return data.episodes(data.Series(np.asarray(values, float).ravel(), None, name, source), 7)


def poisson(mean=8, K=60, seed=0):
    return np.random.default_rng(seed).poisson(mean, (K, 7)).astype(float)


def shop_advice(values=None, **options):
    return ucbf.learn(Inventory(capacity=40, max_demand=30), weeks(poisson() if values is None else values), **options)


@pytest.fixture(scope="module")
def fine():
    return shop_advice()


@pytest.fixture(scope="module")
def fallen():
    """Demand falls to a fifth where judging begins."""
    return shop_advice(np.concatenate([poisson(16, 42), poisson(3, 18, seed=1)]).clip(0, 30))


@pytest.fixture(scope="module")
def two_kinds():
    """Calls by the hour: weekdays and weekends differ."""
    times = np.datetime64("2024-01-01T00", "h") + np.arange(24 * 70)
    calls = np.random.default_rng(0).poisson(3, len(times)).astype(float)
    days = data.episodes(data.Series(calls, times, "calls", "memory"), 24)
    return ucbf.learn(Queue(horizon=24, capacity=20, max_arrivals=15), days)


def page_of(found, given=None):
    return advice.html(advice.sections_of(found, given), figures.page_pictures(found))


@pytest.mark.parametrize("case", ["fine", "fallen", "two_kinds", "few", "all", "one"])
def test_both_pages_say_the_same(case, request):
    made = {
        "few": lambda: shop_advice(poisson(K=6)),
        "all": lambda: shop_advice(poisson(K=6), train=1.0),
        "one": lambda: shop_advice(poisson(K=4), train=0.75),  # one episode to judge by: intervals are not known
    }
    found = made[case]() if case in made else request.getfixturevalue(case)
    text = Reader(page_of(found, {"capacity"})).text
    said = advice.summary(found, {"capacity"})
    for line in said.splitlines():
        cells = [cell for cell in line.split("|") if not re.fullmatch("[ -]*", cell)] if line[:1] == "|" else [line]
        for cell in cells:
            plain = " ".join(re.sub("^(#+|-) ", "", cell).split())
            assert plain in text, plain


def test_the_order_of_the_page(fallen):
    text = Reader(page_of(fallen)).text
    told = advice.sections_of(fallen)
    first = [told.title, told.verdict, "Read this first", *told.caveats, "What to do", "What it is worth", "Expected:"]
    then = [told.judgement.heading, told.judgement.sentence, "What was assumed", "With ", "Assumed:", "The data"]
    places = [text.index(words, text.index(told.verdict) if i > 1 else 0) for i, words in enumerate(first + then)]
    assert places == sorted(places)
    assert len(told.caveats) > 2
    assert told.caveats[0].startswith("A simple rule did better")


def test_a_page_without_caveats_says_so(fine, fallen):
    assert advice.sections_of(fine).caveats == ()
    assert (
        "Read this first Nothing that was checked speaks against this advice. What to do" in Reader(page_of(fine)).text
    )
    assert "Nothing that was checked" not in page_of(fallen)


def test_nothing_is_fetched_and_nothing_runs(two_kinds):
    page = page_of(two_kinds)
    assert "http" not in page
    assert "//" not in re.sub('base64,[^"]*', "", page)
    assert "@import" not in page
    read = Reader(page)
    assert not read.of("script", "link", "iframe", "object", "embed", "base", "form")
    for _, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name, value in attributes.items():
            if name in {"src", "href", "xlink:href", "srcset", "action"}:
                assert re.match("#|data:image/png;base64,", value), value
    assert set(re.findall(r"url\((.)", page)) <= {"#"}


def test_every_picture_says_what_it_shows(two_kinds):
    read = Reader(page_of(two_kinds))
    alts = [figure["aria-label"] for figure in read.of("figure")]
    assert all(figure["role"] == "img" for figure in read.of("figure"))
    assert len(alts) == len(read.of("svg")) == 2 + 3  # a policy for either kind, values, the law, the comparison
    assert all(len(alt) > 40 for alt in alts)
    assert "What to do: service (grey: none), weekend" in read.text
    assert "What a state is worth, weekend" in read.text
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = {link[1:] for each in read.of("use") for link in each.values() if str(link).startswith("#")}
    assert used
    assert used <= set(ids)


def test_a_page_may_have_no_pictures(fine):
    read = Reader(advice.html(advice.sections_of(fine)))
    assert not read.of("figure", "svg")
    assert "What to do" in read.text


def test_all_colours_are_there_by_day_by_night_and_on_paper(fallen):
    page = page_of(fallen)
    roots = [set(re.findall(r"(--\w[\w-]*):", block)) for block in re.findall(r":root \{(.*?)\}", page, re.DOTALL)]
    used = set(re.findall(r"var\((--[\w-]+)\)", page))
    assert len(roots) == 3
    assert roots[0] == roots[1] == roots[2] == used
    assert '<meta name="viewport" content="width=device-width' in page
    drawn = "".join(re.findall("<svg.*?</svg>", page, re.DOTALL))
    assert "#000000" not in drawn
    assert "#ffffff" not in drawn


def test_many_measurements_do_not_make_a_heavy_page():
    assert len(page_of(shop_advice(poisson(K=900)))) < 400_000


def test_all_text_is_escaped(fine):
    told = advice.sections_of(fine)
    rules = (Rules(told.rules[0].kind, EVIL, (Line(EVIL, EVIL),)),)
    judged = Judgement(EVIL, EVIL, (Compared(EVIL, EVIL, EVIL, EVIL),))
    lines = {name: (Line(EVIL, EVIL),) for name in ("worth", "parameters", "assumptions")}
    texts = dict.fromkeys(("caveats", "data", "checks"), (EVIL,))
    bad = replace(told, title=EVIL, verdict=EVIL, source=EVIL, rules=rules, judgement=judged, **lines, **texts)
    pictures = figures.page_pictures(fine)
    quoted = replace(pictures.value, caption=EVIL, alt=f'">{EVIL}')
    page = advice.html(bad, replace(pictures, value=quoted))
    assert "<script" not in page
    assert "alert(1)" in Reader(page).text
    assert Reader(page).of("figure")[1]["aria-label"] == f'">{EVIL}'


def test_names_of_the_user_are_escaped(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(70)
    rows = "".join(f"{day},{n:g}\n" for day, n in zip(days, poisson(K=10).ravel(), strict=True))
    (tmp_path / "a&b <i>.csv").write_text(f"date,{EVIL}\n{rows}")
    commands.ucbf(
        "learn",
        "inventory",
        "--demand",
        "a&b <i>.csv",
        "--price",
        "9",
        "--unit-cost",
        "4",
        "--out",
        "new",
        cwd=tmp_path,
    )
    page = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<i>" not in page
    text = Reader(page).text
    assert f"Column '{EVIL}', 70 rows" in text
    assert "Inventory: a policy from a&b <i>.csv" in text
    assert "Read from a&b <i>.csv: rows from 2024-01-01 to 2024-03-10." in text


def test_the_page_is_written_last_and_whole(tmp_path, monkeypatch):
    from ucbf.cli import learn_files

    days = np.datetime64("2024-01-01") + np.arange(70)
    (tmp_path / "d.csv").write_text("date,units\n" + "".join(f"{d},{i % 5}\n" for i, d in enumerate(days)))
    written, whole = [], learn_files.write_whole

    def recorded(path, content):
        written.append(path.name)
        whole(path, content)

    monkeypatch.setattr(learn_files, "write_whole", recorded)
    done = commands.ucbf("learn", "inventory", "--demand", "d.csv", *PRICES, "--out", "new", cwd=tmp_path)
    assert written[-2:] == ["page.html", "summary.md"]
    assert "written to new: summary.md, page.html, policy.csv" in done.stdout
    pages = [(tmp_path / "new" / "page.html").read_bytes()]
    commands.ucbf("learn", "inventory", "--demand", "d.csv", *PRICES, "--out", "new", cwd=tmp_path)
    pages.append((tmp_path / "new" / "page.html").read_bytes())
    assert pages[0] == pages[1]


def judged(n, *rules):
    """Advice that was compared with rules, each with the ends of the interval by which the learned policy is ahead."""
    names = ["learned", *(name for name, _, _ in rules)]
    ends = [(0, 0), *((low, high) for _, low, high in rules)]
    rows = [{"policy": name, "low": low, "high": high} for name, (low, high) in zip(names, ends, strict=True)]
    return SimpleNamespace(comparison=lambda: rows if n else [], test=range(n), variants=("without the forecast",))


def test_the_verdict_is_one_line():
    n = FEWEST_EPISODES
    assert verdict_on(judged(0), 0) == "Not judged: all episodes were learned from."
    none = "No simple rule did better than this policy in the 8 episodes that followed, beyond chance"
    few = judged(n - 1, ("myopic", -2, -1))
    assert verdict_on(few, 2) == "Not settled: 7 episodes followed, too few to judge by. 2 things to read first."
    worse = judged(n, ("myopic", 1, 2), ("base-stock", 0, 2), ("still learning", -2, -1))
    assert verdict_on(worse, 0) == f"{none}; it was ahead of 1 of 2 rules."
    even = judged(n, ("myopic", -2, 0))
    said = f"{none}; it was ahead of none of 1 rule. 1 thing to read first."
    assert verdict_on(even, 1) == said
    same = judged(n, ("myopic", 0, 0), ("base-stock", -1, 1))
    simpler = "Myopic is simpler and earned just as much in every one."
    assert verdict_on(same, 0) == f"{none}; it was ahead of none of 2 rules. {simpler}"
    better = judged(n, ("base-stock", -3, -1), ("myopic", -2, 0))
    said = "Do not use it as it is: base-stock, a simple rule, did better in the 8 episodes that followed."
    assert verdict_on(better, 0) == said
    without = judged(n, ("without the forecast", -3, -1), ("myopic", 1, 2))
    assert verdict_on(without, 0) == (
        "Do not use it as it is: without the forecast it did better in the 8 episodes that followed."
    )
    alike = judged(n, ("without the forecast", 1, 2), ("myopic", -1, 2))
    assert verdict_on(alike, 0) == f"{none}; it was ahead of none of 1 rule."


def test_the_rows_are_accounted_for():
    values = poisson(K=10)
    values[3, 2] = 400
    times = np.datetime64("2024-01-01T00:00:00") + 86_400 * np.arange(70)
    filled = np.zeros(70, bool)
    filled[[4, 9, 11]] = True
    series = data.Series(values.ravel(), times, "units", "shop.csv", filled=filled)
    learned = data.episodes(series, 7)
    training, test = learned.split(0.7)
    found = SimpleNamespace(training=training, test=test, learned=learned)
    assert source_line(found) == "Read from shop.csv: rows from 2024-01-01 to 2024-03-10."
    assert check_lines(found) == ("3 values filled in.", "1 value far from all others.")
    learned = weeks(poisson(K=10))
    training, test = learned.split(0.7)
    found = SimpleNamespace(training=training, test=test, learned=learned)
    assert source_line(found) == "Read from memory."
    assert check_lines(found) == ("No value filled in.", "No value far from all others.")


# -- in a browser -----------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
# A window of its own would not be narrower than 500 pixels; a frame is as wide as it is told.
FRAME = """<!DOCTYPE html><title></title>
<iframe style="border: 0; width: {width}px; height: 900px" srcdoc="{page}"></iframe>
<script>onload = () => {{
  const inside = frames[0].document.documentElement;
  document.title = [inside.clientWidth, inside.scrollWidth].join(" ");
}}</script>"""


def browse(tmp_path, *options):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'browser'}"]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("case", ["fallen", "two_kinds", "long"])
def test_a_page_is_as_wide_as_its_window(tmp_path, case, width, request):
    found = request.getfixturevalue("fallen" if case == "long" else case)
    told = advice.sections_of(found)
    if case == "long":
        judgement = replace(told.judgement, rows=(Compared("rule_" * 40, "1" * 60, "+" + "2" * 60, "(unknown)"),))
        told = replace(told, title="x" * 300, source="y" * 300, judgement=judgement)
    page = advice.html(told, figures.page_pictures(found))
    frame = FRAME.format(width=width, page=escape(page))
    (tmp_path / "frame.html").write_text(frame, encoding="utf-8")
    shown = browse(tmp_path, "--hide-scrollbars", "--dump-dom", f"file://{tmp_path / 'frame.html'}")
    inside, needed = map(int, re.search(r"<title>(\d+) (\d+)</title>", shown).groups())
    assert inside == width
    assert needed == width


@pytest.mark.slow
@needs_browser
def test_a_page_prints(tmp_path, fallen):
    (tmp_path / "page.html").write_text(page_of(fallen), encoding="utf-8")
    browse(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'p.pdf'}", f"file://{tmp_path}/page.html")
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "p.pdf").read_bytes())
    assert 1 <= len(pages) <= 4


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (
            {"price": 3, "unit_cost": 4},
            "The price (3) is below the unit cost (4): no sale earns anything. So",
        ),
        ({"price": 4, "unit_cost": 4}, "The price (4) is no more than the unit cost (4)"),
        ({"price": 3, "unit_cost": 4, "penalty": 2}, "Only the penalty (2) speaks for ordering"),
        ({"price": 0, "unit_cost": 4, "penalty": 9}, None),
        ({"price": 0, "unit_cost": 0, "penalty": 9}, None),
        ({"price": 5, "unit_cost": 4}, None),
        ({"price": 5, "unit_cost": 5, "price_breaks": ((20, 3),)}, None),
        ({"price": 5, "unit_cost": 5, "price_breaks": ((21, 3),)}, "is no more than the lowest unit cost (5)"),
        ({"price": 2, "unit_cost": 5, "price_breaks": ((20, 3),)}, "The price (2) is below the lowest unit cost (3)"),
        ({"price": 5, "unit_cost": 6, "penalty": 0.5, "backlog": 30}, "no sale earns anything. Are they"),
        ({"price": 5, "unit_cost": 6, "salvage": 7}, "no sale earns anything. Are they"),
        ({"price": 5, "unit_cost": 6, "penalty": 2, "backlog": 30}, "Only the penalty (2) speaks for ordering"),
    ],
)
def test_a_price_below_the_cost_is_read_first(costs, said):
    found = losing_sales(Inventory(**costs))
    assert (said is None) == (not found)
    if said is not None:
        assert found[0].first
        assert said in found[0].text


def test_a_price_below_the_cost_stands_on_the_page():
    told = sections_of(ucbf.learn(Inventory(capacity=20, max_demand=15, price=3), weeks(poisson(4, K=30).clip(0, 15))))
    assert any("The price (3) is below the unit cost (4)" in text for text in told.caveats)


def test_a_policy_that_never_orders_is_said_first():
    shop = Inventory(capacity=6, max_demand=3, price=1.68, unit_cost=1.2, order_cost=15, holding=0.0006)
    amounts = np.random.default_rng(0).integers(0, 3, (20, 7)).astype(float)
    found = ucbf.learn(shop, ucbf.data.episodes(ucbf.data.read_series(amounts.ravel()), 7))
    assert not found.policy.quantities.any()
    (remark,) = nothing_ordered(found)
    assert remark.gravest
    assert remark.text.startswith(
        "Nothing is ever ordered, although the price (1.68) is above the unit cost (1.2): no order of up to 6 pays"
    )
    cheap = ucbf.learn(shop.replace(order_cost=0), found.learned)
    assert nothing_ordered(cheap) == ()


def test_a_capacity_that_was_assumed_and_is_used_up_is_said_packs_or_not():
    amounts = np.random.default_rng(0).integers(0, 3, (20, 7)).astype(float)
    weeks = ucbf.data.episodes(ucbf.data.read_series(amounts.ravel()), 7)
    shop = Inventory(capacity=10, max_demand=3, order_cost=15, holding=0.01)
    for each in (shop, shop.replace(pack=4)):  # 4 and 4 fit, 12 do not
        found = ucbf.learn(each, weeks)
        (remark,) = binding_capacity(found, {"price"})
        assert remark.text.startswith("The capacity of 10, which was assumed, is used up: with a larger one")
        assert remark.first
        assert binding_capacity(found, {"capacity"}) == binding_capacity(found, None) == ()
    assert binding_capacity(ucbf.learn(shop.replace(capacity=300), weeks), {"price"}) == ()
