//! One run of the argument, by either party: `docs/scan/session.md`.
//!
//! The protocols of the upper layers are written once, against [`Session`]. Everything that a prover of the bare
//! protocol would send in the clear it sends in Pedersen commitments, and every check that its verifier would
//! make becomes a linear constraint, a product, or a linear claim about a committed column. [`crate::closing`]
//! then proves all of these at once.
use std::sync::Arc;

use ark_bn254::Fq;
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::field::from_wide;
use ragaudit_core::g1::normalize;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::columns::{self, Bound};
use crate::error::{Error, Result};
use crate::expr::{Expr, Var};
use crate::group::{
    decode_each, decode_scalar, encode_point, encode_scalar, fixed_sum, tables, Fr, G1Affine,
    G1Projective, ENCODED, NO_POINT, WIDTH,
};
use crate::hooks::{Hooks, Party, Simulator};
use crate::index::IndexCommitment;
use crate::mle::Weight;
use crate::numbers::log2_ceil;
use crate::transcript::Transcript;

/// A column's private side: small integers in rows of equal length, each row with its blinding.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Opening {
    pub values: Vec<i64>,
    pub blindings: Vec<Fr>,
}

/// A committed column of at most 2^variables small integers, zero beyond its rows.
#[derive(Clone)]
pub struct Column {
    pub variables: usize,
    /// Row commitments; none for the column that the index link commits to.
    pub rows: Vec<G1Affine>,
    pub opening: Option<Arc<Opening>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnId(pub usize);

/// <weight, sum of factors_i columns_i> = value.
pub struct Claim {
    pub weight: Weight,
    pub columns: Vec<(ColumnId, Fr)>,
    pub value: Expr,
}

/// <F, column> = value, where F = sum of factors_j T_j for the columns T_j of a published table, committed to without
/// blinding.
pub struct TableClaim<'a> {
    pub table: &'a IndexCommitment,
    /// One for each column of the table.
    pub factors: Vec<Fr>,
    /// F, of whoever has the table itself.
    pub functional: Option<Vec<Fr>>,
    pub column: ColumnId,
    pub value: Expr,
}

/// Nonces: operating-system randomness hashed with witness and statement, so that a weak generator alone does
/// not reveal them, and one witness never gives them twice.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Nonces {
    key: [u8; 32],
    counter: u64,
}

impl Nonces {
    pub fn new(transcript: &Transcript, witness: &[u8]) -> Result<Self> {
        let mut seed = [0u8; 64];
        getrandom::fill(&mut seed).map_err(|e| Error::Randomness(e.to_string()))?;
        Party::randomness(&mut seed);
        let key = Sha256::new()
            .chain_update(b"rag-audit/scan/v1/nonces")
            .chain_update(seed)
            .chain_update(transcript.digest())
            .chain_update(witness)
            .finalize()
            .into();
        seed.zeroize();
        Ok(Self { key, counter: 0 })
    }

    pub fn draw(&mut self) -> Fr {
        let mut wide = [0u8; 64];
        for half in wide.chunks_exact_mut(32) {
            let hash = Sha256::new()
                .chain_update(self.key)
                .chain_update(self.counter.to_le_bytes());
            half.copy_from_slice(&hash.finalize());
            self.counter += 1;
        }
        let out = from_wide(&wide);
        wide.zeroize();
        out
    }

    pub fn draw_many(&mut self, count: usize) -> Vec<Fr> {
        (0..count).map(|_| self.draw()).collect()
    }
}

/// What only the prover has.
pub struct Prover {
    pub(crate) nonces: Nonces,
    /// Hidden values by slot; a message's unused places hold 0.
    pub(crate) values: Vec<Fr>,
    pub(crate) message_blindings: Vec<Fr>,
    pub(crate) singles: Vec<(Fr, Fr)>,
    pub(crate) out: Vec<u8>,
    /// Refuses to prove what does not hold. Cleared only by the tests' cheating provers.
    pub(crate) honest: bool,
}

impl Drop for Prover {
    fn drop(&mut self) {
        self.values.zeroize();
        self.message_blindings.zeroize();
        for (value, blinding) in &mut self.singles {
            value.zeroize();
            blinding.zeroize();
        }
    }
}

