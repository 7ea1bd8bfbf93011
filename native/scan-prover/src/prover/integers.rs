//! A sumcheck's tables as the integers that columns hold: residues are made of them in the first two rounds, pair by pair,
//! so that no table of residues is as long as the columns.
use ragaudit_field_simd::lanes;
use ragaudit_scan_protocol::prover::Sum;
use rayon::prelude::*;

use crate::claims::Bound;
use crate::group::Fr;
use crate::numbers::log2_ceil;
use crate::prover::rounds::Source;
use crate::small::Converting;

/// The number of bits of the inputs of [`Converting`].
const BITS: usize = 52;
/// Rows of one task.
const TASK: usize = 1 << 10;

/// Tables of integers of so few bits, by table.
pub(crate) struct Integers(Vec<Vec<i64>>);

impl Integers {
    /// For each table the combinations of columns, one per record: entry x of record k is in the place x 2^m + k. None if a
    /// public factor or a value is too large; an honest prover's values have short bounds.
    pub(crate) fn interleaved(tables: &[Vec<Sum>]) -> Option<Self> {
        let tables = tables.iter().map(|records| interleaved(records));
        Some(Self(tables.collect::<Option<_>>()?))
    }
}

fn interleaved(records: &[Sum]) -> Option<Vec<i64>> {
    let mut length = 0;
    let mut of_records = Vec::new();
    for columns in records {
        let terms = log2_ceil(columns.len());
        let mut own = Vec::new();
        for (values, factor) in columns {
            let factor = small(factor)?;
            let bits = BITS.checked_sub(terms + log2_ceil(factor as usize))?;
            if bits == 0 || !Bound::Signed(bits).holds(values) {
                return None;
            }
            length = length.max(values.len());
            own.push((*values, factor));
        }
        of_records.push(own);
    }
    let apart = records.len().next_power_of_two();
    let mut out = vec![0i64; length * apart];
    let tasks = out.par_chunks_mut(TASK * apart).enumerate();
    tasks.for_each(|(task, out)| {
        for (k, columns) in of_records.iter().enumerate() {
            for (values, factor) in columns {
                let places = out.iter_mut().skip(k).step_by(apart);
                let values = values.get(task * TASK..).unwrap_or_default();
                places.zip(values).for_each(|(sum, v)| *sum += v * factor);
            }
        }
    });
    Some(out)
}

/// A factor as an integer from 1 to 2^32 - 1, if it is one.
fn small(factor: &Fr) -> Option<i64> {
    let [low, high @ ..] = ark_ff::PrimeField::into_bigint(*factor).0;
    (high == [0; 3] && (1..1 << 32).contains(&low)).then_some(low as i64)
}

/// The integers, with the constants that convert them to residues.
pub(crate) struct Residues<V> {
    tables: Integers,
    converting: Converting<V>,
}

impl<V: Copy> Residues<V> {
    pub(crate) fn new<L: lanes::Integers<Fr, V = V>>(l: L, tables: Integers) -> Self {
        Self {
            tables,
            converting: Converting::new(l),
        }
    }
}

impl<L: lanes::Integers<Fr>> Source<L> for Residues<L::V> {
    fn tables(&self) -> usize {
        self.tables.0.len()
    }

    fn pairs(&self) -> usize {
        let length = self.tables.0.iter().map(Vec::len).max().unwrap_or(0);
        length.div_ceil(2)
    }

    #[inline(always)]
    fn pair(&self, l: L, run: usize, k: usize) -> [L::V; 2] {
        let (table, start) = (&self.tables.0[k], 2 * L::N * run);
        let convert = |values: &[i64]| {
            let [low, high] = [&values[..L::N], &values[L::N..]];
            l.unzip(self.converting.of(l, low), self.converting.of(l, high))
        };
        match table.get(start..start + 2 * L::N) {
            Some(values) => convert(values),
            None => {
                let mut values = [0; 2 * WIDEST];
                let rest = table.get(start..).unwrap_or_default();
                values[..rest.len()].copy_from_slice(rest);
                convert(&values[..2 * L::N])
            }
        }
    }
}

