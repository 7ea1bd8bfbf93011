//! Multilinear extensions. Variable 0 is the lowest bit of an index, everywhere.
use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};

/// eq(point, x) for every x of the cube.
///
/// ```
/// use ark_bn254::Fr;
/// use ragaudit_scan_protocol::mle::{eq_at, eq_table, evaluate, prefix, prefix_numbers};
///
/// let point = [Fr::from(7u8), Fr::from(9u8)];
/// let table = eq_table(&point);
/// assert_eq!(table[2], eq_at(&point, 2));
/// // A column of ones extends to the sum of eq over its places, one of place numbers to the sum of x eq.
/// let [zero, one] = [0u8, 1].map(Fr::from);
/// assert_eq!(evaluate(&[one, one, one, zero], &point), prefix(&point, 3));
/// let numbers = [0u8, 1, 2, 3].map(Fr::from);
/// assert_eq!(evaluate(&numbers, &point), prefix_numbers(&point, 4));
/// ```
pub fn eq_table(point: &[Fr]) -> Vec<Fr> {
    let mut table = Vec::with_capacity(1 << point.len());
    table.push(Fr::ONE);
    for p in point {
        let half = table.len();
        for i in 0..half {
            let high = table[i] * p;
            table[i] -= high;
            table.push(high);
        }
    }
    table
}

/// The extension of a table at a point.
pub fn evaluate(table: &[Fr], point: &[Fr]) -> Fr {
    debug_assert_eq!(table.len(), 1 << point.len());
    table.iter().zip(eq_table(point)).map(|(t, e)| *t * e).sum()
}

/// The extension at a point of a list that may end early: missing entries are 0.
pub fn evaluate_list(list: &[Fr], point: &[Fr]) -> Fr {
    list.iter().zip(eq_table(point)).map(|(t, e)| *t * e).sum()
}

/// eq(point, x) for one x of the cube.
pub fn eq_at(point: &[Fr], x: usize) -> Fr {
    let bit = |(k, p): (usize, &Fr)| if x >> k & 1 == 1 { *p } else { Fr::ONE - p };
    point.iter().enumerate().map(bit).product()
}

/// sum over x < count of eq(point, x).
pub fn prefix(point: &[Fr], count: usize) -> Fr {
    Weight {
        point: point.to_vec(),
        coefficients: vec![Fr::ONE],
        items: count,
    }
    .evaluate_sum()
}

/// sum over x < count of x eq(point, x).
pub fn prefix_numbers(point: &[Fr], count: usize) -> Fr {
    if count >> point.len() > 0 {
        return point.iter().rev().fold(Fr::ZERO, |acc, p| acc.double() + p);
    }
    // For the bits so far: the sums of eq and of x eq for x below count, and of x eq for all x.
    let (mut below, mut numbers, mut all) = (Fr::ZERO, Fr::ZERO, Fr::ZERO);
    for (k, p) in point.iter().enumerate() {
        let high = Fr::from(1u64 << k) * p;
        (below, numbers) = match count >> k & 1 {
            1 => (
                Fr::ONE - p + *p * below,
                (Fr::ONE - p) * all + high * below + *p * numbers,
            ),
            _ => ((Fr::ONE - p) * below, (Fr::ONE - p) * numbers),
        };
        all += high;
    }
    numbers
}

/// A public linear functional on a column: entry `stride i + o` has the weight eq(point, i) coefficients_o for i below
/// `items`, with stride the number of coefficients; every other entry has the weight 0.
///
/// With one coefficient 1 and all items it is the evaluation at `point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    pub point: Vec<Fr>,
    pub coefficients: Vec<Fr>,
    pub items: usize,
}

impl Weight {
    pub fn evaluation(point: &[Fr]) -> Self {
        Self {
            point: point.to_vec(),
            coefficients: vec![Fr::ONE],
            items: 1 << point.len(),
        }
    }

    fn evaluate_sum(&self) -> Fr {
        let digit = |_: usize, _: usize| Fr::ONE;
        self.walk(self.point.len() + 1, digit)
    }

