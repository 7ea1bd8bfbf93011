//! The computation of a circuit's code as operations without branches. Each operation uses earlier values.
use std::collections::HashMap;

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, BigInteger, Field, One, PrimeField, Zero};

use super::numbers::{self, Number, BITS};
use super::Untraceable;

pub type Id = u32;

/// A value that is known when the circuit is compiled, or the value of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Known(Fr),
    Node(Id),
}

/// An operation of circom, on two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    Pow,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Eq,
    Neq,
    Lt,
    Leq,
    Gt,
    Geq,
    Land,
    Lor,
}

/// A node's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The input with number `a`.
    Input,
    /// The constant with number `a`.
    Constant,
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    /// The value shifted to the left by `from`.
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Not,
    /// `count` binary digits from place `from` on.
    Digits,
    Eq,
    Lt,
    Leq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub a: Id,
    pub b: Id,
    pub op: Op,
    pub from: u8,
    pub count: u8,
    /// Whether the value is 0 or 1 whatever the inputs are.
    pub boolean: bool,
}

/// A condition on a node, which is checked after the computation of all nodes before number `at`.
pub struct Check {
    pub at: usize,
    pub node: Id,
}

const RECENT: usize = 1 << 16;

pub struct Graph {
    pub nodes: Vec<Node>,
    pub constants: Vec<Fr>,
    pub checks: Vec<Check>,
    /// The maximum number of nodes, and of checks.
    maximum: usize,
    known: HashMap<Fr, Id>,
    /// The latest node for each digest of a node's content. circom repeats a computation soon or never.
    recent: Vec<Id>,
    /// The conditions of the current branches, each with its value there.
    path: Vec<(Id, bool)>,
}

fn modulus_negative(x: &Number) -> bool {
    *x > Fr::MODULUS_MINUS_ONE_DIV_TWO
}

fn field(x: Number) -> Fr {
    Fr::from_bigint(x).expect("operators give numbers below r")
}

fn truth(b: bool) -> Value {
    Value::Known(Fr::from(b))
}

impl Graph {
    pub fn new(inputs: usize, maximum: usize) -> Self {
        let nodes = (0..inputs as u32).map(|a| Node {
            a,
            b: 0,
            op: Op::Input,
            from: 0,
            count: 0,
            boolean: false,
        });
        Self {
            nodes: nodes.collect(),
            constants: Vec::new(),
            checks: Vec::new(),
            maximum,
            known: HashMap::new(),
            recent: vec![Id::MAX; RECENT],
            path: Vec::new(),
        }
    }

    /// The node of a value.
    pub fn id(&mut self, value: Value) -> Result<Id, Untraceable> {
        let x = match value {
            Value::Node(id) => return Ok(id),
            Value::Known(x) => x,
        };
        if let Some(id) = self.known.get(&x) {
            return Ok(*id);
        }
        self.room(self.nodes.len())?;
        let id = self.nodes.len() as Id;
        self.nodes.push(Node {
            a: self.constants.len() as u32,
            b: 0,
            op: Op::Constant,
            from: 0,
            count: 0,
            boolean: x.is_zero() || x.is_one(),
        });
        self.constants.push(x);
        self.known.insert(x, id);
        Ok(id)
    }

    /// An error unless `count` is below the maximum.
    fn room(&self, count: usize) -> Result<(), Untraceable> {
        match count < self.maximum {
            true => Ok(()),
            false => Err(Untraceable::new(format!(
                "the circuit has more than {} operations",
                self.maximum
            ))),
        }
    }

    fn push(&mut self, node: Node) -> Result<Value, Untraceable> {
        let mut digest = u64::from(node.a) << 32 | u64::from(node.b);
        digest ^= (node.op as u64) << 56 | u64::from(node.from) << 24 | u64::from(node.count) << 40;
        digest = digest.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (digest >> 48) as usize % RECENT;
        let last = self.recent[place];
        if let Some(known) = self.nodes.get(last as usize) {
            let same = Node {
                boolean: node.boolean,
                ..*known
            };
            if same == node {
                return Ok(Value::Node(last));
            }
        }
        self.room(self.nodes.len())?;
        let id = self.nodes.len() as Id;
        self.recent[place] = id;
        self.nodes.push(node);
        Ok(Value::Node(id))
    }

