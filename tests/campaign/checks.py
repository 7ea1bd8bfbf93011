"""Removes each check of the scan argument's verifier in turn; a test of the core must then fail.

    python -m tests.campaign.checks --list                 the checks, numbered
    python -m tests.campaign.checks --checks 12 --seed 1   a sample of them
    python -m tests.campaign.checks --all                  all of them
    python -m tests.campaign.checks --all --lies           by false proofs that pass, then by published proofs

A check is a place of `native/scan-protocol` that makes a claim, a constraint or an equation, that compares with zero,
or that refuses. In a copy of `native/`, each place compares its own number with `RAG_AUDIT_DROPPED`, so that one build
can remove any check. Each test first runs alone with all checks and records the checks that it reaches. It then runs
without each of these checks, until one test has failed for each check. Prover and verifier share these places, so the
failing test must know the protocol from another source: published proofs, malicious provers, or a statement beyond its
limits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_audit._internal.cache import cache_dir

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path("scan-protocol/src")
BASE = cache_dir("campaign")
TARGET = cache_dir("campaign-target")
"""The folder of builds, which later runs reuse."""
PATIENCE_S = 300
"""The maximum processor time of a test; a longer test counts as failed."""
FAILED = 101
"""The exit code of a test program with a failed test."""
LONG = ("test_vectors", "errors_are", "simulat", "low_memory", "forgotten", "skipped", "mutat")
"""Parts of names of tests that make many proofs or large ones."""
PUBLISHED = ("test_vectors", "published", "errors_are")
"""Parts of names of tests that read published proofs and traces, or count the messages of a run. A failure of such a test
shows that the check exists, and not that a false proof passes without the check."""
MADE = r"(?:self|session)\s*\.\s*(?:constrain|claim)(?:_\w+)?\("
EQUATION = r"equations\.(?:push|extend)\("
ASKED = r"(?:\w+\s*\.\s*)*\b(?:check_\w+|in_range|end)\("
FOUND = r"(?:bad|all\.1)\.push\("
REFUSED = r"return (?:Err|invalid)\("
STATEMENT = re.compile(rf"^[ \t]*(?:{MADE}|{EQUATION}|{ASKED}|{REFUSED})", re.MULTILINE)
ENDED = re.compile(r"(?<!return )(?<![\w:])(?:Err|bad\.push|all\.1\.push)\(")
ABSENT = re.compile(r"\.ok_or(?:_else)?\(")
HOLDS = re.compile(r"\.holds::<[\w:]+>\(&[^()]*\)(?= \{)")
VERIFIED = re.compile(r"\.verify::<[\w:]+>\(&[^()]*\)")
ZERO = re.compile(r"== G1Projective::ZERO\b")
OUT = "DROPPED"
"""Stands for the question whether this check is taken out."""
QUESTION = """
/// Whether a check is the one that is taken out. What is come by is written down once.
pub fn dropped(check: usize) -> bool {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::OnceLock;
    static DROPPED: OnceLock<Option<usize>> = OnceLock::new();
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
    if !REACHED[check].swap(true, Ordering::Relaxed) {
        if let Ok(path) = std::env::var("RAG_AUDIT_REACHED") {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.expect("a file").write_all(format!("{check}\\n").as_bytes()).expect("room");
        }
    }
    let named = || std::env::var("RAG_AUDIT_DROPPED").ok()?.parse().ok();
    *DROPPED.get_or_init(named) == Some(check)
}
"""
FASTER = {
    "CARGO_PROFILE_TEST_OPT_LEVEL": "2", "CARGO_PROFILE_TEST_LTO": "off", "CARGO_PROFILE_TEST_DEBUG": "0",
    "CARGO_PROFILE_TEST_CODEGEN_UNITS": "16", "CARGO_PROFILE_TEST_INCREMENTAL": "true",
}  # fmt: skip
Program = tuple[str, str]
"""A built file of tests, and the folder that it runs in."""
PACKAGES = ("ragaudit-scan-protocol", "ragaudit-scan-prover")
"""The test programs: first the fast one with only the verifier and published proofs. The prover's program tests the
checks that the first program does not detect."""


@dataclass(frozen=True)
class Check:
    """A place from `start` to `end` of a source file.

    :param put: the replacement, which tests whether the check is removed
    """

    path: Path
    start: int
    end: int
    line: int
    text: str
    put: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCES)}:{self.line}: {' '.join(self.text.split())[:90]}"


def closed(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at `at`. Strings hold no brackets here, but for labels'
    words."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place + 1
    raise ValueError(f"no end of the statement at {at}")


def checks_of(path: Path, text: str) -> Iterator[Check]:
    """The checks of a source file, without its tests."""
    code = re.sub(r"//.*", lambda comment: " " * len(comment.group()), text.partition("#[cfg(test)]")[0])

    def check(start: int, end: int, put: str) -> Check:
        return Check(path, start, end, code.count("\n", 0, start) + 1, text[start:end], put)

    for result in STATEMENT.finditer(code):
        end = closed(code, result.end() - 1)
        tail = re.match(r"\??;", code[end:])
        if tail is None or (re.search(ASKED, result.group()) and tail.group() == ";"):
            continue  # an expression, whose value is wanted
        start, end = result.start() + len(result.group()) - len(result.group().lstrip()), end + tail.end()
        # The end of a block may have to have a value.
        last = text[start:].startswith("return") and re.match(r"\s*\}", code[end:])
        value = " Default::default()" if last else ""
        yield check(start, end, f"if !{OUT} {{ {text[start:end]} }}{value}")
    for result in ENDED.finditer(code):
        start, end = result.start(), closed(code, result.end() - 1)
        kept = "Ok(Default::default())" if result.group() == "Err(" else "()"
        if re.match(r"\s*[,}]", code[end:]):
            yield check(start, end, f"(if {OUT} {{ {kept} }} else {{ {text[start:end]} }})")
    for result in ABSENT.finditer(code):
        yield check(*result.span(), f".or_else(|| {OUT}.then(Default::default)){result.group()}")
    for result in VERIFIED.finditer(code):
        yield check(*result.span(), f"{result.group()}.or_else(|e| if {OUT} {{ Ok(()) }} else {{ Err(e) }})")
    for result in [*HOLDS.finditer(code), *ZERO.finditer(code)]:
        yield check(*result.span(), f"{result.group()} || {OUT}")


def all_checks(native: Path) -> list[Check]:
    """The checks of `native/scan-protocol`, by file and place; none that lies within another."""
    result: list[Check] = []
    for path in sorted((native / SOURCES).rglob("*.rs")):
        if path.stem.startswith("test"):
            continue
        for check in sorted(
            checks_of(path.relative_to(native), path.read_text()), key=lambda check: check.start
        ):
            if not result or result[-1].path != check.path or result[-1].end <= check.start:
                result.append(check)
    return result


def copied(numbered: dict[int, Check]) -> Path:
    """A copy of `native` in which each check tests its number, with the files that the core's tests read by their place."""
    native = BASE / "native"
    texts = {path.relative_to(ROOT / "native"): path.read_bytes() for path in sources(ROOT / "native")}
    for number, check in sorted(numbered.items(), key=lambda each: each[1].start, reverse=True):
        text, put = texts[check.path].decode(), check.put.replace(OUT, f"crate::dropped({number})")
        texts[check.path] = (text[: check.start] + put + text[check.end :]).encode()
    texts[SOURCES / "lib.rs"] += QUESTION.replace("COUNT", str(max(numbered) + 1)).encode()
    for path in sources(native):
        if path.relative_to(native) not in texts:
            path.unlink()
    for name, data in texts.items():
        path = native / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:  # what is the same is not built again
            path.write_bytes(data)
            shutil.copymode(ROOT / "native" / name, path)
    for link in (BASE / name for name in ("vectors", "docs", "rag_audit")):
        if not link.is_symlink() or link.readlink() != ROOT / link.name:
            link.unlink(missing_ok=True)
            link.symlink_to(ROOT / link.name)
    return native


