//! Plans as steps on registers. The module compiles them from a graph, writes them to files, reads them and runs them.
use std::path::Path;
use std::sync::Arc;

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField};
use zeroize::Zeroizing;

use super::graph::{Graph, Id, Op};
use super::numbers::{self, Number};
use super::Traced;
use crate::binfile::Cursor;
use crate::error::{io, malformed, Result};
use crate::field::{limbs, limbs_to_le};
use crate::file_cache::FileCache;
use crate::r1cs::Witness;

const MAGIC: &[u8; 8] = b"ragplan1";
const STEP: usize = 16;

/// The action of a step on registers a and b. A register contains a number, or the Montgomery form of a field element.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Code {
    /// This code and the codes before `Number` work on field elements.
    Add,
    Sub,
    Mul,
    Div,
    /// The number of a field element; the next code is the reverse.
    Number,
    Element,
    /// The field element of a number that is 0 or 1.
    Bit,
    /// This code and the codes before `Equal` work on numbers.
    IntDiv,
    Mod,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Not,
    Digits,
    Less,
    LessOrEqual,
    /// Whether two registers of the same kind are equal, as a number.
    Equal,
    /// The number in register a is wire b.
    Wire,
    /// Check that registers a and b, of the same kind, are equal.
    CheckEqual,
    /// Check that register a is not 0.
    Check,
}

const CODES: [Code; 22] = [
    Code::Add,
    Code::Sub,
    Code::Mul,
    Code::Div,
    Code::Number,
    Code::Element,
    Code::Bit,
    Code::IntDiv,
    Code::Mod,
    Code::Shl,
    Code::Shr,
    Code::And,
    Code::Or,
    Code::Xor,
    Code::Not,
    Code::Digits,
    Code::Less,
    Code::LessOrEqual,
    Code::Equal,
    Code::Wire,
    Code::CheckEqual,
    Code::Check,
];

impl Code {
    fn takes_two(self) -> bool {
        !matches!(
            self,
            Code::Number
                | Code::Element
                | Code::Bit
                | Code::Shl
                | Code::Shr
                | Code::Not
                | Code::Digits
                | Code::Wire
                | Code::Check
        )
    }

    fn gives(self) -> bool {
        !matches!(self, Code::Wire | Code::CheckEqual | Code::Check)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    a: u32,
    b: u32,
    to: u32,
    code: Code,
    from: u8,
    count: u8,
}

/// The computation of a circuit's wires from its inputs. The first registers are constants, then inputs.
#[derive(Debug, PartialEq)]
pub struct Plan {
    /// The hash of each input's name, and the number of its values.
    inputs: Vec<(u64, u32)>,
    constants: Vec<Number>,
    registers: u32,
    wires: u32,
    steps: Vec<Step>,
}

impl Plan {
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    pub fn wires(&self) -> usize {
        self.wires as usize
    }

    /// The witness for inputs by name, or `None` if the circuit has other inputs or an assertion fails. The caller then runs
    /// circom's own code, which names the assertion.
    pub fn witness(&self, inputs: &[(&str, &[Number])]) -> Option<Witness> {
        if inputs.len() != self.inputs.len() {
            return None;
        }
        let mut given: Vec<&[Number]> = Vec::with_capacity(inputs.len());
        for (hash, count) in &self.inputs {
            let mut same = inputs.iter().filter(|(name, _)| fnv(name) == *hash);
            let (Some((_, values)), None) = (same.next(), same.next()) else {
                return None;
            };
            if values.len() != *count as usize || values.iter().any(|x| *x >= Fr::MODULUS) {
                return None;
            }
            given.push(values);
        }
        // The plan has at most as many other registers as steps, and the inputs have their number of values.
        let mut registers = Zeroizing::new(vec![numbers::ZERO; self.registers as usize]);
        let fixed = self.constants.iter().chain(given.into_iter().flatten());
        for (place, value) in registers.iter_mut().zip(fixed) {
            *place = *value;
        }
        let mut witness = Witness(vec![numbers::ZERO; self.wires as usize]);
        self.run(&mut registers, &mut witness.0).then_some(witness)
    }