    fn node(&mut self, op: Op, a: Value, b: Value, boolean: bool) -> Result<Value, Untraceable> {
        let (a, b) = (self.id(a)?, self.id(b)?);
        self.push(Node {
            a,
            b,
            op,
            from: 0,
            count: 0,
            boolean,
        })
    }

    fn shifted(&mut self, op: Op, a: Id, from: u32, count: u32) -> Result<Value, Untraceable> {
        self.push(Node {
            a,
            b: 0,
            op,
            from: from as u8,
            count: count as u8,
            boolean: op == Op::Digits && count == 1,
        })
    }

    pub fn is_boolean(&self, value: Value) -> bool {
        match value {
            Value::Known(x) => x.is_zero() || x.is_one(),
            Value::Node(id) => self.nodes[id as usize].boolean,
        }
    }

    /// 1 if the value is not 0, else 0.
    pub fn truth(&mut self, value: Value) -> Result<Value, Untraceable> {
        if self.is_boolean(value) {
            return Ok(value);
        }
        self.binary(Binary::Neq, value, Value::Known(Fr::ZERO))
    }

    /// 1 - x of a boolean.
    pub fn negated(&mut self, x: Value) -> Result<Value, Untraceable> {
        self.binary(Binary::Sub, Value::Known(Fr::ONE), x)
    }

    /// x where the condition is 1, else y.
    pub fn choice(&mut self, condition: Id, x: Value, y: Value) -> Result<Value, Untraceable> {
        if x == y {
            return Ok(x);
        }
        let boolean = self.is_boolean(x) && self.is_boolean(y);
        let difference = self.binary(Binary::Sub, x, y)?;
        let part = self.binary(Binary::Mul, Value::Node(condition), difference)?;
        let chosen = self.binary(Binary::Add, part, y)?;
        if let (Value::Node(id), true) = (chosen, boolean) {
            self.nodes[id as usize].boolean = true;
        }
        Ok(chosen)
    }

    pub fn enter(&mut self, condition: Id, holds: bool) {
        self.path.push((condition, holds));
    }

    pub fn leave(&mut self) {
        self.path.pop();
    }

    /// Add the check that a value is not 0 whenever the current branches are taken.
    pub fn check(&mut self, value: Value) -> Result<(), Untraceable> {
        let mut value = self.truth(value)?;
        for i in (0..self.path.len()).rev() {
            let (condition, holds) = self.path[i];
            let one = Value::Known(Fr::ONE);
            let (x, y) = if holds { (value, one) } else { (one, value) };
            value = self.choice(condition, x, y)?;
        }
        match value {
            Value::Known(x) if x.is_one() => Ok(()),
            Value::Known(_) => Err(Untraceable::new("an assertion never holds")),
            Value::Node(node) => {
                self.room(self.checks.len())?;
                self.checks.push(Check {
                    at: self.nodes.len(),
                    node,
                });
                Ok(())
            }
        }
    }

    pub fn complement(&mut self, x: Value) -> Result<Value, Untraceable> {
        match x {
            Value::Known(x) => Ok(Value::Known(field(numbers::not(x.into_bigint())))),
            Value::Node(_) => self.node(Op::Not, x, Value::Known(Fr::ZERO), false),
        }
    }

