"""The page in a real Chromium: it opens, plays, shows the right numbers and sends nothing."""

import copy

import numpy as np
import pytest

from flashbulb.report import tables
from flashbulb.report.page import render_page, report_data
from flashbulb.storage.csv_log import read_csv
from tests.report.chromium import PROGRAM, Chromium
from tests.report.example_report import ATTACK, IMAGE, example_study

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no chromium here (Debian: apt-get install chromium)")

PIXELS = "document.querySelector('.stage').toDataURL()"
STEP = "Number(document.querySelector('.scrub').value)"
COUNTERS = "[...document.querySelectorAll('.player')[0].querySelectorAll('dd span')].map((x) => x.textContent)"
READOUT = "[...document.querySelectorAll('[data-column=\"{}\"]')].map((x) => x.querySelector('.readout').textContent)"

# The share of pixels that differ between two states of the canvas, by more than anti-aliasing.
CANVAS_DIFFERENCE = """
var looks = {};
var look = (name) => {
    const canvas = document.querySelector('.stage');
    looks[name] = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
};
var changed = (a, b) => {
    let count = 0;
    for (let k = 0; k < looks[a].length; k += 4)
        if ([0, 1, 2].some((c) => Math.abs(looks[a][k + c] - looks[b][k + c]) > 20)) count += 1;
    return count / (looks[a].length / 4);
};
"""


def click(name):
    return f"document.querySelector('.player [aria-label=\"{name}\"]').click()"


def choose(selector, value):
    return f"(() => {{ const x = document.querySelector('{selector}'); x.value = {value!r}; return x; }})()"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return example_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def data(study):
    return report_data([study], 2, None)


@pytest.fixture(scope="module")
def file(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(data))
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture
def page(browser, file):
    browser.open(file)
    return browser


@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_at_every_size_without_errors(browser, file, width, scheme):
    browser.open(file, width, 800, scheme)
    assert browser.evaluate("document.querySelectorAll('section').length") == 3
    assert browser.evaluate("document.querySelectorAll('.plot path.line').length") > 5
    assert browser.evaluate("document.querySelectorAll('.player').length") == 2
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.problems == []


def test_the_verdict_and_the_curves_come_first_and_provenance_is_folded(page):
    order = ".verdict, .plot, .scroll, .player, .facts"
    seen = page.evaluate(f"[...document.querySelectorAll('{order}')].map((x) => x.classList[0])")
    assert list(dict.fromkeys(seen)) == ["verdict", "plot", "scroll", "player", "facts"]
    assert page.evaluate("document.querySelector('.facts').closest('details').open") is False
    assert page.evaluate("document.querySelector('.plot').getBoundingClientRect().top") < 900, "without scrolling"


def test_x_axes_are_labelled(page):
    plots = "[...document.querySelectorAll('.plot')].filter((x) => x.clientWidth)"
    names = page.evaluate(f"{plots}.map((x) => x.querySelector('.axis-name')?.textContent)")
    assert len(names) > 5
    assert set(names) == {"environment steps"}


def test_the_table_of_results_fits_a_laptop(browser, data, tmp_path):
    """With every column that there is, an algorithm with a long name, and numbers of three digits before the point."""
    wide = copy.deepcopy(data)
    estimates = [["-123.45", "[-130.12, -119.88]"] for _ in tables.NUMBERS]
    heads = ["algorithm", "runs", "limit", *(column.title for column in tables.NUMBERS)]
    rows = [["mice-cpo, memory.neighbours 10, cost_limit 25.0", "6", "25", *estimates]]
    wide["tables"]["summary"] = {"headings": heads, "texts": 1, "groups": [["SafetyPointGoal1-v0", rows]]}
    (tmp_path / "wide.html").write_text(render_page(wide))
    browser.open(tmp_path / "wide.html", 1280)
    box = "document.querySelector('.scroll')"
    assert browser.evaluate(f"{box}.scrollWidth - {box}.clientWidth") <= 0


def test_the_readout_of_two_seeds_says_range(page):
    assert "range [" in page.evaluate(READOUT.format("cost"))[0]
    assert "range of the seeds" in page.evaluate("document.querySelector('h2 + .muted').textContent")


def test_the_scale_of_the_map_is_fixed(page):
    marks = page.evaluate(
        "[...document.querySelectorAll('.player')[0].querySelectorAll('.marks span')]"
        ".map((x) => [x.textContent, parseFloat(x.style.left)])"
    )
    assert [text for text, _ in marks] == ["0", "0.01", "0.1", "1"]
    np.testing.assert_allclose([place for _, place in marks], [0, 21.544, 46.416, 100], atol=0.01)  # cube roots


