//! One run of the argument, by any party: `docs/scan/session.md`.
//!
//! The protocols of the upper layers are written once, against [`Session`]. Everything that a prover of the bare
//! protocol would send in the clear it sends in Pedersen commitments, and every check that its verifier would
//! make becomes a linear constraint, a product, or a linear claim about a committed column. [`crate::closing`]
//! then proves all of these at once.
//!
//! ```
//! use ragaudit_scan_protocol::expr::Expr;
//! use ragaudit_scan_protocol::session::Session;
//! use ragaudit_scan_protocol::transcript::Transcript;
//! use ragaudit_scan_protocol::verifier::Verifier;
//!
//! // A verifier's side: a hidden value that is claimed to be its own square. Of no proof it reads no message.
//! let mut session: Session<Verifier> = Session::verifier(Transcript::new("example"), 2, b"");
//! assert!(session.send_one("bit", None).is_err());
//!
//! // The words of a proof are points; what they hide is claimed to the closing, whose equations have to hold.
//! let words = [[0; 31].as_slice(), &[1]].concat().repeat(100);
//! let mut session: Session<Verifier> = Session::verifier(Transcript::new("example"), 2, &words);
//! let bit = Expr::from(session.send_one("bit", None)?);
//! session.constrain_product("bit", bit.clone(), bit.clone(), bit);
//! assert!(session.close(None).is_err());
//! # Ok::<(), ragaudit_scan_protocol::Error>(())
//! ```
use std::sync::Arc;

use crate::channel::{Channel, Proves, Verifies};
pub use crate::claims::{Bound, Claim, Column, ColumnId, Functional, Opening, Pinned, TableClaim};
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::{Fr, G1Affine, G1Projective, WIDTH};
use crate::mle::Weight;
use crate::numbers::log2_ceil;
use crate::prover::{Known, ProverWitness, Recomputed};
use crate::transcript::Transcript;

pub struct Session<'a, C: Channel> {
    pub transcript: Transcript<C::Oracle>,
    pub channel: C,
    /// Columns are committed in rows of 2^row_variables.
    pub row_variables: usize,
    /// The prover recomputes its largest tables when it needs them: the same proof in less memory and more time.
    pub low_memory: Option<Recomputed>,
    pub messages: Vec<G1Affine>,
    pub singles: Vec<G1Affine>,
    pub constraints: Vec<(&'static str, Expr)>,
    pub products: Vec<(&'static str, [Expr; 3])>,
    pub columns: Vec<Column>,
    pub claims: Vec<Claim>,
    /// At most one in a run.
    pub table: Option<TableClaim<'a>>,
    /// Columns of a statement with rows of another length than those that the run commits to.
    pub pinned: Option<Pinned>,
}

impl<C: Proves> Session<'_, C> {
    /// `transcript` has absorbed the whole statement; `witness` is all that determines the private values.
    pub fn prover(
        transcript: Transcript<C::Oracle>,
        row_variables: usize,
        witness: &[u8],
    ) -> Result<Self> {
        let channel = C::start(&transcript, witness)?;
        Ok(Self::new(transcript, row_variables, channel))
    }
}

impl<'p, C: Verifies<'p>> Session<'_, C> {
    /// `transcript` has absorbed the whole statement.
    pub fn verifier(
        transcript: Transcript<C::Oracle>,
        row_variables: usize,
        proof: &'p [u8],
    ) -> Self {
        Self::new(transcript, row_variables, C::start(proof))
    }
}

impl<'a, C: Channel> Session<'a, C> {
    pub fn new(transcript: Transcript<C::Oracle>, row_variables: usize, channel: C) -> Self {
        Self {
            transcript,
            channel,
            row_variables,
            low_memory: None,
            messages: Vec::new(),
            singles: Vec::new(),
            constraints: Vec::new(),
            products: Vec::new(),
            columns: Vec::new(),
            claims: Vec::new(),
            table: None,
            pinned: None,
        }
    }

