"""Small results for tests, made by hand: values are what the test says they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.experiments import Build, Experiment, Ranked


def ranked(
    system: str, values: Mapping[str, Sequence[float]], milliseconds: Sequence[float] = (1.0, 2.0, 3.0)
) -> Ranked:
    """A system with these values; its means are theirs."""
    means = {measure: sum(column) / len(column) for measure, column in values.items()}
    return Ranked(
        system, 1.0, sorted(milliseconds)[len(milliseconds) // 2], max(milliseconds), means, values, list(milliseconds)
    )


def experiment(
    corpus: str, systems: Sequence[Ranked], *, queries: Sequence[str], settings: Sequence[str] = ("",),
    texts: Sequence[str] = (), depth: int = 10,
) -> Experiment:  # fmt: skip
    """One result over these systems; each of the settings has the same ones."""
    builds = [Build(each, {}, {}, {"extract": 1.0}, 2.0, 1000, 5000, systems) for each in settings]
    measures = list(systems[0].values)
    machine: dict[str, str | int] = {"system": "Linux", "cores": 2, "python": "3.11"}
    return Experiment(corpus, f"digest of {corpus}", 5, "c" * 40, machine, depth, measures, queries, builds, texts)