def test_it_follows_the_readers_theme(browser, file):
    colours = []
    for scheme in ("light", "dark"):
        browser.open(file, scheme=scheme)
        colours.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        colours.append(browser.evaluate(PIXELS))
    assert len(set(colours)) == 4


def test_tables_show_the_numbers_of_the_csv(page, study):
    every = "[...document.querySelectorAll('details tbody tr:not(.group)')]"
    rows = page.evaluate(f"{every}.map((row) => [...row.cells].map((cell) => cell.textContent))")
    heads = page.evaluate("[...document.querySelectorAll('details thead th')].map((x) => x.textContent)")
    assert len(rows) == 7
    for row in rows:
        shown = dict(zip(heads, row, strict=True))
        written = read_csv(study / "runs" / shown["run"] / "metrics.csv")
        assert shown["return"] == f"{written['return'][-1]:.2f}"
        assert shown["cost"] == f"{written['cost'][-1]:.2f}"
        assert shown["cost rate"] == f"{written['cost_rate'][-1]:.4f}"
        assert shown["mean excess"] == f"{np.maximum(written['cost'] - 25, 0).mean():.2f}"


def test_a_cursor_reads_the_numbers_of_the_csv(page, study):
    costs = [read_csv(study / "runs" / f"cpo{seed}" / "metrics.csv")["cost"] for seed in (0, 1)]
    ours = "document.querySelector('[data-column=cost]')"
    values = f"[...{ours}.querySelectorAll('.readout span b')].map((x) => Number(x.textContent))"
    at_end, low, high = (f(costs, axis=0)[-1] for f in (np.mean, np.min, np.max))
    assert page.evaluate(values)[0] == float(f"{at_end:.4g}")
    assert f"[{float(f'{low:.4g}'):g}, {float(f'{high:.4g}'):g}]" in page.evaluate(READOUT.format("cost"))[0]
    page.evaluate(f"{ours}.querySelector('.plot').focus()")
    page.press("ArrowLeft")
    assert page.evaluate(values)[0] == float(f"{np.mean(costs, axis=0)[-2]:.4g}")
    page.evaluate(f"{ours}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
    left, top = (page.evaluate(f"{ours}.querySelector('.plot').getBoundingClientRect().{x}") for x in ("left", "top"))
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 50, y=top + 50)
    assert page.evaluate(values)[0] == float(f"{np.mean(costs, axis=0)[0]:.4g}")
    assert page.problems == []


def test_algorithms_can_be_hidden(page):
    lines = "document.querySelector('[data-column=cost]').querySelectorAll('path.line').length"
    before = page.evaluate(lines)
    page.evaluate("document.querySelector('.chip').click()")
    assert page.evaluate(lines) == before - 1
    assert page.evaluate("document.querySelector('.chip').getAttribute('aria-pressed')") == "false"
    page.evaluate("document.querySelector('.chip').click()")
    assert page.evaluate(lines) == before


def test_it_plays_and_pauses(page):
    still = page.evaluate(PIXELS)
    page.evaluate(click("play"))
    page.until(f"{STEP} > 5")
    assert page.evaluate(PIXELS) != still
    page.evaluate(click("pause"))
    stopped = page.evaluate(STEP)
    page.evaluate("new Promise((done) => setTimeout(done, 150))")
    assert page.evaluate(STEP) == stopped
    page.evaluate("document.querySelector('.scrub').value = 1000")
    page.evaluate("document.querySelector('.scrub').dispatchEvent(new Event('input'))")
    page.evaluate(click("play"))
    page.until(f"{STEP} > 0 && {STEP} < 500")  # from the end it starts again
    assert page.problems == []


def test_speed_is_kept(page):
    """Steps per second of the page's own clock, which is independent of the machine's speed."""
    measure = """new Promise((done) => {
        document.querySelector('.player .controls select').value = SPEED;
        document.querySelector('.player .play').click();
        setTimeout(() => {
            const [from, begun] = [STEP, performance.now()];
            setTimeout(() => {
                const rate = 1000 * (STEP - from) / (performance.now() - begun);
                document.querySelector('.player .play').click();
                done(rate);
            }, 400);
        }, 100);
    })""".replace("STEP", STEP)
    slow, fast = (page.evaluate(measure.replace("SPEED", repr(speed))) for speed in ("1", "8"))
    assert 3 < slow < 60
    assert fast > 2 * slow


