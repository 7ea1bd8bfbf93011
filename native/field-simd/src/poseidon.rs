//! Poseidon over BN254 with x^5, t = 17, 8 full and 68 partial rounds: circomlib's `Poseidon(16)`; and its
//! narrow relatives at t = 9 and 13, which the tree over the embedder's table uses.
//!
//! Grassi, Khovratovich, Rechberger, Roy and Schofnegger, "Poseidon: A New Hash Function for Zero-Knowledge
//! Proof Systems" (USENIX Security 2021). Constants, matrix and the rounds one by one are `ragaudit-relation`'s.
//! The partial rounds use the sparse factors of its appendix B, in groups: within a group, the words 1..16 are
//! left as they were at its start, and what the group's S-box outputs would have added to the next round's word
//! 0 comes from the products v M^j w (M the matrix without its first row and column, v and w those).
use std::array::from_fn;
use std::sync::OnceLock;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::poseidon::{check_inputs, dot, times, HALF};
pub use ragaudit_relation::poseidon::{
    generate, round_parameters, Matrix, State, FULL_ROUNDS, LIST_RUN, PARTIAL_ROUNDS, RATE, SBOXES,
    TAG_LIST, WIDTH,
};

use crate::dispatch;
use crate::field::Fr;
#[cfg(target_arch = "x86_64")]
use crate::lanes::Avx512;
use crate::lanes::Lanes;
use crate::limbs::{Steady, Sum};
use crate::Error;

const GROUP: usize = 4;
const GROUPS: usize = PARTIAL_ROUNDS / GROUP;

/// One group of partial rounds.
struct Group<K> {
    /// Added to word 0 before each S-box.
    constants: [K; GROUP],
    /// What the words 1..16 at the group's start contribute to word 0 after each round.
    rows: [[K; RATE]; GROUP],
    /// What each round's S-box output adds to the words 1..16 by the group's end.
    columns: [[K; GROUP]; RATE],
}

/// What the rounds add and multiply by, as constants of some lanes.
struct Parameters<K> {
    /// Constants of the full rounds; those of the partial rounds' words 1..16 have been moved into the fifth.
    full: [[K; WIDTH]; FULL_ROUNDS],
    matrix: [[K; WIDTH]; WIDTH],
    /// The matrix of the last full round before the partial ones, with their change of basis.
    transition: [[K; WIDTH]; WIDTH],
    corner: K,
    /// v M^j w for j = 0..GROUP-2.
    response: [K; GROUP - 1],
    groups: Vec<Group<K>>,
}

/// Lanes that permutations run in.
trait Permuting: Lanes<Fr, K: 'static> {
    fn parameters(self) -> &'static Parameters<Self::K>;
}

macro_rules! permuting {
    ($lanes:ty) => {
        impl Permuting for $lanes {
            fn parameters(self) -> &'static Parameters<Self::K> {
                static MADE: OnceLock<Parameters<<$lanes as Lanes<Fr>>::K>> = OnceLock::new();
                MADE.get_or_init(|| Parameters::new(self))
            }
        }
    };
}

permuting!(Steady);
#[cfg(target_arch = "x86_64")]
permuting!(Avx512);

fn transpose<const N: usize>(m: &Matrix<N>) -> Matrix<N> {
    from_fn(|i| from_fn(|j| m[j][i]))
}

/// By Gauss and Jordan. Every minor of a Cauchy matrix is regular, so a pivot is always found.
fn invert<const N: usize>(mut m: Matrix<N>) -> Matrix<N> {
    let mut out: Matrix<N> = from_fn(|i| from_fn(|j| Fr::from(i == j)));
    for column in 0..N {
        let pivot = (column..N)
            .find(|&i| m[i][column] != Fr::ZERO)
            .expect("a minor of a Cauchy matrix is regular");
        m.swap(column, pivot);
        out.swap(column, pivot);
        let scale = m[column][column].inverse().expect("a pivot is not zero");
        m[column].iter_mut().for_each(|x| *x *= scale);
        out[column].iter_mut().for_each(|x| *x *= scale);
        let (pivot_row, pivot_out) = (m[column], out[column]);
        for i in (0..N).filter(|&i| i != column) {
            let factor = m[i][column];
            for j in 0..N {
                m[i][j] -= factor * pivot_row[j];
                out[i][j] -= factor * pivot_out[j];
            }
        }
    }
    out
}

