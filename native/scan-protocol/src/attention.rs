//! One attention block of the integer encoder, with its residual and its LayerNorm: `docs/scan/attention.md`.
//!
//! No window uses this run yet, and [`crate::protocol::name`] does not cover it.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};

use crate::block::*;
use crate::channel::{Channel, Verifies};
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::lookup::{Count, Entry, QueryClaim};
use crate::mle::{eq_at, eq_table, evaluate_list, prefix, Weight};
use crate::numbers::{from_small, half, log2_ceil, power_of_two};
use crate::prover::Weighting;
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{plain, products, sumcheck, Gate};

pub mod statement;

use statement::*;
pub use statement::{AttentionStatement, Columns, Multiplicities, Shape, Vectors, Weights};

/// A prover's values before the first challenge.
pub struct Private<'s> {
    /// The openings of x and of y, one a column, and of the marks.
    pub inputs: Vec<Arc<Opening>>,
    pub outputs: Vec<Arc<Opening>>,
    pub marks: Arc<Opening>,
    pub columns: Vec<Vec<i64>>,
    pub derived: Derived,
    pub norm: NormPrivate<'s>,
}

/// A prover's values of the derived entries.
pub struct Derived {
    /// The mark of each score's key, in one block of heads.
    pub marks: Vec<i64>,
    /// The top limbs of each kind of remainder.
    pub tops: [Tops; 6],
}

/// Verifies a proof of one block.
pub fn verify_attention<'p, V: Verifies<'p>>(
    statement: &AttentionStatement,
    proof: &'p [u8],
) -> Result<()> {
    statement.check()?;
    let transcript = statement.transcript();
    let session: Session<V> = Session::verifier(transcript, statement.row_variables(), proof);
    let equation: Equation = attention_protocol(session, statement, None)?.into();
    equation.verify::<V::Engine>(&[])
}

/// The marks of the places: 1 for each used place, and 0 after the last one.
pub struct Marks {
    pub vars: Vec<Var>,
}

impl Marks {
    /// Sends the marks of a column, and claims that the used places of each text come first. The lookups of exp admit no other
    /// marks than 0 and 1, and the maxima need a used place.
    pub fn of_column<C: Channel>(
        session: &mut Session<C>,
        column: ColumnId,
        texts: Texts,
    ) -> Result<Self> {
        let known = session.known();
        let marks = known.map(|known| {
            let marks = known.column(column).iter();
            marks.map(|mark| from_small(*mark)).collect::<Vec<Fr>>()
        });
        let vars = session.send("marks", texts.all(), marks.as_deref())?;
        let pairs = vars.chunks(texts.places).flat_map(|text| text.windows(2));
        for pair in pairs {
            let [before, mark] = [pair[0], pair[1]].map(Expr::from);
            session.constrain_product("used places", before, mark.clone(), mark);
        }
        let marks = Self { vars };
        let point = session.challenges("marks", texts.variables());
        let here = Weight::evaluation(&point);
        session.claim(here, vec![(column, Fr::ONE)], marks.at(&point));
        Ok(marks)
    }

    pub fn exprs(&self) -> Vec<Expr> {
        self.vars.iter().copied().map(Expr::from).collect()
    }

    /// The marks' extension at a point.
    pub fn at(&self, point: &[Fr]) -> Expr {
        Expr::weighted(&self.vars, &eq_table(point))
    }
}

