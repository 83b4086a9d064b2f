"""Help and options that fit the algorithm, and names that other libraries use."""

import pytest

import flashbulb
from flashbulb.algorithms.registry import ALGORITHMS, get_algorithm
from flashbulb.cli.main import run
from flashbulb.cli.options import parse_train
from flashbulb.errors import UsageError


def options_of(name, capsys):
    with pytest.raises(SystemExit):
        parse_train([name, "--help"])
    return capsys.readouterr().out


def test_help_shows_the_parts_that_an_algorithm_uses(capsys):
    pid, cpo = options_of("mice-pid", capsys), options_of("cpo", capsys)
    for option in ("--pid.maximum", "--proximal.clip", "--memory.xi", "--cost-advantage", "--margin.rate"):
        assert option in pid
    for option in ("--trust-region", "--ascent", "--budget", "--constant", "--focops", "--integral"):
        assert option not in pid
    assert "--trust-region.kl" in cpo
    assert "Size of the trust region" in cpo
    assert "Seed of every random number" in cpo
    for option in ("--pid", "--proximal", "--memory", "--cost-advantage"):
        assert option not in cpo


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("mice-pid", "--trust-region.kl"),
        ("cpo", "--pid.maximum"),
        ("cpo", "--cost-advantage"),
        ("ppo", "--violations"),
        ("cpo", "--memory.xi"),
        ("saute", "--ascent.initial"),
    ],
)
def test_an_option_without_effect_is_refused(name, option):
    for words in ([option, "0.5"], [f"{option}=0.5"]):
        with pytest.raises(UsageError, match=f"{option}: {name} does not use it"):
            parse_train([name, "HazardField-v0", *words])


def test_options_with_an_effect_are_taken():
    config = parse_train(["focops", "HazardField-v0", "--focops.temperature", "2", "--proximal.clip=0.3"])
    assert type(config).__name__ == "Config"
    assert (config.focops.temperature, config.proximal.clip, config.proximal.kl) == (2.0, 0.3, 0.02)


def test_settings_without_effect_are_refused_in_python(tmp_path):
    with pytest.raises(UsageError, match="trust_region: mice-pid does not use it"):
        flashbulb.train("mice-pid", "HazardField-v0", trust_region={"kl": 0.5}, runs_dir=tmp_path)


def test_every_part_of_the_configuration_is_used_by_some_algorithm():
    unused = frozenset.intersection(*(algorithm.unused_settings for algorithm in ALGORITHMS.values()))
    assert unused == frozenset()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CPO", "cpo"),
        ("PPOLag", "ppo-lag"),
        ("CPPOPID", "pid-lag"),
        ("TRPOLag", "trpo-lag"),
        ("cppo_pid", "pid-lag"),
        ("PPOSaute", "saute"),
        ("FOCOPS", "focops"),
        ("OnCRPO", "crpo"),
        ("micecpo", "mice-cpo"),
    ],
)
def test_names_of_other_libraries(name, meant):
    with pytest.raises(UsageError, match=rf"unknown algorithm '{name}'; did you mean {meant}\?"):
        get_algorithm(name)


def test_commands_and_tasks_with_a_slip():
    with pytest.raises(UsageError, match=r"'trian'; did you mean train\?"):
        run(["trian"])
    with pytest.raises(UsageError, match="SafetyPointGoal1-v0"):
        flashbulb.make("Safexp-PointGoal1-v0")
    with pytest.raises(UsageError, match="SafetyAntVelocity-v1"):
        flashbulb.make("SafetyAntVelocity-v4")


def test_the_list_names_the_composed_forms(capsys):
    assert run(["algorithms"]) == 0
    assert "For any X with a cost critic also: mice-X," in capsys.readouterr().out