impl<K> Parameters<K> {
    /// With s = (s_0, t), one partial round's matrix is s_0' = corner x + v t, t' = w x + M t. In the basis
    /// u = M^(R-i) t after round i of R the second becomes u' = u + M^(R-i-1) w x, sparse, and the first takes
    /// v M^-(R-i) in place of v.
    fn new<L: Lanes<Fr, K = K>>(l: L) -> Self {
        let (constants, matrix) = round_parameters();
        let mut constants = constants.clone();
        let corner = matrix[0][0];
        let v: [Fr; RATE] = from_fn(|j| matrix[0][j + 1]);
        let w: [Fr; RATE] = from_fn(|i| matrix[i + 1][0]);
        let minor: Matrix<RATE> = from_fn(|i| from_fn(|j| matrix[i + 1][j + 1]));
        let inverse_transposed = transpose(&invert(minor));

        // A constant on words 1..16 passes a partial S-box untouched: it moves behind the round's matrix.
        for round in HALF..HALF + PARTIAL_ROUNDS {
            let mut moved = constants[round];
            moved[0] = Fr::ZERO;
            for (next, add) in constants[round + 1].iter_mut().zip(times(matrix, &moved)) {
                *next += add;
            }
        }

        let mut columns = vec![w];
        let mut rows = vec![times(&inverse_transposed, &v)];
        for _ in 1..PARTIAL_ROUNDS {
            columns.push(times(&minor, &columns[columns.len() - 1]));
            rows.push(times(&inverse_transposed, &rows[rows.len() - 1]));
        }
        columns.reverse();
        rows.reverse();

        let mut transition = transpose(matrix);
        for column in &mut transition {
            let mut lower: [Fr; RATE] = from_fn(|i| column[i + 1]);
            for _ in 0..PARTIAL_ROUNDS {
                lower = times(&minor, &lower);
            }
            column[1..].copy_from_slice(&lower);
        }
        let transition = transpose(&transition);

        let mut power = w;
        let response = from_fn(|_| {
            let value = l.constant(&dot(&v, &power));
            power = times(&minor, &power);
            value
        });
        let groups = (0..GROUPS)
            .map(|g| Group {
                constants: from_fn(|j| l.constant(&constants[HALF + g * GROUP + j][0])),
                rows: from_fn(|j| rows[g * GROUP + j].map(|x| l.constant(&x))),
                columns: from_fn(|i| from_fn(|j| l.constant(&columns[g * GROUP + j][i]))),
            })
            .collect();
        let prepared = |m: &Matrix<WIDTH>| m.map(|row| row.map(|x| l.constant(&x)));
        Self {
            full: from_fn(|i| {
                let round = if i < HALF { i } else { i + PARTIAL_ROUNDS };
                constants[round].map(|x| l.constant(&x))
            }),
            matrix: prepared(matrix),
            transition: prepared(&transition),
            corner: l.constant(&corner),
            response,
            groups,
        }
    }
}

#[inline(always)]
fn fifth<L: Lanes<Fr>>(l: L, x: L::V) -> L::V {
    let square = l.square(x);
    l.mul(l.square(square), x)
}

/// One sum of products for each row, all at once: what a product of eight lanes waits for is longer than it takes.
#[inline(always)]
fn row_sums<L: Lanes<Fr>, const T: usize, const R: usize>(
    l: L,
    rows: [&[L::K; T]; R],
    words: &[L::V],
) -> [L::W; R] {
    let mut sums = [l.wide(); R];
    for (j, word) in words.iter().enumerate() {
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = l.mac(*sum, l.all(&row[j]), *word);
        }
    }
    sums
}