    /// Run all steps. Returns whether all checks hold.
    fn run(&self, registers: &mut [Number], wires: &mut [Number]) -> bool {
        let field = Fr::new_unchecked;
        let mut holds = true;
        for step in &self.steps {
            let a = registers[step.a as usize];
            let to = step.to as usize;
            let b = || registers[step.b as usize];
            registers[to] = match step.code {
                Code::Add => (field(a) + field(b())).0,
                Code::Sub => (field(a) - field(b())).0,
                Code::Mul => (field(a) * field(b())).0,
                Code::Div => {
                    let inverse = field(b()).inverse().unwrap_or(Fr::ZERO);
                    (field(a) * inverse).0
                }
                Code::Number => field(a).into_bigint(),
                Code::Element => (field(a) * field(Fr::R2)).0,
                Code::Bit => {
                    let mask = a.0[0].wrapping_neg();
                    BigInt(Fr::R.0.map(|limb| limb & mask))
                }
                Code::IntDiv => numbers::divide(&a, &b()).0,
                Code::Mod => numbers::divide(&a, &b()).1,
                Code::Shl => numbers::shl(a, u32::from(step.from)),
                Code::Shr => numbers::shr(a, u32::from(step.from)),
                Code::And => numbers::and(a, b()),
                Code::Or => numbers::or(a, b()),
                Code::Xor => numbers::xor(a, b()),
                Code::Not => numbers::not(a),
                Code::Digits => numbers::word(numbers::digits(
                    &a,
                    u32::from(step.from),
                    u32::from(step.count),
                )),
                Code::Less => numbers::word(u64::from(numbers::compare(&a, &b()).is_lt())),
                Code::LessOrEqual => numbers::word(u64::from(numbers::compare(&a, &b()).is_le())),
                Code::Equal => numbers::word(u64::from(a == b())),
                Code::Wire => {
                    wires[step.b as usize] = a;
                    continue;
                }
                Code::CheckEqual => {
                    holds &= a == b();
                    continue;
                }
                Code::Check => {
                    holds &= a != numbers::ZERO;
                    continue;
                }
            };
        }
        holds
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for count in [
            self.inputs.len(),
            self.constants.len(),
            self.registers as usize,
            self.wires as usize,
            self.steps.len(),
        ] {
            out.extend((count as u32).to_le_bytes());
        }
        for (hash, count) in &self.inputs {
            out.extend(hash.to_le_bytes());
            out.extend(count.to_le_bytes());
        }
        for x in &self.constants {
            out.extend(limbs_to_le(x));
        }
        for s in &self.steps {
            for word in [s.a, s.b, s.to] {
                out.extend(word.to_le_bytes());
            }
            out.extend([s.code as u8, s.from, s.count, 0]);
        }
        out
    }

