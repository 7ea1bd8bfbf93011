"""The words of commands and reports about Groth16."""

from rag_audit.proofs.description import Description

DESCRIPTION = Description(
    title="Groth16",
    use="groth16 is for small tenants, with short proofs",
    example="groth16:64",
    second="for Groth16 py_ecc",
    batches="for groth16, `provider setup new --batch` makes the key, and the default is 1",
    keyed=True,
)
