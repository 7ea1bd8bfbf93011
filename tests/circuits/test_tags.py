"""What the circuits about coins ask of their callers is asked by the compiler: sources that hand on a signal whose
range nothing proved are not compiled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rag_audit._internal.node import circuits_dir
from rag_audit.errors import SetupError
from rag_audit.proofs.backends.groth16.circuit import run_compiler
from rag_audit.proofs.backends.groth16.instance import Instance
from tests.circuits.documents_case import TINY as DOCUMENTS
from tests.circuits.sample_column_case import TINY as KEPT
from tests.circuits.sampled_case import EXACT, SAMPLED

pytestmark = pytest.mark.circuits


@pytest.mark.parametrize(
    "instance, file, old, new, said",
    [
        pytest.param(
            KEPT,
            "kept",
            "coins.bound <== bound.out;",
            "coins.bound <== keep;",
            "requires tag width",
            id="probability whose range was not checked",
        ),
        pytest.param(
            KEPT,
            "kept",
            "component bound = Ranged(40);",
            "component bound = Ranged(41);",
            "assert",
            id="probability of too many bits",
            marks=pytest.mark.full,
        ),
        pytest.param(
            KEPT,
            "coins",
            "    u.width = 40;",
            "    u.width = 41;",
            "assert",
            id="draws of too many bits",
            marks=pytest.mark.full,
        ),
        pytest.param(
            KEPT,
            "coins",
            "    signal output {bit} coin[N];",
            "    signal output coin[N];",
            "requires tag bit",
            id="positions that may be no bits",
        ),
        pytest.param(
            DOCUMENTS,
            "documents",
            "    count.width = W - 1;",
            "    count.width = W;",
            "assert",
            id="numbers of positions of too many bits",
            marks=pytest.mark.full,
        ),
        pytest.param(
            DOCUMENTS,
            "documents",
            "    component bound = Ranged(40);\n    bound.in <== keep;\n    component coins = Coins(D);\n"
            "    coins.kappa <== key.kappa;\n    coins.bound <== bound.out;",
            "    component coins = Coins(D);\n    coins.kappa <== key.kappa;\n    coins.bound <== keep;",
            "requires tag width",
            id="probability of rows whose range was not checked",
            marks=pytest.mark.full,
        ),
        pytest.param(
            DOCUMENTS,
            "documents",
            "    above[r].a <== limit.out;",
            "    above[r].a <== most;",
            "requires tag width",
            id="limit of positions whose range was not checked",
        ),
        pytest.param(
            SAMPLED,
            "sampled",
            "component opened = OpenedIndex(N, d, W);",
            "component opened = OpenedIndex(N, d, W - 1);",
            "different instance of the bus",
            id="rows in slots of another width",
        ),
        pytest.param(
            SAMPLED,
            "sampled",
            "    signal input slot[Q];\n    signal output {reach} z[Q][N];\n    z.reach = 0;",
            "    signal input slot[Q];\n    signal output z[Q][N];",
            "requires tag reach",
            id="noise without bounds",
            marks=pytest.mark.full,
        ),
        pytest.param(
            EXACT,
            "sampled",
            "    signal {bit} kept[N];\n    component answers",
            "    signal kept[N];\n    component answers",
            "requires tag bit",
            id="weights of positions that may be no bits",
            marks=pytest.mark.full,
        ),
    ],
)
def test_range_that_nothing_proved_is_not_compiled(
    tmp_path: Path, instance: Instance, file: str, old: str, new: str, said: str
) -> None:
    copy = tmp_path / "circuits"
    shutil.copytree(circuits_dir(), copy)
    path = copy / "lib" / f"{file}.circom"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(SetupError) as caught:
        run_compiler(copy, instance.main_source(), tmp_path / "built", ("--O0",))
    assert said in str(caught.value.actual)
