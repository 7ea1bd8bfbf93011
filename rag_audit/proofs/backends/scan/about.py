"""The words of commands and reports about the scan argument."""

from rag_audit.proofs.description import Description

DESCRIPTION = Description(
    title="the scan argument",
    use="scan needs no setup",
    example="scan:3000",
    second="reference: the slow second verifier of the scan argument",
)