/// Proof bytes still to be read.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The points that the words from `first` on encode.
    decoded: Vec<Option<G1Affine>>,
    first: usize,
}

/// Words that are decoded together. What they hold that is no point is decoded too, and not used.
const DECODED: usize = 64;

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            decoded: Vec::new(),
            first: 0,
        }
    }

    fn take(&mut self) -> Result<[u8; ENCODED]> {
        let end = self.at + ENCODED;
        let slice = self.bytes.get(self.at..end).ok_or(Error::Malformed {
            at: self.at,
            reason: "the proof ends early",
        })?;
        self.at = end;
        let mut out = [0; ENCODED];
        out.copy_from_slice(slice);
        Ok(out)
    }

    fn point(&mut self) -> Result<G1Affine> {
        let at = self.at;
        self.take()?;
        if (at - self.first) / ENCODED >= self.decoded.len() {
            let (words, _) = self.bytes[at..].as_chunks();
            self.decoded = decode_each(&words[..words.len().min(DECODED)]);
            self.first = at;
        }
        self.decoded[(at - self.first) / ENCODED].ok_or(Error::Malformed {
            at,
            reason: NO_POINT,
        })
    }

    fn scalar(&mut self) -> Result<Fr> {
        let at = self.at;
        decode_scalar(&self.take()?).ok_or(Error::Malformed {
            at,
            reason: "this is not a canonical scalar",
        })
    }

    pub(crate) fn end(&self) -> Result<()> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(Error::Malformed {
            at: self.at,
            reason: "there are bytes after the proof's end",
        })
    }
}

pub enum Role<'a> {
    Prover(Prover),
    Verifier(Reader<'a>),
    /// The tests' zero-knowledge simulator.
    Simulator(<Party as Hooks>::Simulator),
}

