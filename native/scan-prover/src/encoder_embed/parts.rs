//! The inputs of the prover of A1 for the integer encoder: the values of one text, and those of several texts as one: place t of text k is place t + T k.
use ragaudit_scan_protocol::attention::Derived;
use ragaudit_scan_protocol::block::{NormPrivate, Texts, Tops, LIMB_BITS};
use ragaudit_scan_protocol::encoder::{Columns as LayerColumns, Entries};
use ragaudit_scan_protocol::encoder_embed::{
    Columns, EncoderEmbedStatement, Multiplicities, Shape,
};
use ragaudit_scan_protocol::encoder_input::Columns as InputColumns;
use ragaudit_scan_protocol::feed_forward;
use ragaudit_scan_protocol::vector::Columns as VectorColumns;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::attention::inputs::runs_of_heads;
use crate::block::{seed, split, Counts, NormWitness};
use crate::encoder::{check_opened_layers, Witness as LayersWitness};
use crate::encoder_input::inputs::Witness as InputWitness;
use crate::encoder_input::{Table, Text};
use crate::encoder_output::Witness as OutputWitness;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, Fr};
use crate::vector::{self, Claimed};

/// The prover's values.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) input: InputWitness,
    pub(crate) layers: LayersWitness,
    pub(crate) output: OutputWitness,
}

impl Witness {
    /// The witness of an honest prover.
    pub(crate) fn new(
        statement: &EncoderEmbedStatement,
        table: &Table,
        text: &Text,
    ) -> Result<Self> {
        let shape = statement.check()?;
        check_opened_layers(&statement.layers)?;
        let compute = || {
            let input = InputWitness::new(table, statement.places, text)?;
            let layers = LayersWitness::new(&statement.layers, &input.marks, &input.norm.y)?;
            let output = OutputWitness::new(&shape.output, &input.marks, layers.outputs())?;
            Ok(Self {
                input,
                layers,
                output,
            })
        };
        // No statement about the values exists yet: they fail only where they leave a range.
        compute().map_err(|error| match error {
            Error::Unsatisfied(what) => Error::OutOfRange(what),
            other => other,
        })
    }
}

/// A prover's values of a LayerNorm.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Norm {
    /// The rows of a, one a place.
    deviations: Vec<Vec<i64>>,
    /// R, V and both slacks of each place.
    roots: Vec<[Fr; 4]>,
}

impl Norm {
    fn of(witness: &NormWitness) -> Self {
        Self {
            deviations: witness.deviations.clone(),
            roots: witness.roots(),
        }
    }

    pub(super) fn private(&self) -> NormPrivate<'_> {
        NormPrivate {
            deviations: &self.deviations,
            roots: &self.roots,
        }
    }
}

/// What a run needs of one text's values.
pub(crate) struct Part {
    columns: Columns<Vec<i64>>,
    input_tops: Tops,
    layers: Vec<Entries>,
    claimed: Claimed,
    /// The salt, the tokens, and each of their hidden limbs.
    tokens: Zeroizing<Vec<Fr>>,
    /// The salt, and the hidden values of the vector.
    hidden: Zeroizing<Vec<Fr>>,
    /// That of the embeddings, then both of each layer.
    norms: Vec<Norm>,
    seed: Zeroizing<Vec<u8>>,
}

