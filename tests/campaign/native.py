"""Mutated files, proofs and keys through the parsers and verifiers of the native core.

    python -m tests.campaign.native --cases 20000 --seed 1       every target, with this number of cases each
    python -m tests.campaign.native --case 1/zkey/4711           one case, by its name

The campaign checks for every case that the core accepts the input or refuses it by a named exception (`ValueError`,
`OSError`), that it does not panic, that it allocates no memory that the file does not need, and that no changed proof
is valid. The process may allocate two gigabytes, so an allocation by a size that a file claims ends it.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import resource
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_audit import _native
from rag_audit.proofs.backends.scan.key import VERSION
from rag_audit.relation.field import to_bytes
from tests.campaign import generated
from tests.campaign.again import made_again

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "groth16"))
from systems import random_system  # noqa: E402, of a folder that is no package

MEMORY = 2 << 30
LAST = Path(tempfile.gettempdir()) / f"rag-audit-native-{os.getpid()}"
"""Where the case that runs has its name."""
ODD = (0, 1, 2, 3, 7, 31, 32, 33, 255, 256, 2**16, 2**28, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)
REFUSED = (ValueError, OSError, OverflowError)


class Broken(AssertionError):
    """A case that ended as none may."""


def _refused(reason: str | None) -> None:
    """Raise the error of a refusal where the core gives a reason for one."""
    if reason is not None:
        raise ValueError("refused with a reason")


def mutated(data: bytes, draw: random.Random) -> bytes:
    """One to three changes: of bytes, of numbers at aligned places, of sections, of length."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        way = draw.randrange(8)
        at = draw.randrange(len(data) + 1) if draw.random() < 0.5 else draw.randrange(min(len(data), 256) + 1)
        if way == 0:
            data = data[:at]
        elif way == 1:
            data = data[:at] + draw.randbytes(draw.choice((1, 4, 12, 32))) + data[at:]
        elif way == 2:
            size = draw.choice((4, 8))
            at -= at % 4
            number = (
                draw.choice(ODD)
                if draw.random() < 0.7
                else int.from_bytes(data[at : at + size], "little") + 1
            )
            data = data[:at] + (number % 2 ** (8 * size)).to_bytes(size, "little") + data[at + size :]
        elif way == 3:
            data = _sections(data, draw)
        elif way == 4:
            width = draw.choice((32, 64))
            to = draw.randrange(max(1, len(data) // width)) * width
            at -= at % width
            data = data[:at] + data[to : to + width] + data[at + width :]
        elif way == 5:
            at -= at % 32
            data = data[:at] + draw.choice((bytes(32), b"\xff" * 32)) + data[at + 32 :]
        else:
            data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    return data


def _sections(data: bytes, draw: random.Random) -> bytes:
    """The sections of a file of circom's container format in another order, one twice, one left out or renamed."""
    parts, at = [], 12
    while at + 12 <= len(data):
        _, size = struct.unpack_from("<IQ", data, at)
        parts.append(data[at : at + 12 + size])
        at += 12 + size
        if len(parts) > 64:
            break
    if not parts:
        return data
    way, which = draw.randrange(4), draw.randrange(len(parts))
    if way == 0:
        draw.shuffle(parts)
    elif way == 1:
        parts.insert(which, parts[draw.randrange(len(parts))])
    elif way == 2:
        del parts[which]
    else:
        parts[which] = struct.pack("<I", draw.randrange(16)) + parts[which][4:]
    return data[:12] + b"".join(parts)


class Campaign:
    """Valid files and proofs of every kind, and who reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        system = random_system(40)
        self.r1cs, self.ptau, self.zkey = (folder / name for name in ("c.r1cs", "p.ptau", "k.zkey"))
        self.r1cs.write_bytes(system.r1cs())
        _native.ptau_new(6, self.ptau)
        _native.groth16_setup(self.r1cs, self.ptau, self.zkey)
        self.wtns = system.wtns()
        self.vk = _native.groth16_verification_key(self.zkey)
        self.proof = _native.groth16_prove(self.zkey, self.wtns)
        self.inputs = b"".join(map(to_bytes, system.inputs()))
        scan = ROOT / "vectors" / f"v{VERSION}" / "scan"
        self.scan: dict[str, Any] = json.loads((scan / "proofs.json").read_text())
        self.documents: dict[str, dict[str, Any]] = {
            name: json.loads((scan / f"{name}.json").read_text())["table"]
            for name in ("document-table", "pooled-listing")
        }
        self.targets: dict[str, Callable[[random.Random], object]] = {
            name: getattr(self, f"_{name}")
            for name in ("r1cs_file", "wtns_file", "ptau_file", "zkey_file", "groth16_proof", "groth16_key",
                         "scan_proof", "scan_certificate", "scan_index", "scan_embed", "scan_coalition",
                         "scan_coins", "scan_documents", "scan_pooled_documents", "scan_pooled", "scan_together",
                         "scan_table", "signatures")
        }  # fmt: skip
        self._made = {}  # type: ignore[var-annotated]

    def case(self, name: str) -> str:
        """Run one case, and return how it ended.

        :raises Broken: it ended otherwise than it may
        """
        _, target, _ = name.split("/")
        try:
            self.targets[target](random.Random(f"native/{name}"))
        except REFUSED:
            return "refused"
        except Broken as exc:
            raise Broken(f"{name}: {exc}") from exc
        except BaseException as exc:  # a panic of the native core derives from nothing else
            raise Broken(f"{name}: {type(exc).__name__}: {exc}") from exc
        return "accepted"

    def _file(self, data: bytes) -> Path:
        path = self.folder / "mutated"
        path.write_bytes(data)
        return path

    # -- circom's and snarkjs's files ------------------------------------------------------------------------

    def _r1cs_file(self, draw: random.Random) -> None:
        path = self._file(mutated(self.r1cs.read_bytes(), draw))
        if draw.random() < 0.5:
            _native.r1cs_unsatisfied(path, self.wtns)
        else:
            _native.groth16_setup(path, self.ptau, self.folder / "made.zkey")

    def _wtns_file(self, draw: random.Random) -> None:
        data = mutated(self.wtns, draw)
        if draw.random() < 0.5:
            _native.r1cs_unsatisfied(self.r1cs, data)
        elif _native.groth16_prove(self.zkey, data) and _native.r1cs_unsatisfied(self.r1cs, data):
            raise Broken("a witness that breaks a constraint was proved")

    def _ptau_file(self, draw: random.Random) -> None:
        original = self.ptau.read_bytes()
        data = mutated(original, draw)
        path = self._file(data)
        readers: tuple[Callable[[], object], ...] = (
            lambda: _native.ptau_powers(path),
            lambda: _native.ptau_contributions(path),
            lambda: _native.groth16_setup(self.r1cs, path, self.folder / "made.zkey"),
            lambda: _refused(_native.ptau_fault(path)),
        )
        draw.choice(readers)()

    def _zkey_file(self, draw: random.Random) -> None:
        path = self._file(mutated(self.zkey.read_bytes(), draw))
        readers: tuple[Callable[[], object], ...] = (
            lambda: _native.zkey_contributions(path),
            lambda: _native.groth16_verification_key(path),
            lambda: _native.groth16_prove(path, self.wtns),
            lambda: _native.zkey_contribute(path, self.folder / "made.zkey", "x"),
            lambda: _refused(_native.zkey_fault(self.r1cs, self.ptau, path)),
        )
        draw.choice(readers)()

    # -- Groth16 ---------------------------------------------------------------------------------------------

    def _groth16_proof(self, draw: random.Random) -> None:
        proof, inputs = self.proof, self.inputs
        if draw.random() < 0.7:
            proof = mutated(proof, draw)
        else:
            inputs = mutated(inputs, draw)
        if draw.random() < 0.5:
            result = _native.groth16_verify_batch(self.vk, [proof], [inputs])
        else:
            result = _native.groth16_verify_batch(self.vk, [self.proof, proof], [self.inputs, inputs])
            if any(index == 0 for index, _ in result):
                raise Broken("a true proof was refused beside another")
        holds = not result
        if holds and (proof, inputs) != (self.proof, self.inputs):
            raise Broken("a changed proof holds")
        if not holds:
            raise ValueError("it does not hold")

    def _groth16_key(self, draw: random.Random) -> None:
        text = mutated(self.vk.encode(), draw).decode("utf-8", "replace")
        if not _native.groth16_verify_batch(text, [self.proof], [self.inputs]):
            return  # what does not belong to a key's points may be another

    # -- the scan argument -----------------------------------------------------------------------------------

    def _answer(self) -> tuple[Any, ...]:
        if "answer" not in self._made:
            stored = self.scan["answer"]
            points = base64.b64decode(stored["index"])
            index = _native.ScanIndex(points, stored["dimension"], stored["capacity"])
            parameters = _native.ScanParameters(
                bytes.fromhex(stored["window"]),
                stored["gains"],
                stored["listed"],
                stored["lo"],
                stored["hi"],
                stored["lattice"],
            )
            names = ("c_seed", "beacon", "slot", "context", "cq", "htopk")
            record = b"".join(bytes.fromhex(stored[name]) for name in names)
            parts = [base64.b64decode(stored[name]["proof"]) for name in ("certificate", "query_proof")]
            _native.scan_verify(index, parameters, [record], *parts)
            self._made["answer"] = index, parameters, record, *parts, points
        result: tuple[Any, ...] = self._made["answer"]
        return result

    def _scan(self, part: int, draw: random.Random) -> None:
        index, parameters, *values, _ = self._answer()
        honest = list(values)
        values[part] = mutated(values[part], draw)
        if draw.random() < 0.5:
            _native.scan_verify(index, parameters, [values[0]], *values[1:])
            holds = True
        else:
            batch = _native.ScanBatch(index, parameters)
            item = ([values[0]], values[1], values[2])
            holds = not batch.add([item]) and batch.holds()
            if not holds and not batch.search([item]):
                raise Broken("a batch refuses what nothing is wrong with")
        if holds and values != honest:
            raise Broken("a changed proof holds")
        if not holds:
            raise ValueError("refused in a batch")

    def _scan_proof(self, draw: random.Random) -> None:
        self._scan(draw.choice((2, 2, 0)), draw)

    def _scan_certificate(self, draw: random.Random) -> None:
        self._scan(1, draw)

    def _scan_index(self, draw: random.Random) -> None:
        stored, points = self.scan["answer"], self._answer()[-1]
        dimension, capacity = draw.choice(
            (
                (stored["dimension"], stored["capacity"]),
                (0, 0),
                (2**31, 1),
                (1, 2**40),
                (stored["dimension"], 2**63),
            )
        )
        _native.ScanIndex(mutated(points, draw), dimension, capacity)

    def _scan_embed(self, draw: random.Random) -> None:
        stored = self.scan["embed"]
        if "table" not in self._made:
            rows = bytes(v & 0xFF for v in stored["rows"])
            self._made["table"] = _native.ScanTable.commit(rows, stored["dimension"])
        statement = b"".join(bytes.fromhex(stored[name]) for name in ("context", "hq", "cq"))
        proof = mutated(base64.b64decode(stored["proof"]), draw)
        _native.scan_embed_verify(
            self._made["table"], (stored["tokens"], stored["norm_factor"]), statement, proof
        )
        if proof != base64.b64decode(stored["proof"]):
            raise Broken("a changed proof holds")

    def _scan_coalition(self, draw: random.Random) -> None:
        stored = self.scan["coalition"]
        statement = _native.ScanCoalition(
            bytes.fromhex(stored["context"]), stored["dimension"], b"".join(map(bytes.fromhex, stored["cq"])),
            stored["accounts"], stored["tenants"], stored["first"], tuple(stored["theta"]), tuple(stored["largest"]),
            stored["room"],
        )  # fmt: skip
        honest = [base64.b64decode(stored[name]["proof"]) for name in ("records", "pairs")]
        parts = list(honest)
        which = draw.randrange(2)
        parts[which] = mutated(parts[which], draw)
        statement.verify(parts[0], [parts[1]])
        if parts != honest:
            raise Broken("a changed proof holds")

    def _scan_coins(self, draw: random.Random) -> None:
        public, proof, rows, _ = generated.coin(44, generated.KEEP)
        values = [public, proof]
        which = draw.choice((0, 1, 1, 1))
        values[which] = mutated(values[which], draw)
        result = _native.scan_bits_verify(
            generated.CAPACITY, generated.CONTEXT, values[0], generated.KEEP, values[1]
        )
        if values != [public, proof] or result != rows:
            raise Broken("a changed proof holds")

    def _scan_documents(self, draw: random.Random) -> None:
        self._document_table("document-table", draw)

    def _scan_pooled_documents(self, draw: random.Random) -> None:
        self._document_table("pooled-listing", draw)

    def _document_table(self, name: str, draw: random.Random) -> None:
        """A table of the vectors with this name; that of pooled listing carries listed rows."""
        stored = self.documents[name]
        slot = b"".join(bytes.fromhex(stored[name]) for name in ("c_seed", "beacon", "slot"))
        points = [base64.b64decode(stored[f"{name}_points"]) for name in ("table", "previous")]
        honest = [slot, *points, base64.b64decode(stored["proof"])]
        values = list(honest)
        which = draw.choice((0, 1, 2, 3, 3, 3))
        values[which] = mutated(values[which], draw)
        numbers = tuple(stored[name] for name in ("capacity", "rows", "positions_per_row", "fresh", "bound"))
        slot, table, previous, proof = values
        context = bytes.fromhex(stored["context"])
        listed = name == "pooled-listing"
        _native.scan_documents_verify(context, slot, numbers, table, previous, listed, proof)
        if values != honest:
            raise Broken("a changed proof holds")

    def _scan_pooled(self, draw: random.Random) -> None:
        key, honest = generated.pooled()
        values = list(honest)
        which = draw.choice((0, 1, 2, 3, 3, 3, 3))
        values[which] = mutated(values[which], draw)
        batch = _native.ScanPooledBatch(key.index, key.pooled_listing)
        holds = not batch.add([(values[0], values[1], values[2], values[3])]) and batch.holds()
        if holds and tuple(values) != honest:
            raise Broken("a changed proof holds")
        if not holds:
            raise ValueError("refused in a batch")

    def _scan_together(self, draw: random.Random) -> None:
        parameters, records, *honest = generated.batch()
        requested, values = list(records), list(honest)
        if draw.random() < 0.2:
            which = draw.randrange(len(requested))
            requested[which] = mutated(requested[which], draw)
        else:
            which = draw.randrange(2)
            values[which] = mutated(values[which], draw)
        batch = _native.ScanBatch(generated.index(), parameters)
        holds = not batch.add([(requested, values[0], values[1])]) and batch.holds()
        if holds and (requested, values) != (records, honest):
            raise Broken("a changed proof holds")
        if not holds:
            raise ValueError("refused in a batch")

    def _scan_table(self, draw: random.Random) -> None:
        stored = self.scan["embed"]
        points = base64.b64decode(stored["table"])
        dimension, vocabulary = stored["dimension"], stored["vocabulary"]
        sizes = ((dimension, vocabulary), (0, 0), (2**31, 1), (1, 2**40), (dimension, 2**63))
        _native.ScanTable(mutated(points, draw), *draw.choice(sizes))

    def _signatures(self, draw: random.Random) -> None:
        """Signatures of drand and of notes: points of both curves, from untrusted files."""
        check, honest = draw.choice(generated.signatures())
        values = list(honest)
        which = draw.randrange(len(values))
        values[which] = mutated(values[which], draw)
        if not check(*values):
            raise ValueError("it does not hold")
        if tuple(values) != honest:
            raise Broken("a changed signature holds")


def run(cases: int, seed: str, targets: list[str] | None = None) -> tuple[dict[str, Counter[str]], list[str]]:
    """Run a number of cases of each target, in this process.

    :returns: the results of each target's cases, and the faults
    """
    ended: dict[str, Counter[str]] = {}
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder))
        _limit_memory()
        for target in targets or list(campaign.targets):
            count = ended.setdefault(target, Counter())
            for number in range(cases):
                name = f"{seed}/{target}/{number}"
                LAST.write_text(name)  # a process that runs out of memory says no more
                try:
                    count[campaign.case(name)] += 1
                except Broken as exc:
                    broken.append(str(exc))
                    count["BROKEN"] += 1
            print(f"{target}: {dict(count)}", flush=True)
    LAST.unlink(missing_ok=True)
    return ended, broken


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=1000, help="of each target")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--target", action="append", help="only these targets")
    parser.add_argument("--case", action="append", help="one case by its name, as a failure prints it")
    options = parser.parse_args()
    if options.case:
        return made_again(Campaign, options.case)
    _, broken = run(options.cases, options.seed, options.target)
    print("\n".join(broken[:20]))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
