//! Many small linear combinations of points: the columns of a constraint system over the Lagrange points.
//!
//! Units are added directly. Other coefficients go through the curve's endomorphism (Gallant, Lambert,
//! Vanstone 2001) into halves of 128 bits, and through Straus's interleaving, so that a column needs its
//! doublings only once. All columns of a block share the inversions of the affine additions. The columns of the bits of a
//! packed number are multiples of one another by powers of two: the module computes one of these columns, and the others
//! follow from its doublings.
//!
//! Coefficients belong to a public circuit, so the module copies them freely. `crate::secret` handles secrets.
use std::collections::HashMap;

use ark_bn254::Fr;
use ark_ec::scalar_mul::glv::GLVConfig;
use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInt, BigInteger, PrimeField, Zero};
use rayon::prelude::*;

use crate::affine::{add_assign, double_assign, segment_sums};
use crate::field::Group;
use crate::msm::{msm, recode};

/// Signed digits base 16 of at most 130 bits.
const WIDTH: usize = 4;
const WINDOWS: usize = 33;
/// A column with more terms than this goes through the bucket method by itself.
const HEAVY: usize = 1 << 11;
const BLOCK_TERMS: usize = 1 << 12;
/// A column with more wide terms than this is not compared with other columns.
const COMPARED: usize = 32;
/// A multiple with more non-zero signed bits than this is not taken from a chain of doublings.
const CHAIN_WEIGHT: usize = 8;
/// Leaders with chains of doublings that are in memory at the same time.
const CHAINS: usize = 1 << 9;

type Halves = [[i8; WINDOWS]; 2];

/// The multiplication of a point by one coefficient.
enum Action {
    Zero,
    Add,
    Subtract,
    /// The digits of the two halves, and the number of windows with a digit.
    Multiply(Box<Halves>, usize),
}

/// Coefficients prepared for one of the two groups.
pub struct Actions {
    actions: Vec<Action>,
    inverses: Vec<Fr>,
}

impl Actions {
    pub fn new<P: Group + GLVConfig>(coefficients: &[Fr]) -> Self {
        let one = Fr::from(1u64);
        let actions = coefficients
            .par_iter()
            .map(|k| {
                if k.is_zero() {
                    return Action::Zero;
                }
                if *k == one {
                    return Action::Add;
                }
                if *k == -one {
                    return Action::Subtract;
                }
                let negative = k.into_bigint() > Fr::MODULUS_MINUS_ONE_DIV_TWO;
                let magnitude = if negative { -*k } else { *k };
                let halves = if magnitude.into_bigint().0[1..] == [0; 3] {
                    [(true, magnitude), (true, Fr::zero())]
                } else {
                    let (low, high) = P::scalar_decomposition(magnitude);
                    [low, high]
                };
                let mut digits = Box::new([[0i8; WINDOWS]; 2]);
                let mut used = 0;
                for (row, (positive, half)) in digits.iter_mut().zip(halves) {
                    recode(&half.into_bigint(), WIDTH, |w, d| {
                        let d = d as i8;
                        row[w] = if positive != negative { d } else { -d };
                        used = used.max(w + 1);
                    });
                }
                Action::Multiply(digits, used)
            })
            .collect();
        let mut inverses = coefficients.to_vec();
        ark_ff::batch_inversion(&mut inverses);
        Self { actions, inverses }
    }
}

/// A column with a wide part that is a multiple of another column's wide part: the multiple in non-adjacent form.
struct Follower {
    column: u32,
    bits: Vec<(u8, bool)>,
}

/// Terms (point, coefficient) by column.
pub struct Columns {
    ends: Vec<usize>,
    terms: Vec<(u32, u32)>,
}

impl Columns {
    /// Sort `visit`'s triples (column, point, coefficient) by column; `visit` is called twice.
    pub fn new(count: usize, visit: impl Fn(&mut dyn FnMut(u32, u32, u32))) -> Self {
        let mut ends = vec![0usize; count];
        visit(&mut |column, _, _| ends[column as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            let n = *end;
            *end = start;
            start += n;
        }
        let mut terms = vec![(0, 0); start];
        visit(&mut |column, point, coefficient| {
            let slot = &mut ends[column as usize];
            terms[*slot] = (point, coefficient);
            *slot += 1;
        });
        Self { ends, terms }
    }

    fn column(&self, i: usize) -> &[(u32, u32)] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.terms[start..self.ends[i]]
    }

