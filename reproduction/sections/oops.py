"""Oops, I Sampled it Again, on birds: how many comparisons are conclusive, directly and paired, closed and open."""

from __future__ import annotations

from reproduction.kept import read_kept
from reproduction.markdown import NOT_RUN, number, table
from reproduction.papers import read_figures
from shotproof.analysis.compare import compare
from shotproof.stats.triples import CLOSED, OPEN, PAIRED, Fates

NAMES = {CLOSED: "conclusive, closed direct", OPEN: "conclusive, open direct", PAIRED: "conclusive, open paired"}


def sections() -> dict[str, str]:
    """Each derived section by its name."""
    return {"oops": conclusion_table()}


def conclusion_table() -> str:
    """Figure 6: of all pairs, how many are conclusive under each comparison; what becomes of the closed ones."""
    paper = read_figures("oops")
    pairs = paper["all pairs", None, "pairs"].value
    results = [one.results for one in read_kept("oops-birds").evaluated]
    published = {name: f"{paper['all pairs', None, name].value:.0f} of {pairs:.0f}" for name in NAMES.values()}
    fates = ("inconclusive open, conclusive paired", "not confirmed", "inverted")
    published |= {name: f"{paper['all pairs', None, name].value:.0f}" for name in fates}
    r = "Pearson's r of task accuracies"
    published[r] = number(paper["two methods", None, r].value, 3)
    ours = dict.fromkeys(published, NOT_RUN)
    if results:
        groups = [one for one in compare(results, intervals=["sampler", "depletion"]).groups if "acc" in one.triples]
        triples = [one.triples["acc"] for one in groups]
        found = Fates.of(triples)
        for name, title in NAMES.items():
            ours[title] = f"{sum(one.conclusive[name] for one in triples)} of {found.pairs}"
        ours |= dict(zip(fates, map(str, (found.regained, found.unconfirmed, found.inverted)), strict=True))
        all_r = [group.correlation(pair, "acc") for group in groups for pair in group.pairs["acc", "sampler"]]
        ours[r] = f"{number(min(all_r), 3)} to {number(max(all_r), 3)}"
    return table(
        ["comparisons of two methods", "paper", "ours"], [[name, published[name], ours[name]] for name in published]
    )