    pub fn binary(&mut self, op: Binary, x: Value, y: Value) -> Result<Value, Untraceable> {
        use Value::{Known, Node as N};
        let known = |x| match x {
            Known(x) => Some(x),
            N(_) => None,
        };
        let whole = |x: Fr| x.into_bigint();
        let (kx, ky) = (known(x), known(y));
        match op {
            Binary::Add => match (kx, ky) {
                (Some(a), Some(b)) => Ok(Known(a + b)),
                (Some(a), _) if a.is_zero() => Ok(y),
                (_, Some(b)) if b.is_zero() => Ok(x),
                (Some(_), _) => self.node(Op::Add, y, x, false),
                _ => self.node(Op::Add, x, y, false),
            },
            Binary::Sub => match (kx, ky) {
                (Some(a), Some(b)) => Ok(Known(a - b)),
                (_, Some(b)) => self.binary(Binary::Add, x, Known(-b)),
                (Some(a), _) => {
                    let boolean = a.is_one() && self.is_boolean(y);
                    self.node(Op::Sub, x, y, boolean)
                }
                _ if x == y => Ok(Known(Fr::ZERO)),
                _ => self.node(Op::Sub, x, y, false),
            },
            Binary::Mul => match (kx, ky) {
                (Some(a), Some(b)) => Ok(Known(a * b)),
                (Some(_), _) => self.binary(op, y, x),
                (_, Some(b)) if b.is_zero() => Ok(y),
                (_, Some(b)) if b.is_one() => Ok(x),
                _ if self.is_digit_check(x, y) => Ok(Known(Fr::ZERO)),
                _ => {
                    let boolean = self.is_boolean(x) && self.is_boolean(y);
                    self.node(Op::Mul, x, y, boolean)
                }
            },
            Binary::Div => match ky {
                Some(b) => match b.inverse() {
                    Some(inverse) => self.binary(Binary::Mul, x, Known(inverse)),
                    None => Err(Untraceable::new("a division by zero")),
                },
                None => {
                    self.check(y)?;
                    self.node(Op::Div, x, y, false)
                }
            },
            Binary::IntDiv | Binary::Mod => self.divided(op, x, y),
            Binary::Pow => self.power(x, y),
            Binary::Shl | Binary::Shr => {
                let Some(by) = ky.map(whole) else {
                    return Err(Untraceable::new("a shift by a value that is not known"));
                };
                let back = modulus_negative(&by);
                let by = if back {
                    let mut magnitude = Fr::MODULUS;
                    magnitude.sub_with_borrow(&by);
                    magnitude
                } else {
                    by
                };
                if by >= numbers::word(u64::from(BITS)) {
                    return Ok(Known(Fr::ZERO));
                }
                self.shift((op == Binary::Shl) != back, x, by.0[0] as u32)
            }
            Binary::And => match (kx, ky) {
                (Some(a), Some(b)) => Ok(Known(field(numbers::and(whole(a), whole(b))))),
                (Some(_), _) => self.binary(op, y, x),
                (None, Some(b)) => self.masked(x, whole(b)),
                _ => self.node(Op::And, x, y, false),
            },
            Binary::Or => match (kx, ky) {
                (Some(a), Some(b)) => Ok(Known(field(numbers::or(whole(a), whole(b))))),
                _ => self.node(Op::Or, x, y, false),
            },
            Binary::Xor => match (kx, ky) {
                (Some(a), Some(b)) => Ok(Known(field(numbers::xor(whole(a), whole(b))))),
                _ => self.node(Op::Xor, x, y, false),
            },
            Binary::Eq => match (kx, ky) {
                (Some(a), Some(b)) => Ok(truth(a == b)),
                _ if x == y => Ok(truth(true)),
                _ => self.node(Op::Eq, x, y, true),
            },
            Binary::Neq => {
                let equal = self.binary(Binary::Eq, x, y)?;
                self.negated(equal)
            }
            Binary::Lt | Binary::Leq => match (kx, ky) {
                (Some(a), Some(b)) => {
                    let order = numbers::compare(&whole(a), &whole(b));
                    Ok(truth(order.is_lt() || op == Binary::Leq && order.is_eq()))
                }
                _ if op == Binary::Lt => self.node(Op::Lt, x, y, true),
                _ => self.node(Op::Leq, x, y, true),
            },
            Binary::Gt => self.binary(Binary::Lt, y, x),
            Binary::Geq => self.binary(Binary::Leq, y, x),
            Binary::Land => {
                let (x, y) = (self.truth(x)?, self.truth(y)?);
                self.binary(Binary::Mul, x, y)
            }
            Binary::Lor => {
                let (x, y) = (self.truth(x)?, self.truth(y)?);
                let (x, y) = (self.negated(x)?, self.negated(y)?);
                let neither = self.binary(Binary::Mul, x, y)?;
                self.negated(neither)
            }
        }
    }

