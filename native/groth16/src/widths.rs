//! The maximum lengths of the values of a circuit's wires. They follow from the public constraints, so the steps of a sum
//! over secret values may depend on them.
use std::path::Path;
use std::sync::Arc;

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, PrimeField, Zero};

use crate::error::Result;
use crate::file_cache::FileCache;
use crate::r1cs::{Matrix, R1cs};

/// Bits of a value without a bound. A value above half of the group order counts as the magnitude of its negative.
pub const WHOLE: u8 = 253;
/// The limit of bounds: larger magnitudes count as unbounded. It is far below half of the group order, so no sum of two
/// bounds wraps around.
const LIMIT: f64 = 1.0e60;
/// Passes over the constraints. Each pass uses the bounds of the earlier passes.
const PASSES: usize = 8;

/// For each wire the maximum bits of its magnitude, 1 to [`WHOLE`], over all witnesses that satisfy the constraints. Other
/// witnesses may have longer values.
pub struct Widths(pub Vec<u8>);

impl Widths {
    /// The widths of values without known bounds.
    pub fn whole(wires: usize) -> Self {
        Self(vec![WHOLE; wires])
    }

    /// The widths of a constraint system's wires.
    pub fn of(system: &R1cs) -> Self {
        let mut bounds = Bounds {
            system,
            known: vec![f64::INFINITY; system.wires],
            inverses: vec![None; system.coefficients.len()],
        };
        bounds.known[0] = 1.0;
        for _ in 0..PASSES {
            let mut changed = false;
            for row in 0..system.constraints {
                changed |= bounds.learn(row);
            }
            if !changed {
                break;
            }
        }
        Self(bounds.known.iter().map(|bound| bits(*bound)).collect())
    }

    /// The widths of a file's constraint system. A cache stores them for the next proof of the same circuit.
    pub fn read(path: &Path) -> Result<Arc<Self>> {
        static CACHE: FileCache<Widths> = FileCache::new(4);
        CACHE.read(path, || Ok(Self::of(&R1cs::read(path)?)))
    }
}

/// Bits of integers up to a bound, plus one if the bound is not exact.
fn bits(bound: f64) -> u8 {
    if bound >= LIMIT {
        return WHOLE;
    }
    match bound < (1u64 << 52) as f64 {
        true => (bound as u64).max(1).ilog2() as u8 + 1,
        false => bound.log2() as u8 + 2,
    }
}

struct Bounds<'s> {
    system: &'s R1cs,
    /// The largest magnitude of each wire; infinite if no bound is known.
    known: Vec<f64>,
    /// The inverses of coefficients, each computed at its first use.
    inverses: Vec<Option<Fr>>,
}

type Row<'s> = &'s [(u32, u32)];

impl<'s> Bounds<'s> {
    fn coefficient(&self, k: u32) -> Fr {
        self.system.coefficients[k as usize]
    }

    fn inverse(&mut self, k: u32) -> Option<Fr> {
        let known = self.inverses[k as usize];
        let inverse = known.or_else(|| self.coefficient(k).inverse());
        self.inverses[k as usize] = inverse;
        inverse
    }

    fn bound(&self, wire: u32) -> f64 {
        self.known[wire as usize]
    }

    /// The only place of a row with a wire that has no bound yet.
    fn open(&self, row: Row<'s>) -> Option<usize> {
        let mut open = (0..row.len()).filter(|i| self.bound(row[*i].0) >= LIMIT);
        let first = open.next()?;
        open.next().is_none().then_some(first)
    }

    /// The largest magnitude of a row's sum times `scale`, without the place `without`.
    fn sum(&self, row: Row<'s>, scale: Fr, without: Option<usize>) -> f64 {
        let mut total = 0.0;
        for (i, (wire, k)) in row.iter().enumerate() {
            if Some(i) == without {
                continue;
            }
            let bound = self.bound(*wire);
            if bound >= LIMIT {
                return f64::INFINITY;
            }
            total += magnitude(self.coefficient(*k) * scale) * bound;
        }
        total
    }

    /// Derive a bound for a wire from a constraint. Returns whether there is a new bound.
    fn learn(&mut self, row: usize) -> bool {
        let of = |matrix: &'s Matrix| matrix.row(row);
        let (a, b, c) = (of(&self.system.a), of(&self.system.b), of(&self.system.c));
        let changed = match c.is_empty() {
            true => self.of_two_roots(a, b),
            false => self.of_product(a, b, c),
        };
        match changed {
            Some((wire, bound)) if bound < LIMIT => {
                self.known[wire as usize] = bound;
                true
            }
            _ => false,
        }
    }

    /// The bound from A B = C if C has one wire without a bound, and A and B have no such wire.
    fn of_product(&mut self, a: Row<'s>, b: Row<'s>, c: Row<'s>) -> Option<(u32, f64)> {
        let at = self.open(c)?;
        if a.iter()
            .chain(b)
            .any(|(wire, _)| self.bound(*wire) >= LIMIT)
        {
            return None;
        }
        let (wire, k) = c[at];
        let scale = self.inverse(k)?;
        // The scale can multiply either factor; it multiplies the factor with coefficients that it makes small.
        let one = Fr::ONE;
        let left = self.sum(a, scale, None) * self.sum(b, one, None);
        let right = self.sum(a, one, None) * self.sum(b, scale, None);
        Some((wire, left.min(right) + self.sum(c, scale, Some(at))))
    }