    /// The combination of every column.
    pub fn combine<P: Group + GLVConfig>(
        &self,
        points: &[Affine<P>],
        coefficients: &[Fr],
        actions: &Actions,
    ) -> Vec<Affine<P>> {
        let windows = |column: &[(u32, u32)]| {
            column
                .iter()
                .map(|&(_, k)| match &actions.actions[k as usize] {
                    Action::Multiply(_, used) => *used,
                    _ => 0,
                })
                .max()
                .unwrap_or(0)
        };
        let mut out = vec![Affine::<P>::zero(); self.ends.len()];
        let mut light: Vec<(usize, u32)> = Vec::with_capacity(out.len());
        let mut heavy = Vec::new();
        let mut shapes = HashMap::new();
        let mut followers: HashMap<u32, Vec<Follower>> = HashMap::new();
        for i in 0..out.len() {
            let column = self.column(i);
            if column.len() > HEAVY {
                heavy.push(i);
            } else if !column.is_empty() {
                match self.leader(i, coefficients, actions, &mut shapes) {
                    Some((leader, bits)) => followers.entry(leader).or_default().push(Follower {
                        column: i as u32,
                        bits,
                    }),
                    None => light.push((windows(column), i as u32)),
                }
            }
        }
        drop(shapes);
        // Columns of like length side by side: a block doubles all its accumulators equally often.
        light.par_sort_unstable();
        let mut blocks = Vec::new();
        let (mut start, mut terms) = (0, 0);
        for (i, &(_, column)) in light.iter().enumerate() {
            terms += self.column(column as usize).len();
            if terms >= BLOCK_TERMS || i + 1 == light.len() {
                blocks.push(&light[start..=i]);
                (start, terms) = (i + 1, 0);
            }
        }
        let sums: Vec<[Vec<Affine<P>>; 2]> = blocks
            .par_iter()
            .rev()
            .with_max_len(1)
            .map(|block| self.block(block, points, actions))
            .collect();
        let mut led = Vec::with_capacity(followers.len());
        for (block, [totals, wide]) in blocks.iter().rev().zip(sums) {
            for ((&(_, column), total), wide) in block.iter().zip(totals).zip(wide) {
                out[column as usize] = total;
                if let Some(list) = followers.remove(&column) {
                    led.push((wide, list));
                }
            }
        }
        let followed: Vec<Vec<(u32, Affine<P>)>> = led
            .par_chunks(CHAINS)
            .map(|led| self.follow(led, points, actions))
            .collect();
        for (column, sum) in followed.into_iter().flatten() {
            out[column as usize] = sum;
        }
        for i in heavy {
            let (bases, scalars): (Vec<_>, Vec<_>) = self
                .column(i)
                .iter()
                .map(|&(p, k)| (points[p as usize], coefficients[k as usize].into_bigint()))
                .unzip();
            out[i] = msm(&bases, &scalars).into_affine();
        }
        out
    }

