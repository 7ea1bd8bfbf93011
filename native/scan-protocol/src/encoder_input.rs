//! The input of the integer encoder from hidden tokens: word rows, place rows and the LayerNorm of the embeddings.
//! `docs/scan/encoder-input.md`.
//!
//! No window uses this run yet, and [`crate::protocol::name`] does not cover it.
use std::sync::Arc;

use ark_ff::Field;

use crate::attention::Marks;
use crate::block::*;
use crate::channel::{Channel, Verifies};
use crate::embed::call_of_tokens;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::lookup::{Entry, QueryClaim};
use crate::mle::{eq_table, Weight};
use crate::numbers::{from_small, log2_ceil, power_of_two};
use crate::poseidon::{permutations, Call};
use crate::prover::Known;
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{plain, sumcheck, Gate};

pub mod statement;

pub use statement::{Columns, Embeddings, InputStatement, Shape, Vectors};

/// The openings of the embeddings' columns, which are public: a verifier needs none.
#[derive(Clone)]
pub struct TableOpenings {
    pub words: Vec<Arc<Opening>>,
    pub positions: Vec<Arc<Opening>>,
}

/// A prover's values before the first challenge.
pub struct Private<'s> {
    pub table: TableOpenings,
    /// The openings of x, one a column, and of the marks.
    pub outputs: Vec<Arc<Opening>>,
    pub marks: Arc<Opening>,
    pub columns: Vec<Vec<i64>>,
    /// The salt, the token of each place, and the hidden limbs of each place.
    pub hidden: &'s [Fr],
    /// The top limbs of the LayerNorm's remainders, one list a block.
    pub norm_tops: Tops,
    pub norm: NormPrivate<'s>,
}

/// Verifies a proof of the encoder's input.
pub fn verify_input<'p, V: Verifies<'p>>(
    statement: &InputStatement,
    proof: &'p [u8],
) -> Result<()> {
    statement.check()?;
    let transcript = statement.transcript();
    let session: Session<V> = Session::verifier(transcript, statement.row_variables(), proof);
    let equation: Equation = input_protocol(session, statement, None)?.into();
    equation.verify::<V::Engine>(&[])
}

/// The columns of the word rows and of the place rows.
pub struct Table {
    words: Vec<ColumnId>,
    positions: Vec<ColumnId>,
}

impl Table {
    /// Adds the columns of the embeddings, whose commitments have no blinding.
    pub fn add<C: Channel>(
        session: &mut Session<C>,
        embeddings: &Embeddings,
        openings: Option<TableOpenings>,
    ) -> Self {
        let shape = &embeddings.shape;
        let (words, positions) = openings.map(|o| (o.words, o.positions)).unzip();
        let of_places = log2_ceil(shape.places) + shape.width_blocks().variables;
        let of_words = shape.token_bits();
        let words = add_columns(session, of_words, &embeddings.words, words);
        let positions = add_columns(session, of_places, &embeddings.positions, positions);
        session.pin(&words);
        session.pin(&positions);
        Self { words, positions }
    }
}

/// The hidden tokens of all places: 0 in unused places.
pub struct Tokens {
    tokens: Vec<Expr>,
    /// The lower limb of V - 1 - t, if there is one, and the top limb.
    slacks: Vec<Vec<Expr>>,
}

