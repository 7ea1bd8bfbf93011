"""The language model in process, with a model without weights: template, limits, probabilities, forms, resumption."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.errors import SetupError, StoreError
from rag_audit.lab.attacks import campaign
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.generators.local import LocalGenerator
from rag_audit.lab.attacks.generators.prompts import GUARDED, SYSTEM
from rag_audit.lab.attacks.generators.stored import StoredGenerator
from rag_audit.lab.attacks.interface import AttackError, Continue, FillMasks, NextWord, Reply, Task, YesNo
from rag_audit.lab.attacks.language import model as language_model
from rag_audit.lab.attacks.language.file import OBTAIN, ModelFile
from rag_audit.lab.attacks.language.proxy import LanguageProxy
from rag_audit.lab.attacks.language.template import rendered
from rag_audit.lab.attacks.masks import mask
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.methods.continuing import MinK, S2miaPerplexity
from rag_audit.lab.attacks.methods.shadow import INTERVALS, ShadowAudit
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.proxy import Speller, TokenStatistics
from rag_audit.lab.attacks.quality import Form, copied, form_of
from rag_audit.lab.attacks.split import Split, only
from rag_audit.models.attacks import AttackRun
from tests.attacks.language import LIKELY, SURE, TEMPLATE, FakeModel, gguf, present, probability

TEXT = "The lighthouse keeper of Utsira counts the ships by their bells when the fog is thick."
PASSAGE = Passage(TEXT)
PRESENCE = YesNo(TEXT, TEXT, presence=True)


# -- the file ------------------------------------------------------------------------------------------------


def test_a_model_file_is_read_with_its_digest(tmp_path: Path) -> None:
    path = gguf(tmp_path / "model.gguf")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    file = ModelFile.read(path, digest.upper())
    assert (file.architecture, file.name, file.context, file.template) == ("llama", "Fake 1M", 512, TEMPLATE)
    assert file.label == f"Fake 1M (model.gguf, sha256 {digest})"


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _no_gguf(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 not a model")


def _huge(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:16] + b"\xff" * 8 + path.read_bytes()[24:])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_no_gguf, "the file is no GGUF file"),
        (_truncated, "the GGUF header is damaged"),
        (_huge, "the GGUF header is damaged"),
        (lambda path: gguf(path, "bert"), "another architecture"),
        (lambda path: gguf(path, template=None), "no chat template"),
        (lambda path: gguf(path, context=None), "states no context length"),
        (lambda path: gguf(path, version=9), "another version"),
    ],
)
def test_a_file_that_is_no_usable_model_has_an_error_with_a_name(
    change: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    path = gguf(tmp_path / "model.gguf")
    change(path)
    with pytest.raises(AttackError, match=said):
        ModelFile.read(path)


def test_a_file_with_another_digest_is_refused(tmp_path: Path) -> None:
    path = gguf(tmp_path / "model.gguf")
    with pytest.raises(AttackError, match="another digest") as caught:
        ModelFile.read(path, "00" * 32)
    assert caught.value.actual == hashlib.sha256(path.read_bytes()).hexdigest()


def test_without_the_file_or_the_package_the_error_has_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SetupError, match="the model file is missing") as caught:
        language_model.open_model(tmp_path / "none.gguf")
    assert caught.value.hint == OBTAIN
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(SetupError) as caught:
        language_model.open_model(gguf(tmp_path / "model.gguf"))
    assert "ragaudit-zk[language-model]" in str(caught.value.hint)


# -- prompts and answers -------------------------------------------------------------------------------------


def test_the_prompt_follows_the_model_s_template() -> None:
    model = FakeModel(present)
    generator = LocalGenerator(model)
    assert generator.answer(PRESENCE, [PASSAGE]).text == "Yes"
    assert generator.answer(PRESENCE, [Passage("Another text about a harbour.")]).text == "No"
    assert model.prompts[0] == f"<s><|system|>{SYSTEM}{TEXT}\n<|user|>{PRESENCE.prompt}\n"
    guarded = generator.guard()
    guarded.answer(PRESENCE, [PASSAGE])
    assert model.prompts[-1] == f"<s><|system|>{GUARDED}{TEXT}\n<|user|>{PRESENCE.prompt}\n"
    assert guarded.label == f"{generator.label}, guarded prompt"


@pytest.mark.parametrize(
    "template",
    [
        "{{ raise_exception('no system role') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% for m in %}",
        "{{ messages.append(1) }}",
        "{{ messages[7].content.missing }}",
    ],
)
def test_a_template_that_fails_or_reaches_for_more_has_an_error_with_a_name(template: str) -> None:
    with pytest.raises(AttackError, match="chat template does not accept"):
        rendered(template, [{"role": "user", "content": "x"}], "<s>", "</s>")


def test_a_prompt_beyond_the_context_is_refused_by_name() -> None:
    generator = LocalGenerator(FakeModel(present, context=60))
    with pytest.raises(AttackError, match="longer than the model's context") as caught:
        generator.answer(PRESENCE, [PASSAGE])
    assert caught.value.expected == "at most 60 tokens" and "--top-k" in str(caught.value.hint)
    with pytest.raises(AttackError, match="requested word is longer than the model's context"):
        generator.answer(NextWord(TEXT, "fog"), [PASSAGE])
    with pytest.raises(AttackError, match="the document is longer than the model's context"):
        LanguageProxy(FakeModel(context=8)).ranks(TEXT)


def test_replies_have_the_model_s_log_probabilities() -> None:
    model = FakeModel(lambda _: "counts the ships")
    reply = LocalGenerator(model).answer(Continue("The keeper", 9), [PASSAGE])
    assert reply.text == "counts the ships"
    assert reply.log_probabilities == pytest.approx([probability(SURE)] * 3)
    next_ = LocalGenerator(model).answer(NextWord("The keeper", "counts"), [PASSAGE])
    assert next_.log_probabilities == pytest.approx([probability(SURE)])
    unlikely = LocalGenerator(model).answer(NextWord("The keeper", "sails"), [PASSAGE])
    assert unlikely.log_probabilities == pytest.approx([probability(SURE) - SURE])


def test_an_empty_answer_has_the_probability_of_its_end_and_no_best_score(tools: campaign.Tools) -> None:
    reply = LocalGenerator(FakeModel(lambda _: "")).answer(Continue("The keeper", 9), [PASSAGE])
    assert reply == Reply("", (pytest.approx(probability(SURE)),))  # type: ignore[arg-type]
    assert S2miaPerplexity().features(TEXT, [], [reply], tools)[0] < 0


def test_an_answer_that_never_ends_is_cut() -> None:
    reply = LocalGenerator(FakeModel(lambda _: "and so on " * 99)).answer(
        Continue("The keeper", 9), [PASSAGE]
    )
    assert reply.log_probabilities is not None and len(reply.log_probabilities) == 18
    assert form_of(Continue("The keeper", 9), reply.text) is Form.REPEATED


# -- statistics of attacks -----------------------------------------------------------------------------------


def test_perplexity_min_k_and_confidence_are_the_model_s(tools: campaign.Tools) -> None:
    replies = [Reply("a b c d e", (-0.1, -0.2, -0.3, -0.4, -4.0))]
    assert S2miaPerplexity().features(TEXT, [], replies, tools) == pytest.approx([-1.0])
    assert MinK().features(TEXT, [], replies, tools) == pytest.approx([-4.0])
    sure = LocalGenerator(FakeModel(lambda _: "counts")).answer(NextWord("x", "counts"), [PASSAGE])
    shares = ShadowAudit().features(TEXT, [], [sure], tools)
    assert shares.index(1.0) == int(INTERVALS * math.exp(probability(SURE)))


def test_the_proxy_ranks_each_word_by_its_likelier_tokens() -> None:
    model = FakeModel(likely={" keeper": 2.0, " of": 3.0, " fog": 1.0, " bells": 0.5, " ships": LIKELY})
    rank = LanguageProxy(model).ranks(TEXT)
    at = TEXT.index
    assert rank(at("of"), "of", "keeper") == 1  # `ships` is as likely, not likelier
    assert rank(at("keeper"), "keeper", "lighthouse") == 3
    assert rank(at("fog"), "fog", "the") == 4
    assert rank(at("Utsira"), "utsira", "of") == 6
    assert rank(at("Utsira"), "ships", "of") == 1  # a correction in the place of the word
    masked = mask(TEXT, 2, LanguageProxy(model), Speller(TokenStatistics([TEXT])), variant="plm")
    assert masked.answers == (("lighthouse",), ("thick",))


def test_the_proxy_gives_each_word_its_probability() -> None:
    proxy = LanguageProxy(FakeModel(likely={" keeper": LIKELY}))
    logs = proxy.log_probabilities(["the", "keeper", "counts"])
    assert len(logs) == 3 and logs[1] - logs[2] == pytest.approx(LIKELY)


def test_words_beyond_ascii_keep_their_places() -> None:
    model = FakeModel(likely={" naïve": LIKELY})
    text = "Ein größerer Übergang, ein naïve Ende"
    rank = LanguageProxy(model).ranks(text)
    assert rank(text.index("naïve"), "naïve", "ein") == 1 and rank(text.index("Ende"), "ende", "naïve") == 2


# -- the form of answers, and what they repeat ----------------------------------------------------------------

MASKS = FillMasks("A [Mask_1] of [Mask_2]", 2)


@pytest.mark.parametrize(
    ("task", "text", "form"),
    [
        (MASKS, "[Mask_1]: keeper\n[Mask_2]: Utsira", Form.FOLLOWED),
        (MASKS, "[Mask_1]: [MASK]\n[Mask_2]: [Mask_2]", Form.IGNORED),
        (MASKS, "[Mask_7]: keeper", Form.IGNORED),
        (MASKS, "The keeper of Utsira", Form.IGNORED),
        (MASKS, "I don’t know", Form.DECLINED),
        (Continue("The", 9), "- I'm not sure.", Form.DECLINED),
        (PRESENCE, "Yes, it does.", Form.FOLLOWED),
        (PRESENCE, "The text appears in the context.", Form.IGNORED),
        (PRESENCE, "I cannot say what the context contains.", Form.DECLINED),
        (Continue("The", 9), " \n", Form.EMPTY),
        (Continue("The", 9), "the fog " * 9, Form.REPEATED),
        (Continue("The", 9), TEXT, Form.FOLLOWED),
        (NextWord("The", "fog"), "fog", None),
    ],
)
def test_the_form_of_an_answer_is_told(task: Task, text: str, form: Form | None) -> None:
    assert form_of(task, text) is form


def test_what_an_answer_repeats_is_measured_without_the_question_s_words() -> None:
    task = Continue("The lighthouse keeper of Utsira counts", 20)
    whole = copied(task, "counts the ships by their bells when the fog is thick", [PASSAGE])
    assert whole is not None and whole.span == 11 and whole.share == 0.7
    part = copied(task, "he counts the ships by their bells", [Passage("Unrelated words."), PASSAGE])
    assert part is not None and part.span == 6 and 0 < part.share < 1
    echo = copied(task, "The lighthouse keeper of Utsira counts", [PASSAGE])
    assert echo is not None and (echo.share, echo.span) == (0.0, 0)
    assert copied(task, "ships by their bells", [PASSAGE]) == copied(task, "", [PASSAGE])
    assert copied(task, TEXT, []) is None and copied(NextWord("The", "fog"), "fog", [PASSAGE]) is None


def _bench(bench: Bench, split: Split, model: FakeModel, file: Path) -> Bench:
    """A service over few documents with a model in process."""
    generator = StoredGenerator(LocalGenerator(model), file)
    return Bench(split.index, bench.embedder, bench.tools, 2, 1, generator)


@pytest.fixture
def few(split: Split) -> Split:
    part = only(split, 20)
    return Split(part.members, part.others, part.rest[:40], part.own, part.left_out)


def test_a_model_that_ignores_the_format_is_counted(bench: Bench, few: Split, tmp_path: Path) -> None:
    service = _bench(bench, few, FakeModel(lambda _: "The text speaks of it"), tmp_path / "g")
    ready = campaign.prepare(chosen(["rag-mia"])[0], few, service.tools)
    result, _ = campaign.population(ready, service.engine(Cell("none")))
    assert result.written is not None
    assert result.written.forms == {"followed": 0, "declined": 0, "ignored": 40, "repeated": 0, "empty": 0}
    assert result.figures["auc"][0] == 0.5


def test_a_model_that_writes_nothing_has_an_error_with_a_name(
    bench: Bench, few: Split, tmp_path: Path
) -> None:
    service = _bench(bench, few, FakeModel(lambda _: ""), tmp_path / "g")
    ready = campaign.prepare(chosen(["rag-mia"])[0], few, service.tools)
    with pytest.raises(AttackError, match="no usable answer") as caught:
        campaign.population(ready, service.engine(Cell("none")))
    assert "40 empty and 0 repeated answers of 40" in str(caught.value.actual)


def test_an_interrupted_run_resumes_at_the_interruption(bench: Bench, few: Split, tmp_path: Path) -> None:
    asked = 0

    def stops(prompt: str) -> str:
        nonlocal asked
        asked += 1
        if asked > 30:
            raise KeyboardInterrupt
        return present(prompt)

    file = tmp_path / "generated.jsonl"
    ready = campaign.prepare(chosen(["rag-mia"])[0], few, bench.tools)
    first = _bench(bench, few, FakeModel(stops), file)
    with pytest.raises(KeyboardInterrupt):
        campaign.population(ready, first.engine(Cell("none")))
    stored = len(file.read_text().splitlines())
    assert 0 < stored < 40
    with open(file, "a") as end:
        end.write('{"key": "interru')
    model = FakeModel(present)
    shown: list[tuple[int, int]] = []
    second = _bench(bench, few, model, file)
    second.progress = lambda: lambda done, total: shown.append((done, total))
    result, _ = campaign.population(ready, second.engine(Cell("none")))
    assert len(model.prompts) == 40 - stored
    assert shown[-1] == (40, 40) and result.figures["auc"][0] == 1.0
    whole = _bench(bench, few, FakeModel(present), tmp_path / "other")
    assert campaign.population(ready, whole.engine(Cell("none")))[0].figures == result.figures


def test_the_replies_of_another_model_or_prompt_are_not_reused(tmp_path: Path) -> None:
    file = tmp_path / "generated.jsonl"
    first = StoredGenerator(LocalGenerator(FakeModel(present)), file)
    assert first.answer(PRESENCE, [PASSAGE]).text == "Yes"
    other = StoredGenerator(LocalGenerator(FakeModel(lambda _: "No", label="fake (sha256 01)")), file)
    assert other.answer(PRESENCE, [PASSAGE]).text == "No"
    assert first.guard().answer(PRESENCE, []).text == "No"
    assert len(file.read_text().splitlines()) == 3
    file.write_text('{"key": "a"}\n')
    with pytest.raises(StoreError, match="a stored reply is damaged"):
        StoredGenerator(LocalGenerator(FakeModel(present)), file)


# -- the command ---------------------------------------------------------------------------------------------


@pytest.fixture
def notes(texts: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[:90]))
    return path


def _run(notes: Path, out: Path, *words: str) -> Result:
    options = ["--data", str(notes), "--members", "20", "--mechanism", "none", "--k", "1", "--out", str(out)]
    return CliRunner().invoke(main, ["lab", "attack", "run", "rag-mia", "mba", *options, *words])


def test_a_run_names_the_model_its_digest_and_the_form_of_answers(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = gguf(tmp_path / "model.gguf"), tmp_path / "out"
    monkeypatch.setattr(language_model, "LlamaModel", lambda file: FakeModel(present, label=file.label))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    done = _run(notes, out, "--generator", f"gguf:{path}", "--generator-digest", digest, "--defence", "none",
                "--defence", "prompt")  # fmt: skip
    assert done.exit_code == 0, done.output
    run = AttackRun.load(out / "attacks.json")
    assert run.generator == f"language model Fake 1M (model.gguf, sha256 {digest})" == run.proxy
    presence, masks = run.results[0], run.results[1]
    assert presence.figures.auc[0] == 1.0
    assert presence.written is not None and presence.written.forms.followed == 40
    assert masks.written is not None and masks.written.forms.ignored == 40
    assert "ignored" in done.output and "| ignored |" in (out / "section.md").read_text()
    baseline = _run(notes, tmp_path / "base", "--proxy", "token-statistics")
    assert baseline.exit_code == 0 and "answered by: extractive baseline" in baseline.output
    assert "trigram baseline" in baseline.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--generator", "gguf:none.gguf"], "the model file is missing"),
        (["--generator", "MODEL", "--generator-digest", "00" * 32], "another digest"),
        (["--generator", "MODEL", "--jobs", "2"], "a model in this process uses all idle processors"),
        (["--generator-digest", "00"], "only a model file has a digest"),
        (["--generator", "model.gguf"], "the option names no generator"),
        (["--proxy", "gpt2"], "the option names no proxy model"),
    ],
)
def test_options_that_name_no_usable_model_are_refused(
    words: list[str], said: str, notes: Path, tmp_path: Path
) -> None:
    model = f"gguf:{gguf(tmp_path / 'model.gguf')}"
    done = _run(notes, tmp_path / "out", *(model if word == "MODEL" else word for word in words))
    assert done.exit_code == 2 and said in done.output
