"""Recall beside eps: the simulated noise is the table's, the selection is the engine's, the figures repeat."""

import csv
import gzip
import json
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.commit.explore.render import draw, table
from rag_audit.commit.explore.samples import (
    Passage,
    Question,
    Sample,
    SampleError,
    load_passages,
    load_questions,
    make_sample,
)
from rag_audit.commit.explore.simulate import (
    Grid,
    Noise,
    base_draws,
    explore,
    in_words,
    measure_recall,
    recall_by_flips,
    recall_without_noise,
)
from rag_audit.errors import EncodingError, PolicyError, SchemaError, SetupError
from rag_audit.mechanisms.accounting import Mechanism, audit_bounds
from rag_audit.relation.noise import MASS_BITS, alias_table, base_pmf
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.retrieval.engine import build_index, reference_select
from tests.named import error_name

WINDOW = ScoreWindow(101, 810, 32)
TEXTS = {
    "oil": "The oil crisis of 1973 began when exporting countries proclaimed an embargo.",
    "tea": "Tea is an aromatic drink prepared by pouring hot water over cured leaves.",
    "bail": "Bail is money paid to release an accused person until the trial.",
    "sun": "The Sun is the star at the centre of the Solar System.",
}
ASKED = {
    "What is bail?": "bail",
    "How is tea prepared?": "tea",
    "Which star is at the centre of the Solar System?": "sun",
}