    /// The extension of all entries' weights at `at`, in O(variables stride): an automaton reads n = stride i + o from the
    /// lowest bit upwards; its state is the carry, and whether i's bits so far are below the bits of `items`.
    pub fn evaluate(&self, at: &[Fr]) -> Fr {
        let digit = |k: usize, bit: usize| match (at.get(k), bit) {
            (Some(x), 1) => *x,
            (Some(x), _) => Fr::ONE - x,
            (None, 0) => Fr::ONE,
            (None, _) => Fr::ZERO,
        };
        self.walk(at.len().max(self.point.len() + 1), digit)
    }

    fn walk(&self, steps: usize, digit: impl Fn(usize, usize) -> Fr) -> Fr {
        let stride = self.coefficients.len();
        let mut states: Vec<[Fr; 2]> = self.coefficients.iter().map(|c| [*c, Fr::ZERO]).collect();
        for k in 0..steps {
            let mut next = vec![[Fr::ZERO; 2]; stride];
            let of_items = self.items >> k & 1;
            for (carry, weights) in states.iter().enumerate() {
                for bit in 0..=usize::from(k < self.point.len()) {
                    let chosen = match (self.point.get(k), bit) {
                        (Some(p), 1) => *p,
                        (Some(p), _) => Fr::ONE - p,
                        (None, _) => Fr::ONE,
                    };
                    let value = stride * bit + carry;
                    let factor = chosen * digit(k, value & 1);
                    for (below, weight) in weights.iter().enumerate() {
                        let now = if bit == of_items {
                            below
                        } else {
                            usize::from(bit < of_items)
                        };
                        next[value >> 1][now] += factor * weight;
                    }
                }
            }
            states = next;
        }
        states[0][1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;

    fn point(n: usize) -> Vec<Fr> {
        let mut rng = ark_std::test_rng();
        (0..n).map(|_| Fr::rand(&mut rng)).collect()
    }

    #[test]
    fn table_and_single_values_agree() {
        let p = point(5);
        let table = eq_table(&p);
        assert!((0..32).all(|x| table[x] == eq_at(&p, x)));
        for count in [0, 1, 7, 31, 32] {
            assert_eq!(prefix(&p, count), table[..count].iter().sum::<Fr>());
            let numbers = (0..)
                .zip(&table[..count])
                .map(|(x, e)| Fr::from(x as u64) * e);
            assert_eq!(prefix_numbers(&p, count), numbers.sum::<Fr>());
        }
    }

    #[test]
    fn weights_are_evaluated_without_their_table() {
        for (bits, variables, stride, items) in [
            (5, 5, 1, 32),
            (5, 7, 1, 20),
            (4, 6, 3, 16),
            (4, 6, 5, 11),
            (6, 9, 6, 64),
            (3, 8, 5, 0),
        ] {
            let weight = Weight {
                point: point(bits),
                coefficients: point(stride + 1)[1..].to_vec(),
                items,
            };
            let at = point(variables + 3)[3..].to_vec();
            let mut table: Vec<Fr> = eq_table(&weight.point)[..items]
                .iter()
                .flat_map(|e| weight.coefficients.iter().map(move |c| *e * c))
                .collect();
            table.resize(1 << variables, Fr::ZERO);
            assert_eq!(weight.evaluate(&at), evaluate(&table, &at));
        }
    }

    /// The automaton is the extension for all points, coefficients and arguments of these sizes: both are of degree one in
    /// every coordinate of either point and linear in the coefficients, so they agree if they do at zeros and ones.
    #[test]
    fn weights_agree_wherever_they_are_determined() {
        let bit = |x: usize, k: usize| Fr::from((x >> k & 1) as u64);
        let corner = |x: usize, n: usize| (0..n).map(|k| bit(x, k)).collect::<Vec<_>>();
        for (bits, stride) in
            (0..4usize).flat_map(|bits| (1..6usize).map(move |stride| (bits, stride)))
        {
            let variables = bits + stride.next_power_of_two().ilog2() as usize;
            for (items, at) in (0..=1 << bits).flat_map(|i| (0..1 << bits).map(move |p| (i, p))) {
                for o in 0..stride {
                    let mut coefficients = vec![Fr::ZERO; stride];
                    coefficients[o] = Fr::ONE;
                    let point = corner(at, bits);
                    let weight = Weight {
                        point,
                        coefficients,
                        items,
                    };
                    for n in 0..1 << variables {
                        let heavy = at < items && n == stride * at + o;
                        assert_eq!(weight.evaluate(&corner(n, variables)), Fr::from(heavy));
                    }
                }
            }
        }
    }
}
