//! Linear expressions in hidden values.
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use ark_ff::{AdditiveGroup, Field};

use crate::group::Fr;

/// A hidden value: component `slot % WIDTH` of message `slot / WIDTH`, or a value with a commitment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Var {
    Message(usize),
    Single(usize),
}

impl Var {
    /// The number of a value that is known to have been sent singly.
    pub fn single(self) -> usize {
        match self {
            Self::Single(i) => i,
            Self::Message(_) => unreachable!("a value that is committed singly"),
        }
    }
}

/// constant + sum of coefficient times hidden value.
#[derive(Clone, Debug, Default)]
pub struct Expr {
    pub terms: Vec<(Var, Fr)>,
    pub constant: Fr,
}

impl Expr {
    pub fn zero() -> Self {
        Self::default()
    }

    pub fn add_term(&mut self, var: Var, coefficient: Fr) {
        self.terms.push((var, coefficient));
    }

    /// self += other * factor.
    pub fn add_scaled(&mut self, other: &Expr, factor: Fr) {
        self.terms
            .extend(other.terms.iter().map(|(v, c)| (*v, *c * factor)));
        self.constant += other.constant * factor;
    }

    /// sum of factors_i expressions_i.
    pub fn combination<'a>(parts: impl IntoIterator<Item = (&'a Expr, Fr)>) -> Self {
        let mut out = Self::zero();
        for (part, factor) in parts {
            out.add_scaled(part, factor);
        }
        out
    }

    /// sum of factors_i values_i.
    pub fn weighted(vars: &[Var], factors: &[Fr]) -> Self {
        Self {
            terms: vars.iter().copied().zip(factors.iter().copied()).collect(),
            constant: Fr::ZERO,
        }
    }

    pub fn evaluate(&self, value: impl Fn(Var) -> Fr) -> Fr {
        self.constant + self.terms.iter().map(|(v, c)| value(*v) * c).sum::<Fr>()
    }
}

impl From<Var> for Expr {
    fn from(var: Var) -> Self {
        Self {
            terms: vec![(var, Fr::ONE)],
            constant: Fr::ZERO,
        }
    }
}

impl From<Fr> for Expr {
    fn from(constant: Fr) -> Self {
        Self {
            terms: Vec::new(),
            constant,
        }
    }
}

impl From<u64> for Expr {
    fn from(constant: u64) -> Self {
        Fr::from(constant).into()
    }
}

impl AddAssign<&Expr> for Expr {
    fn add_assign(&mut self, other: &Expr) {
        self.add_scaled(other, Fr::ONE);
    }
}

impl Add for Expr {
    type Output = Expr;
    fn add(mut self, other: Expr) -> Expr {
        self += &other;
        self
    }
}

impl Sub for Expr {
    type Output = Expr;
    fn sub(mut self, other: Expr) -> Expr {
        self.add_scaled(&other, -Fr::ONE);
        self
    }
}

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self * -Fr::ONE
    }
}

impl Mul<Fr> for Expr {
    type Output = Expr;
    fn mul(mut self, factor: Fr) -> Expr {
        self.terms.iter_mut().for_each(|(_, c)| *c *= factor);
        self.constant *= factor;
        self
    }
}
