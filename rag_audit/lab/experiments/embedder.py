"""The scalar attack with a trained embedder (Appendix A.1). The gap is the score difference of two real texts.

The paper's bge-small is not available; wordllama-lexical-768, the default embedder, replaces it, on fifty paragraphs of
the same kind. The noise has sensitivity 1, so the AUC falls with the gap. With the noise of equation (3.4), in
proportion to the gap, it would not fall, but A.1 claims that it does ("linear in Delta"). Each of the last twenty-five
paragraphs also contains one of the first facts, among one or two others: unrelated texts of this embedder are nearly
orthogonal, and the paper's gaps come from related texts.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np

from rag_audit.lab.experiments.certified import LATTICE, certified, mechanism
from rag_audit.lab.experiments.draws import noise_sums
from rag_audit.lab.experiments.model import Cell, Column, Experiment, Figure, Results, Row, Size, in_place
from rag_audit.lab.experiments.plots import COLORS, theory_and_markers
from rag_audit.lab.experiments.statistics import attack, auc_error, gaussian_auc, growth, paper_sigma
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder

_FACTS = tuple(
    line.strip()
    for line in """
The Earth orbits the Sun once in about 365.25 days, at a mean distance of 150 million kilometres.
The Renaissance began in Italy in the fourteenth century and spread through Europe with the printing press.
Water boils at 100 degrees Celsius at sea level, and at lower temperatures on high mountains.
Photosynthesis turns carbon dioxide and water into sugar and oxygen with the energy of light.
The Great Wall of China was built over many centuries to guard the northern border of the empire.
DNA is a double helix whose two strands are held together by pairs of bases.
The Pacific is the largest ocean and covers about a third of the planet's surface.
Johann Sebastian Bach composed the Brandenburg Concertos and the Mass in B minor.
Plate tectonics explains earthquakes and volcanoes by the motion of pieces of the crust.
The French Revolution of 1789 ended the absolute monarchy and proclaimed the rights of man.
Vaccines train the immune system to recognise a pathogen before an infection happens.
The speed of light in vacuum is 299,792,458 metres a second by definition.
Mount Everest, on the border of Nepal and China, rises 8,849 metres above the sea.
The heart pumps blood through arteries to the organs and receives it back through veins.
Shakespeare wrote thirty-seven plays, among them Hamlet, Macbeth and The Tempest.
An atom has a nucleus of protons and neutrons, surrounded by electrons.
The Amazon rainforest holds a tenth of all known species of plants and animals.
Inflation is a general rise of prices, which central banks try to hold back by interest rates.
The Roman Empire reached its largest extent under the emperor Trajan in the year 117.
Bees pollinate flowers while they gather nectar, and many crops depend on them.
The moon causes the tides by its gravity, together with the smaller pull of the Sun.
Penicillin was discovered by Alexander Fleming in 1928 on a plate of bacteria with mould.
The Sahara is the largest hot desert, and receives less than a hundred millimetres of rain a year.
Steel is an alloy of iron with up to two per cent of carbon.
The United Nations was founded in 1945 to keep international peace and security.
A black hole is a region of space from which not even light can escape.
Chess is played by two people on a board of sixty-four squares with sixteen pieces each.
The liver removes toxins from the blood and stores energy as glycogen.
Japan consists of four main islands and thousands of small ones in the western Pacific.
Newton's laws describe how forces change the motion of bodies.
The olive tree grows around the Mediterranean and can live for more than a thousand years.
The first transatlantic telegraph cable was laid between Ireland and Newfoundland in 1858.
Glaciers are rivers of ice that flow slowly downhill and carve valleys.
Democracy in ancient Athens let male citizens vote on laws in the assembly.
Antarctica is the coldest continent and is covered by ice two kilometres thick.
The violin has four strings tuned in fifths and is played with a bow.
A prime number has no divisors other than one and itself, and there are infinitely many.
Coffee is brewed from the roasted seeds of a plant that came from Ethiopia.
The Internet grew out of a research network that linked four universities in 1969.
Whales are mammals that breathe air and nurse their young, although they live in the sea.
The Industrial Revolution began in Britain with steam engines, coal and textile mills.
Volcanic soil is fertile because it is rich in minerals from weathered lava.
The human eye forms an upside-down image on the retina, which the brain turns around.
Gold does not rust, conducts electricity well and has been used for coins since antiquity.
The Nile flows north for more than six thousand kilometres before it reaches the Mediterranean.
Rice feeds more than half of the world's people and is grown in flooded fields.
A lunar eclipse happens when the Earth stands between the Sun and the moon.
The Magna Carta of 1215 limited the power of the English king by law.
Insulin is a hormone by which the body lowers the sugar in the blood.
The steam locomotive made it possible to travel across a country within a day.
""".strip().splitlines()
)
_OLD, _NEW = _FACTS[:25], _FACTS[25:]
PARAGRAPHS = (
    *_OLD,
    *(" ".join([*(_NEW[(i + 7 * j) % 25] for j in range(2 + i % 2)), _OLD[i]]) for i in range(25)),
)


EPS = 4
KS = (1, 2, 5, 10, 20)
N, TRIALS, PAIRS = 200, 2000, 10
GAP, GAPS = 0.41, (0.41, 0.49)
PAPER = {1: 0.5 + 0.032 / 2, 20: 0.575}
PAPER_MEDIAN = {1: 0.515, 20: 0.573}
COLUMNS: tuple[Column, Column] = ("paper", "engine")


@lru_cache(maxsize=1)
def gaps() -> dict[str, list[float]]:
    """The gap of every ordered pair of paragraphs, with the first one's vector as probe, sorted: in cosines, and in the
    engine's lattice scores over R.
    """
    embedder = get_embedder(DEFAULT_EMBEDDER)
    rows = embedder.embed_documents(list(PARAGRAPHS)).astype(np.int64)
    products = rows @ rows.T
    lengths = np.sqrt(np.diag(products).astype(np.float64))
    cosines = products / np.outer(lengths, lengths)
    window = ScoreWindow(*embedder.score_window, LATTICE)
    lattice = np.array([[window.quantise(int(s)) for s in row] for row in products])
    pairs = list(itertools.permutations(range(len(rows)), 2))
    return {
        "paper": sorted(float(1 - cosines[a, b]) for a, b in pairs),
        "engine": sorted(float(lattice[a, a] - lattice[a, b]) / LATTICE for a, b in pairs),
    }


def cells(size: Size) -> list[Cell]:
    """One pair for every k, and ten pairs at the smallest and the largest k."""
    n, trials = (N, TRIALS) if size == "full" else (20, 300)
    shape = {"n": n, "trials": trials}
    grid = [Cell(f"{c}-pair-k{k}", c, {"pairs": 1, "k": k, **shape}) for c in COLUMNS for k in KS]
    return grid + [
        Cell(f"{c}-ten-k{k}", c, {"pairs": PAIRS, "k": k, **shape}) for c in COLUMNS for k in (1, 20)
    ]


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The attack on one pair, or on ten pairs with the median and the range of the results."""
    k, n, column = cell["k"], cell["n"], cell.column
    if cell["pairs"] == 1:
        gap = min(gaps()[column], key=lambda g: abs(g - GAP))
        inside, outside, theory = _scores(rng, cell, gap)
        paper = PAPER.get(k) if n == N else None
        bound = certified(mechanism(EPS, n), k * n) if column == "engine" else None
        return [*attack(inside, outside, paper=paper, paper_trials=TRIALS, theory=theory, bound=bound),
                Figure("gap", gap, note=f"the paper: {GAP}")]  # fmt: skip
    low, high = GAPS
    near = sorted({g for g in gaps()[column] if low <= g <= high}) or gaps()[column][:1]
    chosen = [near[int(i)] for i in rng.choice(len(near), PAIRS, replace=len(near) < PAIRS)]
    areas, theories = [], []
    for gap in chosen:
        inside, outside, theory = _scores(rng, cell, gap)
        areas.append(attack(inside, outside)[0].value)
        theories.append(theory)
    middle = float(np.median(areas))
    # The median of ten has about 1.16 times the standard error of their mean (for a Gaussian, exactly so at ten).
    error = 1.16 * float(np.std(areas, ddof=1)) / math.sqrt(PAIRS)
    paper = PAPER_MEDIAN.get(k) if n == N else None
    paper_error = 1.16 * auc_error(middle, TRIALS) / math.sqrt(PAIRS)
    return [
        Figure("median_auc", middle, error, paper=paper, paper_error=paper_error, theory=float(np.median(theories))),
        Figure("least_auc", min(areas)),
        Figure("largest_auc", max(areas)),
    ]  # fmt: skip


