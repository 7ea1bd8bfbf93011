//! The end of every run: all claims at once, in zero knowledge. `docs/scan/closing.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;

use crate::equation::{add_vector, Equation};
use crate::error::{Error, Result};
use crate::expr::{Expr, Var};
use crate::group::{fold_points, msm, tables, vector_generators, Fr, G1Affine, WIDTH};
use crate::hooks::Simulator;
use crate::link::{Link, LinkClaim};
use crate::mle::{eq_table, Weight};
use crate::numbers::half;
use crate::session::{commit_single, Role, Session, TableClaim};
use crate::small;
use crate::sumcheck::{products, sumcheck, Gate, Weighting};
use crate::transcript::Transcript;

/// low + r (high - low) in the place of low.
#[inline(always)]
fn bind_highest<L: Lanes<Fr>>(l: L, low: &mut [Fr], high: &[Fr], r: Fr) {
    let factor = l.splat(&r);
    let (mut runs, highs) = (low.chunks_exact_mut(L::N), high.chunks_exact(L::N));
    let rest = highs.remainder();
    for (low, high) in runs.by_ref().zip(highs) {
        let a = l.load(|i| &low[i]);
        let step = l.mul(factor, l.sub(l.load(|i| &high[i]), a));
        l.store(l.add(a, step), |i, x| low[i] = x);
    }
    for (low, high) in runs.into_remainder().iter_mut().zip(rest) {
        *low += r * (*high - *low);
    }
}

/// A commitment known as a combination of sent points, with the prover's opening.
#[derive(Clone, Default)]
struct Derived {
    u: Fr,
    points: Vec<(G1Affine, Fr)>,
    value: Fr,
    blinding: Fr,
}

impl Derived {
    fn scale(&mut self, factor: Fr) {
        self.u *= factor;
        self.value *= factor;
        self.blinding *= factor;
        self.points.iter_mut().for_each(|(_, c)| *c *= factor);
    }

    fn add_single(&mut self, point: G1Affine, opening: Option<(Fr, Fr)>, factor: Fr) {
        self.points.push((point, factor));
        let (value, blinding) = opening.unwrap_or_default();
        self.value += value * factor;
        self.blinding += blinding * factor;
    }
}

/// What a closed session leaves: the proof for the prover, one equation for the verifier.
pub enum Closed {
    Proof(Vec<u8>),
    Check(Equation),
    /// What a simulator made without any secret, with the oracle that accepts it.
    Simulated(Vec<u8>, Transcript),
}

impl<'a> Session<'a> {
    /// Proves every claim, product and constraint of the session. `link` ties the last column that has no
    /// commitments of its own to an index.
    pub fn close(mut self, link: Option<Link>) -> Result<Closed> {
        self.refuse_what_does_not_hold()?;
        let mut equations = Vec::new();
        let opened = self.reduce_columns()?;
        let (linked, link_equations) = match link {
            Some(link) => self.prove_link(link, opened.as_ref().map(|o| o.point.as_slice()))?,
            None => (None, Vec::new()),
        };
        equations.extend(link_equations);
        let product = self.reduce_products()?;
        equations.extend(self.prove_constraints()?);
        if let Some(vars) = product {
            equations.extend(self.prove_product(vars)?);
        }
        if let Some(opened) = opened {
            equations.push(self.open_columns(&opened, linked)?);
        }
        let weight = self.challenge("equation weight");
        match self.role {
            Role::Prover(mut prover) => Ok(Closed::Proof(std::mem::take(&mut prover.out))),
            Role::Simulator(mut simulator) => {
                let out = std::mem::take(simulator.out());
                Ok(Closed::Simulated(out, self.transcript))
            }
            Role::Verifier(reader) => {
                reader.end()?;
                let mut sum = Equation::default();
                let mut power = Fr::ONE;
                for equation in &equations {
                    sum.add(equation, power);
                    power *= weight;
                }
                Ok(Closed::Check(sum))
            }
        }
    }

    fn refuse_what_does_not_hold(&self) -> Result<()> {
        let Role::Prover(prover) = &self.role else {
            return Ok(());
        };
        if !prover.honest {
            return Ok(());
        }
        let value = |e: &Expr| e.evaluate(|var| prover.value(var));
        let linear = self
            .constraints
            .iter()
            .filter(|(_, e)| value(e) != Fr::ZERO);
        let product = self
            .products
            .iter()
            .filter(|(_, [l, r, o])| value(l) * value(r) != value(o));
        let failed = linear
            .map(|(label, _)| label)
            .chain(product.map(|(label, _)| label))
            .next();
        let refused =
            |label| Error::Unsatisfied(format!("the constraint \"{label}\" does not hold"));
        failed.map_or(Ok(()), |label| Err(refused(label)))
    }

