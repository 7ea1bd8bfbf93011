"""`rag-audit init`: the files that it writes, the answers that it refuses, and its repetition after an interruption."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.clock import now_ms
from rag_audit._internal.errors import PolicyError, SetupError
from rag_audit._internal.lock import lock_file
from rag_audit.cli import main
from rag_audit.cli.choice import choose_mechanism, coalition
from rag_audit.cli.init import command
from rag_audit.cli.init.answers import load_answers
from rag_audit.cli.init.folder import PILOT_RELATION, PILOT_WITNESSES, Folder
from rag_audit.log.signing import SigningKey
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.accounting.documents import flip_probability_for, pooled_epsilon
from rag_audit.models.policy import Policy
from rag_audit.models.trust import ServiceTrust, Trust
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, published_constants
from rag_audit.retrieval.inventory import Inventory
from rag_audit.service.running.acts import Acts
from rag_audit.service.running.config import RunConfig
from rag_audit.witness.witness import Witness
from tests.embedders import small_bert

TEXT = "The landlord pays for the heating of flat {}."
KEYS = ("provider.skey", "witnesses/pilot-1/key", "witnesses/pilot-2/key", "accounts/law/account.skey")


def write(folder: Path, count: int = 3) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number}.txt").write_text(TEXT.format(number))


def run(*words: object, stdin: str | None = None) -> Result:
    done = CliRunner().invoke(main, ["init", *map(str, words)], input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    assert "Traceback" not in done.output
    return done


def ok(*words: object, **given: Any) -> Result:
    done = run(*words, **given)
    assert done.exit_code == 0, done.output
    return done


def refused(*words: object, **given: Any) -> str:
    done = run(*words, **given)
    assert done.exit_code == 2, done.output
    return str(done.stderr)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write(tmp_path / "docs" / "law")
    return tmp_path / "docs"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("init")
    write(root / "docs" / "law")
    ok(root / "pilot", "--docs", root / "docs", "--accounts", 4, "--questions", 50)
    return root / "pilot"


@pytest.fixture
def made(original: Path, tmp_path: Path) -> Path:
    """A copy of a complete folder, with the documents of the original beside it."""
    return Path(shutil.copytree(original, tmp_path / "pilot"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# -- the files -----------------------------------------------------------------------------------------------


def test_the_sizes_are_counted_and_the_files_fit_together(tmp_path: Path, docs: Path) -> None:
    write(docs / "hr", 70)
    done = ok(tmp_path / "pilot", "--docs", docs, "--json")
    value = json.loads(done.stdout)
    assert value["tenants"]["hr"]["documents"] == value["tenants"]["hr"]["positions"] == 70
    assert value["tenants"]["law"]["bytes"] == sum(len(TEXT.format(n)) for n in range(3))
    assert value["seconds_to_embed"] >= 0
    assert value["mechanisms"] == {"hr": "pooled-listing", "law": "pooled-listing"} and value["pilot"] is True
    config = RunConfig.load(tmp_path / "pilot" / "provider.toml")
    policy = config.policy("w-1", 0)
    # 70 passages with a quarter of room need more than 64 positions.
    assert {t.tenant: t.capacity for t in policy.tenants} == {"hr": 128, "law": 64}
    assert all(t.accounts_max == defaults.ACCOUNTS_MAX for t in policy.tenants)
    assert config.path(str(config.told.documents.folder)).resolve() == docs.resolve()


def test_a_pilot_is_labelled_in_every_place(made: Path) -> None:
    config, trust = RunConfig.load(made / "provider.toml"), Trust.load(made / "trust.toml")
    assert [key for key, _ in config.pilots] == [Witness(made / f"witnesses/pilot-{n}").vkey for n in (1, 2)]
    assert all("not-independent" in w.name for w in trust.witness) and len(trust.witness) == PILOT_WITNESSES
    assert {(w.independent, w.relation) for w in trust.witness} == {(False, PILOT_RELATION)} and trust.pilot
    text = (made / "trust.toml").read_text()
    sections = [s for s in text.split("\n[[") if s.startswith(("witness]]", "account]]"))]
    assert len(sections) == 3 and all("NOT independent" in s.splitlines()[0] for s in sections)
    assert "known to be independent" not in text
    assert "NOT" in (made / "provider.toml").read_text().splitlines()[1]
    assert "not independent" in (made / "users.txt").read_text()
    assert "NOT independent" in ok(made).stdout


def test_no_written_file_has_a_draft_or_an_unexplained_field(made: Path) -> None:
    explained = (made / "policy.json.explained.txt").read_text()
    policy = json.loads((made / "policy.json").read_text())
    for name in ("opens_at", "closes_at", "delete_after"):  # `run` dates each window
        assert str(policy[name]) not in explained
    assert "opens_at           = 20s after the publication of the window header" in explained
    assert "closes_at          = 5m after opens_at" in explained and "= 30 days after closes_at" in explained
    text = (made / "trust.toml").read_text()
    unset = [line for line in text.splitlines() if line.startswith("# ") and " =  # " in line]
    assert [line.split()[1] for line in unset] == ["beta", "eta"]
    assert all('only for mode = "sampled"' in line for line in unset)


def test_reports_get_the_service_s_operator_purpose_and_contact(
    made: Path, tmp_path: Path, docs: Path
) -> None:
    empty = (made / "trust.toml").read_text()
    (section,) = re.findall(r"^\[service\].*\n((?:# .*\n)*)", empty, re.MULTILINE)
    # A reader completes a line by removing its first two characters: then the file has the field.
    for line, name in zip(section.splitlines(), ("operator", "purpose", "contact"), strict=True):
        assert line.startswith(f'# {name} = ""  # ')
        completed = empty.replace(line, line[2:].replace('""', f'"my {name}"'))
        assert Trust.from_toml(completed.encode(), source="trust.toml").service == ServiceTrust(
            **{name: f"my {name}"}
        )
    words = (
        "--operator",
        "City Library",
        "--purpose",
        "search in leases",
        "--contact",
        "audit@library.example",
    )
    ok(tmp_path / "told", "--docs", docs, *words)
    assert Trust.load(tmp_path / "told" / "trust.toml").service == ServiceTrust(
        operator="City Library", purpose="search in leases", contact="audit@library.example"
    )
    assert '# operator = ""' not in (tmp_path / "told" / "trust.toml").read_text()
    assert "--operator" in refused(tmp_path / "told", "--operator", "Another")
    assert "--contact" in refused(tmp_path / "other", "--docs", docs, "--contact", "two\nlines")
    assert not (tmp_path / "other").exists()


def test_users_without_rights_get_lists_with_an_epsilon_that_a_trust_file_accepts(
    tmp_path: Path, docs: Path
) -> None:
    done = ok(tmp_path / "pilot", "--docs", docs, "--no-rights", "--accounts", 12, "--questions", 30)
    assert "--require" not in done.output, "init has no such option"
    policy = RunConfig.load(tmp_path / "pilot" / "provider.toml").policy("w-1", 0)
    mechanism = policy.mechanism_of("law")
    assert mechanism.name == "pooled-listing" and (policy.n, policy.k_max) == (30, 10)
    assert mechanism.threshold == policy.relevance == published_constants(DEFAULT_EMBEDDER).relevance
    assert mechanism.table is not None and mechanism.table.documents >= 3
    assert mechanism.epsilon(1, None) == mechanism.epsilon(12, None) <= float(defaults.EPS_POOLED_LISTING)
    told = (tmp_path / "pilot" / "users.txt").read_text()
    (factor,) = set(re.findall(r"by a factor of at most ([0-9,]+)\.", told))
    assert "e^" not in told
    assert int(factor.replace(",", "")) == math.ceil(math.exp(mechanism.epsilon(12, None)))


def test_two_services_without_a_name_have_different_names(tmp_path: Path, docs: Path) -> None:
    """A trust file of one pilot must not name the ledger of another one."""
    names = []
    for folder in ("a/My Pilot", "b/My Pilot", "c/_"):
        ok(tmp_path / folder, "--docs", docs, "--no-rights")
        names.append(Trust.load(tmp_path / folder / "trust.toml").provider.origin)
    assert all(re.fullmatch(r"my-pilot-[0-9a-f]{6}\.example/rag", name) for name in names[:2])
    assert re.fullmatch(r"pilot-[0-9a-f]{6}\.example/rag", names[2]) and len(set(names)) == 3
    ok(tmp_path / "a/My Pilot", "--docs", docs, "--no-rights")
    assert Trust.load(tmp_path / "a/My Pilot/trust.toml").provider.origin == names[0]


def test_the_choice_of_a_mechanism_follows_the_number_of_questions() -> None:
    def chosen(accounts: int, questions: int) -> tuple[str, float]:
        _, keep, f, _ = choose_mechanism(rights=False, accounts=accounts, questions=questions,
                                         relevance=601).split(":")  # fmt: skip
        return keep, float(f)

    assert (
        chosen(2, 100) == ("0.9", 0.1) and chosen(5, 100) == ("0.8", 0.1) and chosen(3, 300) == ("0.7", 0.1)
    )
    keep, f = chosen(16, 200)
    assert keep == "0.7" and 0.1 < f < 0.5
    q = flip_probability_for(str(f), queries=3200)
    assert 9.99 < pooled_epsilon(7 * PROBABILITY_RANGE // 10, q) <= float(defaults.EPS_POOLED_LISTING)
    with pytest.raises(SetupError, match="too many questions in a window"):
        chosen(100, 200)
    assert coalition(3) == 3 and coalition(1000) == defaults.K_MAX
    with pytest.raises(Exception, match="not known for this embedder"):
        choose_mechanism(rights=False, accounts=1, questions=1, relevance=None)


def test_too_many_questions_for_pooled_listing_are_refused_by_name(tmp_path: Path, docs: Path) -> None:
    told = refused(tmp_path / "pilot", "--docs", docs, "--no-rights", "--accounts", 64, "--questions", 500)
    assert "accounts times questions at most" in told and "--rights" in told
    assert not (tmp_path / "pilot").exists()


def test_witnesses_of_other_parties_make_no_pilot(tmp_path: Path, docs: Path) -> None:
    keys = [Witness.init(tmp_path / name, name).vkey for name in ("w1", "w2")]
    (tmp_path / "w1.pub").write_text(f"{keys[0]}\n")
    verifier = SigningKey.generate("verifier.example.org").verifier
    done = ok(tmp_path / "service", "--docs", docs, "--name", "example.org/rag", "--witness",
              f"{tmp_path / 'w1.pub'}@https://w1.example.org", "--witness", keys[1], "--verifier", verifier)  # fmt: skip
    config = RunConfig.load(tmp_path / "service" / "provider.toml")
    assert config.witnesses == keys and not config.pilots
    assert [w.url for w in config.told.witness] == ["https://w1.example.org", None]
    assert config.told.proving.records == "challenged" and config.told.schedule.windows == 0
    trust = Trust.load(tmp_path / "service" / "trust.toml")
    assert [v.vkey for v in trust.verifier] == [str(verifier)] and trust.provider.origin == "example.org/rag"
    assert {(w.independent, w.relation) for w in trust.witness} == {(True, None)}, "the verifier's to state"
    assert not (tmp_path / "service" / "witnesses").exists()
    assert not any(account.independent for account in trust.account), "the provider made the account's key"
    assert "Only independent accounts count for min_receipts" in done.stdout


def test_files_beside_folders_make_one_tenant(tmp_path: Path, docs: Path) -> None:
    (docs / "note.txt").write_text(TEXT.format("x"))
    done = ok(tmp_path / "pilot", "--docs", docs)
    assert "become one tenant, default, whose accounts can retrieve all of them" in " ".join(
        done.stderr.split()
    )
    config = RunConfig.load(tmp_path / "pilot" / "provider.toml")
    assert config.told.documents.one_tenant == "default"
    assert [t.tenant for t in config.policy("w-1", 0).tenants] == ["default"]
    ok(tmp_path / "named", "--docs", docs, "--tenant", "law")
    assert RunConfig.load(tmp_path / "named" / "provider.toml").told.documents.one_tenant == "law"


def test_a_person_is_asked_for_what_the_options_omit(tmp_path: Path, docs: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(command, "on_terminal", lambda: True)
    done = ok(
        tmp_path / "pilot",
        "--accounts",
        3,
        stdin=f"{docs}\nn\nfirm\n20\nn\n\n\nThe Firm\n\nit@firm.example\n",
    )
    policy = RunConfig.load(tmp_path / "pilot" / "provider.toml").policy("w-1", 0)
    assert [t.tenant for t in policy.tenants] == ["firm"] and policy.n == 20
    assert policy.tenants[0].accounts_max == 3 and policy.mechanism_of("firm").name == "pooled-listing"
    assert "maximum accounts" not in done.stderr
    service = Trust.load(tmp_path / "pilot" / "trust.toml").service
    assert service == ServiceTrust(operator="The Firm", contact="it@firm.example")
    ok(tmp_path / "silent", "--docs", docs, "--yes")  # nothing is asked
    # A prompt without an answer ends the command, and leaves no folder.
    assert "the prompt got no answer" in refused(tmp_path / "other", stdin="")
    assert not (tmp_path / "other").exists()


# -- repetition ----------------------------------------------------------------------------------------------


def test_a_second_call_changes_nothing(original: Path, made: Path) -> None:
    before = contents(made)
    assert "every file exists already" in ok(made).stdout
    ok(made, "--accounts", 4, "--no-rights", "--docs", original.parent / "docs")
    assert contents(made) == before


@pytest.mark.parametrize(
    ("option", "value"),
    [("--accounts", "5"), ("--questions", "51"), ("--rights", None), ("--name", "other.example/rag"),
     ("--lasts", "6m"), ("--windows", "0"), ("--tenant", "firm"), ("--http", "127.0.0.1:9999"),
     ("--skip-unreadable", None), ("--embedder", "hashed-words-64")],
)  # fmt: skip
def test_another_answer_is_refused_by_name(made: Path, option: str, value: str | None) -> None:
    before = contents(made)
    told = refused(made, *([option] if value is None else [option, value]))
    assert option in told and "another folder" in told
    assert contents(made) == before


def test_other_documents_and_witnesses_are_other_answers(made: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "law")
    assert "--docs" in refused(made, "--docs", tmp_path / "elsewhere")
    key = Witness.init(tmp_path / "w1", "w1").vkey
    assert "--witness" in refused(made, "--witness", key)


def test_an_interrupted_call_is_completed_and_keeps_its_keys(
    tmp_path: Path, docs: Path, monkeypatch: Any
) -> None:
    """The disk is full at each write of the command in turn."""
    folder, sync = tmp_path / "pilot", os.fsync
    left, known, failures = 0, {}, 0

    def full(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    for writes in range(200):
        left = writes % 7  # a few writes succeed in each call, so that every write fails once
        monkeypatch.setattr(os, "fsync", full)
        done = run(folder, "--docs", docs, "--accounts", 4)
        monkeypatch.setattr(os, "fsync", sync)
        keys = {name: (folder / name).read_bytes() for name in KEYS if (folder / name).exists()}
        assert known.items() <= keys.items(), "a key was overwritten"
        known = keys
        if done.exit_code == 0:
            break
        failures += 1
        assert done.exit_code == 2 and "No space left on device" in done.stderr, done.output
    assert done.exit_code == 0 and failures > 3 and len(known) == len(KEYS)
    assert not [p for p in folder.rglob("*.unfinished")]
    Folder(folder, load_answers(folder)).check()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["provider.skey.pub", "policy.json", "trust.toml", "users.txt", "roster.json"])  # fmt: skip
def test_a_missing_file_is_made_again_from_the_others(made: Path, name: str) -> None:
    before = contents(made)
    (made / name).unlink()
    assert name in ok(made).stdout
    after = contents(made)
    assert {n for n in before if after[n] != before[n]} <= (
        {"policy.json"} if name == "policy.json" else set()
    )


def test_a_call_that_was_killed_leaves_an_unfinished_file_that_the_next_call_replaces(made: Path) -> None:
    (made / "trust.toml").rename(made / ".trust.toml.unfinished")
    (made / "witnesses" / "pilot-2").rename(made / "witnesses" / ".pilot-2.unfinished")
    (made / "provider.toml").unlink()
    done = ok(made, "--json")
    assert json.loads(done.stdout)["made"] == ["witnesses/pilot-2", "trust.toml", "provider.toml"]
    assert not [p for p in made.rglob("*.unfinished")]


def test_a_folder_with_foreign_files_is_refused(tmp_path: Path, docs: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "policy.json").write_text("{}")
    assert "did not write" in refused(tmp_path / "own", "--docs", docs)
    # A provider's key that is there already is used.
    (tmp_path / "keyed").mkdir()
    key = tmp_path / "keyed" / "provider.skey"
    SigningKey.generate("example.org/own").save(key)
    before = key.read_bytes()
    ok(tmp_path / "keyed", "--docs", docs)
    assert key.read_bytes() == before
    assert Trust.load(tmp_path / "keyed" / "trust.toml").provider.origin == "example.org/own"


# -- bad input -----------------------------------------------------------------------------------------------


def test_documents_without_text_are_named_before_anything_is_written(tmp_path: Path, docs: Path) -> None:
    (docs / "law" / "empty.txt").write_text("  \n")
    told = refused(tmp_path / "pilot", "--docs", docs)
    assert "empty.txt" in told and not (tmp_path / "pilot").exists()
    ok(tmp_path / "pilot", "--docs", docs, "--skip-unreadable")
    assert RunConfig.load(tmp_path / "pilot" / "provider.toml").told.documents.skip_unreadable


def test_a_tenant_without_documents_is_named(tmp_path: Path, docs: Path) -> None:
    (docs / "hr").mkdir()
    (docs / "hr" / "photo.bmp").write_bytes(b"BM")
    told = refused(tmp_path / "pilot", "--docs", docs)
    assert "a tenant has no document" in told and str(docs / "hr") in told and "hr/photo.bmp" in told
    assert not (tmp_path / "pilot").exists()
    assert "hr has no document" in ok(tmp_path / "pilot", "--docs", docs, "--skip-unreadable").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [((), "--docs"), (("--docs", "missing"), "does not exist"), (("--docs", "DOCS", "--http", "x"), "--http"),
     (("--docs", "DOCS", "--lasts", "soon"), "at: --lasts\n"),
     (("--docs", "DOCS", "--lasts", "0s"), "at: --lasts\n"), (("--docs", "DOCS", "--lead", "0s"), "at: --lead\n"), (("--docs", "DOCS", "--name", "a b"), "name"),
     (("--docs", "DOCS", "--tenant", "a/b"), "--tenant"), (("--docs", "DOCS", "--accounts", "0"), "--accounts"),
     (("--docs", "DOCS", "--questions", "9" * 14), "accounts times questions at most"),
     (("--docs", "DOCS", "--no-rights", "--embedder", "hashed-words-64"), "--embedder"),
     (("--docs", "DOCS", "--witness", "w1"), "--witness"), (("--docs", "DOCS", "--verifier", "v1"), "--verifier"),
     (("--docs", "DOCS", "--witness", "w1+00000000+AAAA@http://a.test"), "--witness")],
)  # fmt: skip
def test_a_wrong_answer_is_named_and_leaves_no_folder(
    tmp_path: Path, docs: Path, words: tuple[str, ...], told: str
) -> None:
    given = [str(docs) if word == "DOCS" else word for word in words]
    assert told in refused(tmp_path / "pilot", *given)
    assert not (tmp_path / "pilot").exists()


def test_a_witness_is_named_once_and_under_an_address(tmp_path: Path, docs: Path) -> None:
    key = Witness.init(tmp_path / "w1", "w1").vkey
    words = (tmp_path / "pilot", "--docs", docs, "--witness", f"{key}@https://w1.example.org")
    assert "two witnesses have one name" in refused(*words, "--witness", key)
    assert "url" in refused(
        tmp_path / "pilot", "--docs", docs, "--witness", f"{key}@http://user@w1.example.org"
    )


def test_one_command_at_a_time_works_on_a_folder(made: Path) -> None:
    lock = lock_file(made / ".init.lock", wait=False)
    assert lock is not None
    try:
        assert "another `rag-audit init`" in refused(made)
    finally:
        os.close(lock)


@pytest.mark.full
def test_a_hundred_thousand_files_in_one_folder_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "docs" / "law", 100_000)
    value = json.loads(ok(tmp_path / "pilot", "--docs", tmp_path / "docs", "--json").stdout)
    assert value["tenants"]["law"]["documents"] == 100_000
    policy = Policy.parse(json.loads((tmp_path / "pilot" / "policy.json").read_bytes()), field="policy")
    assert policy.tenants[0].capacity == 131_072


def test_a_run_refuses_a_pilot_s_folder_with_another_witness(made: Path) -> None:
    text = (made / "provider.toml").read_text()
    (made / "provider.toml").write_text(
        text.replace('pilot = "witnesses/pilot-2"', 'pilot = "witnesses/pilot-1"')
    )
    done = CliRunner().invoke(main, ["run", str(made / "provider.toml")])
    assert done.exit_code == 2 and "the folder holds another witness" in done.stderr, done.output
    (made / "provider.toml").write_text(text.replace("pilot = ", 'url = "http://127.0.0.1:1"\npilot = ', 1))
    done = CliRunner().invoke(main, ["run", str(made / "provider.toml")])
    assert done.exit_code == 2 and "pilot without url" in done.stderr, done.output


def test_each_of_several_folders_is_a_tenant(tmp_path: Path, docs: Path) -> None:
    write(tmp_path / "hr", 2)
    words = (tmp_path / "pilot", "--docs", docs / "law", "--docs", tmp_path / "hr")
    ok(*words)
    config = RunConfig.load(tmp_path / "pilot" / "provider.toml")
    assert [t.tenant for t in config.policy("w-1", 0).tenants] == ["hr", "law"]
    places = {tenant: config.path(folder).resolve() for folder, tenant in config.told.documents.places}
    assert places == {"hr": tmp_path / "hr", "law": docs / "law"}
    acts = Acts(config, None, None, lambda: 0, print)  # type: ignore[arg-type]
    steps: list[tuple[object, ...]] = []
    read = acts._documents(Inventory(), lambda *told: steps.append(told))
    assert {tenant: len(own) for tenant, own in read.items()} == {"hr": 2, "law": 3}
    assert sorted(steps) == sorted(("read files", n, of) for of in (2, 3) for n in range(of + 1))
    ok(*words)
    assert "--docs" in refused(tmp_path / "pilot", "--docs", docs / "law")
    assert "--tenant" in refused(tmp_path / "other", *words[1:], "--tenant", "firm")
    write(tmp_path / "more" / "hr")
    assert "one name" in refused(tmp_path / "other", *words[1:], "--docs", tmp_path / "more" / "hr")


def test_the_provider_learns_of_installed_files(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default embedder is the same with and without them."""
    for number, place in enumerate((None, tmp_path)):
        monkeypatch.setattr(command, "installed_folder", lambda place=place: place)
        told = ok(tmp_path / f"pilot-{number}", "--docs", docs).stderr
        assert ("--embedder minilm-int" in told) == (place is not None)
        answers = load_answers(tmp_path / f"pilot-{number}")
        assert answers is not None and answers.embedder == DEFAULT_EMBEDDER
    told = ok(tmp_path / "named", "--docs", docs, "--embedder", DEFAULT_EMBEDDER).stderr
    assert "--embedder minilm-int" not in told


def test_a_policy_takes_the_token_limits_of_its_model(tmp_path: Path, docs: Path) -> None:
    """A model that reads fewer than 512 tokens of a document, and fewer than 64 of a question."""
    model = small_bert.write(tmp_path / "model")
    given = ["--embedder", "bert-int", "--model", model, "--rights"]
    ok(tmp_path / "pilot", "--docs", docs, *given)
    config = tmp_path / "pilot" / "provider.toml"
    RunConfig.load(config).check(now_ms())  # the check of `rag-audit run` before its first service
    path = tmp_path / "pilot" / "policy.json"
    value = json.loads(path.read_text())
    assert value["tokens"] == {"document": small_bert.SHAPE.places, "query": small_bert.SHAPE.places}
    value["tokens"]["document"] = 512
    path.write_text(json.dumps(value))
    with pytest.raises(PolicyError, match="token limits") as error:
        RunConfig.load(config).check(now_ms())
    assert "--query-tokens 24" in str(error.value.hint)