impl Part {
    pub(crate) fn new(witness: &Witness, shape: &Shape, salt: &Fr) -> Self {
        let claimed = Claimed::of(&witness.output.vector);
        let (blocks, width) = (shape.input.width_blocks(), shape.input.width);
        let size = shape.output.vector(witness.input.marks.len());
        let output = &witness.output.vector;
        let vector = output.columns(size.components(), &size.bounds);
        let layers = witness.layers.columns(&shape.layers).into_iter();

        let widths = shape.widths();
        let mut counts = Counts::new(&widths);
        witness.input.count(&shape.input, &mut counts);
        let [of_exp, of_gelu] = witness.layers.count(&shape.layers, &mut counts);
        counts.limbs(LIMB_BITS, &output.limbs(&vector, &claimed, &size.bounds));
        let mut seed = seed(&witness.input.tokens, [].iter());
        seed.extend(encode_scalar(&witness.input.salt));
        seed.extend(encode_scalar(salt));
        let mut norms = vec![Norm::of(&witness.input.norm)];
        for layer in &witness.layers.layers {
            norms.extend([&layer.attention.norm, &layer.feed_forward.norm].map(Norm::of));
        }
        Self {
            columns: Columns {
                marks: witness.output.marks.clone(),
                x: split(&witness.input.norm.y, blocks, width),
                y: split(&witness.output.y, blocks, width),
                input: witness.input.columns(&shape.input),
                layers: layers.flat_map(|layer| layer.in_order()).collect(),
                multiplicities: Multiplicities {
                    of_steps: vector::Witness::steps(&vector),
                    of_exp,
                    of_gelu,
                    shared: counts.multiplicities(),
                },
                vector,
            },
            input_tops: witness.input.tops(&shape.input),
            layers: witness.layers.derived(&shape.layers),
            tokens: Zeroizing::new(witness.input.hidden(&shape.input)),
            hidden: witness.output.hidden(&shape.output, &claimed, salt),
            claimed,
            norms,
            seed,
        }
    }
}

/// The same of all texts.
pub(super) struct Joined {
    pub(super) columns: Vec<Vec<i64>>,
    pub(super) input_tops: Tops,
    pub(super) layers: Vec<Entries>,
    pub(super) claimed: Vec<Claimed>,
    /// The salts, the tokens of all places, and each of their hidden limbs.
    pub(super) tokens: Zeroizing<Vec<Fr>>,
    /// The salts, and the hidden values of each vector.
    pub(super) hidden: Zeroizing<Vec<Fr>>,
    pub(super) norms: Vec<Norm>,
    pub(super) seed: Zeroizing<Vec<u8>>,
}

impl Joined {
    /// The values of a run of these texts of so many places each, with so many layers.
    pub(super) fn new(parts: Vec<Part>, shape: &Shape, [places, layers]: [usize; 2]) -> Self {
        let mut all = Self {
            columns: Vec::new(),
            input_tops: Vec::new(),
            layers: Vec::new(),
            claimed: Vec::new(),
            tokens: Zeroizing::new(Vec::new()),
            hidden: Zeroizing::new(Vec::new()),
            norms: Vec::new(),
            seed: Zeroizing::new(Vec::new()),
        };
        let (mut columns, mut input_tops, mut of_layers) = (Vec::new(), Vec::new(), Vec::new());
        let (mut tokens, mut hidden, mut norms) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            columns.push(part.columns.in_order());
            input_tops.push(part.input_tops);
            of_layers.push(part.layers);
            tokens.push(part.tokens);
            hidden.push(part.hidden);
            norms.push(part.norms);
            all.claimed.push(part.claimed);
            all.seed.extend(part.seed.iter());
        }
        let joins = joins(shape, places, layers);
        assert_eq!(joins.len(), columns[0].len(), "one for each column");
        for (join, parts) in joins.into_iter().zip(transposed(columns)) {
            all.columns.push(join.of(parts));
        }
        let ends = |tops: Vec<Tops>| transposed(tops).map(|parts| Join::ENDS.of(parts)).collect();
        all.input_tops = ends(input_tops);
        let heads = Join::Runs(shape.layers.attention.head_blocks().entries());
        for parts in transposed(of_layers) {
            let (derived, tops): (Vec<Derived>, Vec<[Tops; 2]>) = parts.into_iter().unzip();
            let (marks, kinds): (Vec<_>, Vec<_>) = derived
                .into_iter()
                .map(|d| (d.marks, d.tops.into()))
                .unzip();
            let kinds = transposed::<Tops>(kinds)
                .enumerate()
                .map(|(kind, tops)| match kind {
                    3 => transposed(tops).map(|parts| heads.of(parts)).collect(),
                    _ => ends(tops),
                });
            let kinds: Vec<Tops> = kinds.collect();
            let derived = Derived {
                marks: heads.of(marks),
                tops: kinds.try_into().expect("six kinds"),
            };
            let tops = tops.into_iter().map(Vec::from).collect();
            let tops: Vec<Tops> = transposed::<Tops>(tops).map(ends).collect();
            all.layers
                .push((derived, tops.try_into().expect("two blocks")));
        }
        let limbs = 1 + shape.input.hidden_limbs();
        for (out, parts, runs) in [
            (&mut all.tokens, tokens, limbs),
            (&mut all.hidden, hidden, 1),
        ] {
            out.extend(parts.iter().map(|part| part[0]));
            let rest = parts.iter().map(|part| part[1..].to_vec()).collect();
            out.extend(interleaved(rest, runs));
        }
        for parts in transposed(norms) {
            let (mut deviations, mut roots) = (Vec::new(), Vec::new());
            for mut part in parts {
                deviations.append(&mut part.deviations);
                roots.append(&mut part.roots);
            }
            all.norms.push(Norm { deviations, roots });
        }
        all
    }
}