def random_sample(questions: int = 40, documents: int = 60, capacity: int = 64) -> Sample:
    """Vectors without meaning; each question is a document, so that without noise it finds itself."""
    rng = np.random.default_rng(7)
    rows = rng.integers(-4, 5, (documents, 256)).astype(np.int8)
    index = build_index(rows, capacity, Random(1))
    return Sample(index, rows[:questions], [frozenset({index.positions[i]}) for i in range(questions)])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines) + "\n")
    lines = [json.dumps({"question": question, "passage": name}) for question, name in ASKED.items()]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def explored(files: Path, *arguments: object) -> dict[str, Any]:
    result = run(
        "provider", "policy", "explore", "--index", files / "docs.jsonl", "--questions", files / "questions.jsonl",
        "--repeats", 20, "--json", *arguments,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    match: dict[str, Any] = json.loads(result.stdout)
    return match


# -- the simulated noise ---------------------------------------------------------------------------------


def test_a_words_bits_choose_bin_sign_and_threshold_as_in_the_relation() -> None:
    alias = alias_table()
    bin_ = next(j for j in range(128) if 0 < alias.thresholds[j] < 2**32 - 1 and alias.aliases[j] != j)
    t = alias.thresholds[bin_]
    words = [bin_ | (t - 1) << 32, bin_ | t << 32, bin_ | 128 | (t - 1) << 32, bin_ | 128 | t << 32]
    assert base_draws(np.array(words, np.uint64)).tolist() == [
        bin_, alias.aliases[bin_], -bin_, -alias.aliases[bin_]
    ]  # fmt: skip


def test_simulated_draws_have_the_published_distribution() -> None:
    count = 400_000
    result = Counter(base_draws(np.random.PCG64(3).random_raw(count)).tolist())
    expected = {x: count * mass / 2**MASS_BITS for x, mass in base_pmf().items()}
    cells = [x for x in expected if expected[x] > 10]
    statistic = sum((result[x] - expected[x]) ** 2 / expected[x] for x in cells)
    # Chi-square with about 100 degrees of freedom: 5 standard deviations.
    assert statistic < len(cells) + 5 * math.sqrt(2 * len(cells))


# -- recall ----------------------------------------------------------------------------------------------


def test_recall_is_that_of_the_reference_engine_under_the_same_noise() -> None:
    sample = random_sample(questions=6)
    noise = Noise((1, 8), ScoreWindow(101, 810, 256))
    (result,) = measure_recall(sample, [noise], top_k=3, repeats=4, seed=5)
    hits = 0
    for number in range(6):
        for repeat in range(4):
            words = np.random.PCG64(np.random.SeedSequence([5, number, repeat])).random_raw(2 * 64)
            first, second = base_draws(words).reshape(2, 64)
            z = (first + 8 * second).astype(np.int32)
            selected = reference_select(sample.index, sample.queries[number], z, noise.window, 3)
            hits += bool(sample.relevant[number] & set(selected))
    assert result.hit == pytest.approx(hits / 24)
    assert 0 < hits < 24


def test_without_noise_a_document_finds_itself_and_unlimited_noise_is_blind_chance() -> None:
    sample = random_sample()
    assert recall_without_noise(sample, ScoreWindow(101, 810, 1024), top_k=5).recall == 1
    chance = recall_by_flips(sample, top_k=5)
    assert chance.hit == pytest.approx(5 / 64)
    (drowned,) = measure_recall(sample, [Noise((1, 8, 64, 512), WINDOW)], top_k=5, repeats=60)
    assert drowned.hit == pytest.approx(chance.hit, abs=5 * math.sqrt(5 / 64 / 2400))


def test_chance_of_a_question_with_several_passages() -> None:
    sample = random_sample(questions=1)
    two = Sample(sample.index, sample.queries, [frozenset(list(sample.index.positions)[:2])])
    assert recall_by_flips(two, top_k=5).hit == pytest.approx(1 - (59 / 64) * (58 / 63))
    assert recall_by_flips(two, top_k=5).recall == pytest.approx(5 / 64)


def test_recall_counts_the_share_of_a_questions_passages() -> None:
    sample = random_sample(questions=1)
    own = sample.index.positions[0]
    far = min(
        (p for p in sample.index.positions if p != own),
        key=lambda p: int(sample.index.scores(sample.queries[0])[p]),
    )
    both = Sample(sample.index, sample.queries, [frozenset({own, far})])
    result = recall_without_noise(both, ScoreWindow(101, 810, 1024), top_k=1)
    assert (result.recall, result.hit) == (0.5, 1.0)


def test_recall_falls_as_noise_grows() -> None:
    noises = [Noise((1, 8), ScoreWindow(101, 810, lattice)) for lattice in (1024, 256, 64)]
    recalls = [r.recall for r in measure_recall(random_sample(), noises, top_k=5, repeats=5)]
    assert recalls[0] > recalls[1] + 0.1 > recalls[2] + 0.2


def test_figures_repeat_under_one_seed_and_move_under_another() -> None:
    sample = random_sample()
    noises = [Noise((1, 8), ScoreWindow(101, 810, 256))]
    first, again, other = (measure_recall(sample, noises, top_k=5, seed=s, repeats=5) for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_noise_is_measured_the_same_alone_and_in_a_grid() -> None:
    sample = random_sample()
    alone, wide = Noise((1, 8), ScoreWindow(101, 810, 256)), Noise((1, 8, 64), WINDOW)
    assert (
        measure_recall(sample, [alone], top_k=5, repeats=2)
        == (measure_recall(sample, [wide, alone], top_k=5, repeats=2)[1:])
    )


# -- the grid --------------------------------------------------------------------------------------------


def test_eps_of_a_point_is_the_verdicts() -> None:
    result = explore(random_sample(), Grid([Noise((1, 8, 64), WINDOW)], [200], [1, 10]), top_k=5, delta="2e-5",
        delta_acc="1e-6", repeats=1,
    )  # fmt: skip
    bounds = [
        audit_bounds(Mechanism((1, 8, 64), 32), n=200, k=k, eps_acc=4, delta_acc="1e-6", delta="2e-5")
        for k in (1, 10)
    ]
    assert [p.eps for p in result.points] == [b.eps_audit for b in bounds]
    assert result.points[1].eps_gaussian == pytest.approx(result.points[1].eps, rel=1e-2)


def test_the_grid_is_complete_and_least_noise_comes_first() -> None:
    noises = [Noise((1, 8), ScoreWindow(101, 810, r)) for r in (16, 64, 32, 64)]
    result = explore(random_sample(), Grid(noises, [1, 50], [1, 2]), top_k=5, delta="1e-5", repeats=1)
    assert [(p.noise.window.lattice, p.n, p.k) for p in result.points] == [
        (r, n, k) for r in (64, 32, 16) for n in (1, 50) for k in (1, 2)
    ]


def test_noise_without_a_finite_bound_is_shown_as_such() -> None:
    noises = [Noise((1,), ScoreWindow(101, 810, r)) for r in (1024, 128)]
    result = explore(random_sample(), Grid(noises, [1], [1]), top_k=5, delta="1e-6", repeats=1)
    assert [p.eps for p in result.points] == [math.inf, math.inf]
    assert [p.as_json()["eps_audit"] for p in result.points] == ["inf", "inf"]
    assert "exceeds the support" in str(result.points[0].reason)
    assert "infinite losses" in str(result.points[1].reason)
    assert "no finite eps exists" in result.sentence(result.points[0])


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"ns": [0]}, "n"),
        ({"ks": [-1]}, "k"),
        ({"ns": []}, "grid"),
        ({"delta": 1}, "delta"),
        ({"delta": "1e-7"}, "delta_policy"),
        ({"eps_acc": 0}, "eps_acc"),
        ({"delta_acc": 0}, "delta_acc"),
        ({"repeats": 0}, "repeats"),
        ({"seed": -1}, "seed"),
        ({"top_k": 65}, "K"),
    ],
)
def test_a_bad_grid_is_refused_whatever_its_noise(changes: dict[str, Any], field: str) -> None:
    values: dict[str, Any] = {"ns": [1], "ks": [1], "top_k": 5, "delta": "1e-5", "repeats": 1, **changes}
    grid = Grid([Noise((1,), ScoreWindow(101, 810, 1024))], values.pop("ns"), values.pop("ks"))
    with pytest.raises(PolicyError) as refused:
        explore(random_sample(), grid, **values)
    assert refused.value.field == field