    /// The bound from A B = 0 if B is a multiple of A plus a constant: A has one of two values, and one of its wires has no
    /// bound yet.
    fn of_two_roots(&mut self, a: Row<'s>, b: Row<'s>) -> Option<(u32, f64)> {
        let at = self.open(a)?;
        let (wire, k) = a[at];
        let constant = |row: Row<'s>| {
            let entry = row.iter().find(|(wire, _)| *wire == 0);
            entry.map_or(Fr::ZERO, |(_, k)| self.coefficient(*k))
        };
        let (of_a, of_b) = (constant(a), constant(b));
        let sorted = |row: Row<'s>| {
            let mut wires: Vec<_> = row.iter().filter(|(wire, _)| *wire != 0).copied().collect();
            wires.sort_unstable();
            wires
        };
        let (left, right) = (sorted(a), sorted(b));
        let own = right.iter().find(|entry| entry.0 == wire)?.1;
        let scale = self.inverse(k)?;
        let ratio = self.coefficient(own) * scale;
        let alike = |((i, x), (j, y)): (&(u32, u32), &(u32, u32))| {
            i == j && self.coefficient(*x) * ratio == self.coefficient(*y)
        };
        if left.len() != right.len() || !left.iter().zip(&right).all(alike) {
            return None;
        }
        // B = ratio A + rest is 0 if A is -rest / ratio.
        let rest = of_b - ratio * of_a;
        let inverse = self.inverse(own)?;
        let other = -rest * inverse * self.coefficient(k);
        let roots = [-of_a, other - of_a].map(|root| magnitude(root * scale));
        let places = (0..a.len()).filter(|i| *i != at && a[*i].0 != 0);
        let others =
            places.map(|i| magnitude(self.coefficient(a[i].1) * scale) * self.bound(a[i].0));
        Some((wire, roots[0].max(roots[1]) + others.sum::<f64>()))
    }
}

/// |x| for the representative of x nearest to 0.
fn magnitude(x: Fr) -> f64 {
    let float = |x: Fr| {
        let words = x.into_bigint().0;
        words
            .iter()
            .rev()
            .fold(0.0, |sum, w| sum * 2f64.powi(64) + *w as f64)
    };
    match x.is_zero() || x.into_bigint() <= Fr::MODULUS_MINUS_ONE_DIV_TWO {
        true => float(x),
        false => float(-x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (wire, coefficient) pairs of A, B and C.
    type Constraint<'c> = [&'c [(u32, i64)]; 3];

    fn system(wires: usize, constraints: &[Constraint]) -> R1cs {
        let mut coefficients = Vec::new();
        let mut matrices = [(); 3].map(|()| Matrix::default());
        for constraint in constraints {
            for (matrix, row) in matrices.iter_mut().zip(constraint) {
                let entries = row.iter().map(|(wire, k)| {
                    let magnitude = Fr::from(k.unsigned_abs());
                    coefficients.push(if *k < 0 { -magnitude } else { magnitude });
                    (*wire, coefficients.len() as u32 - 1)
                });
                matrix.push(entries);
            }
        }
        let [a, b, c] = matrices;
        R1cs {
            wires,
            public: 0,
            constraints: constraints.len(),
            a,
            b,
            c,
            coefficients,
        }
    }

    #[test]
    fn lengths_follow_from_the_constraints() {
        let widths = |wires, constraints: &[Constraint]| Widths::of(&system(wires, constraints)).0;
        let bit = |wire: u32| [[(wire, 1), (0, 0)], [(wire, 1), (0, -1)]];
        let [one, two] = [bit(1), bit(2)];
        let bits: [Constraint; 2] = [[&one[0][..1], &one[1], &[]], [&two[1], &two[0][..1], &[]]];
        assert_eq!(widths(4, &bits), [1, 1, 1, WHOLE]);
        // The product is at most 7 2, and the sum 1 + 2 + 5 14. The order of constraints is reversed, so one pass is too few.
        let product: Constraint = [&[(1, 3), (2, -4)], &[(2, 2)], &[(3, -1)]];
        let sum: Constraint = [&[], &[], &[(1, 1), (2, 2), (3, -5), (4, -1)]];
        let all = [sum, product, bits[1], bits[0]];
        assert_eq!(widths(5, &all), [1, 1, 1, 4, 7]);
        // 4 w1 + 8 w2 - 4 w3 is 0 or 8, so w3 is at most 1 + 2 + 2. If the factors differ, no bound follows.
        let a: &[_] = &[(3, -4), (1, 4), (2, 8)];
        let root: Constraint = [a, &[(3, -4), (1, 4), (2, 8), (0, -8)], &[]];
        assert_eq!(widths(4, &[bits[0], bits[1], root]), [1, 1, 1, 3]);
        let other: Constraint = [a, &[(3, -4), (1, 4), (2, 7), (0, -8)], &[]];
        let product: Constraint = [&[(3, 1)], &[(1, 1)], &[(4, 1)]];
        let changed = widths(5, &[bits[0], bits[1], other, product]);
        assert_eq!(changed, [1, 1, 1, WHOLE, WHOLE]);
    }

    /// A square of a square ends above the limit, and a wire that divides has no bound.
    #[test]
    fn what_grows_has_no_bound() {
        let mut all: Vec<Constraint> = vec![[&[(1, 1)], &[(1, 1), (0, -1000)], &[]]];
        let squares: Vec<_> = (1..6u32).map(|i| ([(i, 1)], [(i + 1, 1)])).collect();
        all.extend(squares.iter().map(|(x, y)| [&x[..], &x[..], &y[..]]));
        let inverse: Constraint = [&[(7, 1)], &[(1, 1)], &[(0, 1)]];
        all.push(inverse);
        let changed = Widths::of(&system(8, &all)).0;
        assert_eq!(changed, [1, 10, 20, 40, 81, 161, WHOLE, WHOLE]);
    }
}