#[inline(always)]
fn mix<L: Lanes<Fr>, const T: usize>(l: L, state: &mut [L::V; T], matrix: &[[L::K; T]; T]) {
    const { assert!(T <= Sum::CAPACITY) };
    let before = *state;
    let mut at = 0;
    while L::N > 1 && at + 1 < T {
        let sums = row_sums(l, [&matrix[at], &matrix[at + 1]], &before);
        (state[at], state[at + 1]) = (l.reduce(sums[0]), l.reduce(sums[1]));
        at += 2;
    }
    while at < T {
        let [sum] = row_sums(l, [&matrix[at]], &before);
        state[at] = l.reduce(sum);
        at += 1;
    }
}

#[inline(always)]
fn partial_rounds<L: Lanes<Fr>>(
    l: L,
    state: &mut [L::V; WIDTH],
    p: &Parameters<L::K>,
    see: &mut impl FnMut(L::V),
) {
    const { assert!(RATE + GROUP <= Sum::CAPACITY && GROUP + 6 <= Sum::CAPACITY) };
    for group in &p.groups {
        let mut outputs = [l.zero(); GROUP];
        for j in 0..GROUP {
            let x = l.add(state[0], l.all(&group.constants[j]));
            see(x);
            let [mut sum] = row_sums(l, [&group.rows[j]], &state[1..]);
            outputs[j] = fifth(l, x);
            sum = l.mac(sum, l.all(&p.corner), outputs[j]);
            for (h, output) in p.response[..j].iter().rev().zip(&outputs) {
                sum = l.mac(sum, l.all(h), *output);
            }
            state[0] = l.reduce(sum);
        }
        for (word, column) in state[1..].iter_mut().zip(&group.columns) {
            let mut sum = l.wide_from(*word);
            for (m, output) in column.iter().zip(&outputs) {
                sum = l.mac(sum, l.all(m), *output);
            }
            *word = l.reduce(sum);
        }
    }
}

/// All rounds but the last matrix. `see` gets every S-box's input, in the order of the rounds.
///
/// Bounds: a matrix leaves less than 2 p from words below 20 p, an S-box less than 2 p from an input below 21 p, and a
/// group of partial rounds adds less than 1.1 p to the words 1..16.
#[inline(always)]
fn rounds<L: Permuting>(l: L, state: &mut [L::V; WIDTH], mut see: impl FnMut(L::V)) {
    let p = l.parameters();
    for round in 0..FULL_ROUNDS {
        for (word, constant) in state.iter_mut().zip(&p.full[round]) {
            let x = l.add(*word, l.all(constant));
            see(x);
            *word = fifth(l, x);
        }
        if round == HALF - 1 {
            mix(l, state, &p.transition);
            partial_rounds(l, state, p, &mut see);
        } else if round < FULL_ROUNDS - 1 {
            mix(l, state, &p.matrix);
        }
    }
}

/// States, one a lane; the last one also in the lanes that are left over.
#[inline(always)]
fn load<L: Lanes<Fr>, const T: usize>(l: L, states: &[[Fr; T]]) -> [L::V; T] {
    let mut out = [l.zero(); T];
    for (j, word) in out.iter_mut().enumerate() {
        *word = l.load(
            #[inline(always)]
            |i| &states[i.min(states.len() - 1)][j],
        );
    }
    out
}

#[inline(always)]
fn store<L: Lanes<Fr>, const T: usize>(l: L, state: &[L::V; T], states: &mut [[Fr; T]]) {
    for (j, word) in state.iter().enumerate() {
        l.store(
            *word,
            #[inline(always)]
            |i, x| {
                if let Some(state) = states.get_mut(i) {
                    state[j] = x;
                }
            },
        );
    }
}

#[inline(always)]
fn permute_lanes<L: Permuting>(l: L, states: &mut [State]) {
    for run in states.chunks_mut(L::N) {
        let mut state = load(l, run);
        rounds(l, &mut state, |_| ());
        mix(l, &mut state, &l.parameters().matrix);
        store(l, &state, run);
    }
}