    /// Read the bytes of [`Plan::to_bytes`]. The function checks every register, wire and operation, so no step can fail.
    pub fn parse(data: &[u8], place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(data, place.to_owned());
        if cursor.take(8)? != MAGIC {
            return cursor.fail("the file is not a plan of this version");
        }
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = cursor.u32()?;
        }
        let [inputs, constants, registers, wires, steps] = counts;
        let size =
            12 * u64::from(inputs) + 32 * u64::from(constants) + STEP as u64 * u64::from(steps);
        if data.len() as u64 != 28 + size {
            return cursor.fail("the file's size does not match its counts");
        }
        let mut named = Vec::with_capacity(inputs as usize);
        let mut fixed = u64::from(constants);
        for _ in 0..inputs {
            let hash = cursor.u64()?;
            let count = cursor.u32()?;
            fixed += u64::from(count);
            named.push((hash, count));
        }
        if fixed > u64::from(registers) || u64::from(registers) > fixed + u64::from(steps) {
            return cursor.fail("the number of registers does not fit the steps");
        }
        if u64::from(wires) > u64::from(steps) {
            return cursor.fail("there are more wires than steps");
        }
        let numbers = cursor.take(32 * constants as usize)?.chunks_exact(32);
        let constants: Vec<Number> = numbers.map(limbs).collect();
        if constants.iter().any(|x| *x >= Fr::MODULUS) {
            return cursor.fail("a constant is not below the group order");
        }
        let mut set = vec![false; wires as usize];
        let mut list = Vec::with_capacity(steps as usize);
        for raw in cursor.take(STEP * steps as usize)?.chunks_exact(STEP) {
            let word = |i: usize| u32::from_le_bytes(raw[i..i + 4].try_into().expect("4 bytes"));
            let Some(&code) = CODES.get(raw[12] as usize) else {
                return malformed(place, format!("the operation {} is unknown", raw[12]));
            };
            let step = Step {
                a: word(0),
                b: word(4),
                to: word(8),
                code,
                from: raw[13],
                count: raw[14],
            };
            if raw[15] != 0 {
                return malformed(place, "a step does not end with a zero");
            }
            if let Some(reason) = step.fault(registers, fixed, &mut set) {
                return malformed(place, reason);
            }
            list.push(step);
        }
        if set.contains(&false) {
            return malformed(place, "a wire has no value");
        }
        Ok(Self {
            inputs: named,
            constants,
            registers,
            wires,
            steps: list,
        })
    }

    /// The plan in a file. A cache stores it for the next proof of the same circuit.
    pub fn read(path: &Path) -> Result<Arc<Self>> {
        static CACHE: FileCache<Plan> = FileCache::new(2);
        CACHE.read(path, || {
            let data = std::fs::read(path).map_err(io(path))?;
            Self::parse(&data, &path.display().to_string())
        })
    }
}

impl Step {
    /// The reason why the step is invalid for `registers` registers, where the first `fixed` are constants and inputs.
    fn fault(&self, registers: u32, fixed: u64, set: &mut [bool]) -> Option<&'static str> {
        if self.a >= registers || self.code.takes_two() && self.b >= registers {
            return Some("a step reads a register that is not there");
        }
        if self.code.gives() && (self.to >= registers || u64::from(self.to) < fixed) {
            return Some("a step writes a register that it may not");
        }
        match self.code {
            Code::Wire => match set.get_mut(self.b as usize) {
                Some(set) if !*set => *set = true,
                _ => return Some("a wire is not there, or has two values"),
            },
            Code::Shl | Code::Shr if u32::from(self.from) >= numbers::BITS => {
                return Some("a shift is too far");
            }
            Code::Digits if !(1..=64).contains(&self.count) => return Some("digits are not there"),
            _ => {}
        }
        None
    }
}

/// circom's hash of an input's name.
pub(super) fn fnv(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

const NONE: u32 = u32::MAX;

/// Steps on registers that are each written once. The numbers of constants come first, then the numbers of inputs.
struct Compiler<'g> {
    graph: &'g Graph,
    constants: Vec<Number>,
    /// The registers of each node's value as a field element and as a number, if they exist. The numbers of constants' registers
    /// start at 0 and all other numbers at `NONE / 2`, because the number of constants is known only at the end.
    elements: Vec<u32>,
    numbers: Vec<u32>,
    next: u32,
    steps: Vec<Step>,
}

const OTHERS: u32 = 1 << 31;