def test_shares_in_words() -> None:
    words = {
        0.025: "1 question in 40",
        0.0013: "1 question in 769",
        0.75: "8 questions in 10",
        0.97: "97 questions in 100",
        0.999: "99 questions in 100 or more",
        1.0: "500 of 500 questions",
        0.0: "none of 500 questions",
    }
    assert {share: in_words(share, 500) for share in words} == words
    assert (in_words(1.0, 1), in_words(0.0, 1)) == ("1 of 1 question", "none of 1 question")


# -- documents and questions -----------------------------------------------------------------------------


def test_a_file_of_a_folder_answers_with_any_of_its_pieces(tmp_path: Path) -> None:
    long = "\n\n".join(f"Paragraph {i} about tea. " + "Leaves and water. " * 20 for i in range(6))
    (tmp_path / "tea.md").write_text(long)
    (tmp_path / "bail.md").write_text(TEXTS["bail"])
    passages = load_passages(tmp_path)
    pieces = [p for p in passages if "tea.md" in p.names]
    assert len(pieces) > 1
    sample = make_sample(passages, [Question("Which leaves?", ("tea.md",), "line 1")], get_embedder())
    assert len(sample.relevant[0]) == len(pieces)


def test_lists_of_several_tenants_need_a_choice(tmp_path: Path) -> None:
    for name in ("law", "medicine"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": name}) + "\n")
    assert [p.text for p in load_passages(tmp_path, "law")] == ["law"]
    with pytest.raises(SampleError, match="name one of the folder"):
        load_passages(tmp_path)
    with pytest.raises(SampleError, match="no tenant has this name"):
        load_passages(tmp_path, "tax")


@pytest.mark.parametrize(
    "line,reason",
    [
        ('{"question": "?"}', "has no passage"),
        ('{"question": "?", "passages": []}', "has no passage"),
        ('{"question": "?", "passage": null}', "has no passage"),
        ('{"passage": "a"}', "no question"),
        ('{"question": 1, "passage": "a"}', "no question"),
        ('["?"]', "the line is not a JSON object"),
    ],
)
def test_a_question_that_cannot_be_used_is_named_by_its_line(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "?", "passage": "a"}\n\n' + line + "\n")
    with pytest.raises(SchemaError, match=reason) as refused:
        load_questions(path)
    assert refused.value.field == "q.jsonl, line 3"


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n')
    with pytest.raises(SchemaError, match="occurs twice"):
        load_passages(path)


def test_a_compressed_file_reads_like_a_plain_one(files: Path) -> None:
    packed = gzip.compress((files / "docs.jsonl").read_bytes())
    (files / "docs.jsonl.gz").write_bytes(packed)
    assert load_passages(files / "docs.jsonl.gz") == load_passages(files / "docs.jsonl")
    middle = len(packed) // 2
    for damaged in (packed[:-20], packed[:middle] + b"\xff\xff\xff" + packed[middle + 3 :], b"not gzip"):
        (files / "docs.jsonl.gz").write_bytes(damaged)
        with pytest.raises(EncodingError):
            load_passages(files / "docs.jsonl.gz")


def test_a_passage_that_is_not_in_the_index_is_refused() -> None:
    with pytest.raises(SampleError) as refused:
        make_sample([Passage(("a",), "tea")], [Question("tea?", ("b",), "q.jsonl, line 9")], get_embedder())
    assert (refused.value.field, refused.value.actual) == ("q.jsonl, line 9", "b")


# -- the command -----------------------------------------------------------------------------------------


def test_the_command_says_what_a_policy_means_for_people(files: Path) -> None:
    result = explored(files, "--gains", "1,8", "--lattice", 128, "--lattice", 16, "--n", 5, "--k", 2)
    quiet, loud = result["points"]
    assert (quiet["lattice"], loud["lattice"]) == (128, 16)
    assert float(quiet["eps_audit"]) > float(loud["eps_audit"])
    assert result["without_noise"]["recall"] == "1.0000"
    assert "still find" in loud["sentence"] and loud["eps_audit"] in loud["sentence"]
    assert result["capacity"] == 8 and "selected positions" in result["covers"]


def test_the_command_repeats_itself(files: Path) -> None:
    first, again, other = (
        explored(files, "--gains", "1,8", "--lattice", 128, "--seed", s) for s in (4, 4, 5)
    )
    assert first == again
    assert first["points"] != other["points"]


def test_a_policy_gives_its_own_constants(files: Path) -> None:
    created = run(
        "provider", "policy", "new", files / "p.json", "--window", "w", "--tenant", "a=16", "--n", 20, "--k-max", 3,
        "--top-k", 2, "--accounts", 16, "--mechanism", "noise",
    )  # fmt: skip
    assert created.exit_code == 0, created.output
    policy = json.loads((files / "p.json").read_text())
    result = explored(files, "--policy", files / "p.json")
    own = [p for p in result["points"] if p["gains"] == policy["noise"]["gains"]]
    assert (result["top_k"], result["capacity"]) == (2, 16)
    assert (own[0]["n"], own[0]["k"], own[0]["lattice"]) == (20, 3, policy["noise"]["lattice"])
    promised = run("provider", "policy", "bounds", files / "p.json", "--json")
    assert own[0]["eps_audit"] == json.loads(promised.stdout)["eps_audit"]
    text = run(
        "provider", "policy", "explore", "--index", files / "docs.jsonl", "--questions", files / "questions.jsonl",
        "--policy", files / "p.json", "--repeats", 1,
    ).stdout.rstrip()  # fmt: skip
    gains = ",".join(map(str, policy["noise"]["gains"]))
    assert text.rsplit("\n", 1)[-1].startswith(f"gains {gains}, R {policy['noise']['lattice']}")


def test_table_csv_and_json_agree(files: Path) -> None:
    result = explored(files, "--gains", "1,8", "--lattice", 64, "--csv", files / "grid.csv")
    (row,) = csv.DictReader((files / "grid.csv").read_text().splitlines())
    (point,) = result["points"]
    assert row["gains"] == "1,8"
    assert {k: row[k] for k in ("eps_audit", "recall", "n", "k")} == {
        k: str(point[k]) for k in ("eps_audit", "recall", "n", "k")
    }
    text = run(
        "provider", "policy", "explore", "--index", files / "docs.jsonl", "--questions", files / "questions.jsonl",
        "--repeats", 20, "--gains", "1,8", "--lattice", 64,
    ).stdout  # fmt: skip
    assert point["eps_audit"] in text and f"{100 * float(point['recall']):.1f} %" in text


@pytest.mark.parametrize("suffix,head", [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_drawn(tmp_path: Path, suffix: str, head: bytes) -> None:
    pytest.importorskip("matplotlib")
    noises = [Noise((1, 8), ScoreWindow(101, 810, r)) for r in (128, 64)]
    result = explore(random_sample(), Grid(noises, [1], [1]), top_k=5, delta="1e-5", repeats=1)
    draw(result, tmp_path / f"x.{suffix}")
    assert (tmp_path / f"x.{suffix}").read_bytes().startswith(head)
    assert "blind chance" in table(result)


def test_an_unknown_picture_format_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = explore(
        random_sample(), Grid([Noise((1, 8), WINDOW)], [1], [1]), top_k=5, delta="1e-5", repeats=1
    )
    with pytest.raises(SetupError, match="the picture format is unknown"):
        draw(result, tmp_path / "x.doc")


@pytest.mark.parametrize(
    "arguments,error,field",
    [
        (["--gains", "1,9"], "PolicyError", "gains[1]"),
        (["--gains", "1;8"], "PolicyError", "--gains"),
        (["--lattice", "12"], "PolicyError", "lattice"),
        (["--lattice", "0"], "PolicyError", "--lattice"),
        (["--score-window", "9:3"], "PolicyError", "--score-window"),
        (["--n", "none"], "PolicyError", "--n"),
        (["--k", "0"], "PolicyError", "--k"),
        (["--delta", "0"], "PolicyError", "delta"),
        (["--top-k", "9"], "PolicyError", "K"),
        (["--capacity", "2"], "CapacityError", "documents"),
        (["--repeats", "0"], "PolicyError", "--repeats"),
        (["--embedder", "none"], "SetupError", "embedder"),
        (["--index", "absent.jsonl"], "EncodingError", "absent.jsonl"),
        (["--policy", "absent.json"], "EncodingError", "absent.json"),
    ],
)
def test_bad_input_ends_in_a_named_error(files: Path, arguments: list[str], error: str, field: str) -> None:
    result = run(
        "provider", "policy", "explore", "--index", files / "docs.jsonl", "--questions", files / "questions.jsonl",
        "--repeats", 1, *arguments,
    )  # fmt: skip
    assert result.exit_code == 2
    assert error_name(result) == error
    assert f"  at: {field}\n" in result.stderr


# -- what was read ---------------------------------------------------------------------------------------


def explore_of(files: Path, index: Path, *arguments: object) -> Result:
    return run(
        "provider", "policy", "explore", "--index", index, "--questions", files / "questions.jsonl", "--repeats", 1,
        "--gains", "1,8", *arguments,
    )  # fmt: skip


@pytest.mark.parametrize("beside", [True, False])
def test_the_documents_of_a_list_are_counted(files: Path, beside: bool) -> None:
    folder = files / "index"
    folder.mkdir()
    (folder / "law.jsonl").write_text((files / "docs.jsonl").read_text())
    if beside:
        (folder / "notes.txt").write_text("Notes.")
    done = explore_of(files, folder, "--tenant", "law")
    assert done.exit_code == 0, done.output
    assert "rag-audit: read law: 4 documents in 4 positions from 1 file\n" in done.stderr
    assert ("omitted 1: only law.jsonl is read: notes.txt" in done.stderr) == beside


def test_a_single_file_s_documents_are_counted_and_its_repeated_texts_named(files: Path) -> None:
    with (files / "docs.jsonl").open("a") as file:
        file.write(json.dumps({"id": "again", "text": TEXTS["tea"]}) + "\n")
    done = explore_of(files, files / "docs.jsonl")
    assert done.exit_code == 0, done.output
    assert "read docs: 5 documents in 5 positions from 1 file" in done.stderr
    assert "repeated 1: the text of an earlier passage of the tenant: docs.jsonl, line 5" in done.stderr


def test_lines_that_cannot_be_read_stop_or_are_named(files: Path) -> None:
    with (files / "docs.jsonl").open("a") as file:
        file.write(
            '{"id": "cut", "text": \n{"id": "blank", "text": " "}\n{"id": "none"}\n{"id": "tea", "text": "Tea."}\n'
        )
    assert explore_of(files, files / "docs.jsonl").exit_code == 2
    done = explore_of(files, files / "docs.jsonl", "--skip-unreadable")
    assert done.exit_code == 0, done.output
    assert "read docs: 4 documents in 4 positions from 1 file" in done.stderr
    for place in ("line 5", "line 6", "line 7", "line 8"):
        assert f": docs.jsonl, {place}" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.txt", b"", "the file holds no text: law/empty.txt"),
        ("minutes.odt", b"PK", "files of this format are not supported: law/minutes.odt (.odt)"),
        ("app.html", b"<body><script src=a.js></script></body>", "law/app.html"),
    ],
)
def test_a_folder_of_which_nothing_is_read_names_every_file(
    files: Path, name: str, content: bytes, reason: str
) -> None:
    folder = files / "index" / "law"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(content)
    done = explore_of(files, folder.parent, "--skip-unreadable")
    assert done.exit_code == 2
    assert "  actual: 1 file or folder that is not read\n  omitted 1: " in done.stderr
    assert reason in done.stderr, done.stderr


def test_a_tenant_whose_files_were_all_omitted_is_missing_and_the_files_are_named(files: Path) -> None:
    for name, content in {"law/empty.txt": "", "hr/leave.txt": "Leave."}.items():
        (files / "index" / name).parent.mkdir(parents=True)
        (files / "index" / name).write_text(content)
    done = explore_of(files, files / "index", "--skip-unreadable", "--tenant", "law")
    assert done.exit_code == 2 and "no tenant has this name" in done.stderr
    assert "omitted 1: the file holds no text: law/empty.txt" in done.stderr


def test_one_question_and_one_document_are_counted_in_words(files: Path) -> None:
    (files / "one.jsonl").write_text(json.dumps({"id": "bail", "text": TEXTS["bail"]}) + "\n")
    (files / "questions.jsonl").write_text(
        json.dumps({"question": "What is bail?", "passage": "bail"}) + "\n"
    )
    done = explore_of(files, files / "one.jsonl")
    assert done.exit_code == 0, done.output
    assert "\n1 document at 8 positions, 1 question asked 1x;" in done.stdout
    assert "(without noise: 1 of 1 question;" in done.stdout