#[inline(always)]
fn sbox_inputs_lanes<L: Permuting>(l: L, states: &[State], out: &mut [&mut [Fr]]) {
    for (r, run) in states.chunks(L::N).enumerate() {
        let mut columns = out.iter_mut();
        rounds(
            l,
            &mut load(l, run),
            #[inline(always)]
            |x| {
                let column = columns.next().expect("one column an S-box");
                let places = &mut column[r * L::N..][..run.len()];
                l.store(
                    x,
                    #[inline(always)]
                    |i, x| {
                        if let Some(place) = places.get_mut(i) {
                            *place = x;
                        }
                    },
                );
            },
        );
    }
}

/// Permutes every state, by the same steps whatever they are. Eight take little longer than one where the processor
/// has [`lanes`](crate::lanes) for them.
pub fn permute_all(states: &mut [State]) {
    #[cfg(feature = "count")]
    crate::count::add(&crate::count::PERMUTATIONS, states.len());
    match states {
        [_] => permute_lanes(Steady, states),
        _ => dispatch!(l or Steady => permute_lanes(l, states)),
    }
}

/// What goes into every S-box of the permutations of some states, round constant included: what an argument about
/// them works on. `out` has a column for each of the [`SBOXES`], in the order of the rounds.
pub fn sbox_inputs(states: &[State], out: &mut [&mut [Fr]]) {
    dispatch!(l or Steady => sbox_inputs_lanes(l, states, out));
}

/// The permutation of 17 field elements.
pub fn permute(state: &State) -> State {
    let mut states = [*state];
    permute_all(&mut states);
    states[0]
}

/// H: at most 16 elements, padded with zeros, to one.
pub fn hash(inputs: &[Fr]) -> Result<Fr, Error> {
    check_inputs(inputs)?;
    Ok(compress(inputs))
}

fn compress(inputs: &[Fr]) -> Fr {
    let mut state = [Fr::ZERO; WIDTH];
    state[1..=inputs.len()].copy_from_slice(inputs);
    let mut state = load(Steady, &[state]);
    rounds(Steady, &mut state, |_| ());
    let [sum] = row_sums(Steady, [&Steady.parameters().matrix[0]], &state);
    let mut out = Fr::ZERO;
    Steady.store(Steady.reduce(sum), |_, x| out = x);
    out
}

/// The hash with which a list of a tag and a length starts.
pub(crate) fn start_of_list(tag: u64, length: usize) -> Fr {
    compress(&[Fr::from(TAG_LIST), Fr::from(tag), Fr::from(length as u64)])
}

/// HL: h = H(10, tag, len), then h = H(h, run) for each run of 15 elements.
pub fn hash_list(tag: u64, elements: &[Fr]) -> Fr {
    elements
        .chunks(LIST_RUN)
        .fold(start_of_list(tag, elements.len()), |h, run| {
            let mut inputs = [Fr::ZERO; RATE];
            inputs[0] = h;
            inputs[1..=run.len()].copy_from_slice(run);
            compress(&inputs)
        })
}

/// What HL makes of the runs of several lists from the hashes that their tags and lengths give, a run of each side by
/// side: eight lists take little longer than one where the processor has [`lanes`](crate::lanes) for them.
pub fn absorb_all(starts: &[Fr], lists: &[Vec<Fr>]) -> Vec<Fr> {
    let mut hashes = starts.to_vec();
    for run in 0.. {
        let mut owners = Vec::new();
        let mut states = Vec::new();
        for (owner, list) in lists.iter().enumerate() {
            if let Some(elements) = list.chunks(LIST_RUN).nth(run) {
                let mut state = [Fr::ZERO; WIDTH];
                state[1] = hashes[owner];
                state[2..2 + elements.len()].copy_from_slice(elements);
                owners.push(owner);
                states.push(state);
            }
        }
        if states.is_empty() {
            break;
        }
        if let [state] = &states[..] {
            hashes[owners[0]] = compress(&state[1..]);
            continue;
        }
        permute_all(&mut states);
        for (owner, state) in owners.iter().zip(&states) {
            hashes[*owner] = state[0];
        }
    }
    hashes
}