    /// An earlier column with a wide part that gives this column's wide part by a multiple of few signed bits, and that
    /// multiple.
    fn leader(
        &self,
        i: usize,
        coefficients: &[Fr],
        actions: &Actions,
        shapes: &mut HashMap<Vec<(u32, BigInt<4>)>, (u32, Fr)>,
    ) -> Option<(u32, Vec<(u8, bool)>)> {
        let wide = || {
            self.column(i)
                .iter()
                .filter(|t| matches!(actions.actions[t.1 as usize], Action::Multiply(..)))
        };
        let first = wide().next()?.1 as usize;
        if wide().count() > COMPARED {
            return None;
        }
        let inverse = actions.inverses[first];
        let shape = wide()
            .map(|&(point, k)| (point, (coefficients[k as usize] * inverse).0))
            .collect();
        let (leader, leading) = match shapes.entry(shape) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert((i as u32, inverse));
                return None;
            }
            std::collections::hash_map::Entry::Occupied(slot) => *slot.get(),
        };
        let ratio = (coefficients[first] * leading).into_bigint();
        let negative = ratio > Fr::MODULUS_MINUS_ONE_DIV_TWO;
        let mut magnitude = ratio;
        if negative {
            magnitude = Fr::MODULUS;
            magnitude.sub_with_borrow(&ratio);
        }
        let bits: Vec<(u8, bool)> = magnitude
            .find_wnaf(2)?
            .into_iter()
            .enumerate()
            .filter(|(_, d)| *d != 0)
            .map(|(j, d)| (j as u8, (d < 0) != negative))
            .collect();
        (bits.len() <= CHAIN_WEIGHT).then_some((leader, bits))
    }

    /// The sums of the followers of some leaders, from the wide parts of the leaders.
    fn follow<P: Group + GLVConfig>(
        &self,
        led: &[(Affine<P>, Vec<Follower>)],
        points: &[Affine<P>],
        actions: &Actions,
    ) -> Vec<(u32, Affine<P>)> {
        let all = || led.iter().flat_map(|(_, list)| list);
        let top = all().flat_map(|f| &f.bits).map(|b| b.0).max().unwrap_or(0);
        let mut scratch = Vec::new();
        let mut chain = vec![led.iter().map(|(wide, _)| *wide).collect::<Vec<_>>()];
        for j in 0..usize::from(top) {
            let mut next = chain[j].clone();
            double_assign(&mut next, &mut scratch);
            chain.push(next);
        }
        let mut terms = Vec::new();
        let mut lengths = Vec::new();
        for (i, (_, list)) in led.iter().enumerate() {
            for follower in list {
                let before = terms.len();
                for &(j, negative) in &follower.bits {
                    let point = chain[usize::from(j)][i];
                    terms.push(if negative { -point } else { point });
                }
                for &(p, k) in self.column(follower.column as usize) {
                    match actions.actions[k as usize] {
                        Action::Add => terms.push(points[p as usize]),
                        Action::Subtract => terms.push(-points[p as usize]),
                        Action::Zero | Action::Multiply(..) => {}
                    }
                }
                lengths.push((terms.len() - before) as u32);
            }
        }
        let sums = segment_sums(terms, &lengths, &mut scratch);
        all().map(|f| f.column).zip(sums).collect()
    }

    /// The sums of a block's columns, and the sums of only their wide terms.
    fn block<P: Group + GLVConfig>(
        &self,
        block: &[(usize, u32)],
        points: &[Affine<P>],
        actions: &Actions,
    ) -> [Vec<Affine<P>>; 2] {
        let mut scratch = Vec::new();
        let mut units = Vec::new();
        let mut lengths = vec![0u32; block.len()];
        let mut wide: Vec<(usize, Affine<P>, &Halves)> = Vec::new();
        for (i, &(_, column)) in block.iter().enumerate() {
            for &(p, k) in self.column(column as usize) {
                let point = points[p as usize];
                match &actions.actions[k as usize] {
                    Action::Zero => continue,
                    Action::Add => units.push(point),
                    Action::Subtract => units.push(-point),
                    Action::Multiply(digits, _) => {
                        wide.push((i, point, digits));
                        continue;
                    }
                }
                lengths[i] += 1;
            }
        }
        let mut totals = segment_sums(units, &lengths, &mut scratch);
        let top = block.iter().map(|&(windows, _)| windows).max().unwrap_or(0);
        let mut sums = vec![Affine::<P>::zero(); block.len()];
        if top == 0 {
            return [totals, sums];
        }

        // multiples[m - 1][t] = m times the point of term t
        let first: Vec<Affine<P>> = wide.iter().map(|t| t.1).collect();
        let mut multiples = vec![first.clone()];
        for m in 1..1 << (WIDTH - 1) {
            let mut next = multiples[m - 1].clone();
            add_assign(&mut next, &mut scratch, |t| first[t]);
            multiples.push(next);
        }
        for w in (0..top).rev() {
            if w + 1 < top {
                for _ in 0..WIDTH {
                    double_assign(&mut sums, &mut scratch);
                }
            }
            let mut addends = Vec::with_capacity(2 * wide.len());
            lengths.fill(0);
            for (t, (i, _, digits)) in wide.iter().enumerate() {
                for (half, row) in digits.iter().enumerate() {
                    let d = row[w];
                    if d == 0 {
                        continue;
                    }
                    let mut point = multiples[usize::from(d.unsigned_abs()) - 1][t];
                    if half == 1 {
                        point = P::endomorphism_affine(&point);
                    }
                    addends.push(if d < 0 { -point } else { point });
                    lengths[*i] += 1;
                }
            }
            let addends = segment_sums(addends, &lengths, &mut scratch);
            add_assign(&mut sums, &mut scratch, |i| addends[i]);
        }
        add_assign(&mut totals, &mut scratch, |i| sums[i]);
        [totals, sums]
    }
}
