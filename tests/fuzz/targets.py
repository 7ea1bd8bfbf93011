"""What is fed with mutated input: the commands that read it, as a person runs them, and the parsers behind them.

The input is the worked example's (docs/examples): a window of two tenants with its trust file, receipts and requests.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from rag_audit._internal.canonical import jcs, parse_json
from rag_audit.cli import main
from rag_audit.errors import RagAuditError
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.note import parse_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.models.beacon import Reveal
from rag_audit.models.challenge import Challenge
from rag_audit.models.policy import Policy
from rag_audit.models.records import parse_entry
from rag_audit.models.requests import Answer, Refusal, SignedRequest
from rag_audit.models.roster import load_roster
from rag_audit.models.trust import Trust
from rag_audit.proofs.backends.groth16.policy import policy_instances
from rag_audit.report.archive import opened
from tests.fuzz.mutate import PARTS, Mutator

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
ALLOWED = (0, 1, 2, 3)


class Broken(AssertionError):
    """A case that ended as none may."""


@dataclass
class Bench:
    """A folder with the example's files, and what runs over them."""

    folder: Path
    runner: CliRunner = field(default_factory=CliRunner)

    def __post_init__(self) -> None:
        for name in (
            "window.json",
            "trust.toml",
            "header.json",
            "roster.json",
            "request.json",
            "answer.json",
            "refusal.json",
        ):
            (self.folder / name).write_bytes((EXAMPLES / name).read_bytes())
        (self.folder / "receipts").mkdir()
        for path in sorted((EXAMPLES / "receipts").glob("*.json")):
            (self.folder / "receipts" / path.name).write_bytes(path.read_bytes())
        self.window = self.value("window.json")
        (self.folder / "policy.json").write_bytes(jcs(self.window["policy"]))
        self.trust = (self.folder / "trust.toml").read_text()
        self.receipt = self.value("receipts/law-1-1.json")
        self.provider = Trust.load(self.folder / "trust.toml").provider
        self.key = SigningKey.generate("verifier.example.org")
        self.key.save(self.folder / "key")

    def value(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def put(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    def run(self, *words: object) -> int:
        """A command, in this process: a named error and a documented exit code, and lines that do not act."""
        arguments = [str(word) for word in words]
        done = self.runner.invoke(main, arguments, input="")
        if done.exit_code not in ALLOWED or "InternalError" in done.output:
            raise Broken(f"{arguments} ended in {done.exit_code}\n{done.output}")
        for line in (done.stdout + done.stderr).split("\n"):
            if not line.isprintable():
                raise Broken(f"{arguments} printed {line!r}")
        return done.exit_code

    @contextmanager
    def named(self) -> Iterator[None]:
        """A parser may refuse, by name, and not otherwise."""
        try:
            yield
        except RagAuditError as exc:
            for text in (exc.diagnostics(), str(exc)):
                if not all(line.isprintable() for line in text.split("\n")):
                    raise Broken(f"an error says {text!r}") from exc


Case = Callable[[Bench, Mutator], None]
COMMITTED = ("entries", "policy", "embedder", "roster", "tenants")


def drawn(draw: Mutator, value: Any, *under: str) -> bytes:
    """A mutated file: of another form half the time, and else of the same form with other content."""
    if draw.random.random() < 0.5:
        return draw.json(value, under=under)
    return plain(draw.gentle(value, under=under))


def plain(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def window(bench: Bench, draw: Mutator) -> None:
    data = drawn(draw, bench.window, *PARTS)
    path = bench.put("mutated/window.json", data)
    code = bench.run(
        "verify", path, "--trust", bench.folder / "trust.toml", "--receipts", bench.folder / "receipts"
    )
    if code == 0:
        value = json.loads(data)
        same = all(jcs(value[part]) == jcs(bench.window[part]) for part in COMMITTED)
        if not same:
            raise Broken("another window than the committed one passes")


def window_text(bench: Bench, draw: Mutator) -> None:
    """The notes inside a window, and the window's own bytes."""
    value = json.loads(json.dumps(bench.window))
    place = draw.pick("header_checkpoint", "final_checkpoint", "note", "beacon", "challenge", "bytes")
    if place == "note":
        value["entries"][1]["notes"][0] = draw.text(value["entries"][1]["notes"][0])
    elif place == "beacon":
        value["entries"][1]["checkpoint"] = draw.text(value["entries"][1]["checkpoint"])
    elif place == "challenge":
        value["challenges"] = [draw.text(text) for text in value["challenges"]]
    elif place != "bytes":
        value[place] = draw.text(value[place])
    data = json.dumps(value).encode()
    path = bench.put("mutated/window.json", draw.bytes(data) if place == "bytes" else data)
    bench.run("verify", path, "--trust", bench.folder / "trust.toml")


def readers_of_windows(bench: Bench, draw: Mutator) -> None:
    """The other commands that take a window."""
    path = bench.put("mutated/window.json", drawn(draw, bench.window, *PARTS))
    trust, honest = bench.folder / "trust.toml", bench.folder / "window.json"
    bench.run(
        *draw.pick(
            ("verifier", "trust", "new", bench.folder / "out.toml", "--show", path, "--origin", "x"),
            ("verifier", "cumulative", path, honest),
            (
                "verifier",
                "challenge",
                path,
                "--trust",
                trust,
                "--key",
                bench.folder / "key",
                "--out",
                bench.folder / "note.txt",
            ),
            ("verify", honest, "--trust", trust, "--previous", path),
        )
    )


def receipts(bench: Bench, draw: Mutator) -> None:
    value = dict(bench.receipt)
    if draw.random.random() < 0.6:  # deeper: in the openings, or in the note
        head, _, rest = value["receipt"].partition("\nextra ")
        value["receipt"] = (
            draw.text(value["receipt"])
            if not rest or draw.random.random() < 0.5
            else head + draw.text("\nextra " + rest)
        )
        data = json.dumps(value).encode()
    else:
        data = draw.json(value)
    path = bench.put("mutated/receipt.json", data)
    if draw.random.random() < 0.5:
        bench.run(
            "verify", bench.folder / "window.json", "--trust", bench.folder / "trust.toml", "--receipts", path
        )
    else:
        vkey = bench.provider.vkey
        bench.run(
            "account",
            "receipt",
            "verify",
            path,
            "--window",
            bench.folder / "header.json",
            "--provider",
            vkey,
        )


def openings(bench: Bench, draw: Mutator) -> None:
    """header.json, as accounts and witnesses read it."""
    path = bench.put(
        "mutated/header.json",
        drawn(draw, bench.value("header.json"), "header", "policy", "embedder", "tenants"),
    )
    bench.run(
        "account",
        "receipt",
        "verify",
        bench.folder / "receipts/law-1-1.json",
        "--window",
        path,
        "--provider",
        bench.provider.vkey,
    )


def trust_files(bench: Bench, draw: Mutator) -> None:
    path = bench.put("mutated/trust.toml", draw.file(bench.trust))
    with bench.named():
        Trust.load(path)
    if draw.random.random() < 0.4:
        bench.run(
            "verify", bench.folder / "window.json", "--trust", path, "--receipts", bench.folder / "receipts"
        )


def policies(bench: Bench, draw: Mutator) -> None:
    path = bench.put("mutated/policy.json", drawn(draw, bench.window["policy"]))
    bench.run(
        *draw.pick(
            ("provider", "policy", "bounds", path),
            ("verifier", "cumulative", path, bench.folder / "policy.json"),
            ("verifier", "cumulative", path),
        )
    )
    with bench.named():
        policy_instances(Policy.parse(parse_json(path.read_bytes(), source="policy"), field="policy"))


def rosters(bench: Bench, draw: Mutator) -> None:
    lines = bench.value("roster.json")
    if draw.random.random() < 0.5:
        roster = bench.put("mutated/roster.json", draw.json(lines))
        line = bench.put("mutated/line.json", jcs({**lines[0], "account": "new", "key": "ab" * 32}))
        with bench.named():
            load_roster(roster)
    else:
        roster, line = (
            bench.put("mutated/roster.json", jcs(lines)),
            bench.put("mutated/line.json", draw.json(lines[0])),
        )
    bench.run("account", "add", roster, line)


def trust_new(bench: Bench, draw: Mutator) -> None:
    """Set-up files, accounts' lines, keys and requirements, as a new trust file takes them."""
    window = bench.window
    setup = {
        "keys": [
            {"circuit": c, "name": "x", "vk": "ab" * 32, "setup": "unsafe"}
            for c in window["verification_keys"]
        ]
    }
    settings = draw.pick(
        "max_epsilon=8",
        "min_tau=0",
        "min_tau=5 seconds",
        "min_k_max=2",
        "beta=0.1",
        "query_embedding=proved",
        "mode=sampled",
    )
    odd = draw.pick("setup", "account", "key", "setting", "origin")
    (bench.folder / "out.toml").unlink(missing_ok=True)
    words: list[object] = ["verifier", "trust", "new", bench.folder / "out.toml"]
    words += ["--origin", draw.text("example.org/rag") if odd == "origin" else "example.org/rag"]
    words += ["--provider", draw.text(bench.provider.vkey) if odd == "key" else bench.provider.vkey]
    words += ["--witness", "w1+9c77222c+BE5VOZYZNoYro4KKiwcONJDYcNXEgqIrZHsXKzSIpXpy"]
    words += ["--setup", bench.put("mutated/setup.json", draw.json(setup) if odd == "setup" else jcs(setup))]
    line = bench.value("roster.json")[0]
    words += ["--account", bench.put("mutated/line.json", draw.json(line) if odd == "account" else jcs(line))]
    words += ["--require", draw.text(settings) if odd == "setting" else settings]
    bench.run(*[str(word).replace("\x00", "") for word in words])


def challenges(bench: Bench, draw: Mutator) -> None:
    """`challenge` under mutated requirements: beta, eta and everything else that is read of them."""
    sampled = bench.trust.replace('mode = "full"', 'mode = "sampled"')
    for name in ("beta", "eta"):
        share = draw.pick("0.1", "1e-999", "0", "1", "1e-30", "0.99")
        sampled = re.sub(rf"(?m)^# {name} = .*", f'{name} = "{share}"', sampled)
    path = bench.put(
        "mutated/trust.toml", draw.file(sampled) if draw.random.random() < 0.5 else sampled.encode()
    )
    bench.run(
        "verifier",
        "challenge",
        bench.folder / "window.json",
        "--trust",
        path,
        "--key",
        bench.folder / "key",
        "--out",
        bench.folder / "note.txt",
    )
    bench.run("verify", bench.folder / "window.json", "--trust", path)


def parsers(bench: Bench, draw: Mutator) -> None:
    """Every parser of a text, and of a message, for itself."""
    entries = bench.window["entries"]
    checkpoint = bench.window["final_checkpoint"]
    vkey = bench.provider.vkey
    log_key = VerifierKey.parse(vkey)
    texts: tuple[tuple[str, Callable[[str], object]], ...] = (
        (checkpoint, parse_note),
        (checkpoint, lambda text: open_checkpoint(text, origin=bench.provider.origin, log_key=log_key)),
        (checkpoint.partition("\n\n")[0] + "\n", Checkpoint.parse),
        (parse_note(entries[1]["notes"][0]).text, Reveal.parse),
        (
            bench.window["challenges"][0].partition("\n\n")[0] + "\n",
            lambda text: Challenge.parse(text, field="challenge"),
        ),
        (bench.receipt["receipt"], TlogProof.parse),
        (vkey, VerifierKey.parse),
        (bench.key.export(), SigningKey.parse),
    )
    text, parse = draw.pick(*texts)
    with bench.named():
        parse(draw.file(text).decode("utf-8", "surrogateescape"))
    models: tuple[tuple[Any, Callable[[Any], object]], ...] = (
        (bench.value("request.json"), lambda value: SignedRequest.parse(value, field="request")),
        (bench.value("answer.json"), lambda value: Answer.parse(value, field="reply")),
        (bench.value("refusal.json"), lambda value: Refusal.parse(value, field="reply")),
        (draw.pick(*entries), lambda value: parse_entry(value, field="entry")),
    )
    value, read = draw.pick(*models)
    with bench.named():
        read(parse_json(draw.json(value), source="message"))


def bundles(bench: Bench, draw: Mutator) -> None:
    """A bundle with changed, removed and repeated bytes, most of them in the archive's directory."""
    source = bench.folder / "bundle.zip"
    if not source.exists():
        given = ["--trust", bench.folder / "trust.toml", "--receipts", bench.folder / "receipts"]
        bench.run("verifier", "bundle", bench.folder / "window.json", *given, "--output", source)
    data = bytearray(source.read_bytes())
    start = int.from_bytes(data[-6:-2], "little")
    for _ in range(draw.random.randint(1, 4)):
        first = start if draw.random.random() < 0.8 else 0
        place = draw.random.randrange(min(first, len(data) - 1), len(data))
        match draw.random.randrange(8):
            case 0:
                del data[place : place + draw.random.randint(1, 40)]
            case 1:
                data[place:place] = data[place : place + 46]
            case _:
                data[place] = draw.random.choice((0, 1, 255, draw.random.randrange(256)))
    path = bench.put("mutated/bundle.zip", bytes(data))
    with bench.named(), opened(path) as files:
        names = {str(f.relative_to(files.folder)) for f in files.folder.rglob("*") if f.is_file()}
        if names != {file.path for file in files.manifest.files}:
            raise Broken(f"a bundle was unpacked to {sorted(names)}")


TARGETS: dict[str, Case] = {
    "bundles": bundles,
    "window": window,
    "window text": window_text,
    "readers of windows": readers_of_windows,
    "receipts": receipts,
    "openings": openings,
    "trust files": trust_files,
    "policies": policies,
    "rosters": rosters,
    "trust new": trust_new,
    "challenges": challenges,
    "parsers": parsers,
}


def run_case(target: str, number: int, bench: Bench, case: Case | None = None) -> None:
    """One case; whatever ends it otherwise than it may is reported with its number.

    :raises Broken: saying how to make the case again
    """
    seed = f"{target}/{number}"
    try:
        (case or TARGETS[target])(bench, Mutator(seed))
    except Exception as exc:
        last = traceback.extract_tb(sys.exc_info()[2])[-1]
        raise Broken(
            f"case {seed!r}: {type(exc).__name__}: {str(exc)[:600]} ({last.filename}:{last.lineno})"
        ) from exc