    /// A column's values, for the prover.
    fn values_of(&self, column: usize) -> &[i64] {
        let opening = self.columns[column].opening.as_ref();
        opening.map_or(&[], |o| o.values.as_slice())
    }

    /// All column claims to one point: columns grouped by weight, one sumcheck of weight times combination.
    fn reduce_columns(&mut self) -> Result<Option<Opened<'a>>> {
        let claims = std::mem::take(&mut self.claims);
        let table = self.table.take();
        if claims.is_empty() && table.is_none() {
            return Ok(None);
        }
        let gamma = self.challenge("column claims");
        let mut groups: Vec<(Weight, Vec<(usize, Fr)>)> = Vec::new();
        let (mut claim, mut power) = (Expr::zero(), Fr::ONE);
        for part in &claims {
            claim.add_scaled(&part.value, power);
            let at = groups
                .iter()
                .position(|(w, _)| *w == part.weight)
                .unwrap_or_else(|| {
                    groups.push((part.weight.clone(), Vec::new()));
                    groups.len() - 1
                });
            groups[at]
                .1
                .extend(part.columns.iter().map(|(id, f)| (id.0, *f * power)));
            power *= gamma;
        }
        // The functional that a table gives, last.
        let mut sums: Vec<Vec<(usize, Fr)>> = groups.iter().map(|g| g.1.clone()).collect();
        if let Some(part) = &table {
            claim.add_scaled(&part.value, power);
            sums.push(vec![(part.column.0, power)]);
        }
        let variables = sums
            .iter()
            .flatten()
            .map(|(c, _)| self.columns[*c].variables)
            .chain(table.iter().map(|t| t.table.layout.variables))
            .max()
            .unwrap_or(0);
        let variables = variables.max(self.row_variables);
        let combined = |columns: &[(usize, Fr)]| {
            let weighted = |(c, factor): &(usize, Fr)| (self.values_of(*c), *factor);
            let columns: Vec<(&[i64], Fr)> = columns.iter().map(weighted).collect();
            let length = columns.iter().map(|(v, _)| v.len()).max().unwrap_or(0);
            let mut sum = vec![Fr::ZERO; length];
            small::combine(Fr::ZERO, &columns, &mut sum);
            sum
        };
        let tables = self.proving().then(|| {
            let of_group = |(weight, columns): &(Weight, Vec<_>)| {
                let sum = combined(columns);
                let weighting = match weight.coefficients[..] {
                    [c] if c == Fr::ONE && weight.items == 1 << weight.point.len() => {
                        Weighting::Eq(weight.point.clone())
                    }
                    _ => Weighting::Table(weight.entries()),
                };
                (weighting, sum)
            };
            let mut tables: Vec<_> = groups.iter().map(of_group).collect();
            if let Some(part) = &table {
                let functional = part.functional.clone().unwrap_or_default();
                tables.push((Weighting::Table(functional), combined(&sums[groups.len()])));
            }
            tables
        });
        let reduced = products(self, "column claims", variables, claim, tables)?;
        let finals = reduced.finals;
        let vars = self.send("columns at the point", sums.len(), finals.as_deref())?;
        let mut rest = reduced.claim;
        for ((weight, _), var) in groups.iter().zip(&vars) {
            rest.add_term(*var, -weight.evaluate(&reduced.point));
        }
        // What the table's functional extends to is public; the opening shows it.
        let extended = match &table {
            Some(part) => {
                let dot = |f: &Vec<Fr>| {
                    f.iter()
                        .zip(eq_table(&reduced.point))
                        .map(|(f, e)| *f * e)
                        .sum()
                };
                Some(self.response("table", part.functional.as_ref().map(dot))?)
            }
            None => None,
        };
        if let (Some(y), Some(var)) = (extended, vars.last()) {
            rest.add_term(*var, -y);
        }
        self.constrain("column claims", rest);

