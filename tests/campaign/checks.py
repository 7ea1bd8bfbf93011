"""Every check of the scan argument's verifier is taken out in turn, and a test of the core has to fail.

    python -m tests.campaign.checks --list                 the checks, numbered
    python -m tests.campaign.checks --checks 12 --seed 1   a sample of them
    python -m tests.campaign.checks --all                  all of them (a minute or two each)

A check is a statement of `native/argument` that makes a claim, a constraint or an equation, or that refuses. It is made
unreachable by a patch in a copy of `native/`, the tests that could see it are compiled and run, and the first one that
fails is named. Prover and verifier share these statements, so what has to fail is a test that knows the protocol from
elsewhere: published proofs, cheaters, a statement beyond its limits.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path("argument/src")
TARGET = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rag-audit" / "campaign-target"
"""Where builds are kept from one check to the next."""
QUICK = ("golden", "refused", "limits", "beyond")
"""Tests that see most checks, by parts of their names; all others follow where none of these fails."""
MADE = r"(?:self|session)\s*\.\s*(?:constrain|claim|claim_table|claim_points)\("
EQUATION = r"equations\.(?:push|extend)\("
REFUSED = r"return Err\("
STATEMENT = re.compile(rf"^[ \t]*(?:{MADE}|{EQUATION}|{REFUSED})", re.MULTILINE)
ENDED = re.compile(r"(?<=[\s{>])Err\(Error::Rejected\)(?=\s*[,}])")
FASTER = {
    "CARGO_PROFILE_TEST_OPT_LEVEL": "2", "CARGO_PROFILE_TEST_LTO": "off", "CARGO_PROFILE_TEST_DEBUG": "0",
    "CARGO_PROFILE_TEST_CODEGEN_UNITS": "16", "CARGO_PROFILE_TEST_INCREMENTAL": "true",
}  # fmt: skip


@dataclass(frozen=True)
class Check:
    """A statement from `start` to `end` of a source file.

    :param put: what stands in its place
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
    """The place behind the bracket that closes the one at `at`. Strings hold no brackets here, but for labels' words."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place + 1
    raise ValueError(f"no end of the statement at {at}")


def checks_of(path: Path, text: str) -> Iterator[Check]:
    """The checks of a source file, without its tests."""
    code = text.partition("#[cfg(test)]")[0]
    for found in STATEMENT.finditer(code):
        end = closed(code, found.end() - 1)
        tail = re.match(r"\??;", code[end:])
        if tail is None:
            continue  # an expression, whose value is wanted
        start = found.start() + len(found.group()) - len(found.group().lstrip())
        whole = code[start : end + tail.end()]
        yield Check(
            path, start, end + tail.end(), code.count("\n", 0, start) + 1, whole, f"if false {{ {whole} }}"
        )
    for found in ENDED.finditer(code):
        line = code.count("\n", 0, found.start()) + 1
        yield Check(path, found.start(), found.end(), line, found.group(), "Ok(())")


def all_checks(native: Path) -> list[Check]:
    """The checks of `native/argument`, by file and place."""
    files = sorted(path for path in (native / SOURCES).rglob("*.rs") if not path.stem.startswith("test"))
    return [check for path in files for check in sorted(
        checks_of(path.relative_to(native), path.read_text()), key=lambda check: check.start)]  # fmt: skip


def failing(native: Path) -> str | None:
    """The first test that fails, or what the compiler says, or None."""
    for names in (QUICK, ()):
        command = ["cargo", "test", "--quiet", "--locked", "-p", "ragaudit-scan", "-p", "ragaudit-argument", "--lib",
                   "--no-fail-fast", "--", *names]  # fmt: skip
        environment = os.environ | FASTER | {"CARGO_TARGET_DIR": str(TARGET), "RUST_BACKTRACE": "0"}
        process = subprocess.Popen(command, cwd=native, env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        assert process.stdout is not None
        said = ""
        try:
            for said in process.stdout:
                if (found := re.match(r"(\S+) --- FAILED", said)) is not None:
                    return found.group(1)
                if (
                    found := re.match(r"error(\[E\d+\])?: .*", said)
                ) is not None and "test failed" not in said:
                    return f"the compiler: {said.strip()}"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 15)
            process.wait()
    return None


def run(checks: list[Check], native: Path) -> list[Check]:
    """Take each check out of a copy of `native` and say what fails.

    :returns: those that no test misses
    """
    survivors = []
    for number, check in enumerate(checks, 1):
        path = native / check.path
        text = path.read_text()
        path.write_text(text[: check.start] + check.put + text[check.end :])
        try:
            by = failing(native)
        finally:
            path.write_text(text)
        print(f"{number}/{len(checks)} {check}: {by or 'NOTHING FAILS'}", flush=True)
        if by is None:
            survivors.append(check)
    return survivors


def main() -> int:
    """The command. Its exit code is 1 where a check is missed by no test."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the checks")
    parser.add_argument("--all", action="store_true", help="take out each of them")
    parser.add_argument("--checks", type=int, default=12, help="how many of them")
    parser.add_argument("--only", default="", help="those whose line contains this")
    parser.add_argument("--seed", default="1", help="another seed takes others")
    asked = parser.parse_args()
    base = TARGET.parent / "campaign"
    native = base / "native"
    shutil.rmtree(native, ignore_errors=True)
    shutil.copytree(ROOT / "native", native, ignore=shutil.ignore_patterns("target", "*.so"))
    # What the core's tests read by its place in the repository.
    for name in ("vectors", "docs", "rag_audit"):
        link = base / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)
        elif link.readlink() != ROOT / name:
            link.unlink()
            link.symlink_to(ROOT / name)
    found = [check for check in all_checks(native) if asked.only in str(check)]
    if asked.list:
        print("\n".join(f"{number} {check}" for number, check in enumerate(found, 1)))
        return 0
    if not asked.all and len(found) > asked.checks:
        found = sorted(random.Random(asked.seed).sample(found, asked.checks), key=str)
    if (broken := failing(native)) is not None:
        print(f"a test fails without any change: {broken}", file=sys.stderr)
        return 2
    survivors = run(found, native)
    print(f"{len(found)} checks taken out, {len(survivors)} of them without a failing test")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