impl Tokens {
    /// Sends the salt of each text, the tokens of all places and their limbs. Returns the calls that compute each text's hash from
    /// them, for [`permutations`].
    pub fn send<C: Channel>(
        session: &mut Session<C>,
        shape: &Shape,
        texts: Texts,
        marks: &Marks,
        (hashes, hidden): (&[Fr], Option<&[Fr]>),
    ) -> Result<(Self, Vec<Call>)> {
        let (count, places) = (texts.count, texts.all());
        let below = shape.hidden_limbs();
        let vars = session.send("tokens", count + (1 + below) * places, hidden)?;
        let exprs: Vec<Expr> = vars.into_iter().map(Expr::from).collect();
        let (salts, rest) = exprs.split_at(count);
        let (tokens, limbs) = rest.split_at(places);
        let used = marks.exprs();
        let of_texts = tokens.chunks(texts.places).zip(used.chunks(texts.places));
        let mut calls = Vec::new();
        for ((tokens, used), (salt, hq)) in of_texts.zip(salts.iter().zip(hashes)) {
            // Without a used place, no place has the row that unused places repeat.
            session.constrain("first place", used[0].clone() - 1u64.into());
            calls.push(call_of_tokens::<C::Engine>(salt, tokens, used, *hq));
        }

        let last = Fr::from(shape.vocabulary as u64 - 1);
        let mut top: Vec<Expr> = tokens
            .iter()
            .map(|token| Expr::from(last) - token.clone())
            .collect();
        let mut slacks = Vec::new();
        for (k, limb) in limbs.chunks(places).enumerate() {
            for (top, limb) in top.iter_mut().zip(limb) {
                top.add_scaled(limb, -power_of_two(LIMB_BITS * k));
            }
            slacks.push(limb.to_vec());
        }
        let scale = power_of_two(LIMB_BITS * below).inverse();
        let scale = scale.expect("a power of two");
        slacks.push(top.into_iter().map(|expr| expr * scale).collect());
        let tokens = tokens.to_vec();
        Ok((Self { tokens, slacks }, calls))
    }
}

/// The input whose lookups are claimed.
pub struct Input<'i> {
    pub embeddings: &'i Embeddings,
    pub texts: Texts,
    /// The columns of x.
    pub x: &'i [ColumnId],
    pub table: &'i Table,
    pub columns: &'i Columns<ColumnId>,
    pub marks: &'i Marks,
    pub tokens: &'i Tokens,
}

/// The protocol, for both parties.
pub fn input_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a InputStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    statement.check()?;
    let (embeddings, places) = (statement.embeddings, statement.places);
    let (shape, texts) = (&embeddings.shape, Texts::one(places));

    let marks = session.add_column(Column {
        variables: log2_ceil(places),
        rows: vec![statement.marks],
        opening: secret.as_ref().map(|s| s.marks.clone()),
    });
    let variables = log2_ceil(places) + shape.width_blocks().variables;
    let outputs = secret.as_mut().map(|s| std::mem::take(&mut s.outputs));
    let x = add_columns(&mut session, variables, statement.outputs, outputs);
    let openings = secret.as_ref().map(|s| s.table.clone());
    let table = Table::add(&mut session, embeddings, openings);
    let mut bounds = Columns::bounds(shape, places).in_order();
    let (activations, limbs) = (places * shape.width, shape.limbs_looked_up(places));
    let of_tables = SharedMultiplicities::bounds(activations, &shape.widths(), limbs);
    bounds.extend(of_tables.in_order());
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("input columns", &bounds, values)?;
    let mut ids = ids.into_iter();
    let columns = Columns::named(&mut ids, shape);
    let multiplicities = SharedMultiplicities::named(ids);
    let marks = Marks::of_column(&mut session, marks, texts)?;
    let hidden = secret.as_ref().map(|s| s.hidden);
    let hashes = [statement.hq];
    let (tokens, calls) = Tokens::send(&mut session, shape, texts, &marks, (&hashes, hidden))?;

    let input = Input {
        embeddings,
        texts,
        x: &x,
        table: &table,
        columns: &columns,
        marks: &marks,
        tokens: &tokens,
    };
    let (tops, norm) = secret.map(|s| (s.norm_tops, s.norm)).unzip();
    let mut segments = Segments::default();
    input.look_up(&mut segments, tops);
    segments.tables(multiplicities, &shape.widths());
    let claims = segments.claim(&mut session)?;
    input.claim(&mut session, &claims, norm.as_ref())?;
    permutations(&mut session, None, calls)?;
    session.close(None)
}

