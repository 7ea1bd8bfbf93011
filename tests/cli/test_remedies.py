"""An error names the object, the expected and the actual value, and the next step of the person who reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.account.account import Account
from rag_audit.cli import main
from rag_audit.errors import EncodingError, RequestRefused
from rag_audit.log.signing import SigningKey
from rag_audit.models.publication import Publication
from rag_audit.service.running.config import RunConfig
from tests.running.play import Play
from tests.window.simulator import ORIGIN, QUESTIONS, Service


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def refused(*arguments: object) -> str:
    """The error of a command that ends with exit code 2, without the name of any class."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert "Error:" not in done.stderr or "Usage:" in done.stderr
    return " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The provider's own folder of a closed window, beside the provider's key and the account of a witness."""
    root = tmp_path_factory.mktemp("remedies")
    service = Service(root)
    with service.open() as window:
        service.ask(window, "law-1", QUESTIONS["law"][0])
        window.close()
        service.finish(window)
    return Path(window.directory)


def test_a_provider_s_own_folder_is_told_from_the_public_one(closed: Path, tmp_path: Path) -> None:
    trust = written(tmp_path)
    packed = ("--output", tmp_path / "bundle.zip")
    for command, more in (("verify",), ()), (("verifier", "bundle"), packed):
        said = refused(*command, closed, "--trust", trust, *more)
        assert (
            f"window file not found: {closed}/window.json" in said
            and "name the folder `public` of the window" in said
        )
    with pytest.raises(EncodingError) as caught:
        Publication.load(closed)  # as accounts and witnesses do
    assert f"name its public folder, {closed}/public" in str(caught.value.hint)
    with pytest.raises(EncodingError) as caught:
        Publication.load(tmp_path)
    assert "public" not in str(caught.value.hint)


def written(tmp_path: Path) -> Path:
    """A trust file."""
    trust = tmp_path / "trust.toml"
    key, witness = (str(SigningKey.generate(name).verifier) for name in (ORIGIN, "w"))
    assert run("verifier", "trust", "new", trust, "--origin", ORIGIN, "--provider", key, "--witness", witness).exit_code == 0  # fmt: skip
    return trust


def test_an_earlier_window_is_named_by_its_public_folder(closed: Path, tmp_path: Path) -> None:
    trust = written(tmp_path)
    said = refused("verify", closed / "public", "--trust", trust, "--previous", closed)
    assert "previous window not found" in said and "the folder `public`" in said


def test_the_status_of_a_public_folder_names_the_provider_s(closed: Path) -> None:
    said = refused("provider", "status", closed / "public")
    assert "the folder contains no window" in said and f"name the folder that contains it, {closed}" in said


def test_the_status_of_a_missing_file_names_what_is_expected(tmp_path: Path) -> None:
    said = refused("provider", "status", tmp_path / "nosuch.toml")
    assert "there is no such file or folder" in said and "nosuch.toml" in said
    assert "expected: provider.toml, the folder of `rag-audit run`" in said and "hint:" in said


def test_the_folder_with_a_configuration_stands_for_it(tmp_path: Path) -> None:
    play = Play(tmp_path)
    assert (
        run("provider", "status", tmp_path).stdout
        == run("provider", "status", tmp_path / "provider.toml").stdout
    )
    assert f"name the file {tmp_path / 'provider.toml'}" in refused("run", tmp_path)
    assert RunConfig.load(tmp_path / "provider.toml").folder == play.folder


def test_a_verdict_without_a_trust_file_says_where_one_comes_from(closed: Path) -> None:
    said = refused("verify", closed / "public")
    assert "Missing option '--trust'" in said and "`rag-audit verifier trust new`" in said


def trust_new(tmp_path: Path, **options: str) -> str:
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return refused("verifier", "trust", "new", tmp_path / "trust.toml", *words)


@pytest.mark.parametrize(
    ("option", "command"),
    [("provider", "`rag-audit provider keygen OUT`"), ("witness", "`rag-audit witness init FOLDER`"),
     ("verifier", "`rag-audit verifier keygen OUT`")],
)  # fmt: skip
@pytest.mark.parametrize("value", ["nosuch", "w+abc", "@"])
def test_a_wrong_key_names_its_option_and_the_command_that_makes_one(
    tmp_path: Path, option: str, command: str, value: str
) -> None:
    if value == "@":
        (tmp_path / "other").write_text("no key\n")
        value = str(tmp_path / "other")
    key = str(SigningKey.generate(ORIGIN).verifier)
    said = trust_new(tmp_path, **{"origin": ORIGIN, "provider": key, "witness": key, option: value})
    assert f"--{option}" in said and command in said, said