/// How values of several texts become those of a run.
#[derive(Clone, Copy)]
enum Join {
    /// Each text's values are so many runs of one length; run n of all texts precedes run n + 1.
    Runs(usize),
    /// Entry by entry.
    Sum,
}

impl Join {
    /// One text's values after another's.
    const ENDS: Self = Self::Runs(1);

    fn of(self, parts: Vec<Vec<i64>>) -> Vec<i64> {
        match self {
            Self::Runs(runs) => interleaved(parts, runs),
            Self::Sum => {
                let mut parts = parts.into_iter();
                let mut sums = parts.next().unwrap_or_default();
                for part in parts {
                    let pairs = sums.iter_mut().zip(part);
                    pairs.for_each(|(sum, v)| *sum += v);
                }
                sums
            }
        }
    }
}

/// Run 0 of each list, then run 1 of each, and so on, of so many runs.
fn interleaved<T: Clone>(mut parts: Vec<Vec<T>>, runs: usize) -> Vec<T> {
    if parts.len() == 1 {
        return parts.pop().unwrap_or_default();
    }
    let length = parts[0].len() / runs;
    let mut all = Vec::with_capacity(parts.len() * parts[0].len());
    for run in 0..runs {
        let of_run = parts.iter().map(|part| &part[run * length..][..length]);
        of_run.for_each(|values| all.extend_from_slice(values));
    }
    all
}

/// Element n of each list, for each n.
fn transposed<T>(lists: Vec<Vec<T>>) -> impl Iterator<Item = Vec<T>> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    std::iter::from_fn(move || lists.iter_mut().map(Iterator::next).collect())
}

/// How each column is joined, in the order of the columns.
fn joins(shape: &Shape, places: usize, layers: usize) -> Vec<Join> {
    let texts = Texts::one(places);
    let width = shape.layers.width_blocks().blocks;
    let of_input = InputColumns::bounds(&shape.input, texts.all()).in_order();
    let mut all = vec![Join::ENDS; 1 + 2 * width + of_input.len()];
    let feed_forward = &shape.layers.feed_forward;
    let of_feed_forward = feed_forward::Columns::bounds(feed_forward, texts.all()).in_order();
    for n in 0..layers {
        let of_layer = LayerColumns::bounds(&shape.layers, texts, n + 1 == layers);
        let of_attention = runs_of_heads(&shape.layers.attention).in_order();
        all.extend(of_attention.into_iter().map(Join::Runs));
        let rest = width + of_feed_forward.len() + of_layer.outputs.len();
        all.extend(vec![Join::ENDS; rest]);
    }
    let of_vector = VectorColumns::bounds(&shape.output.vector(places)).in_order();
    all.extend(vec![Join::ENDS; of_vector.len()]);
    let tables = Multiplicities::bounds(shape, texts, layers).in_order();
    all.extend(vec![Join::Sum; tables.len()]);
    all
}