    /// The prover's knowledge; None for every other party.
    pub fn known(&self) -> Option<Known<'_>> {
        let secrets = self.channel.secrets()?;
        Some(Known::new(secrets, &self.columns))
    }

    /// Sends a hiding commitment, or receives one.
    pub fn commitment(
        &mut self,
        label: &str,
        make: impl FnOnce(&mut dyn ProverWitness) -> G1Projective,
    ) -> Result<G1Affine> {
        let point = self.channel.commitment(label, make)?;
        self.transcript.point(label, &point);
        Ok(point)
    }

    /// Sends a point that is already made, or receives one.
    pub fn point(&mut self, label: &str, point: Option<G1Projective>) -> Result<G1Affine> {
        let point = self.channel.point(label, point)?;
        self.transcript.point(label, &point);
        Ok(point)
    }

    /// Sends a scalar in the clear, or receives one: only for responses, which are uniform.
    pub fn response(&mut self, label: &str, value: Option<Fr>) -> Result<Fr> {
        let scalar = self.channel.scalar(value)?;
        self.transcript.scalar(label, &scalar);
        Ok(scalar)
    }

    /// Sends `count` hidden values, which the prover gives.
    pub fn send(&mut self, label: &str, count: usize, values: Option<&[Fr]>) -> Result<Vec<Var>> {
        let mut vars = Vec::with_capacity(count);
        for start in (0..count).step_by(WIDTH) {
            let length = WIDTH.min(count - start);
            let run = values.map_or(&[][..], |v| &v[start..start + length]);
            let point = self.commitment(label, |secrets| secrets.message(run))?;
            let first = self.messages.len() * WIDTH;
            self.messages.push(point);
            vars.extend((first..first + length).map(Var::Message));
        }
        Ok(vars)
    }

    /// Sends one hidden value.
    pub fn send_one(&mut self, label: &str, value: Option<Fr>) -> Result<Var> {
        Ok(self.send(label, 1, value.as_ref().map(std::slice::from_ref))?[0])
    }

    /// Sends one hidden value in a commitment of its own, value U + blinding H.
    pub fn send_single(&mut self, label: &str, value: Option<Fr>) -> Result<Var> {
        let point = self.commitment(label, |secrets| secrets.single(value.unwrap_or_default()))?;
        self.singles.push(point);
        Ok(Var::Single(self.singles.len() - 1))
    }

    pub fn challenge(&mut self, label: &str) -> Fr {
        self.transcript.challenge(label)
    }

    pub fn challenges(&mut self, label: &str, count: usize) -> Vec<Fr> {
        self.transcript.challenges(label, count)
    }

    /// Claims that an expression is 0.
    pub fn constrain(&mut self, label: &'static str, expr: Expr) {
        if self.channel.claims("constraint", Some(&label), &[&expr]) {
            self.constraints.push((label, expr));
        }
    }

    /// Claims left * right = output.
    pub fn constrain_product(
        &mut self,
        label: &'static str,
        left: Expr,
        right: Expr,
        output: Expr,
    ) {
        let about = [&left, &right, &output];
        if self.channel.claims("product", Some(&label), &about) {
            self.products.push((label, [left, right, output]));
        }
    }

    /// Commits to columns of 2^variables arbitrary values each, and sends the commitments.
    pub fn commit(
        &mut self,
        label: &str,
        variables: &[usize],
        values: Option<Vec<Vec<i64>>>,
    ) -> Result<Vec<ColumnId>> {
        let bounded: Vec<(usize, Bound)> = variables.iter().map(|v| (1 << v, Bound::ANY)).collect();
        self.commit_bounded(label, &bounded, values)
    }

    /// Commits to columns, each given as (entries, bound). A column has only the rows that its entries need; all later entries
    /// are zero. The bounds determine the time of the commitment. Other claims show the verifier that values are within their
    /// bounds.
    pub fn commit_bounded(
        &mut self,
        label: &str,
        columns: &[(usize, Bound)],
        values: Option<Vec<Vec<i64>>>,
    ) -> Result<Vec<ColumnId>> {
        let row_variables = self.row_variables;
        let rows_of = |entries: usize| entries.div_ceil(1 << row_variables);
        let beyond = |(v, (_, bound)): (&Vec<i64>, &(usize, Bound))| !bound.holds(v);
        if values.iter().flatten().zip(columns).any(beyond) {
            let what = format!("a value of the column \"{label}\" lies beyond its bound");
            self.channel.refuse(what)?;
        }
        let secrets = self.channel.secrets_mut().zip(values);
        let result =
            secrets.map(|(secrets, values)| secrets.columns(columns, values, row_variables));
        let mut result = result.map(Vec::into_iter);
        let mut ids = Vec::new();
        for (entries, _) in columns {
            let column = result.as_mut().and_then(Iterator::next);
            let rows = (0..rows_of(*entries))
                .map(|a| {
                    let ready = column.as_ref().map(|(rows, _)| rows[a]);
                    self.commitment(label, |_| ready.unwrap_or_default().into())
                })
                .collect::<Result<Vec<_>>>()?;
            ids.push(self.add_column(Column {
                variables: log2_ceil(*entries),
                rows,
                opening: column.map(|(_, opening)| Arc::new(opening)),
            }));
        }
        Ok(ids)
    }

    /// Adds a column whose commitments the statement already holds.
    pub fn add_column(&mut self, column: Column) -> ColumnId {
        self.columns.push(column);
        ColumnId(self.columns.len() - 1)
    }

    /// States that columns of a statement have rows of the length of [`Self::pinned`], if there is one.
    pub fn pin(&mut self, columns: &[ColumnId]) {
        if let Some(pinned) = &mut self.pinned {
            pinned.columns.extend(columns);
        }
    }

    /// Claims a linear functional of columns.
    pub fn claim(&mut self, weight: Weight, columns: Vec<(ColumnId, Fr)>, value: Expr) {
        self.claim_functional(Functional::Weight(weight), columns, value);
    }

    /// [`Self::claim`] for any functional.
    pub fn claim_functional(
        &mut self,
        functional: Functional,
        columns: Vec<(ColumnId, Fr)>,
        value: Expr,
    ) {
        if self.channel.claims("column claim", None, &[&value]) {
            self.claims.push(Claim {
                functional,
                columns,
                value,
            });
        }
    }

    /// Claims the run's one functional that is a combination of a published table's columns.
    pub fn claim_table(&mut self, claim: TableClaim<'a>) {
        if self.channel.claims("table claim", None, &[&claim.value]) {
            self.table = Some(claim);
        }
    }
}