/// A permutation of T words by the rounds of the paper's section 2.3. No secret goes through it, and a table is
/// hashed once: the sparse form would save seconds of its life.
pub struct Narrow<const T: usize> {
    constants: Vec<[Fr; T]>,
    matrix: Matrix<T>,
}

impl<const T: usize> Narrow<T> {
    fn new(partial_rounds: usize) -> Self {
        let (constants, matrix) = generate::<T>(partial_rounds);
        Self { constants, matrix }
    }

    #[inline(always)]
    fn permute_lanes<L: Lanes<Fr>>(&self, l: L, states: &mut [[Fr; T]]) {
        let matrix = self.matrix.map(|row| row.map(|x| l.constant(&x)));
        let constants: Vec<[L::K; T]> = self
            .constants
            .iter()
            .map(|row| row.map(|x| l.constant(&x)))
            .collect();
        let last_full = constants.len() - HALF;
        for run in states.chunks_mut(L::N) {
            let mut state = load(l, run);
            for (round, row) in constants.iter().enumerate() {
                let full = round < HALF || round >= last_full;
                for (j, (word, constant)) in state.iter_mut().zip(row).enumerate() {
                    let sum = l.add(*word, l.all(constant));
                    *word = if full || j == 0 {
                        fifth(l, sum)
                    } else {
                        l.weak(sum)
                    };
                }
                mix(l, &mut state, &matrix);
            }
            store(l, &state, run);
        }
    }

    /// Permutes every state.
    pub fn permute_all(&self, states: &mut [[Fr; T]]) {
        dispatch!(l or Steady => self.permute_lanes(l, states));
    }

    /// The permutation of T field elements.
    pub fn permute(&self, state: &[Fr; T]) -> [Fr; T] {
        let mut states = [*state];
        self.permute_lanes(Steady, &mut states);
        states[0]
    }
}

