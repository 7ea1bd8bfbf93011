//! Proves all linear constraints by one Schnorr proof.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Var;
use crate::group::{Fr, G1Affine, WIDTH};
use crate::mle::eq_table;
use crate::numbers::half;
use crate::session::Session;

/// A commitment as a combination of sent points, with the prover's blinding.
#[derive(Clone, Default)]
struct Derived {
    u: Fr,
    points: Vec<(G1Affine, Fr)>,
    blinding: Fr,
}

impl Derived {
    fn scale(&mut self, factor: Fr) {
        self.u *= factor;
        self.blinding *= factor;
        self.points.iter_mut().for_each(|(_, c)| *c *= factor);
    }

    fn add_single(&mut self, point: G1Affine, blinding: Option<Fr>, factor: Fr) {
        self.points.push((point, factor));
        self.blinding += blinding.unwrap_or_default() * factor;
    }
}

impl<C: Channel> Session<'_, C> {
    /// A challenge combines the constraints into one: <A, messages> = -(constant + singles), with a commitment on the right
    /// side. A sumcheck reduces the left side to one point, where the messages' commitments combine to one commitment of 16
    /// values. A Schnorr proof opens that commitment; its responses are in the clear.
    pub fn prove_constraints(&mut self) -> Result<Vec<Equation>> {
        let (mut factors, mut claim) = self.combine_constraints();
        let size = factors.len();
        let secrets = self.channel.secrets();
        let mut messages = secrets.map(|secrets| secrets.messages(size));
        let variables = size.trailing_zeros() as usize;
        let (mut at, half) = (vec![Fr::ZERO; variables], half());
        for r in at.iter_mut().rev() {
            let round = messages.as_ref().map(|m| m.coefficients(&factors));
            let linear = self.send_coefficient(round.map(|c| c[0]))?;
            let square = self.send_coefficient(round.map(|c| c[1]))?;
            *r = self.challenge("constraint round");
            // q(0) + q(1) = claim, so q(r) = claim/2 + c_1 (r - 1/2) + c_2 (r^2 - 1/2).
            claim.scale(half);
            claim.add_single(linear.0, linear.1, *r - half);
            claim.add_single(square.0, square.1, r.square() - half);
            C::Engine::bind_highest(&mut factors, *r);
            if let Some(messages) = &mut messages {
                messages.bind(*r);
            }
        }
        self.open_messages(&at, factors[0], claim)
    }

    /// The factors of the messages' values, and the required sum.
    fn combine_constraints(&mut self) -> (Vec<Fr>, Derived) {
        let z = self.challenge("constraints");
        let constraints = std::mem::take(&mut self.constraints);
        let size = (self.messages.len() * WIDTH).next_power_of_two().max(WIDTH);
        let mut factors = vec![Fr::ZERO; size];
        let mut claim = Derived::default();
        let mut singles = vec![Fr::ZERO; self.singles.len()];
        let mut power = Fr::ONE;
        for (_, expr) in &constraints {
            for (var, c) in &expr.terms {
                match var {
                    Var::Message(slot) => factors[*slot] += power * c,
                    Var::Single(i) => singles[*i] -= power * c,
                }
            }
            claim.u -= power * expr.constant;
            power *= z;
        }
        let secrets = self.channel.secrets();
        for (i, (point, factor)) in self.singles.iter().zip(singles).enumerate() {
            claim.add_single(*point, secrets.map(|s| s.opened(i).1), factor);
        }
        (factors, claim)
    }

    /// A separate commitment, with its blinding.
    fn send_coefficient(&mut self, value: Option<Fr>) -> Result<(G1Affine, Option<Fr>)> {
        let mut blinding = None;
        let point = self.commitment("constraint round", |secrets| {
            let (point, own) = secrets.passing(value.unwrap_or_default());
            blinding = Some(own);
            point
        })?;
        Ok((point, blinding))
    }

    /// At the upper part of the point the messages' combination has 16 values; `factor` is A at the point.
    fn open_messages(&mut self, at: &[Fr], factor: Fr, claim: Derived) -> Result<Vec<Equation>> {
        let (low, high) = at.split_at(WIDTH.trailing_zeros() as usize);
        let rows = eq_table(high);
        let functional: Vec<Fr> = eq_table(low).iter().map(|e| *e * factor).collect();
        let secret = self.channel.secrets().map(|secrets| {
            let (mut vector, blinding) = secrets.combined_message(&rows);
            vector.extend([blinding, claim.blinding]);
            vector
        });
        let combined = Equation {
            points: self.messages.iter().copied().zip(rows).collect(),
            ..Equation::default()
        };
        let total = Equation {
            u: claim.u,
            points: claim.points,
            ..Equation::default()
        };
        let map = |x: &[Fr]| {
            let opening = Equation {
                vector: x[..WIDTH].to_vec(),
                h: x[WIDTH],
                ..Equation::default()
            };
            let value = Equation {
                u: functional.iter().zip(x).map(|(f, x)| *f * x).sum(),
                h: x[WIDTH + 1],
                ..Equation::default()
            };
            vec![opening, value]
        };
        let targets = [combined, total];
        self.prove_linear("message opening", WIDTH + 2, secret, map, &targets, &[])
    }
}