pub(super) fn compile(traced: &Traced) -> Plan {
    let graph = &traced.graph;
    let count = graph.nodes.len();
    let total: u32 = traced.inputs.iter().map(|(_, count)| count).sum();
    let needed = needed(traced);
    let mut compiler = Compiler {
        graph,
        constants: Vec::new(),
        elements: vec![NONE; count],
        numbers: vec![NONE; count],
        next: OTHERS + total,
        steps: Vec::new(),
    };
    let mut by_node: Vec<(Id, u32)> = traced.wires.iter().copied().zip(0..).collect();
    by_node.sort_unstable();
    let mut wires = by_node.into_iter().peekable();
    let mut checks = graph.checks.iter().peekable();
    for (id, needed) in needed.iter().enumerate() {
        while let Some(check) = checks.next_if(|check| check.at <= id) {
            compiler.check(check.node);
        }
        if *needed {
            compiler.compute(id as Id);
        }
        while let Some((_, wire)) = wires.next_if(|(node, _)| *node as usize == id) {
            let a = compiler.number(id as Id);
            compiler.push(Code::Wire, a, wire, NONE);
        }
    }
    for check in checks {
        compiler.check(check.node);
    }
    let Compiler {
        constants, steps, ..
    } = compiler;
    let (registers, steps) = allocated(steps, constants.len() as u32, total);
    Plan {
        inputs: traced.inputs.clone(),
        constants,
        registers,
        wires: traced.wires.len() as u32,
        steps,
    }
}

/// The nodes that wires and checks depend on. The equation of a check is no separate node.
fn needed(traced: &Traced) -> Vec<bool> {
    let nodes = &traced.graph.nodes;
    let mut needed = vec![false; nodes.len()];
    for wire in &traced.wires {
        needed[*wire as usize] = true;
    }
    for check in &traced.graph.checks {
        let node = nodes[check.node as usize];
        if node.op == Op::Eq {
            needed[node.a as usize] = true;
            needed[node.b as usize] = true;
        } else {
            needed[check.node as usize] = true;
        }
    }
    for i in (0..nodes.len()).rev() {
        let node = nodes[i];
        if needed[i] && !matches!(node.op, Op::Input | Op::Constant) {
            needed[node.a as usize] = true;
            let one = matches!(node.op, Op::Shl | Op::Shr | Op::Digits | Op::Not);
            if !one {
                needed[node.b as usize] = true;
            }
        }
    }
    needed
}