        let delta = self.challenge("column groups");
        let (mut value, mut power) = (Expr::zero(), Fr::ONE);
        let mut factors = vec![Fr::ZERO; self.columns.len()];
        for (columns, var) in sums.iter().zip(&vars) {
            value.add_term(*var, power);
            for (c, factor) in columns {
                factors[*c] += *factor * power;
            }
            power *= delta;
        }
        value.constant += extended.unwrap_or_default() * power;
        let opened = self.value(&value);
        let single = self.send_single("opened value", opened)?;
        self.constrain("opened value", value - single.into());
        Ok(Some(Opened {
            point: reduced.point,
            factors,
            table: table.map(|part| (part, power)),
            single,
        }))
    }

    /// All products to one, by sumcheck over left * right - output, with the three factors committed singly.
    fn reduce_products(&mut self) -> Result<Option<[Var; 3]>> {
        let products = std::mem::take(&mut self.products);
        if products.is_empty() {
            return Ok(None);
        }
        let size = products.len().next_power_of_two();
        let variables = size.trailing_zeros() as usize;
        let tables = self.proving().then(|| {
            (0..3)
                .map(|k| {
                    let mut table: Vec<Fr> = products
                        .iter()
                        .map(|(_, triple)| self.value(&triple[k]).unwrap_or_default())
                        .collect();
                    table.resize(size, Fr::ZERO);
                    table
                })
                .collect()
        });
        let tau = self.challenges("products", variables);
        let reduced = sumcheck(self, "products", &tau, Expr::zero(), 2, tables, Multiplied)?;
        let finals = reduced.finals;
        let left = self.send_single("left factor", finals.as_ref().map(|f| f[0]))?;
        let right = self.send_single("right factor", finals.as_ref().map(|f| f[1]))?;
        let output = self.send_single("product", finals.as_ref().map(|f| f[0] * f[1]))?;
        let eq = eq_table(&reduced.point);
        let at =
            |k: usize| Expr::combination(products.iter().zip(&eq).map(|((_, t), e)| (&t[k], *e)));
        self.constrain("left factor", at(0) - left.into());
        self.constrain("right factor", at(1) - right.into());
        self.constrain("products", reduced.claim - output.into() + at(2));
        Ok(Some([left, right, output]))
    }

    /// All linear constraints, combined by a challenge into one: <A, messages> = -(constant + singles), the right
    /// side as a commitment. A sumcheck takes the left side to one point, where the messages' own commitments
    /// combine to one of 16 values; that one is opened by a Schnorr proof with its responses in the clear.
    fn prove_constraints(&mut self) -> Result<Vec<Equation>> {
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
        claim.value = claim.u;
        let openings: Vec<_> = match &self.role {
            Role::Prover(prover) => prover.singles.iter().map(|o| Some(*o)).collect(),
            _ => vec![None; singles.len()],
        };
        for ((point, opening), factor) in self.singles.iter().zip(openings).zip(&singles) {
            claim.add_single(*point, opening, *factor);
        }
        let mut values = self.prover_mut().map(|prover| {
            let mut values = prover.values.clone();
            values.resize(size, Fr::ZERO);
            values
        });
        let variables = size.trailing_zeros() as usize;
        let (mut at, half) = (vec![Fr::ZERO; variables], half());
        for i in (0..variables).rev() {
            let keep = 1 << i;
            let coefficients = values.as_ref().map(|values| {
                let (mut linear, mut square) = (Fr::ZERO, Fr::ZERO);
                for x in 0..keep {
                    let (da, dv) = (factors[keep + x] - factors[x], values[keep + x] - values[x]);
                    linear += factors[x] * dv + da * values[x];
                    square += da * dv;
                }
                [linear, square]
            });
            let r = {
                let mut sent = Vec::with_capacity(2);
                for k in 0..2 {
                    let value = coefficients.map(|c| c[k]);
                    let mut opening = None;
                    let point = self.point("constraint round", |prover| {
                        let pair = (value.unwrap_or_default(), prover.nonces.draw());
                        opening = Some(pair);
                        commit_single(pair)
                    })?;
                    sent.push((point, opening));
                }
                let r = self.challenge("constraint round");
                // q(0) + q(1) = claim, so q(r) = claim/2 + c_1 (r - 1/2) + c_2 (r^2 - 1/2).
                claim.scale(half);
                claim.add_single(sent[0].0, sent[0].1, r - half);
                claim.add_single(sent[1].0, sent[1].1, r.square() - half);
                r
            };
            at[i] = r;
            let fold = |t: &mut Vec<Fr>| {
                let (low, high) = t.split_at_mut(keep);
                dispatch!(l => bind_highest(l, low, high, r));
                t.truncate(keep);
            };
            fold(&mut factors);
            if let Some(values) = &mut values {
                fold(values);
            }
        }

        // factors[0] is now A at the point; the messages' combination at its upper part has 16 values.
        let (low, high) = at.split_at(WIDTH.trailing_zeros() as usize);
        let rows = eq_table(high);
        let functional: Vec<Fr> = eq_table(low).iter().map(|e| *e * factors[0]).collect();
        let secret = self.prover_mut().map(|prover| {
            let mut vector = vec![Fr::ZERO; WIDTH];
            let mut blinding = Fr::ZERO;
            let runs = prover.values.chunks(WIDTH).zip(&prover.message_blindings);
            for ((run, b), e) in runs.zip(&rows) {
                add_vector(&mut vector, run, *e);
                blinding += *b * e;
            }
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
        self.prove_linear(
            "message opening",
            WIDTH + 2,
            secret,
            map,
            &[combined, total],
            &[],
        )
    }

    /// Schnorr: the value of the third commitment is the product of the first two's.
    fn prove_product(&mut self, vars: [Var; 3]) -> Result<Vec<Equation>> {
        let index = vars.map(|var| match var {
            Var::Single(i) => i,
            Var::Message(_) => unreachable!("factors are committed singly"),
        });
        let [left, right, output] = index.map(|i| self.singles[i]);
        let secret = self.prover_mut().map(|prover| {
            let [(l, rho_l), (r, rho_r), (_, rho_o)] = index.map(|i| prover.singles[i]);
            vec![l, rho_l, rho_o - l * rho_r, r, rho_r]
        });
        let equation = |u: Fr, h: Fr, points: Vec<(G1Affine, Fr)>| Equation {
            u,
            h,
            points,
            ..Equation::default()
        };
        // left = l U + .., output = l right + .., right = r U + ..
        let map = |x: &[Fr]| {
            vec![
                equation(x[0], x[1], Vec::new()),
                equation(Fr::ZERO, x[2], vec![(right, x[0])]),
                equation(x[3], x[4], Vec::new()),
            ]
        };
        let targets =
            [left, output, right].map(|p| equation(Fr::ZERO, Fr::ZERO, vec![(p, Fr::ONE)]));
        self.prove_linear("product", 5, secret, map, &targets, &[])
    }

    /// One inner-product argument for all columns: the mask first, then folding of what it has made uniform.
    fn open_columns(&mut self, opened: &Opened<'a>, linked: Option<LinkClaim>) -> Result<Equation> {
        let (low, high) = opened.point.split_at(self.row_variables);
        let rows = eq_table(high);
        let length = 1usize << self.row_variables;
        let mut target: Vec<(G1Affine, Fr)> = Vec::new();
        let mut secret = self.proving().then(|| (vec![Fr::ZERO; length], Fr::ZERO));
        let mut runs = Vec::new();
        for (column, factor) in self
            .columns
            .iter()
            .zip(&opened.factors)
            .filter(|(_, f)| **f != Fr::ZERO)
        {
            let weights: Vec<Fr> = rows.iter().map(|e| *e * factor).collect();
            target.extend(column.rows.iter().zip(&weights).map(|(p, w)| (*p, *w)));
            if let (Some((_, blinding)), Some(opening)) = (&mut secret, &column.opening) {
                runs.extend(opening.values.chunks(length).zip(weights.iter().copied()));
                *blinding += opening
                    .blindings
                    .iter()
                    .zip(&weights)
                    .map(|(b, w)| *b * w)
                    .sum::<Fr>();
            }
            if column.rows.is_empty() {
                let link = linked.as_ref().ok_or(Error::Rejected)?;
                target.push((link.point, *factor));
                if let Some((_, blinding)) = &mut secret {
                    *blinding += link.blinding * factor;
                }
            }
        }
        if let Some((vector, _)) = &mut secret {
            small::combine(Fr::ZERO, &runs, vector);
        }
        let mut of_table = Vec::new();
        if let Some((part, factor)) = &opened.table {
            let rows = &rows[..part.table.layout.rows()];
            for f in &part.factors {
                of_table.extend(rows.iter().map(|e| *e * f * factor));
            }
            if let (Some((vector, _)), Some(functional)) = (&mut secret, &part.functional) {
                for (run, e) in functional.chunks(length).zip(rows) {
                    add_vector(vector, run, *e * factor);
                }
            }
        }
        let Var::Single(value) = opened.single else {
            unreachable!("sent singly")
        };
        let value_point = self.singles[value];
        let value_blinding = self.prover_mut().map(|p| p.singles[value].1);
        let g = vector_generators(length);
        let g = &g[..length];
        let tensor = eq_table(low);

        let secret = secret
            .zip(value_blinding)
            .map(|((mut vector, blinding), value)| {
                vector.extend([blinding, value]);
                vector
            });
        let map = |x: &[Fr]| {
            let column = Equation {
                vector: x[..length].to_vec(),
                h: x[length],
                ..Equation::default()
            };
            let value = Equation {
                u: x.iter().zip(&tensor).map(|(x, t)| *x * t).sum(),
                h: x[length + 1],
                ..Equation::default()
            };
            vec![column, value]
        };
        let mut targets = [target, vec![(value_point, Fr::ONE)]].map(|points| Equation {
            points,
            ..Equation::default()
        });
        targets[0].index = of_table;
        let table = opened
            .table
            .as_ref()
            .map_or(&[][..], |(part, _)| &part.table.points);
        let (masks, c, known) =
            self.mask("column opening", length + 2, secret, &map, &targets, table)?;
        let vector_blinding =
            self.response("column blinding", known.as_ref().map(|x| x[length]))?;
        let single_blinding =
            self.response("value blinding", known.as_ref().map(|x| x[length + 1]))?;
        let mu = self.challenge("inner product");

        let mut equation = Equation {
            h: -vector_blinding - mu * single_blinding,
            points: vec![(masks[0], Fr::ONE), (masks[1], mu)],
            ..Equation::default()
        };
        equation.add(&targets[0], c);
        equation.add(&targets[1], mu * c);

        let mut x = known.unwrap_or_default();
        x.truncate(length);
        let mut bases: Vec<G1Affine> = if x.is_empty() { Vec::new() } else { g.to_vec() };
        let mut b = tensor;
        let mut scale = vec![Fr::ONE];
        for level in (0..self.row_variables).rev() {
            let keep = 1 << level;
            // x is masked from the start, so that these sums' scalars are uniform.
            let cross = |x: &[Fr], bases: &[G1Affine], b: &[Fr]| {
                let mut sum = msm(bases, x);
                let inner: Fr = x.iter().zip(b).map(|(x, b)| *x * b).sum();
                tables().u.add_multiple(&mut sum, &(inner * mu));
                sum
            };
            let sides = (!x.is_empty()).then(|| {
                let left = cross(&x[..keep], &bases[keep..], &b[keep..]);
                (left, cross(&x[keep..], &bases[..keep], &b[..keep]))
            });
            let l = self.send_point("fold", sides.map(|s| s.0))?;
            let r = self.send_point("fold", sides.map(|s| s.1))?;
            let u = self.challenge("fold");
            let inverse = u.inverse().ok_or(Error::Rejected)?;
            equation.points.extend([(l, u), (r, inverse)]);
            let (b_low, b_high) = b.split_at_mut(keep);
            b_low.iter_mut().zip(b_high).for_each(|(l, h)| *l += u * *h);
            b.truncate(keep);
            if !x.is_empty() {
                let (x_low, x_high) = x.split_at_mut(keep);
                x_low
                    .iter_mut()
                    .zip(x_high)
                    .for_each(|(l, h)| *l += inverse * *h);
                x.truncate(keep);
                let (low, high) = bases.split_at(keep);
                bases = fold_points(low, high, &u);
            }
            // Generator i weighs the product of u over the levels whose bit it has; top level first.
            scale = scale.iter().flat_map(|s| [*s, *s * u]).collect();
        }
        let last = self.response("inner product", x.first().copied())?;
        equation.vector = scale.iter().map(|s| -*s * last).collect();
        equation.u -= last * b[0] * mu;
        Ok(equation)
    }
}

/// The product of two tables less a third.
#[derive(Clone, Copy)]
pub(crate) struct Multiplied;

impl Gate for Multiplied {
    type Tables<V: Copy> = [V; 3];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        l.weak(l.sub(l.mul(t[0], t[1]), t[2]))
    }
}

/// Where all columns are opened, how much each counts, and the commitment to the value.
struct Opened<'a> {
    point: Vec<Fr>,
    factors: Vec<Fr>,
    /// The table's functional and how much it counts.
    table: Option<(TableClaim<'a>, Fr)>,
    single: Var,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;
    use ragaudit_core::lanes::{tracked::Tracked, Portable};

    #[test]
    fn the_highest_variable_is_bound() {
        let mut rng = ark_std::test_rng();
        for count in [1, 8, 19] {
            let [low, high]: [Vec<Fr>; 2] =
                [(); 2].map(|()| (0..count).map(|_| Fr::rand(&mut rng)).collect());
            let r = Fr::rand(&mut rng);
            let plain: Vec<Fr> = low
                .iter()
                .zip(&high)
                .map(|(l, h)| *l + r * (*h - l))
                .collect();
            let mut found = [low.clone(), low.clone(), low];
            bind_highest(Portable, &mut found[0], &high, r);
            bind_highest(Tracked, &mut found[1], &high, r);
            dispatch!(l => bind_highest(l, &mut found[2], &high, r));
            assert!(found.iter().all(|f| *f == plain));
        }
    }
}