/// Appends the block's own segments in the order of the page, without the range of x and without tables.
pub fn look_up(
    segments: &mut Segments,
    shape: &Shape,
    texts: Texts,
    at: &Places,
    columns: &Columns<ColumnId>,
    derived: Option<Derived>,
) {
    let places = texts.all();
    let (of_scores, of_width) = (shape.score_variables(texts), shape.place_variables(places));
    let (marks, tops) = derived.map(|d| (d.marks, d.tops)).unzip();
    for (u, e) in columns.distances.iter().zip(&columns.exps) {
        let mark = Entry::Derived(marks.clone());
        segments.look_up(of_scores, TAG_EXP, vec![one(*u), one(*e), mark]);
    }
    let mut tops = tops.map(<[Tops; 6]>::into_iter);
    let (bits, blocks) = (shape.remainders(), shape.blocks_of_remainders());
    let mut remainder = |segments: &mut Segments, kind: usize| {
        let variables = if kind == 3 { of_scores } else { of_width };
        let tops = tops.as_mut().and_then(Iterator::next);
        let limbs = &columns.limbs[kind];
        segments.remainder(variables, limbs, bits[kind], tops, blocks[kind]);
    };
    (0..5).for_each(|kind| remainder(segments, kind));
    let projections = columns.projections.iter();
    for activations in projections.chain([&at.y]) {
        segments.activations(of_width, activations);
    }
    remainder(segments, 5);
    let of_heads = shape.head_variables(places);
    for heads in &columns.heads {
        segments.look_up(of_heads, LIMB_BITS as u64, vec![one(*heads)]);
    }
    let of_roots = log2_ceil(places * ROOT_STRIDE);
    segments.look_up(of_roots, LIMB_BITS as u64, vec![one(columns.roots)]);
}

/// Appends the table of exp: a row for each distance with the mark 1, and the row of unused places.
pub fn look_up_exp(segments: &mut Segments, exp: &[i64], of_exp: ColumnId) {
    let entries = vec![
        Entry::RowBelow(DISTANCES),
        Entry::Public(exp.to_vec()),
        Entry::Below(DISTANCES),
    ];
    let count = Count::TableFirst(of_exp, EXP_ROWS);
    segments.table(EXP_VARIABLES, TAG_EXP, entries, count);
}

/// The protocol, for both parties.
pub fn attention_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a AttentionStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    statement.check()?;
    let (weights, places) = (statement.weights, statement.places);
    let (shape, texts) = (&weights.shape, Texts::one(places));

    let openings = secret
        .as_mut()
        .map(|s| [&mut s.inputs, &mut s.outputs].map(std::mem::take));
    let marks = session.add_column(Column {
        variables: log2_ceil(places),
        rows: vec![statement.marks],
        opening: secret.as_ref().map(|s| s.marks.clone()),
    });
    let variables = shape.place_variables(places);
    let matrices = [statement.inputs, statement.outputs];
    let at = Places::add(&mut session, variables, matrices, openings);
    let matrices = weights.matrices.each_ref().map(|m| m.add(&mut session));
    let mut bounds = Columns::bounds(shape, texts).in_order();
    bounds.extend(Multiplicities::bounds(shape, texts).in_order());
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("attention columns", &bounds, values)?;
    let mut ids = ids.into_iter();
    let columns = Columns::named(&mut ids, shape);
    let multiplicities = Multiplicities::named(ids);
    let marks = Marks::of_column(&mut session, marks, texts)?;

    let (derived, norm) = secret.map(|s| (s.derived, s.norm)).unzip();
    let mut segments = Segments::default();
    segments.activations(variables, &at.x);
    look_up(&mut segments, shape, texts, &at, &columns, derived);
    look_up_exp(&mut segments, &weights.exp, multiplicities.of_exp);
    segments.tables(multiplicities.shared, &shape.widths());
    let claims = segments.claim(&mut session)?;
    let block = Block {
        weights,
        matrices: &matrices,
        texts,
        at: &at,
        columns: &columns,
        marks: &marks,
    };
    block.claim(&mut session, &claims, norm.as_ref())?;
    session.close(None)
}

/// A block whose lookups are claimed.
pub struct Block<'b> {
    pub weights: &'b Weights,
    /// The columns of the weights' matrices.
    pub matrices: &'b [Vec<ColumnId>; 4],
    pub texts: Texts,
    pub at: &'b Places,
    pub columns: &'b Columns<ColumnId>,
    pub marks: &'b Marks,
}

/// A point of heads, and the heads' factors there: those of the blocks' columns, at the lower coordinates.
struct HeadPoint<'p> {
    low: &'p [Fr],
    blocks: Vec<Fr>,
}