impl Compiler<'_> {
    fn push(&mut self, code: Code, a: u32, b: u32, to: u32) {
        self.steps.push(Step {
            a,
            b,
            to,
            code,
            from: 0,
            count: 0,
        });
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn constant(&mut self, x: Number) -> u32 {
        self.constants.push(x);
        self.constants.len() as u32 - 1
    }

    /// The register of a node's field element.
    fn element(&mut self, id: Id) -> u32 {
        let known = self.elements[id as usize];
        if known != NONE {
            return known;
        }
        let node = self.graph.nodes[id as usize];
        let register = if node.op == Op::Constant {
            let x = self.graph.constants[node.a as usize];
            self.constant(x.0)
        } else {
            let (number, register) = (self.numbers[id as usize], self.fresh());
            let code = if node.boolean {
                Code::Bit
            } else {
                Code::Element
            };
            self.push(code, number, NONE, register);
            register
        };
        self.elements[id as usize] = register;
        register
    }

    /// The register of a node's number.
    fn number(&mut self, id: Id) -> u32 {
        let known = self.numbers[id as usize];
        if known != NONE {
            return known;
        }
        let node = self.graph.nodes[id as usize];
        let register = if node.op == Op::Constant {
            let x = self.graph.constants[node.a as usize];
            self.constant(x.into_bigint())
        } else {
            let (element, register) = (self.elements[id as usize], self.fresh());
            self.push(Code::Number, element, NONE, register);
            register
        };
        self.numbers[id as usize] = register;
        register
    }

    /// Registers of the same kind for two nodes: numbers if both nodes have a register with a number.
    fn alike(&mut self, a: Id, b: Id) -> (u32, u32) {
        let numbers = [a, b].iter().all(|id| {
            self.numbers[*id as usize] != NONE || self.graph.nodes[*id as usize].op == Op::Constant
        });
        if numbers {
            (self.number(a), self.number(b))
        } else {
            (self.element(a), self.element(b))
        }
    }

    fn compute(&mut self, id: Id) {
        let node = self.graph.nodes[id as usize];
        let (elements, code) = match node.op {
            Op::Constant => return,
            Op::Input => {
                self.numbers[id as usize] = OTHERS + node.a;
                return;
            }
            Op::Add => (true, Code::Add),
            Op::Sub => (true, Code::Sub),
            Op::Mul => (true, Code::Mul),
            Op::Div => (true, Code::Div),
            Op::IntDiv => (false, Code::IntDiv),
            Op::Mod => (false, Code::Mod),
            Op::Shl => (false, Code::Shl),
            Op::Shr => (false, Code::Shr),
            Op::And => (false, Code::And),
            Op::Or => (false, Code::Or),
            Op::Xor => (false, Code::Xor),
            Op::Not => (false, Code::Not),
            Op::Digits => (false, Code::Digits),
            Op::Eq => (false, Code::Equal),
            Op::Lt => (false, Code::Less),
            Op::Leq => (false, Code::LessOrEqual),
        };
        let (a, b) = if code == Code::Equal {
            self.alike(node.a, node.b)
        } else if !code.takes_two() {
            (self.number(node.a), NONE)
        } else if elements {
            (self.element(node.a), self.element(node.b))
        } else {
            (self.number(node.a), self.number(node.b))
        };
        let to = self.fresh();
        self.steps.push(Step {
            a,
            b,
            to,
            code,
            from: node.from,
            count: node.count,
        });
        let places = if elements {
            &mut self.elements
        } else {
            &mut self.numbers
        };
        places[id as usize] = to;
    }

    fn check(&mut self, id: Id) {
        let node = self.graph.nodes[id as usize];
        if node.op == Op::Eq {
            let (a, b) = self.alike(node.a, node.b);
            self.push(Code::CheckEqual, a, b, NONE);
        } else {
            let (number, element) = (self.numbers[id as usize], self.elements[id as usize]);
            let a = if number == NONE { element } else { number };
            self.push(Code::Check, a, NONE, NONE);
        }
    }
}

/// The same steps with reuse of registers after their last read, and the number of registers.
fn allocated(mut steps: Vec<Step>, constants: u32, inputs: u32) -> (u32, Vec<Step>) {
    let place = |register: u32| (register - OTHERS - inputs) as usize;
    let temporary = |register: u32| register != NONE && register >= OTHERS + inputs;
    let reads = |step: &Step| [step.a, if step.code.takes_two() { step.b } else { NONE }];
    let written = steps.iter().filter(|step| step.code.gives()).count();
    let mut last = vec![0u32; written];
    for (i, step) in steps.iter().enumerate() {
        for register in reads(step).into_iter().filter(|r| temporary(*r)) {
            last[place(register)] = i as u32;
        }
    }
    let fixed = constants + inputs;
    let mut now = vec![0u32; written];
    let mut free: Vec<u32> = Vec::new();
    let mut used = fixed;
    for (i, step) in steps.iter_mut().enumerate() {
        let read = reads(step);
        let assigned = |register: u32, now: &[u32]| {
            if temporary(register) {
                now[place(register)]
            } else if register >= OTHERS {
                register - OTHERS + constants
            } else {
                register
            }
        };
        step.a = assigned(step.a, &now);
        if step.code.takes_two() {
            step.b = assigned(step.b, &now);
        } else if step.code != Code::Wire {
            step.b = 0;
        }
        for (k, register) in read.into_iter().enumerate() {
            let again = k == 1 && read[0] == register;
            if temporary(register) && !again && last[place(register)] == i as u32 {
                free.push(now[place(register)]);
            }
        }
        if !step.code.gives() {
            step.to = 0;
            continue;
        }
        let written = place(step.to);
        let register = free.pop().unwrap_or_else(|| {
            used += 1;
            used - 1
        });
        now[written] = register;
        step.to = register;
        if last[written] == 0 {
            free.push(register); // nothing reads it
        }
    }
    (used, steps)
}