def test_a_secret_key_in_place_of_a_public_one_is_not_repeated(tmp_path: Path) -> None:
    key = SigningKey.generate(ORIGIN)
    key.save(tmp_path / "key")
    public = str(key.verifier)
    for value in (str(tmp_path / "key"), key.export()):
        said = trust_new(tmp_path, origin=ORIGIN, provider=value, witness=public)
        assert "needs the public key" in said and ".pub" in said
        assert key.export().split("+", 4)[4] not in said  # base64 can contain "+"


def test_a_command_without_a_terminal_names_each_missing_option(tmp_path: Path) -> None:
    said = trust_new(tmp_path, origin=ORIGIN)
    assert "at: --provider, --witness" in said and "--origin" not in said.partition("hint")[0]


def test_a_missing_secret_key_names_the_commands_that_make_one(closed: Path, tmp_path: Path) -> None:
    words = (
        "verifier",
        "challenge",
        closed / "public",
        "--trust",
        written(tmp_path),
        "--out",
        tmp_path / "note",
    )
    said = refused(*words, "--key", tmp_path / "nosuch")
    assert "nosuch" in said and "`rag-audit verifier keygen` makes one" in said


@pytest.mark.parametrize("command", ["close", "prove", "serve --stdio"])
def test_a_folder_without_a_window_names_the_expected_folder(tmp_path: Path, command: str) -> None:
    name, *options = command.split()
    said = refused("provider", name, tmp_path, *options)
    assert "there is no window in this folder" in said and "such as run/windows/w-1" in said


def test_an_unknown_tenant_is_told_the_tenants(tmp_path: Path) -> None:
    service = Service(tmp_path)
    with service.open() as window:
        account = service.accounts["law-1"]
        publication = Publication.load(window.context.layout.public.folder)
        request = account.request(publication, QUESTIONS["law"][0]).model_copy(update={"tenant": "tax"})
        reply = window.handle(request.dump())
        names = ", ".join(sorted(t.tenant for t in window.policy.tenants)[:-1])
        with pytest.raises(RequestRefused, match=f"its tenants are {names}"):
            raise RequestRefused(reply.reason, reply.detail)  # type: ignore[union-attr]
        assert reply.reason == "unknown-tenant"  # type: ignore[union-attr]


def test_a_refusal_about_the_account_names_the_way_to_the_roster(tmp_path: Path) -> None:
    service = Service(tmp_path)
    with service.open() as window:
        service.accounts["law-1"] = Account.create(
            tmp_path / "a", "law-1", "law"
        )  # of the same id, with another key
        service.accounts["law-9"] = Account.create(tmp_path / "b", "law-9", "law")
        for account, reason in (("law-1", "bad-signature"), ("law-9", "unknown-account")):
            with pytest.raises(RequestRefused) as caught:
                service.ask(window, account, QUESTIONS["law"][0])
            assert caught.value.reason == reason
            assert "roster of the next window" in str(caught.value.hint), account


def test_paths_in_errors_are_those_that_the_verifier_gave(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = written(tmp_path)
    monkeypatch.chdir(closed.parent)
    assert f"window file not found: {closed.name}/window.json" in refused(
        "verify", closed.name, "--trust", trust
    )
    assert f"trust file not found: {closed.name}/trust.toml" in refused(
        "verify", closed / "public", "--trust", f"{closed.name}/trust.toml"
    )
    # An absolute path stays absolute on standard error, and a report has its last name only.
    report = tmp_path / "report.json"
    said = refused(
        "verify", closed / "public", "--trust", tmp_path / "none.toml", "--format", "json", "--output", report
    )
    assert f"trust file not found: {tmp_path}/none.toml" in said
    assert str(tmp_path) not in report.read_text() and "none.toml" in report.read_text()


def test_a_question_after_the_end_is_for_the_next_window(tmp_path: Path) -> None:
    service = Service(tmp_path)
    with service.open() as window:
        window.close()
        with pytest.raises(RequestRefused) as caught:
            service.ask(window, "law-1", QUESTIONS["law"][0])
        assert caught.value.reason == "closed" and "next window is open" in str(caught.value.hint)