def test_single_steps_by_button_and_by_key(page):
    for act, step in ((click("step forward"), 1), (click("step forward"), 2), (click("step back"), 1)):
        page.evaluate(act)
        assert page.evaluate(STEP) == step
    page.evaluate("document.querySelector('.stage').focus()")
    page.press("ArrowRight")
    assert page.evaluate(STEP) == 2
    page.press("End")
    assert page.evaluate(STEP) == 1000
    page.press("Home")
    assert page.evaluate(STEP) == 0
    page.press(" ", "Space")
    page.until(f"{STEP} > 2")
    page.press(" ", "Space")


def test_costs_are_summed_and_can_be_selected(page, data):
    page.evaluate(f"{choose('.player .choices select', '0')}.dispatchEvent(new Event('change'))")
    recording = next(task for task in data["tasks"] if "Hazard" in task["name"])["replays"][0]["episodes"][0]
    first = recording["costs"][0][0]
    page.evaluate(click("next cost"))
    assert page.evaluate(STEP) == first
    assert page.evaluate(COUNTERS)[2] == "1"
    page.evaluate(click("step back"))
    assert page.evaluate(COUNTERS)[2] == "0"
    page.evaluate("document.querySelector('.stage').focus()")
    page.press("End")
    total = sum(cost for _, cost in recording["costs"])
    assert page.evaluate(COUNTERS)[2] == f"{total:g}"
    words = page.evaluate("document.querySelector('.scrub').getAttribute('aria-valuetext')")
    assert words.startswith("step 1000 of 1000")
    assert words.endswith(f"cost {total:g}")


def test_the_memory_map_can_be_shown_and_hidden(page):
    page.evaluate(CANVAS_DIFFERENCE)
    box = "document.querySelectorAll('.memory input')[{}].click()"
    for name, toggled in (("both", None), ("dots", 0), ("none", 1), ("heat", 0), ("again", 1)):
        if toggled is not None:
            page.evaluate(box.format(toggled))
        page.evaluate(f"look('{name}')")
    assert page.evaluate("changed('both', 'dots')") > 0.1, "the map covers the arena"
    assert page.evaluate("changed('heat', 'none')") > 0.1
    assert 0 < page.evaluate("changed('dots', 'none')") < 0.05
    assert page.evaluate("changed('both', 'again')") == 0


def test_selecting_another_episode_changes_the_picture(page):
    first, choices = page.evaluate(PIXELS), ".player label:nth-child(2) select"
    page.evaluate(f"{choose(choices, '1')}.dispatchEvent(new Event('change'))")
    assert page.evaluate(PIXELS) != first
    page.evaluate(f"{choose('.player .choices select', '0')}.dispatchEvent(new Event('change'))")
    assert page.evaluate("document.querySelector('.memory').hidden"), "cpo has no memory"


def test_names_with_markup_are_shown_as_text(page):
    text = page.evaluate("document.body.textContent")
    assert ATTACK in text
    assert IMAGE in text
    assert page.evaluate("document.querySelectorAll('img, script').length") == 2, "the two scripts of the page"
    assert page.evaluate("window.attacked === undefined")
    assert page.evaluate("document.title").startswith(IMAGE)


def test_the_reason_of_a_missing_replay_is_shown(page):
    reasons = page.evaluate("[...document.querySelectorAll('.failed')].map((x) => x.textContent)")
    assert any("pid-lag" in sentence and "no checkpoint" in sentence for sentence in reasons)
    assert any("not one of Flashbulb's own tasks" in sentence for sentence in reasons)


def test_the_content_security_policy_blocks_the_network(page):
    broken = page.evaluate("""new Promise((done) => {
        const broken = [];
        document.addEventListener('securitypolicyviolation', (event) => broken.push(event.effectiveDirective));
        fetch('https://example.invalid/').catch(() => null);
        const script = document.createElement('script');
        script.textContent = 'window.attacked = 1';
        document.body.append(script);
        const image = document.createElement('img');
        image.src = 'https://example.invalid/a.png';
        document.body.append(image);
        setTimeout(() => done(broken.sort()), 200);
    })""")
    assert broken == ["connect-src", "img-src", "script-src-elem"]
    assert page.evaluate("window.attacked === undefined")