def sources(native: Path) -> Iterator[Path]:
    """The files that the core is built of."""
    for folder, folders, names in os.walk(native):
        folders[:] = [name for name in folders if name != "target"]
        yield from (Path(folder, name) for name in names if not name.endswith(".so"))


def cargo(native: Path, *words: str) -> list[dict[str, Any]]:
    """The messages of cargo."""
    command = ["cargo", *words, "--quiet", "--locked", "--message-format=json"]
    environment = os.environ | FASTER | {"CARGO_TARGET_DIR": str(TARGET)}
    done = subprocess.run(
        command, cwd=native, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def uncompiled(native: Path, numbered: dict[int, Check]) -> set[int]:
    """The checks that cannot be removed, because the core does not compile without their values."""
    result: set[int] = set()
    for said in cargo(native, "check", "--profile", "test", "-p", "ragaudit-scan-protocol"):
        message = said.get("message")
        if message is None or message["level"] != "error":
            continue
        for span in message["spans"]:
            of_file = [
                (number, check)
                for number, check in numbered.items()
                if str(check.path).endswith(span["file_name"])
            ]
            result |= {number for number, check in of_file
                      if check.line <= span["line_start"] <= check.line + check.text.count("\n")}  # fmt: skip
        if not result and message["spans"]:
            raise SystemExit(f"the copy does not compile: {message['rendered']}")
    return result


def compiled(numbered: dict[int, Check]) -> tuple[Path, dict[int, Check]]:
    """A copy that compiles, and the checks in it. What did not compile the last time is left out at once."""
    kept, sources_of = BASE / "uncompiled", hashlib.sha256()
    for path in sorted({check.path for check in numbered.values()}):
        sources_of.update((ROOT / "native" / path).read_bytes())
    digest, *needed = kept.read_text().split() if kept.exists() else [""]
    left_out = {int(number) for number in needed} if digest == sources_of.hexdigest() else set()
    while True:
        numbered = {number: check for number, check in numbered.items() if number not in left_out}
        native = copied(numbered)
        if not (more := uncompiled(native, numbered)):
            kept.write_text(" ".join([sources_of.hexdigest(), *map(str, sorted(left_out))]))
            return native, numbered
        left_out |= more


def programs(native: Path, package: str) -> list[Program]:
    """The tests of a package, built."""
    tests = ("--lib",) if package == "ragaudit-scan-prover" else ("--lib", "--tests")
    result = []
    for said in cargo(native, "test", "--no-run", "-p", package, *tests):
        if said.get("executable") and said["profile"]["test"]:
            result.append((said["executable"], str(Path(said["manifest_path"]).parent)))
        elif said.get("reason") == "build-finished" and not said["success"]:
            raise SystemExit("the core's tests do not compile")
    return result


def failing(program: Program, name: str, environment: dict[str, str]) -> str | None:
    """Run a test by itself: None where it passes, or how it ends."""
    done = subprocess.run(
        [program[0], "--exact", name], cwd=program[1], env=os.environ | {"RUST_BACKTRACE": "0"} | environment,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_S, PATIENCE_S)))  # fmt: skip
    if done.returncode == 0 and "1 passed" in done.stdout:
        return None
    return name if done.returncode == FAILED else f"{name} ends with {done.returncode}"