/// The most residues that lanes hold.
const WIDEST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mle::Weights;
    use crate::numbers::from_small;
    use crate::prover::gates::Choice;
    use crate::prover::rounds::{weight_runs, Rounds, Weighing};
    use ark_ff::UniformRand;
    use ragaudit_field_simd::dispatch;
    use ragaudit_field_simd::lanes::tracked::Tracked;
    use ragaudit_field_simd::lanes::Portable;

    fn columns(count: usize, length: usize, bits: usize) -> Vec<Vec<i64>> {
        let value = |i: usize| {
            let v = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
            v as i64 - (1 << (bits - 1))
        };
        let column = |k| (0..length).map(|i| value(k * length + i)).collect();
        (0..count).map(column).collect()
    }

    /// Records of unequal lengths, of a number that is no power of two.
    #[test]
    fn entries_stand_record_by_record() {
        let (first, second) = (columns(3, 2500, 16), columns(3, 1100, 30));
        let factors = [Fr::from(1u8), Fr::from(1u32 << 16)];
        let record = |k: usize| vec![(&first[k][..], factors[1]), (&second[k][..], factors[0])];
        let records: Vec<_> = (0..3).map(record).collect();
        let Integers(tables) = Integers::interleaved(&[records]).expect("they are short");
        assert_eq!(tables[0].len(), 4 * 2500);
        for (place, actual) in tables[0].iter().enumerate() {
            let (x, k) = (place / 4, place % 4);
            let value = |columns: &[Vec<i64>]| {
                let column = columns.get(k);
                column.and_then(|c| c.get(x)).copied().unwrap_or(0)
            };
            assert_eq!(*actual, (value(&first) << 16) + value(&second));
        }
    }

    #[test]
    fn what_is_not_short_has_no_integers() {
        let result = |value: i64, factors: &[Fr]| {
            let values = [value];
            let columns = factors.iter().map(|f| (&values[..], *f)).collect();
            Integers::interleaved(&[vec![columns]]).is_some()
        };
        let [one, two] = [1u8, 2].map(Fr::from);
        assert!(result((1 << 51) - 1, &[one]) && result(-1 << 51, &[one]));
        assert!(!result(1 << 51, &[one]) && !result((-1 << 51) - 1, &[one]));
        assert!(!result((1 << 51) - 1, &[two]) && !result((1 << 51) - 1, &[one; 2]));
        assert!(!result(i64::MIN, &[one]) && !result(1, &[-one]) && !result(1, &[Fr::from(0u8)]));
        assert!(!result(1, &[Fr::from(1u64 << 32)]));
    }

    fn rounds<L: lanes::Integers<Fr>, S: Source<L>>(l: L, tables: S, tau: &[Fr]) -> Vec<Fr> {
        let mut weights = Weights::new(&tau[1..]);
        let mut rounds = Rounds::new(l, Choice, 2, tables);
        let mut out = Vec::new();
        for t in tau {
            let runs = weight_runs(l, &weights.low);
            out.extend(rounds.sums(Weighing {
                runs: &runs,
                outer: Some(&weights.high),
            }));
            weights.bind();
            rounds.bind(*t);
        }
        out.extend(rounds.values().into_iter().flatten());
        out
    }

    /// On all lanes, for tables of any length, at the limits of short integers.
    #[test]
    fn sums_are_those_of_residues() {
        let mut rng = ark_std::test_rng();
        let tau: Vec<Fr> = (0..12).map(|_| Fr::rand(&mut rng)).collect();
        for length in [1 << 12, 4001, 2051, 17] {
            let mut tables = columns(4, length, BITS);
            tables[2].truncate(length / 2 + 1);
            tables[1][0] = -1 << (BITS - 1);
            let residues = |t: &Vec<i64>| t.iter().map(|v| from_small(*v)).collect();
            let expected: Vec<Vec<Fr>> = tables.iter().map(residues).collect();
            let expected = rounds(Portable, expected, &tau);
            let integers = || Integers(tables.clone());
            let actual = dispatch!(l => rounds(l, Residues::new(l, integers()), &tau));
            assert_eq!(actual, expected);
            let actual = rounds(Portable, Residues::new(Portable, integers()), &tau);
            assert_eq!(actual, expected);
            let actual = rounds(Tracked, Residues::new(Tracked, integers()), &tau);
            assert_eq!(actual, expected);
        }
    }
}