pub struct Session<'a> {
    pub transcript: Transcript,
    pub role: Role<'a>,
    /// Columns are committed in rows of 2^row_variables.
    pub row_variables: usize,
    /// The prover makes its largest tables again where they are needed, so many blocks of leaves at a time, instead of
    /// keeping them: the same proof, in less memory and more time.
    pub low_memory: Option<usize>,
    pub(crate) messages: Vec<G1Affine>,
    pub(crate) singles: Vec<G1Affine>,
    pub(crate) constraints: Vec<(&'static str, Expr)>,
    pub(crate) products: Vec<(&'static str, [Expr; 3])>,
    pub(crate) columns: Vec<Column>,
    pub(crate) claims: Vec<Claim>,
    /// At most one in a run.
    pub(crate) table: Option<TableClaim<'a>>,
}

impl<'a> Session<'a> {
    /// `transcript` has absorbed the whole statement; `witness` all that determines the private values.
    pub fn prover(transcript: Transcript, row_variables: usize, witness: &[u8]) -> Result<Self> {
        let nonces = Nonces::new(&transcript, witness)?;
        let prover = Prover {
            nonces,
            values: Vec::new(),
            message_blindings: Vec::new(),
            singles: Vec::new(),
            out: Vec::new(),
            honest: true,
        };
        Ok(Self::new(transcript, row_variables, Role::Prover(prover)))
    }

    pub fn verifier(transcript: Transcript, row_variables: usize, proof: &'a [u8]) -> Self {
        Self::new(
            transcript,
            row_variables,
            Role::Verifier(Reader::new(proof)),
        )
    }

    pub(crate) fn new(transcript: Transcript, row_variables: usize, role: Role<'a>) -> Self {
        Self {
            transcript,
            role,
            row_variables,
            low_memory: None,
            messages: Vec::new(),
            singles: Vec::new(),
            constraints: Vec::new(),
            products: Vec::new(),
            columns: Vec::new(),
            claims: Vec::new(),
            table: None,
        }
    }

    pub(crate) fn prover_mut(&mut self) -> Option<&mut Prover> {
        match &mut self.role {
            Role::Prover(prover) => Some(prover),
            _ => None,
        }
    }

    pub fn proving(&self) -> bool {
        matches!(self.role, Role::Prover(_))
    }

    /// Sends a point, or receives one.
    pub(crate) fn point(
        &mut self,
        label: &str,
        make: impl FnOnce(&mut Prover) -> G1Projective,
    ) -> Result<G1Affine> {
        let point = match &mut self.role {
            Role::Prover(prover) => {
                let point = make(prover);
                put_point(label, &mut prover.out, point)
            }
            Role::Verifier(reader) => reader.point()?,
            Role::Simulator(simulator) => {
                let mut point = G1Projective::ZERO;
                tables().h.add_multiple(&mut point, &simulator.draw(1)[0]);
                put_point(label, simulator.out(), point)
            }
        };
        self.transcript.point(label, &point);
        Ok(point)
    }

    /// Sends a point that is already made, or receives one.
    pub(crate) fn send_point(
        &mut self,
        label: &str,
        point: Option<G1Projective>,
    ) -> Result<G1Affine> {
        let point = match (&mut self.role, point) {
            (Role::Verifier(reader), _) => reader.point()?,
            (Role::Prover(Prover { out, .. }), point) => {
                put_point(label, out, point.unwrap_or_default())
            }
            (Role::Simulator(simulator), point) => {
                put_point(label, simulator.out(), point.unwrap_or_default())
            }
        };
        self.transcript.point(label, &point);
        Ok(point)
    }

    /// Sends a scalar in the clear, or receives one: only for responses, which are uniform.
    pub(crate) fn response(&mut self, label: &str, value: Option<Fr>) -> Result<Fr> {
        let scalar = value.unwrap_or_default();
        let scalar = match &mut self.role {
            Role::Verifier(reader) => reader.scalar()?,
            Role::Prover(Prover { out, .. }) => {
                out.extend(encode_scalar(&scalar));
                scalar
            }
            Role::Simulator(simulator) => {
                simulator.out().extend(encode_scalar(&scalar));
                scalar
            }
        };
        self.transcript.scalar(label, &scalar);
        Ok(scalar)
    }

    /// Sends `count` hidden values; the prover gives them, the verifier nothing.
    pub fn send(&mut self, label: &str, count: usize, values: Option<&[Fr]>) -> Result<Vec<Var>> {
        let mut vars = Vec::with_capacity(count);
        for start in (0..count).step_by(WIDTH) {
            let length = WIDTH.min(count - start);
            let point = self.point(label, |prover| {
                let run = values.map_or(&[][..], |v| &v[start..start + length]);
                let blinding = prover.nonces.draw();
                let parts = tables().g.iter().zip(run);
                let sum = fixed_sum(parts.chain([(&tables().h, &blinding)]));
                prover.values.extend(run);
                prover
                    .values
                    .resize(prover.values.len().div_ceil(WIDTH) * WIDTH, Fr::ZERO);
                prover.message_blindings.push(blinding);
                sum
            })?;
            let first = self.messages.len() * WIDTH;
            self.messages.push(point);
            vars.extend((first..first + length).map(Var::Message));
        }
        Ok(vars)
    }

    /// Sends one hidden value in a commitment of its own, value U + blinding H.
    pub fn send_single(&mut self, label: &str, value: Option<Fr>) -> Result<Var> {
        let point = self.point(label, |prover| {
            let pair = (value.unwrap_or_default(), prover.nonces.draw());
            prover.singles.push(pair);
            commit_single(pair)
        })?;
        self.singles.push(point);
        Ok(Var::Single(self.singles.len() - 1))
    }

    pub fn challenge(&mut self, label: &str) -> Fr {
        self.transcript.challenge(label)
    }

    pub fn challenges(&mut self, label: &str, count: usize) -> Vec<Fr> {
        self.transcript.challenges(label, count)
    }

    /// The value of an expression, for the prover.
    pub fn value(&self, expr: &Expr) -> Option<Fr> {
        match &self.role {
            Role::Prover(prover) => Some(expr.evaluate(|var| prover.value(var))),
            _ => None,
        }
    }

    /// Claims that an expression is 0.
    pub fn constrain(&mut self, label: &'static str, expr: Expr) {
        if !Party::claims("constraint", Some(&label)) {
            return;
        }
        self.constraints.push((label, expr));
    }

    /// Claims left * right = output.
    pub fn constrain_product(
        &mut self,
        label: &'static str,
        left: Expr,
        right: Expr,
        output: Expr,
    ) {
        if !Party::claims("product", Some(&label)) {
            return;
        }
        self.products.push((label, [left, right, output]));
    }

    /// Commits to columns of 2^variables values each, whatever they are, and sends the commitments.
    pub fn commit(
        &mut self,
        label: &str,
        variables: &[usize],
        values: Option<Vec<Vec<i64>>>,
    ) -> Result<Vec<ColumnId>> {
        let bounded: Vec<(usize, Bound)> = variables.iter().map(|v| (1 << v, Bound::ANY)).collect();
        self.commit_bounded(label, &bounded, values)
    }

    /// Commits to columns, each (entries, what its values are): only as many rows as the entries need, all zero beyond
    /// them. The bounds decide how long that takes; the verifier learns of a value beyond its bound from other claims.
    pub fn commit_bounded(
        &mut self,
        label: &str,
        columns: &[(usize, Bound)],
        values: Option<Vec<Vec<i64>>>,
    ) -> Result<Vec<ColumnId>> {
        if let (Role::Prover(prover), Some(values)) = (&self.role, &values) {
            let beyond = |(v, (_, bound)): (&Vec<i64>, &(usize, Bound))| !bound.holds(v);
            if prover.honest && values.iter().zip(columns).any(beyond) {
                let found = format!("a value of the column \"{label}\" lies beyond its bound");
                return Err(Error::Unsatisfied(found));
            }
        }
        let row_variables = self.row_variables;
        let rows_of = |entries: usize| entries.div_ceil(1 << row_variables);
        let made: Option<Vec<(Vec<G1Affine>, Opening)>> = self.prover_mut().map(|prover| {
            let values = values.unwrap_or_default().into_iter();
            let openings: Vec<Opening> = values
                .zip(columns)
                .map(|(values, (entries, _))| Opening {
                    values,
                    blindings: prover.nonces.draw_many(rows_of(*entries)),
                })
                .collect();
            let secrets: Vec<columns::Secret> = openings
                .iter()
                .zip(columns)
                .map(|(opening, (_, bound))| columns::Secret {
                    values: &opening.values,
                    blindings: &opening.blindings,
                    bound: *bound,
                })
                .collect();
            let points = columns::commit(&secrets, 1 << row_variables);
            points.into_iter().zip(openings).collect()
        });
        let mut made = made.map(Vec::into_iter);
        let mut ids = Vec::new();
        for (entries, _) in columns {
            let column = made.as_mut().and_then(Iterator::next);
            let rows = (0..rows_of(*entries))
                .map(|a| {
                    let ready = column.as_ref().map(|(rows, _)| rows[a]);
                    self.point(label, |_| ready.unwrap_or_default().into())
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

    /// Claims a linear functional of columns.
    pub fn claim(&mut self, weight: Weight, columns: Vec<(ColumnId, Fr)>, value: Expr) {
        if !Party::claims("column claim", None) {
            return;
        }
        self.claims.push(Claim {
            weight,
            columns,
            value,
        });
    }

    /// Claims the run's one functional that is made of a published table's columns.
    pub fn claim_table(&mut self, claim: TableClaim<'a>) {
        if !Party::claims("table claim", None) {
            return;
        }
        self.table = Some(claim);
    }

    /// The prover's values of a column.
    pub fn column_values(&self, id: ColumnId) -> Option<&[i64]> {
        self.columns[id.0]
            .opening
            .as_ref()
            .map(|o| o.values.as_slice())
    }
}

impl Prover {
    pub(crate) fn value(&self, var: Var) -> Fr {
        match var {
            Var::Message(slot) => self.values[slot],
            Var::Single(i) => self.singles[i].0,
        }
    }
}

fn put_point(label: &str, out: &mut Vec<u8>, point: G1Projective) -> G1Affine {
    let point = Party::point(label, point);
    // By an inversion whose time says nothing of the secrets, where one is needed.
    let point = match point.z == Fq::ONE {
        true => G1Affine::new_unchecked(point.x, point.y),
        false => normalize(&[point])[0],
    };
    out.extend(encode_point(&point));
    point
}

pub(crate) fn commit_single((value, blinding): (Fr, Fr)) -> G1Projective {
    fixed_sum([(&tables().u, &value), (&tables().h, &blinding)])
}