def names_of(program: Program, rooms: set[str], published: bool | None = None) -> list[str]:
    """The tests of a program in their order: tests of the checks' own modules first, tests with many proofs last.

    :param published: return only tests that read published data, or only the other tests
    """
    listed, ignored = (
        re.findall(r"^(\S+): test$", subprocess.run([program[0], "--list", *more], stdout=subprocess.PIPE, text=True,
                                                    check=True).stdout, re.MULTILINE)
        for more in ([], ["--ignored"])
    )  # fmt: skip

    def order(name: str) -> tuple[bool, bool, str]:
        return any(word in name for word in LONG), name.split("::")[0] not in rooms, name

    reads = {name: any(word in name for word in PUBLISHED) for name in set(listed) - set(ignored)}
    return sorted((name for name in reads if published in (None, reads[name])), key=order)


def reached(program: Program, name: str) -> set[int]:
    """The checks that a test reaches when none is removed. The result is cached for the same program."""
    digest = hashlib.sha256(Path(program[0]).read_bytes() + name.encode()).hexdigest()
    kept = BASE / "reached" / digest[:32]
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "reached"
            file.touch()
            if (failed := failing(program, name, {"RAG_AUDIT_REACHED": str(file)})) is not None:
                raise SystemExit(f"a test fails without any change: {failed}")
            kept.write_text(file.read_text())
    return {int(number) for number in kept.read_text().split()}


def taken_out(
    native: Path, left: dict[int, Check], packages: Sequence[str] = PACKAGES, published: bool | None = None
) -> dict[int, Check]:
    """Remove each check in turn, and print the first test that fails. Returns the checks that no test detects."""
    left, come_by = dict(left), dict.fromkeys(left, 0)
    for package in packages:
        for program in programs(native, package) if left else ():
            rooms = {check.path.relative_to(SOURCES).parts[0].removesuffix(".rs") for check in left.values()}
            for name in names_of(program, rooms, published):
                for number in sorted(reached(program, name) & left.keys()):
                    come_by[number] += 1
                    if (by := failing(program, name, {"RAG_AUDIT_DROPPED": str(number)})) is not None:
                        print(f"{left.pop(number)}: {by}", flush=True)
                if not left:
                    break
    for number, check in left.items():
        print(f"{check}: NOTHING FAILS of {come_by[number]} tests that come by it")
    return left


def main() -> int:
    """The command. Its exit code is 1 where a check is missed by no test."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the checks")
    parser.add_argument("--all", action="store_true", help="take out each of them")
    parser.add_argument("--checks", type=int, default=12, help="how many of them")
    parser.add_argument("--only", nargs="+", default=[""], help="those whose line contains one of these")
    parser.add_argument("--verifier", action="store_true", help="by the tests of the verifier alone")
    parser.add_argument(
        "--lies",
        action="store_true",
        help="ask the tests that read published proofs only where no other fails",
    )
    parser.add_argument("--seed", default="1", help="another seed takes others")
    requested = parser.parse_args()
    numbered = dict(enumerate(all_checks(ROOT / "native"), 1))
    result = [
        number for number, check in numbered.items() if any(word in str(check) for word in requested.only)
    ]
    if requested.list:
        print("\n".join(f"{number} {numbered[number]}" for number in result))
        return 0
    native, numbered = compiled(numbered)
    result = [number for number in result if number in numbered]
    if not requested.all and len(result) > requested.checks:
        result = sorted(random.Random(requested.seed).sample(result, requested.checks))
    packages = PACKAGES[:1] if requested.verifier else PACKAGES
    left = {number: numbered[number] for number in result}
    if requested.lies:
        left = taken_out(native, left, packages, published=False)
        print(f"{len(left)} of {len(result)} are held by published proofs alone, if by any", flush=True)
    left = taken_out(native, left, packages, published=True if requested.lies else None)
    print(f"{len(result)} checks taken out, {len(left)} of them without a failing test")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