impl Input<'_> {
    fn shape(&self) -> &Shape {
        &self.embeddings.shape
    }

    /// Appends the run's own segments in the order of the page, with the range of x, and without tables.
    pub fn look_up(&self, segments: &mut Segments, tops: Option<Tops>) {
        let (shape, columns) = (self.shape(), self.columns);
        let of_places = self.texts.variables();
        for (digit, column) in shape.digits().into_iter().zip(columns.digits) {
            segments.look_up(of_places + digit, BIT as u64, vec![one(column)]);
        }
        let hidden = |exprs: Vec<Expr>| vec![Entry::Hidden(exprs)];
        segments.look_up(of_places, BIT as u64, hidden(self.marks.exprs()));
        let widths = limb_widths(shape.token_bits()).into_iter();
        for (width, limb) in widths.zip(&self.tokens.slacks) {
            segments.look_up(of_places, width as u64, hidden(limb.clone()));
        }
        let blocks = shape.width_blocks();
        let variables = of_places + blocks.variables;
        segments.activations(variables, self.x);
        let (limbs, bits) = (&columns.norm_limbs, shape.norm_shift());
        segments.remainder(variables, limbs, bits, tops, blocks.blocks);
        let of_roots = log2_ceil(self.texts.all() * ROOT_STRIDE);
        segments.look_up(of_roots, LIMB_BITS as u64, vec![one(columns.roots)]);
    }

    /// The claims after the lookups, with the claims about the derived entries.
    pub fn claim<C: Channel>(
        &self,
        session: &mut Session<C>,
        derived: &[QueryClaim],
        secret: Option<&NormPrivate>,
    ) -> Result<()> {
        let lambda = session.challenge("input blocks");
        let powers = powers(lambda, self.shape().width_blocks().blocks);
        let deviation = Normed {
            norm: &self.embeddings.norm,
            places: self.texts.all(),
            outputs: self.x,
            limbs: &self.columns.norm_limbs,
            roots: self.columns.roots,
            tops: derived,
            powers: &powers,
        }
        .reduce(session, secret)?;
        self.rows(session, deviation)?;
        self.digits(session)
    }

    /// sum over j of h_j r_j at a point of places: each used place has the sum of its token's word row and its own place row,
    /// each other place the row of unused places.
    fn rows<C: Channel>(&self, session: &mut Session<C>, deviation: Deviation) -> Result<()> {
        let factors = &deviation.centred[..];
        let [low, high] = self.shape().digits();
        let of_unused = dot(&self.embeddings.unused, factors);
        let unused = Expr::from(Fr::ONE) - self.marks.at(&deviation.place);
        let claim = deviation.value - unused * of_unused;
        let words: Vec<(ColumnId, Fr)> = self
            .table
            .words
            .iter()
            .copied()
            .zip(factors.to_vec())
            .collect();

        // F: one value for each token.
        let folded = session.known().map(|known| {
            let mut folded = known.entries(&words);
            folded.resize(1 << (low + high), Fr::default());
            folded
        });
        let (mut tau, claim) = plain(low, claim);
        tau.extend(&deviation.place);
        let tables = session.known().zip(folded.as_ref()).map(|(known, folded)| {
            let digits = |k: usize| known.entries(&[(self.columns.digits[k], Fr::ONE)]);
            let rows = digits(1);
            let rows = rows
                .chunks_exact(1 << high)
                .zip(self.place_values(&known, factors));
            let chosen = rows.flat_map(|(row, here)| {
                let mut chosen = vec![here; 1 << low];
                for (run, mark) in folded.chunks_exact(1 << low).zip(row) {
                    let pairs = chosen.iter_mut().zip(run);
                    pairs.for_each(|(sum, f)| *sum += *f * mark);
                }
                chosen
            });
            let chosen = chosen.collect();
            vec![digits(0), chosen]
        });
        let gate = Gate::Product;
        let reduced = sumcheck(session, "lower digits", &tau, claim, 2, tables, gate)?;
        let (of_low, place) = reduced.point.split_at(low);
        let vars = session.send("lower digits", 2, reduced.finals.as_deref())?;
        let [digit, row] = [0, 1].map(|i| Expr::from(vars[i]));
        session.constrain_product("lower digits", digit.clone(), row.clone(), reduced.claim);
        let here = Weight::evaluation(&reduced.point);
        session.claim(here, vec![(self.columns.digits[0], Fr::ONE)], digit);

        let of_place = self.place_row(session, place, factors)?;
        let (tau, claim) = plain(high, row - of_place);
        let tables = session.known().zip(folded).map(|(known, folded)| {
            let eq = eq_table(place);
            let mut digits = vec![Fr::default(); 1 << high];
            let rows = known.column(self.columns.digits[1]).chunks_exact(1 << high);
            for (row, e) in rows.zip(eq) {
                let pairs = digits.iter_mut().zip(row);
                pairs.for_each(|(sum, mark)| *sum += from_small(*mark) * e);
            }
            let eq = eq_table(of_low);
            let runs = folded.chunks_exact(1 << low);
            vec![
                digits,
                runs.map(|run| known.secrets.inner(run, &eq)).collect(),
            ]
        });
        let reduced = sumcheck(session, "upper digits", &tau, claim, 2, tables, gate)?;
        let vars = session.send("upper digits", 2, reduced.finals.as_deref())?;
        let [digit, word] = [0, 1].map(|i| Expr::from(vars[i]));
        session.constrain_product("upper digits", digit.clone(), word.clone(), reduced.claim);
        let here = Weight::evaluation(&[&reduced.point, place].concat());
        session.claim(here, vec![(self.columns.digits[1], Fr::ONE)], digit);
        let here = Weight::evaluation(&[of_low, &reduced.point].concat());
        session.claim(here, words, word);
        Ok(())
    }

    /// sum over j of h_j times component j of each place row, once for each text.
    fn place_values(&self, known: &Known, factors: &[Fr]) -> Vec<Fr> {
        let entries = self.shape().width_blocks().entries();
        let mut sums = vec![Fr::default(); self.texts.places];
        for (id, factors) in self.table.positions.iter().zip(factors.chunks(entries)) {
            let rows = known.column(*id).chunks_exact(entries);
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum += dot(row, factors);
            }
        }
        sums.repeat(self.texts.count)
    }

    /// The extension of those values at a point of places: a value for each block, each a functional of its column. All texts have
    /// the same place rows, so the coordinates of the text have no effect.
    fn place_row<C: Channel>(
        &self,
        session: &mut Session<C>,
        place: &[Fr],
        factors: &[Fr],
    ) -> Result<Expr> {
        let blocks = self.shape().width_blocks();
        let columns = self.table.positions.iter();
        let claims: Vec<(Weight, Vec<(ColumnId, Fr)>)> = columns
            .zip(factors.chunks(blocks.entries()))
            .map(|(id, factors)| {
                let weight = Weight {
                    point: place[..self.texts.of_places()].to_vec(),
                    coefficients: factors.to_vec(),
                    items: self.texts.places,
                };
                (weight, vec![(*id, Fr::ONE)])
            })
            .collect();
        let values = session.known().map(|known| {
            let values = claims
                .iter()
                .map(|(weight, column)| known.functional(weight, column));
            values.collect::<Vec<Fr>>()
        });
        let vars = session.send("place rows", claims.len(), values.as_deref())?;
        let mut sum = Expr::zero();
        for ((weight, column), var) in claims.into_iter().zip(vars) {
            sum.add_term(var, Fr::ONE);
            session.claim(weight, column, var.into());
        }
        Ok(sum)
    }

    /// Each row of the digits' columns has as many entries 1 as the place's mark says, at the digits of its token.
    fn digits<C: Channel>(&self, session: &mut Session<C>) -> Result<()> {
        let point = session.challenges("digits", self.texts.variables());
        let eq = eq_table(&point);
        let [low, high] = self.shape().digits();
        let numbers = |digit: usize, first: Fr, step: Fr| Weight {
            point: point.clone(),
            coefficients: (0..1u64 << digit)
                .map(|x| first + step * Fr::from(x))
                .collect(),
            items: self.texts.all(),
        };
        let [lower, upper] = self.columns.digits.map(|id| vec![(id, Fr::ONE)]);
        let value = session.known().map(|known| {
            let weight = numbers(low, Fr::default(), Fr::ONE);
            known.functional(&weight, &lower)
        });
        let number: Var = session.send_one("digits", value)?;
        let mu = session.challenge("digits");
        let used = self.marks.at(&point) * mu;
        let of_low = used.clone() + number.into();
        session.claim(numbers(low, mu, Fr::ONE), lower, of_low);
        let tokens = Expr::combination(self.tokens.tokens.iter().zip(eq));
        let of_high = used + tokens - number.into();
        session.claim(numbers(high, mu, power_of_two(low)), upper, of_high);
        Ok(())
    }
}