impl<'b> Block<'b> {
    fn shape(&self) -> &'b Shape {
        &self.weights.shape
    }

    /// The variables that number the places of one text.
    fn of_places(&self) -> usize {
        self.texts.of_places()
    }

    /// The point of a score's key from that of the score: (key, query, text) and more coordinates. The key and the query are places
    /// of one text.
    fn key_of(&self, score: &[Fr]) -> Vec<Fr> {
        let (key, rest) = score.split_at(self.of_places());
        [key, &rest[self.of_places()..self.texts.variables()]].concat()
    }

    /// The variables that number the heads.
    fn of_heads(&self) -> usize {
        log2_ceil(self.shape().heads)
    }

    fn head_point<'p>(&self, point: &'p [Fr]) -> HeadPoint<'p> {
        let heads = self.shape().head_blocks();
        let (low, high) = point.split_at(heads.variables);
        HeadPoint {
            low,
            blocks: (0..heads.blocks).map(|b| eq_at(high, b)).collect(),
        }
    }

    /// The coordinates of a text's number.
    fn corner(&self, text: usize) -> Vec<Fr> {
        let bit = |k: usize| Fr::from((text >> k & 1) as u64);
        (0..self.texts.of_texts()).map(bit).collect()
    }

    /// A functional of `count` limbs of each head at a point of places.
    fn limbs_at(&self, place: &[Fr], low: &[Fr], first: usize, count: usize) -> Weight {
        Weight {
            point: [place, low].concat(),
            coefficients: limb_factors(first, count, HEAD_STRIDE),
            items: self.texts.all() * self.shape().head_blocks().entries(),
        }
    }

    /// The block's claims after the lookups, with the claims about its derived entries.
    pub fn claim<C: Channel>(
        &self,
        session: &mut Session<C>,
        derived: &[QueryClaim],
        secret: Option<&NormPrivate>,
    ) -> Result<()> {
        let (shape, columns) = (self.shape(), self.columns);
        let (width, heads) = (shape.width_blocks(), shape.head_blocks());
        let (marks, mut rest) = derived.split_at(heads.blocks);
        let tops = shape.blocks_of_remainders().map(|count| {
            let (taken, left) = rest.split_at(count);
            rest = left;
            taken
        });

        // All divisions except the LayerNorm's at the lookup's point, each with all blocks as one.
        let lambda = session.challenge("attention blocks");
        let powers = powers(lambda, width.blocks.max(heads.blocks));
        let labels = ["queries", "keys", "values", "scores", "heads"];
        let bits = shape.remainders();
        let mut dividends = Vec::new();
        for (kind, label) in labels.into_iter().enumerate() {
            let divided = power_of_two(bits[kind]);
            let (quotient, divisor, half) = match kind {
                // A score is the maximum less the distance, so the remainder less 2^s distances is the rest.
                3 => (&columns.distances, -divided, Fr::ZERO),
                4 => (&columns.projections[3], divided, divided * half()),
                _ => (&columns.projections[kind], divided, divided * half()),
            };
            let divided = Divided {
                label,
                quotient,
                divisor,
                limbs: &columns.limbs[kind],
                tops: tops[kind],
                half,
                powers: &powers[..tops[kind].len()],
            };
            dividends.push(divided.dividend(session)?);
        }
        let [of_q, of_k, of_v, of_scores, of_heads]: [Expr; 5] =
            dividends.try_into().expect("five");
        let (score_point, width_point) = (&marks[0].0[..], &tops[0][0].0[..]);
        let here = self.marks.at(&self.key_of(score_point));
        for (_, var) in marks {
            session.constrain("key", Expr::from(*var) - here.clone());
        }
        self.maximum(session, score_point, &powers)?;
        self.scores(session, score_point, &powers, of_scores)?;
        let (low, place) = width_point.split_at(width.variables);
        let outputs = of_components(&powers[..width.blocks], low);
        let value = self.weighted_sums(session, place, &outputs, of_heads)?;

        let deviation = Normed {
            norm: &self.weights.norm,
            places: self.texts.all(),
            outputs: &self.at.y,
            limbs: &columns.limbs[5],
            roots: columns.roots,
            tops: tops[5],
            powers: &powers,
        }
        .reduce(session, secret)?;
        self.matrices(
            session,
            (&powers[..width.blocks], low, place),
            [of_q, of_k, of_v],
            value,
            deviation,
        )
    }

    /// hot (u + 1 - mark) = 0 for every score: a marked maximum is that of a used place, and its distance is 0.
    fn maximum<C: Channel>(
        &self,
        session: &mut Session<C>,
        point: &[Fr],
        powers: &[Fr],
    ) -> Result<()> {
        let (columns, heads) = (self.columns, self.shape().head_blocks());
        let (mut tau, claim) = plain(log2_ceil(heads.blocks), Expr::zero());
        tau = [point, &tau].concat();
        let tables = session.known().map(|known| {
            let marks = self.marks.vars.iter();
            let marks: Vec<Fr> = marks.map(|v| known.secrets.value(*v)).collect();
            let of_text = |marks: &[Fr]| marks.repeat(self.texts.places);
            let marks: Vec<Fr> = marks.chunks(self.texts.places).flat_map(of_text).collect();
            let (mut hot, mut lacking) = (Vec::new(), Vec::new());
            for (b, power) in powers[..heads.blocks].iter().enumerate() {
                hot.extend(known.entries(&[(columns.hot[b], *power)]));
                let distances = known.entries(&[(columns.distances[b], Fr::ONE)]);
                let marks = marks.iter().cycle();
                lacking.extend(distances.iter().zip(marks).map(|(u, w)| *u + Fr::ONE - w));
            }
            vec![hot, lacking]
        });
        let gate = Gate::Product;
        let reduced = sumcheck(session, "maximum", &tau, claim, 2, tables, gate)?;
        let (here, block) = reduced.point.split_at(point.len());
        let unused = Expr::from(Fr::ONE) - self.marks.at(&self.key_of(here));
        let unused = unused * prefix(block, heads.blocks);
        let values = session.known().zip(reduced.finals);
        let values = values.map(|(known, f)| [f[0], f[1] - known.value(&unused), f[0] * f[1]]);
        let vars = session.send("maximum", 3, values.as_ref().map(|v| &v[..]))?;
        let [hot, distance, product] = std::array::from_fn(|i| Expr::from(vars[i]));
        session.constrain_product(
            "maximum",
            hot.clone(),
            distance.clone() + unused,
            product.clone(),
        );
        session.constrain("maximum", product - reduced.claim);
        let of = |ids: &[ColumnId], factor: &dyn Fn(usize) -> Fr| {
            let each = ids.iter().enumerate();
            each.map(|(b, id)| (*id, factor(b))).collect::<Vec<_>>()
        };
        let weight = Weight::evaluation(here);
        let of_hot = of(&columns.hot, &|b| eq_at(block, b) * powers[b]);
        session.claim(weight.clone(), of_hot, hot);
        let of_distances = of(&columns.distances, &|b| eq_at(block, b));
        session.claim(weight, of_distances, distance);
        Ok(())
    }

    /// mark (S M + half - 2^s m) is the remainder less 2^s distances, for every score. The sum over keys is also one over texts, each
    /// with its own queries and maxima, so with several texts the maxima are those of the text at the point of keys.
    fn scores<C: Channel>(
        &self,
        session: &mut Session<C>,
        point: &[Fr],
        powers: &[Fr],
        dividend: Expr,
    ) -> Result<()> {
        let (shape, columns) = (self.shape(), self.columns);
        let (width, heads) = (shape.width_blocks(), shape.head_blocks());
        let (key, query) = (
            self.key_of(point),
            &point[self.of_places()..][..self.of_places()],
        );
        let low = &point[self.of_places() + self.texts.variables()..];
        let of_heads = of_components(&powers[..heads.blocks], low);
        let of_maxima = |text: &[Fr]| {
            let weight = self.limbs_at(&[query, text].concat(), low, 0, MAXIMUM_LIMBS);
            let blocks = columns.heads.iter().copied().zip(powers.iter().copied());
            (weight, blocks.collect::<Vec<(ColumnId, Fr)>>())
        };
        let send_maxima = |session: &mut Session<C>, text: &[Fr]| -> Result<Expr> {
            let (weight, blocks) = of_maxima(text);
            let known = session.known();
            let value = known.map(|known| known.functional(&weight, &blocks));
            let maxima = Expr::from(session.send_one("maxima", value)?);
            session.claim(weight, blocks, maxima.clone());
            Ok(maxima)
        };
        let mut maxima = match self.texts.count {
            1 => Some(send_maxima(session, &[])?),
            _ => None,
        };
        // Half less 2^s m, of all heads.
        let (all, shift): (Fr, usize) = (of_heads.iter().sum(), shape.score_shift());
        let raised = power_of_two(MAXIMUM_RAISE_BITS) * all;
        let beside = |maxima: Expr| {
            let maxima = maxima - raised.into();
            Expr::from(power_of_two(shift - 1) * all) - maxima * power_of_two(shift)
        };
        let factor = from_small(shape.score_factor());

        let of_components: Vec<Fr> = (0..shape.width)
            .map(|component| of_heads[component / shape.head()])
            .collect();
        // The row of each text at a point of its places.
        let rows_at = |session: &Session<C>, kind: usize, place: &[Fr]| {
            let secrets = session.channel.secrets()?;
            let (ids, eq) = (&columns.projections[kind], eq_table(place));
            let of_text = |text| row_of_text(secrets, &session.columns, (ids, width), text, &eq);
            Some((0..self.texts.count).map(of_text).collect::<Vec<Vec<Fr>>>())
        };
        let queries = rows_at(session, 0, query);
        let tables = session
            .known()
            .zip(queries.as_ref())
            .map(|(known, queries)| {
                let weigh = |(q, w): (&Fr, &Fr)| *q * w;
                let mut scores = Vec::new();
                for (k, query) in queries.iter().enumerate() {
                    let weighted: Vec<Fr> = query.iter().zip(&of_components).map(weigh).collect();
                    let maxima = match &maxima {
                        Some(sent) => known.value(sent),
                        None => {
                            let (weight, blocks) = of_maxima(&self.corner(k));
                            known.functional(&weight, &blocks)
                        }
                    };
                    let beside = known.value(&beside(maxima.into()));
                    let score = |place: usize| {
                        let blocks = columns.projections[1]
                            .iter()
                            .zip(weighted.chunks(width.entries()));
                        let products = blocks.map(|(id, weights)| {
                            let keys = &known.column(*id)[place * width.entries()..];
                            known.secrets.dot(&keys[..width.entries()], weights)
                        });
                        factor * products.sum::<Fr>() + beside
                    };
                    scores.extend((k * self.texts.places..(k + 1) * self.texts.places).map(score));
                }
                let marks = self.marks.vars.iter().map(|v| known.secrets.value(*v));
                vec![marks.collect(), scores]
            });
        let gate = Gate::Product;
        let reduced = sumcheck(session, "marked scores", &key, dividend, 2, tables, gate)?;
        let key = reduced.point;
        let (of_key, text) = key.split_at(self.of_places());
        if maxima.is_none() {
            maxima = Some(send_maxima(session, text)?);
        }
        let beside = beside(maxima.expect("sent before or after"));
        let value = reduced.finals.map(|f| f[1]);
        let score = Expr::from(session.send_one("marked scores", value)?);
        session.constrain_product(
            "marked score",
            self.marks.at(&key),
            score.clone(),
            reduced.claim,
        );

        // The products of queries and keys, at one component.
        let inverse = factor.inverse().expect("a factor of at least 1");
        let (mut tau, claim) = plain(log2_ceil(shape.width), (score - beside) * inverse);
        let components = tau.len();
        tau.extend(text);
        let keys = rows_at(session, 1, of_key);
        let tables = queries.zip(keys).map(|(queries, keys)| {
            let of_components = vec![of_components.clone(); self.texts.count];
            let padded = |rows: Vec<Vec<Fr>>| {
                let pad = |mut row: Vec<Fr>| {
                    row.resize(1 << components, Fr::ZERO);
                    row
                };
                rows.into_iter().flat_map(pad).collect()
            };
            [of_components, queries, keys].map(padded).into()
        });
        let gate = Gate::Weighed;
        let reduced = sumcheck(session, "products of heads", &tau, claim, 3, tables, gate)?;
        let (component, text) = reduced.point.split_at(components);
        let factor = evaluate_list(&of_components, component);
        let values = reduced.finals.map(|f| [f[1], f[2], f[1] * f[2]]);
        let vars = session.send("products of heads", 3, values.as_ref().map(|v| &v[..]))?;
        session.constrain_product("score", vars[0].into(), vars[1].into(), vars[2].into());
        let product = Expr::from(vars[2]) * factor;
        session.constrain("products of heads", product - reduced.claim);
        for (kind, place) in [query, of_key].into_iter().enumerate() {
            let place = [place, text].concat();
            let (weight, blocks) = entry_at(&columns.projections[kind], width, component, &place);
            session.claim(weight, blocks, vars[kind].into());
        }
        Ok(())
    }

    /// N L + rem = 2^30 with 0 <= rem < L for every head at every place, and the sum of E v N as the dividend of its results.
    ///
    /// Returns the claim about values that is left.
    fn weighted_sums<C: Channel>(
        &self,
        session: &mut Session<C>,
        place: &[Fr],
        outputs: &[Fr],
        dividend: Expr,
    ) -> Result<ValueClaim> {
        let (shape, columns) = (self.shape(), self.columns);
        let (places, keys) = (self.texts.all(), self.texts.places);
        let (width, head) = (shape.width_blocks(), shape.head());
        let heads = shape.head_blocks();
        let chi = session.challenge("normalisers");
        let of_heads: Vec<Fr> = powers(chi, shape.heads + 1).split_off(1);
        let all: Fr = of_heads.iter().sum();
        let (free, claim) = plain(
            self.of_heads(),
            dividend + (power_of_two(SUM_BITS) * all).into(),
        );
        let tau = [place, &free].concat();

        // The values of each head at each place, weighed: entry j + (number of places) a.
        let values = session.known().map(|known| {
            let mut values = Vec::new();
            for a in 0..shape.heads {
                // The components of a head are a power of two, so they are in one column.
                let (b, low) = (a * head / width.entries(), a * head % width.entries());
                let column = known.column(columns.projections[2][b]);
                let rows = column.chunks_exact(width.entries()).take(places);
                let factors = &outputs[a * head..][..head];
                let of_row = |row: &[i64]| known.secrets.dot(&row[low..][..head], factors);
                values.extend(rows.map(of_row));
            }
            values
        });
        let tables = session.known().zip(values.as_ref()).map(|(known, values)| {
            let mut tables = vec![Vec::new(); 5];
            for (a, power) in of_heads.iter().enumerate() {
                let (b, low) = (a / heads.entries(), a % heads.entries());
                let limbs = &known.column(columns.heads[b])[low * places * HEAD_STRIDE..];
                let exps = &known.column(columns.exps[b])[low * places * keys..];
                for i in 0..places {
                    let limbs = &limbs[i * HEAD_STRIDE..][..HEAD_STRIDE];
                    let exps = &exps[i * keys..][..keys];
                    let of_text = a * places + i / keys * keys;
                    let number = |first: usize| {
                        let limbs = limbs[first..][..QUOTIENT_LIMBS].iter().enumerate();
                        let parts =
                            limbs.map(|(k, v)| from_small(*v) * power_of_two(LIMB_BITS * k));
                        parts.sum::<Fr>()
                    };
                    let sum: Fr = exps.iter().map(|e| from_small(*e)).sum();
                    let weighted = known.secrets.dot(exps, &values[of_text..][..keys]);
                    let row = [number(OF_QUOTIENT), weighted, *power, sum, number(OF_REST)];
                    tables.iter_mut().zip(row).for_each(|(t, v)| t.push(v));
                }
            }
            tables
        });
        let gate = Gate::Normaliser;
        let reduced = sumcheck(session, "normalisers", &tau, claim, 3, tables, gate)?;
        let (place, point) = reduced.point.split_at(self.texts.variables());
        let factor = evaluate_list(&of_heads, point);
        let at = self.head_point(point);
        let sum_weight =
            Weight::evaluation(&[&vec![half(); self.of_places()], place, at.low].concat());
        let of = |ids: &[ColumnId], factor: Fr| {
            let each = ids.iter().zip(&at.blocks);
            each.map(|(id, eq)| (*id, factor * eq)).collect::<Vec<_>>()
        };
        let [of_quotient, of_rest, of_slack] = [OF_QUOTIENT, OF_REST, OF_SLACK]
            .map(|first| self.limbs_at(place, at.low, first, QUOTIENT_LIMBS));
        let sent = session.known().zip(reduced.finals).map(|(known, f)| {
            let slack = known.functional(&of_slack, &of(&columns.heads, Fr::ONE));
            [f[0], f[1], f[3], f[4], slack, f[0] * (f[1] + factor * f[3])]
        });
        let vars = session.send("normalisers", 6, sent.as_ref().map(|v| &v[..]))?;
        let [quotient, weighted, sum, rest, slack, scaled] =
            std::array::from_fn(|i| Expr::from(vars[i]));
        session.constrain_product(
            "normaliser",
            quotient.clone(),
            weighted.clone() + sum.clone() * factor,
            scaled.clone(),
        );
        session.constrain(
            "normalisers",
            scaled + rest.clone() * factor - reduced.claim,
        );
        let used = prefix(point, shape.heads);
        let least = sum.clone() - used.into() - rest.clone() - slack.clone();
        session.constrain("remainders of normalisers", least);
        for (weight, value) in [(of_quotient, quotient), (of_rest, rest), (of_slack, slack)] {
            session.claim(weight, of(&columns.heads, Fr::ONE), value);
        }
        let count = power_of_two(self.of_places());
        session.claim(sum_weight.clone(), of(&columns.exps, count), sum);
        // One maximum of every head at every place is marked, which its own claim is about.
        session.claim(sum_weight, of(&columns.hot, count), used.into());

        // The sums of E v of all keys, at one key and head.
        let (free, claim) = plain(self.of_places(), weighted);
        let (query, text) = place.split_at(self.of_places());
        let tau = [&free, text, point].concat();
        let eq = eq_table(query);
        let tables = session.known().zip(values).map(|(known, values)| {
            let mut exps = Vec::new();
            for block in &columns.exps {
                for of_text in known.column(*block).chunks_exact(keys * keys) {
                    let rows = of_text.chunks_exact(keys).zip(&eq);
                    let rows: Vec<(&[i64], Fr)> = rows.map(|(row, e)| (row, *e)).collect();
                    exps.extend(known.secrets.combine(&rows));
                }
            }
            vec![exps, values]
        });
        let gate = Gate::Product;
        let reduced = sumcheck(session, "weighted sums", &tau, claim, 2, tables, gate)?;
        let (key, point) = reduced.point.split_at(self.texts.variables());
        let (of_key, text) = key.split_at(self.of_places());
        let values = reduced.finals.map(|f| [f[0], f[1], f[0] * f[1]]);
        let vars = session.send("weighted sums", 3, values.as_ref().map(|v| &v[..]))?;
        session.constrain_product(
            "weighted sum",
            vars[0].into(),
            vars[1].into(),
            vars[2].into(),
        );
        session.constrain("weighted sums", Expr::from(vars[2]) - reduced.claim);
        let at = self.head_point(point);
        let weight = Weight::evaluation(&[of_key, query, text, at.low].concat());
        let blocks = columns.exps.iter().copied().zip(at.blocks).collect();
        session.claim(weight, blocks, vars[0].into());
        let eq = eq_table(point);
        let factors = outputs.iter().enumerate();
        Ok(ValueClaim {
            key: key.to_vec(),
            factors: factors.map(|(c, w)| eq[c / head] * w).collect(),
            value: vars[1].into(),
        })
    }

    /// All matrices, the residual and the values' claim, at one input.
    fn matrices<C: Channel>(
        &self,
        session: &mut Session<C>,
        (powers, low, place): (&[Fr], &[Fr], &[Fr]),
        dividends: [Expr; 3],
        of_values: ValueClaim,
        deviation: Deviation,
    ) -> Result<()> {
        let (weights, shape, columns) = (self.weights, self.shape(), self.columns);
        let width = shape.width_blocks();
        let nu = session.challenge("matrices");
        let nu = self::powers(nu, 5);
        let of_input = power_of_two(shape.x as usize);
        let outputs = of_components(powers, low);
        let mut claim = Expr::zero();
        for (k, dividend) in dividends.iter().enumerate() {
            claim.add_scaled(dividend, nu[k]);
            claim.constant -= nu[k] * of_input * dot(&weights.biases[k], &outputs);
        }
        let centred = &deviation.centred;
        let of_bias = power_of_two(shape.o as usize) * dot(&weights.biases[3], centred);
        claim.add_scaled(&deviation.value, nu[3]);
        claim.constant -= nu[3] * of_bias;
        claim.add_scaled(&of_values.value, nu[4]);
        let shifted = nu[3] * power_of_two(shape.residual_shift());
        let scaled =
            |values: &[Fr], factor: Fr| -> Vec<Fr> { values.iter().map(|v| *v * factor).collect() };
        let residual = scaled(centred, shifted);
        let of_values_row = scaled(&of_values.factors, nu[4]);
        let row = &deviation.place[..];
        let last = CentredRows {
            matrix: &weights.matrices[3],
            ids: &self.matrices[3],
            deviation: &deviation,
        };
        // F of queries, keys and values, and both sums of the output's matrix: the tables that the prover alone computes.
        let hidden = session.known().map(|known| {
            let mut first = vec![Fr::ZERO; shape.width];
            for (k, nu) in nu[..3].iter().enumerate() {
                let rows = weights.matrices[k].products(&known, &self.matrices[k], &outputs);
                let pairs = first.iter_mut().zip(rows);
                pairs.for_each(|(f, row)| *f += *nu * row);
            }
            (first, last.tables(&known))
        });
        let places = [
            (&self.at.x, place),
            (&self.at.x, row),
            (&columns.projections[3], row),
            (&columns.projections[2], &of_values.key[..]),
        ];
        let secrets = session.channel.secrets().zip(hidden.as_ref());
        let tables = secrets.map(|(secrets, (first, sums))| {
            let factors = [
                first.clone(),
                residual.clone(),
                scaled(&last.combine(sums), nu[3]),
                of_values_row.clone(),
            ];
            let of = |(factors, (ids, place)): (Vec<Fr>, &(&Vec<ColumnId>, &[Fr]))| {
                let row = row_at(secrets, &session.columns, ids, width, &eq_table(place));
                (Weighting::Table(factors), row)
            };
            factors.into_iter().zip(&places).map(of).collect()
        });
        let variables = log2_ceil(shape.width);
        let reduced = products(session, "matrices", variables, claim, tables)?;
        let point = &reduced.point[..];
        let sent = reduced.finals.zip(hidden);
        let values = sent.map(|(values, hidden)| last.finals(values, hidden, point));
        let vars = session.send("matrices", 9, values.as_deref())?;
        let [x, after, output, value, first, weighed, all, of_first, of_last] =
            std::array::from_fn(|k| vars[k]);
        session.constrain_product("projections", first.into(), x.into(), of_first.into());
        let second = last.claim(session, point, [weighed, all]);
        session.constrain_product("output matrix", second, output.into(), of_last.into());
        let mut rest = reduced.claim - Expr::from(of_first);
        rest.add_term(of_last, -nu[3]);
        rest.add_term(after, -evaluate_list(&residual, point));
        rest.add_term(value, -evaluate_list(&of_values_row, point));
        session.constrain("matrices", rest);
        let (rows, _) = point.split_at(width.variables);
        let of_projections = (0..3).flat_map(|k| {
            let factors = |block: usize| powers[block] * nu[k];
            weights.matrices[k].factors(&self.matrices[k], point, factors)
        });
        let of_projections = of_projections.collect();
        let here = Weight::evaluation(&[low, rows].concat());
        session.claim(here, of_projections, first.into());
        for ((ids, place), var) in places.iter().zip(vars) {
            let (weight, blocks) = entry_at(ids, width, point, place);
            session.claim(weight, blocks, var.into());
        }
        Ok(())
    }
}

/// The sum of factors times a row of values, at a point of places.
struct ValueClaim {
    key: Vec<Fr>,
    factors: Vec<Fr>,
    value: Expr,
}
