"""Why each check decides as it does, in one sentence for those who write another verifier (docs/protocol.md,
"Checks")."""

WHY = {
    "header.signature": "The opening is the provider's promise, so it counts only under the key that the relying party knows.",
    "header.quorum": "Without the quorum nobody but the provider vouches that this opening was the only one.",
    "header.root": "The witnesses cosigned another entry 0 than the one that the window starts with.",
    "header.published": "What is fixed only after a window opened could have been fitted to its first questions.",
    "header.complete": "Everything that a record is proved against has to be what the opening committed to.",
    "header.indices": "Caps and bounds count the accounts of one tenant, so one index as two tenants doubles them unseen.",
    "header.tables": "A table that skips an earlier one, or that no policy asks for, lets a document draw a second bit.",
    "header.policy": "A policy out of its bounds promises nothing that a verifier could compute.",
    "header.chain": "Windows have to follow one another, or the ones that came out badly could be left out.",
    "header.abandoned": "The count of windows that came to nothing has to follow from the windows before this one.",
    "header.empty": "An empty window is one more draw of the seed, so each has to be counted where a verifier limits them.",
    "header.beacon": "A beacon that the provider could choose or foresee would let it choose the noise.",
    "ledger.checkpoint": "The end of the ledger is the provider's only if its key signed it for this window.",
    "ledger.quorum": "Without the quorum the provider could show each reader another end.",
    "ledger.size": "The checkpoint is of another number of entries, so entries were added or left out.",
    "ledger.root": "The entries are not the ones under the cosigned root.",
    "ledger.consistency": "The final tree does not extend the tree that the witnesses saw at the opening.",
    "ledger.sequence": "Entries have to be numbered without gap, in one order, for one window.",
    "ledger.trailer": "A window without a true closing record may have gone on after what is shown.",
    "ledger.timestamps": "Times have to ascend inside the window's interval.",
    "ledger.clock": "Witnesses' clocks bound the provider's: times that do not fit theirs were made up.",
    "ledger.accounts": "Every question has to come from an account that was known, once, for its tenant.",
    "ledger.enrolment": "An enrolled account's slots need a beacon that was drawn after it enrolled.",
    "ledger.beacons": "A second beacon would be a second draw of the noise.",
    "ledger.sample": "A sampled tenant's kept positions are fixed once, before its first question.",
    "ledger.listed_rows": "Each record with pooled listing commits to the listed rows, and a tenant has at most m records.",
    "ledger.requests": "A record without its account's signature may be a question that nobody asked.",
    "ledger.slots": "A slot that is used twice cancels its noise, and one that is left out hides an answer.",
    "ledger.limit": "The bounds hold for n questions an account, and not for more.",
    "proof.challenge": "A draw counts only if a known verifier drew it over this very ledger, and enough of it.",
    "proof.present": "A record that must be proved and is not may have been answered in any way.",
    "proof.records": "A proof of nothing that the ledger and the policy name has no meaning that could be checked.",
    "proof.pinned": "An eager proof is the one that its record named before the answer left.",
    "proof.system": "A proof system that the verifier does not know proves nothing to it.",
    "proof.circuit": "The circuit has to be the one that the policy's own constants give.",
    "proof.key": "A key that the relying party did not pin may be one under which anybody can prove anything.",
    "proof.valid": "The proof does not hold for what the ledger says of the record.",
    "proof.sample": "Only a proved commitment shows that the coins, and not the provider, chose the kept positions.",
    "proof.chain": "Records of a listing tenant rest on one another, so one without a proof could start from nothing.",
    "proof.query_embedding": "The committed vector has to be the pinned embedder's vector of the disclosed question.",
    "receipt.accepted": "A receipt that provider and account did not both sign shows nothing, against nobody.",
    "receipt.consistent": "What the provider signed for an account contradicts what it published.",
    "receipt.independent": "Only receipts of accounts that do not belong to the provider show that questions were real.",
    "receipt.disclosed": "A disclosed question that does not open its commitment shows nothing about it.",
    "coalition.parameters": "An estimate by other parameters than the policy's is of another thing.",
    "coalition.count": "The declared numbers cannot be those of the accounts that asked.",
    "coalition.circuit": "The circuit has to be the one that the policy's own constants give.",
    "coalition.key": "A key that the relying party did not pin may be one under which anybody can prove anything.",
    "coalition.proof": "The estimate is only as good as the proof that the policy promised for it.",
    "coalition.cap": "The bounds hold for coalitions of up to k_max accounts, and the estimate is above it.",
    "bound.computed": "No finite epsilon follows from the policy.",
    "trust.noise_table": "Another noise table is another distribution, about which the bounds say nothing.",
    "trust.challenge": "Of several draws the provider may have published the one that it liked, so eta is not established.",
    "trust.setup": "The party that made the keys alone can forge every proof, and the relying party did not allow that.",
    "trust.records": "Without an answer there is no proof, so nothing shows that the mechanism ran.",
    "trust.embedder": "An embedder that was fitted to a tenant moves every score.",
    "trust.manifest": "The same artefacts under another quantiser or prompt are another embedder.",
}
"""By check id, without a tenant's name and without `embed.`; what `trust.*` asks else is `REQUIREMENT`."""
REQUIREMENT = (
    "The window is sound, but it is less than this relying party asked for, or it left the requirement out."
)
PASSES = "Nothing is wrong with it, and nothing that trust.toml asks for is missing."
UNREADABLE = "What cannot be read is neither true nor false, and ends before the checks."


def why(check: str) -> str:
    """The sentence of a check that decided."""
    plain = check.replace("proof.embed.", "proof.")
    for name in (plain, plain.rpartition(".")[0]):
        if name in WHY:
            return WHY[name]
    return REQUIREMENT