def _scores(rng: np.random.Generator, cell: Cell, gap: float) -> tuple[Any, Any, float]:
    k, n, trials = cell["k"], cell["n"], cell["trials"]
    if cell.column == "paper":
        sigma = paper_sigma(EPS, n)
        draws = sigma / math.sqrt(k * n) * rng.standard_normal((2, trials))
        return draws[0] + gap, draws[1], gaussian_auc(gap, sigma, k * n)
    noise = mechanism(EPS, n)
    signal = round(gap * noise.lattice) * k * n
    theory = gaussian_auc(gap, noise.sigma_over_delta, k * n)
    return noise_sums(rng, noise, k * n, trials) + signal, noise_sums(rng, noise, k * n, trials), theory


def derive(results: Results) -> list[Row]:
    """The growth of the advantage from k = 1 to k = 20."""
    result, rows = in_place(results, "embedder"), []
    for column in COLUMNS:
        ends = [result[key]["auc"] for k in (1, 20) if (key := f"{column}-pair-k{k}") in result]
        if len(ends) == 2:
            rows.append(Row("growth of the advantage", growth(*ends, paper=4.69), column))
    return rows


def draw(results: Results, picture: Any) -> None:
    """AUC against k."""
    result, axes = in_place(results, "embedder"), picture.subplots()
    for column, color in zip(COLUMNS, COLORS, strict=False):
        shown = [(k, result[key]["auc"]) for k in KS if (key := f"{column}-pair-k{k}") in result]
        theory_and_markers(axes, shown, {"paper": "ideal Gaussian", "engine": "engine"}[column], color)
    axes.set(xlabel="coalition size k", ylabel="AUC")
    axes.legend(frameon=False)


EXPERIMENT = Experiment(
    "embedder", "Appendix A.1", "the scalar attack on texts under a trained embedder", cells, run, derive, draw,
    needs=("wordllama",),
)  # fmt: skip
