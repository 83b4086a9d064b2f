"""Runs that a stranger has damaged at random: every command answers in time, and nothing outside changes.

Thirty cases in `make test`, a thousand in `make test-all` (FLASHBULB_FUZZ_CASES sets another number).
"""

import json
import os
import resource
import shutil
import signal
import struct

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from flashbulb.cli.main import main
from flashbulb.errors import RunError
from flashbulb.training import loop
from tests.training.small_run import made_run

HTML = "</script><img src=x onerror=alert(1)>&\"'<b>"
ROOM = 4 * 2**30  # bytes that a command may take beyond what the tests have
TOO_LONG = 120  # seconds
FILES = ("config.json", "spaces.json", "metrics.csv", "episodes.csv", "checkpoints/000002.safetensors")
COMMANDS = (
    ["runs", "{runs}"],
    ["plot", "{run}", "-o", "{out}/curves.svg"],
    ["report", "{runs}", "-o", "{out}/report.html", "--episodes", "0"],
    ["report", "{run}", "-o", "{out}/replay.html", "--episodes", "1"],
    ["evaluate", "{run}", "--episodes", "1", "--deterministic"],
    ["verify", "{run}"],
    ["resume", "{run}"],
)

texts = st.sampled_from(
    [HTML, "", "../../outside", "/etc/passwd", "\x1b[2J\x07", "[red]", "a\nb", "\u202e", "os:system"]
)
texts |= st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
plain = texts | st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([2**40, 10**30, -1, 1e308])
values = st.recursive(plain, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=4)
places = st.floats(0, 1, exclude_max=True)


def leaves(tree, path=()):
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key))


def contents(path):
    """Of an ordinary file: an earlier damage may have put a pipe there, which would never end."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.read_bytes()


def put(run, name, at, value):
    """Another value somewhere in a JSON file."""
    tree = json.loads(contents(run / name))
    paths = list(leaves(tree))
    *inner, last = paths[int(at * len(paths))] or (None,)
    part = tree
    for key in inner:
        part = part[key]
    if last is not None:
        part[last] = value
    (run / name).write_text(json.dumps(tree if last is not None else value))


def splice(run, name, at, content, length):
    """Bytes replaced, inserted or cut at some place."""
    data = contents(run / name)
    begin = int(at * len(data))
    (run / name).write_bytes(data[:begin] + content + data[begin + length :])


def remove(run, name):
    (run / name).unlink()


def lead_elsewhere(run, name, target):
    (run / name).unlink()
    (run / name).symlink_to({"itself": run / name}.get(target, target))


def other_kind(run, name, kind):
    (run / name).unlink()
    {"directory": os.mkdir, "pipe": os.mkfifo}[kind](run / name)


def huge_header(run, shape, length):
    """A checkpoint whose header promises more than there is."""
    header = json.dumps({"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 2**50]}}).encode()
    size = len(header) if length is None else length
    (run / "checkpoints/000003.safetensors").write_bytes(struct.pack("<Q", size) + header)


def wide_table(run, columns, width):
    """Columns without end, or one whose name has none."""
    path = run / "metrics.csv"
    lines = contents(path).splitlines()
    names = b"".join(b",c%d" % i + b"x" * width for i in range(columns))
    cells = b",1" * columns
    path.write_bytes(b"\n".join([lines[0] + names, *(line + cells for line in lines[1:])]) + b"\n")


def files_of(*strategies):
    return st.tuples(st.sampled_from(FILES), *strategies)


DAMAGES = st.one_of(
    st.tuples(st.just(put), st.tuples(st.sampled_from(FILES[:2]), places, values)),
    st.tuples(st.just(splice), files_of(places, st.binary(max_size=20), st.sampled_from([0, 1, 7, 10**9]))),
    st.tuples(st.just(splice), files_of(places, texts.map(str.encode), st.just(3))),
    st.tuples(st.just(remove), files_of()),
    st.tuples(st.just(lead_elsewhere), files_of(st.sampled_from(["itself", "/dev/zero", "../../outside/secret", "/"]))),
    st.tuples(st.just(other_kind), files_of(st.sampled_from(["directory", "pipe"]))),
    st.tuples(
        st.just(huge_header),
        st.tuples(
            st.sampled_from([[2**40], [2**63], [-1], [2**20] * 20]), st.sampled_from([None, 0, 2**62, 2**64 - 1])
        ),
    ),
    st.tuples(st.just(wide_table), st.sampled_from([(1, 2_000_000), (20_000, 0), (300, 300)])),
)
names = st.sampled_from(["r", HTML.replace("/", "|"), "-o", "a\nb", "[red]", "\x1b[2Jr", "x" * 200, "é\u202e", " "])


def snapshot(place):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(place.rglob("*"))}


def answer(words):
    """The exit code of a command, which may take neither all the memory nor for ever."""

    def late(*_):
        raise AssertionError(f"{words} takes too long")

    before, soft = signal.signal(signal.SIGALRM, late), resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    signal.alarm(TOO_LONG)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, soft[1]))
    try:
        main(words)
    except SystemExit as stop:
        return stop.code
    finally:
        resource.setrlimit(resource.RLIMIT_AS, soft)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return made_run(tmp_path_factory.mktemp("whole") / "runs", "r", done=2)


@pytest.mark.parametrize("cases", [30, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_no_damage_brings_up_a_traceback_a_hang_or_a_file_elsewhere(cases, whole, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise RunError("it would train now")

    monkeypatch.setattr(loop, "iterate", fail)
    if cases > 30:
        cases = int(os.environ.get("FLASHBULB_FUZZ_CASES", cases))
    done = [0]

    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(names, st.lists(DAMAGES, min_size=1, max_size=3), st.sampled_from(COMMANDS))
    def check(name, damages, command):
        done[0] += 1
        place = tmp_path / str(done[0])
        runs, out, outside = place / "runs", place / "out", place / "outside"
        for folder in (out, outside):
            folder.mkdir(parents=True)
        (outside / "secret").write_text("iteration,steps\n")
        run = shutil.copytree(whole, runs / name)
        for damage, arguments in damages:
            try:
                damage(run, *arguments)
            except (OSError, ValueError):  # an earlier damage took the file, or it is no JSON any more
                continue
        known = {"run": str(run), "runs": str(runs), "out": str(out)}
        before, inside = snapshot(outside), set(place.iterdir())
        said = (damages, command, name)
        code = answer([word.format(**known) for word in command])
        text = "".join(capsys.readouterr())
        assert code in (0, 1, 2), (said, text)
        assert "Traceback" not in text, said
        assert "\x1b[2J" not in text, said
        if code:
            assert text.strip(), said
        assert snapshot(outside) == before, said
        assert set(place.iterdir()) == inside, said
        for page in out.glob("*.html"):
            assert "<img src=x" not in page.read_text(), said
        shutil.rmtree(place)

    check()
    assert done[0] >= min(cases, 30) * 0.9
