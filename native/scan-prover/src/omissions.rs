//! Provers that each omit one claim, and share one run up to its closing. Claims only take effect in the closing, so a prover that
//! omits a claim sends the same messages before it.
use ragaudit_scan_protocol::claims::{Claim, TableClaim};
use ragaudit_scan_protocol::index_link::{IndexLink, IndexLinkSecret};

use crate::error::Error;
use crate::malicious::{run, MaliciousProver, Without};
use crate::session::Session;

type Run<'a> = (Session<'a, MaliciousProver<'a>>, IndexLink<'a>);
type Verdict = std::result::Result<(), Error>;

/// Asserts that the verifier refuses a prover that omits a claim, for each claim of the run in turn.
///
/// `before_closing` runs a prover up to its closing.
pub(crate) fn no_claim_is_omitted<'a>(
    before_closing: impl Fn() -> Run<'a>,
    verify: impl Fn(&[u8]) -> Verdict,
) {
    let close = |(session, link): Run| -> Vec<u8> { session.close(Some(link)).unwrap().into() };
    let (_, all) = run(Without::Nothing, || close(before_closing()));
    let (made, log) = run(Without::Nothing, &before_closing);
    assert!(log.claims.len() > 10 && all.claims.starts_with(&log.claims));
    assert_eq!(count(&made.0), log.claims.len());
    assert_eq!(verify(&close(copy(&made))), Ok(()));
    for (n, claim) in log.claims.iter().enumerate() {
        let mut other = copy(&made);
        let kind = |claim: &String| claim.split(':').next().map(str::to_owned);
        let before = log.claims[..n].iter().filter(|c| kind(c) == kind(claim));
        omit(&mut other.0, &kind(claim).unwrap(), before.count());
        assert_eq!(count(&other.0) + 1, log.claims.len(), "{claim}");
        assert!(verify(&close(other)).is_err(), "claim {n}: {claim}");
    }
    // The closing makes the claims that follow.
    for n in log.claims.len()..all.claims.len() {
        let (proof, _) = run(Without::NthClaim(n), || close(before_closing()));
        assert!(verify(&proof).is_err(), "claim {n}: {}", all.claims[n]);
    }
}

fn count(session: &Session<MaliciousProver>) -> usize {
    let sums = session.constraints.len() + session.products.len();
    sums + session.claims.len() + usize::from(session.table.is_some())
}

/// Takes a claim out: the claim of this kind with this number.
fn omit(session: &mut Session<MaliciousProver>, kind: &str, number: usize) {
    match kind {
        "constraint" => drop(session.constraints.remove(number)),
        "product" => drop(session.products.remove(number)),
        "column claim" => drop(session.claims.remove(number)),
        "table claim" => session.table = None,
        _ => panic!("{kind}"),
    }
}

fn copy<'a>((session, link): &Run<'a>) -> Run<'a> {
    let claim = |claim: &Claim| Claim {
        functional: claim.functional.clone(),
        columns: claim.columns.clone(),
        value: claim.value.clone(),
    };
    let table = |claim: &TableClaim<'a>| TableClaim {
        table: claim.table,
        factors: claim.factors.clone(),
        functional: claim.functional.clone(),
        column: claim.column,
        value: claim.value.clone(),
    };
    let secret = |secret: &IndexLinkSecret<'a>| IndexLinkSecret {
        hidden_queries: secret.hidden_queries.clone(),
        blindings: secret.blindings.clone(),
        index: secret.index,
    };
    let session = Session {
        transcript: session.transcript.clone(),
        channel: session.channel.copy(),
        row_variables: session.row_variables,
        low_memory: session.low_memory,
        messages: session.messages.clone(),
        singles: session.singles.clone(),
        constraints: session.constraints.clone(),
        products: session.products.clone(),
        columns: session.columns.clone(),
        claims: session.claims.iter().map(claim).collect(),
        table: session.table.as_ref().map(table),
        pinned: session.pinned.clone(),
    };
    let link = IndexLink {
        index: link.index,
        queries: link.queries.clone(),
        secret: link.secret.as_ref().map(secret),
        claims: link.claims.clone(),
        scores: link.scores.clone(),
    };
    (session, link)
}