    /// Whether y is x - 1 for a boolean x: circom's check that a value is a binary digit, which cannot fail.
    fn is_digit_check(&self, x: Value, y: Value) -> bool {
        let less_one = |x: Value, y: Value| {
            let (Value::Node(x), Value::Node(y)) = (x, y) else {
                return false;
            };
            let node = self.nodes[y as usize];
            let by = self.nodes[node.b as usize];
            node.op == Op::Add
                && node.a == x
                && self.nodes[x as usize].boolean
                && by.op == Op::Constant
                && self.constants[by.a as usize] == -Fr::ONE
        };
        less_one(x, y) || less_one(y, x)
    }

    fn divided(&mut self, op: Binary, x: Value, y: Value) -> Result<Value, Untraceable> {
        if let Value::Known(y) = y {
            let y = y.into_bigint();
            if y.is_zero() {
                return Err(Untraceable::new("a division by zero"));
            }
            if let Value::Known(x) = x {
                let (quotient, rest) = numbers::divide(&x.into_bigint(), &y);
                let part = if op == Binary::IntDiv { quotient } else { rest };
                return Ok(Value::Known(field(part)));
            }
            let bits = y.num_bits() - 1;
            if y == numbers::ONE << bits {
                if op == Binary::IntDiv {
                    return self.shift(false, x, bits);
                }
                let mut mask = y;
                mask.sub_with_borrow(&numbers::ONE);
                return self.masked(x, mask);
            }
        } else {
            self.check(y)?;
        }
        let op = if op == Binary::IntDiv {
            Op::IntDiv
        } else {
            Op::Mod
        };
        self.node(op, x, y, false)
    }

    fn power(&mut self, x: Value, y: Value) -> Result<Value, Untraceable> {
        let Value::Known(exponent) = y else {
            return Err(Untraceable::new("a power whose exponent is not known"));
        };
        let exponent = exponent.into_bigint();
        if let Value::Known(x) = x {
            return Ok(Value::Known(x.pow(exponent)));
        }
        if exponent.num_bits() > 16 {
            return Err(Untraceable::new("a power whose exponent is large"));
        }
        let mut product = Value::Known(Fr::ONE);
        for i in (0..exponent.num_bits()).rev() {
            product = self.binary(Binary::Mul, product, product)?;
            if exponent.get_bit(i as usize) {
                product = self.binary(Binary::Mul, product, x)?;
            }
        }
        Ok(product)
    }

    fn shift(&mut self, left: bool, x: Value, by: u32) -> Result<Value, Untraceable> {
        let id = match x {
            Value::Known(x) => {
                let x = x.into_bigint();
                let shifted = if left {
                    numbers::shl(x, by)
                } else {
                    numbers::shr(x, by)
                };
                return Ok(Value::Known(field(shifted)));
            }
            _ if by == 0 => return Ok(x),
            Value::Node(id) => id,
        };
        if left {
            return self.shifted(Op::Shl, id, by, 0);
        }
        let node = self.nodes[id as usize];
        if node.op == Op::Shr {
            let by = by + u32::from(node.from);
            if by >= BITS {
                return Ok(Value::Known(Fr::ZERO));
            }
            return self.shifted(Op::Shr, node.a, by, 0);
        }
        self.shifted(Op::Shr, id, by, 0)
    }

    /// The bitwise conjunction of x and a mask: the lowest digits of x for some masks.
    fn masked(&mut self, x: Value, mask: Number) -> Result<Value, Untraceable> {
        let Value::Node(id) = x else {
            return self.binary(Binary::And, x, Value::Known(field(mask)));
        };
        let count = mask.num_bits();
        let mut above = mask;
        above.add_with_carry(&numbers::ONE);
        if count > 64 || above != numbers::ONE << count {
            return self.node(Op::And, x, Value::Known(field(mask)), false);
        }
        if count == 0 {
            return Ok(Value::Known(Fr::ZERO));
        }
        let node = self.nodes[id as usize];
        match node.op {
            Op::Shr => self.shifted(Op::Digits, node.a, u32::from(node.from), count),
            _ => self.shifted(Op::Digits, id, 0, count),
        }
    }
}
