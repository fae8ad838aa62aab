"""Remedies at hand: another head on the same features, or another encoder of the same run."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.cures.remedy import Remedy, RemedyData, Treatment
from shotproof.learners.method import DEFAULT_METHODS, make_method


@dataclass(frozen=True)
class HeadRemedy(Remedy):
    """Another method on the same features: those of the run, and cheap ones."""

    about = "another head on the same features"
    family = "heads"

    methods: tuple[str, ...] = option(DEFAULT_METHODS, "heads to try besides those of the run")

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose each other method."""
        methods = [*data.further_methods, *map(make_method, self.methods)]
        others = {method.spelling: method for method in methods if method.spelling != data.method.spelling}
        return [
            Treatment(f"head {spelling}", method=method, apply=(f"--method {spelling}",))
            for spelling, method in others.items()
        ]


@dataclass(frozen=True)
class EncoderRemedy(Remedy):
    """Another encoder of the same run."""

    about = "another encoder of the same run"
    family = "encoders"

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose each other encoder."""
        if not data.further_features:
            raise InputError("the run has no other encoder: add one to [features] encoders")
        return [
            Treatment(f"encoder {features.name}", features=features, apply=(f"--encoder {features.name}",))
            for features in data.further_features
        ]