/// circomlib's permutation of 9 words: 63 partial rounds.
pub fn narrow_9() -> &'static Narrow<9> {
    static PERMUTATION: OnceLock<Narrow<9>> = OnceLock::new();
    PERMUTATION.get_or_init(|| Narrow::new(63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::tracked::Tracked;
    use ark_ff::UniformRand;
    use ragaudit_relation::poseidon::plain;

    permuting!(Tracked);

    fn states(count: usize) -> Vec<State> {
        let mut rng = ark_std::test_rng();
        let mut out = vec![[Fr::ZERO; WIDTH], [-Fr::ONE; WIDTH]];
        out.extend((2..count).map(|_| from_fn(|_| Fr::rand(&mut rng))));
        out
    }

    #[test]
    fn lists_side_by_side_are_hashed_as_alone() {
        let words: Vec<Fr> = states(4).concat();
        let lists: Vec<Vec<Fr>> = [0, 1, 15, 16, 31, 3, 46, 7, 2, 15]
            .iter()
            .map(|&n| words[..n].to_vec())
            .collect();
        let starts: Vec<Fr> = (0u64..)
            .map(|tag| start_of_list(tag, lists[tag as usize].len()))
            .take(lists.len())
            .collect();
        let expected: Vec<Fr> = (0u64..)
            .zip(&lists)
            .map(|(tag, list)| hash_list(tag, list))
            .collect();
        assert_eq!(absorb_all(&starts, &lists), expected);
        assert_eq!(absorb_all(&starts[4..5], &lists[4..5]), expected[4..5]);
        assert!(absorb_all(&[], &[]).is_empty());
    }

    fn narrow_is_plain<const T: usize>(permutation: &Narrow<T>, partial_rounds: usize) {
        let cut = |state: &State| -> [Fr; T] { from_fn(|i| state[i]) };
        let states: Vec<[Fr; T]> = states(11).iter().map(cut).collect();
        let expected: Vec<[Fr; T]> = states.iter().map(|s| plain(s, partial_rounds)).collect();
        assert_eq!(permutation.permute(&states[2]), expected[2]);
        for permute_all in [
            Narrow::permute_all,
            |permutation: &Narrow<T>, states: &mut [[Fr; T]]| {
                permutation.permute_lanes(Tracked, states)
            },
        ] {
            let mut permuted = states.clone();
            permute_all(permutation, &mut permuted);
            assert_eq!(permuted, expected);
        }
    }

    #[test]
    fn the_narrow_permutation_is_the_plain_rounds() {
        narrow_is_plain(narrow_9(), 63);
    }

    #[test]
    fn sparse_rounds_agree_with_the_plain_ones() {
        let states = states(21);
        let expected: Vec<State> = states.iter().map(|s| plain(s, PARTIAL_ROUNDS)).collect();
        for count in [0, 1, 2, 8, 21] {
            for permute_all in [
                permute_all,
                |states: &mut [State]| permute_lanes(Tracked, states),
                |states: &mut [State]| permute_lanes(Steady, states),
            ] {
                let mut permuted = states[..count].to_vec();
                permute_all(&mut permuted);
                assert_eq!(permuted, expected[..count]);
            }
        }
    }

    #[test]
    fn sbox_inputs_are_those_of_the_plain_rounds() {
        let (constants, matrix) = round_parameters();
        let states = states(11);
        let mut expected = vec![Vec::new(); SBOXES];
        for state in &states {
            let (mut s, mut columns) = (*state, expected.iter_mut());
            for (round, row) in constants.iter().enumerate() {
                s.iter_mut().zip(row).for_each(|(x, c)| *x += c);
                let partial = (HALF..HALF + PARTIAL_ROUNDS).contains(&round);
                let boxes = if partial { 1 } else { WIDTH };
                for x in &mut s[..boxes] {
                    columns.next().unwrap().push(*x);
                    *x = x.pow([5]);
                }
                s = times(matrix, &s);
            }
        }
        for inputs in [
            sbox_inputs,
            |states: &[State], out: &mut [&mut [Fr]]| sbox_inputs_lanes(Tracked, states, out),
            |states: &[State], out: &mut [&mut [Fr]]| sbox_inputs_lanes(Steady, states, out),
        ] {
            let mut columns = vec![vec![Fr::ZERO; states.len()]; SBOXES];
            let mut places: Vec<&mut [Fr]> = columns.iter_mut().map(|c| &mut c[..]).collect();
            inputs(&states, &mut places);
            assert_eq!(columns, expected);
        }
    }

    /// circomlibjs 0.1.7: poseidon([1, 2, .., 16]) and poseidon of 16 zeros.
    #[test]
    fn known_answers_of_circomlib() {
        let inputs: Vec<Fr> = (1..=16u64).map(Fr::from).collect();
        let hex = |x: Fr| -> String {
            crate::field::to_bytes(&x)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect()
        };
        assert_eq!(
            hex(hash(&inputs).unwrap()),
            "16159a551cbb66108281a48099fff949ae08afd7f1f2ec06de2ffb96b919b765"
        );
        assert_eq!(
            hex(hash(&[Fr::ZERO]).unwrap()),
            "0f63cd0c9fbe679a562469831d8e810c9d33cc2409695b8e6a893e627ea952d1"
        );
    }

    #[test]
    fn hash_is_word_zero_of_the_permutation() {
        let inputs: [Fr; RATE] = from_fn(|i| Fr::from(i as u64 * 77 + 3));
        let mut state = [Fr::ZERO; WIDTH];
        state[1..].copy_from_slice(&inputs);
        assert_eq!(hash(&inputs).unwrap(), permute(&state)[0]);
        assert!(hash(&[]).is_err());
        assert!(hash(&[Fr::ONE; RATE + 1]).is_err());
    }

    #[test]
    fn list_hash_binds_length_tag_and_order() {
        let list: Vec<Fr> = (0..31u64).map(Fr::from).collect();
        let h = hash_list(3, &list);
        let mut padded = list.clone();
        padded.push(Fr::ZERO);
        let mut swapped = list.clone();
        swapped.swap(14, 15);
        assert_ne!(h, hash_list(3, &padded));
        assert_ne!(h, hash_list(3, &swapped));
        assert_ne!(h, hash_list(4, &list));
    }
}
