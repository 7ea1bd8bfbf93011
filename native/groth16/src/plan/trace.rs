//! Runs circom's code once with inputs that have no values, and records the computation.
//!
//! The tracer computes everything that does not depend on the inputs: loops, addresses, parameters, constants. If a branch
//! depends on the inputs, the tracer follows both sides, and each memory cell that the sides leave different becomes a
//! choice. A failed assertion would end the code with an error; in the trace it is a check, and the code continues.
//!
//! A field element has a cell of 40 bytes: a word, a kind, and 32 bytes. circom's kinds are words (0), integers (0x80) and
//! Montgomery forms (0xc0); [`NODE`] is one of ours, whose word is a node's number.
use std::collections::HashMap;

use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField};

use super::graph::{Binary, Graph, Id, Op, Value};
use super::wasm::{self, Ins, Module, PAGE};
use super::{Limits, Traced, Untraceable};
use crate::field::limbs;

const CELL: usize = 40;
/// The offset of the byte with a cell's kind.
const KIND: usize = 7;
const LONG: u8 = 0x80;
const MONTGOMERY: u8 = 0x40;
const NODE: u8 = 0x20;
/// The maximum depth of nested calls and of nested branches that depend on the inputs.
const DEPTH: usize = 200;
/// The maximum number of words on a function's stack; circom's code needs a few.
const MAX_WORDS: usize = 1 << 12;
/// Entries of the table of inputs by their names' hashes, 16 bytes each, which follows the words of the shared cell.
const INPUTS: usize = 256;
const SHARED_WORDS: usize = 40;
const SHARED_HEAD: usize = 8;

type Outcome<T> = Result<T, Untraceable>;

fn no<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Untraceable::new(reason))
}

/// A word on the stack or in a local.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    Int(i32),
    Long(i64),
    /// Whether a node of value 0 or 1 is 1, or is 0.
    Truth {
        node: Id,
        negated: bool,
    },
    /// Two branches left different values in the word.
    Lost,
}

/// The effect of a function that the tracer does not follow.
#[derive(Clone, Copy)]
enum Known {
    Binary(Binary),
    Copy,
    CopyMany,
    IsTrue,
    ToInt,
    Equal,
    Negate,
    Invert,
    Complement,
    Not,
    /// Changes the form of a cell and not its value, or clears a cell that is written next.
    Nothing,
    Message,
}

fn known(name: &str) -> Option<Known> {
    use Binary::*;
    Some(match name {
        "Fr_add" => Known::Binary(Add),
        "Fr_sub" => Known::Binary(Sub),
        "Fr_mul" => Known::Binary(Mul),
        "Fr_div" => Known::Binary(Div),
        "Fr_idiv" => Known::Binary(IntDiv),
        "Fr_mod" => Known::Binary(Mod),
        "Fr_pow" => Known::Binary(Pow),
        "Fr_shl" => Known::Binary(Shl),
        "Fr_shr" => Known::Binary(Shr),
        "Fr_band" => Known::Binary(And),
        "Fr_bor" => Known::Binary(Or),
        "Fr_bxor" => Known::Binary(Xor),
        "Fr_eq" => Known::Binary(Eq),
        "Fr_neq" => Known::Binary(Neq),
        "Fr_lt" => Known::Binary(Lt),
        "Fr_leq" => Known::Binary(Leq),
        "Fr_gt" => Known::Binary(Gt),
        "Fr_geq" => Known::Binary(Geq),
        "Fr_land" => Known::Binary(Land),
        "Fr_lor" => Known::Binary(Lor),
        "Fr_copy" => Known::Copy,
        "Fr_copyn" => Known::CopyMany,
        "Fr_isTrue" => Known::IsTrue,
        "Fr_toInt" => Known::ToInt,
        "Fr_eqR" => Known::Equal,
        "Fr_neg" => Known::Negate,
        "Fr_inv" => Known::Invert,
        "Fr_bnot" => Known::Complement,
        "Fr_lnot" => Known::Not,
        "Fr_int_zero" | "Fr_toLongNormal" | "Fr_toNormal" | "Fr_toMontgomery" => Known::Nothing,
        "buildBufferMessage" | "printErrorMessage" => Known::Message,
        _ => return None,
    })
}

/// The bytes that a branch overwrote.
struct Written {
    at: usize,
    size: usize,
    old: [u8; CELL],
}

struct Frame<'m> {
    function: u32,
    code: &'m [Ins],
    locals: Vec<Word>,
    stack: Vec<Word>,
}

impl Frame<'_> {
    fn pop(&mut self) -> Outcome<Word> {
        match self.stack.pop() {
            Some(word) => Ok(word),
            None => no("the stack is empty"),
        }
    }

    fn int(&mut self) -> Outcome<i32> {
        match self.pop()? {
            Word::Int(x) => Ok(x),
            found => no(format!(
                "an address or a count depends on the inputs ({found:?})"
            )),
        }
    }

    fn address(&mut self) -> Outcome<usize> {
        Ok(self.int()? as u32 as usize)
    }

    fn long(&mut self) -> Outcome<i64> {
        match self.pop()? {
            Word::Long(x) => Ok(x),
            _ => no("expected a long word"),
        }
    }

    fn local(&mut self, i: u32) -> Outcome<&mut Word> {
        match self.locals.get_mut(i as usize) {
            Some(word) => Ok(word),
            None => no("a local that is not there"),
        }
    }
}

/// The end of a run: the end of the code to run, or a return.
enum End {
    Reached,
    Returned(Option<Word>),
}

struct Tracer<'m> {
    module: &'m Module,
    known: Vec<Option<Known>>,
    memory: Vec<u8>,
    graph: Graph,
    /// The bytes that each current branch overwrote.
    branches: Vec<Vec<Written>>,
    /// The number of these writes.
    writes: usize,
    depth: usize,
    limits: &'m Limits,
    /// The number of executed steps.
    steps: u64,
    set_input: u32,
    print_error: u32,
}

/// Follow a module from its inputs to its wires.
pub fn trace(module: &Module, limits: &Limits) -> Outcome<Traced> {
    let function = |name: &str| match module.named(name) {
        Some(i) => Ok(i),
        None => no(format!("the module has no function {name}")),
    };
    let mut tracer = Tracer {
        module,
        known: module.functions.iter().map(|f| known(&f.name)).collect(),
        memory: module.memory.clone(),
        graph: Graph::new(0, limits.nodes),
        branches: Vec::new(),
        writes: 0,
        depth: 0,
        limits,
        steps: 0,
        set_input: function("setInputSignal")?,
        print_error: function("printErrorMessage")?,
    };
    let shared = tracer.count(function("getSharedRWMemoryStart")?)?;
    if shared < SHARED_HEAD {
        return no("the shared cell has no head");
    }
    let cell = shared - SHARED_HEAD;
    let inputs = tracer.inputs(shared + SHARED_WORDS)?;
    let total: usize = inputs.iter().map(|(_, count)| *count as usize).sum();
    if total != tracer.count(function("getInputSize")?)? {
        return no("the table of inputs is not where it was expected");
    }
    if total > limits.nodes {
        return no(format!("the circuit has {total} values of inputs"));
    }
    tracer.graph = Graph::new(total, limits.nodes);
    tracer.call(function("init")?, vec![Word::Int(0)])?;
    let mut node = 0;
    for (hash, count) in &inputs {
        for i in 0..*count {
            tracer.write(cell, Value::Node(node))?;
            node += 1;
            let halves = [(hash >> 32) as i32, *hash as i32, i as i32];
            tracer.call(tracer.set_input, halves.map(Word::Int).to_vec())?;
        }
    }
    let wires = tracer.count(function("getWitnessSize")?)?;
    let wire = function("getWitness")?;
    if wires > limits.nodes {
        return no(format!("the circuit has {wires} wires"));
    }
    let mut values = Vec::with_capacity(wires);
    for i in 0..wires {
        tracer.call(wire, vec![Word::Int(i as i32)])?;
        let value = tracer.read(cell)?;
        values.push(tracer.graph.id(value)?);
    }
    Ok(Traced {
        inputs,
        graph: tracer.graph,
        wires: values,
    })
}

impl<'m> Tracer<'m> {
    /// Count steps, and stop at the limit, because the tracer cannot decide whether code ends.
    #[inline(always)]
    fn spend(&mut self, steps: usize) -> Outcome<()> {
        self.steps += steps as u64;
        if self.steps > self.limits.steps {
            let maximum = self.limits.steps;
            return no(format!(
                "the circuit's code takes more than {maximum} steps"
            ));
        }
        Ok(())
    }

    /// The inputs by their names' hashes, with the number of values of each, in the order of the table.
    fn inputs(&self, table: usize) -> Outcome<Vec<(u64, u32)>> {
        let mut inputs = Vec::new();
        for i in 0..INPUTS {
            let entry = self.bytes(table + 16 * i, 16)?;
            let hash = u64::from_le_bytes(entry[..8].try_into().expect("8 bytes"));
            let count = u32::from_le_bytes(entry[12..].try_into().expect("4 bytes"));
            if hash != 0 {
                inputs.push((hash, count));
            }
        }
        if inputs.iter().any(|(_, count)| *count > 1 << 24) {
            return no("an input is too large");
        }
        Ok(inputs)
    }

    /// A number that a function without parameters returns.
    fn count(&mut self, function: u32) -> Outcome<usize> {
        match self.call(function, Vec::new())? {
            Some(Word::Int(x)) if x >= 0 => Ok(x as usize),
            _ => no("expected a number"),
        }
    }

    fn bytes(&self, at: usize, size: usize) -> Outcome<&[u8]> {
        match self.memory.get(at..at + size) {
            Some(bytes) => Ok(bytes),
            None => no("an address outside the memory"),
        }
    }

    /// Write at most the bytes of one cell.
    fn store(&mut self, at: usize, bytes: &[u8]) -> Outcome<()> {
        let size = bytes.len();
        let Some(place) = self.memory.get_mut(at..at + size) else {
            return no("an address outside the memory");
        };
        if let Some(written) = self.branches.last_mut() {
            if self.writes == self.limits.writes {
                return no("branches that depend on the inputs write too much");
            }
            self.writes += 1;
            let mut old = [0; CELL];
            old[..size].copy_from_slice(place);
            written.push(Written { at, size, old });
        }
        place.copy_from_slice(bytes);
        Ok(())
    }

    /// The value of a cell with a word.
    fn short(&self, at: usize) -> Outcome<Option<i32>> {
        let head = self.bytes(at, 8)?;
        let word = i32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
        Ok((head[KIND] & (LONG | NODE) == 0).then_some(word))
    }

    fn read(&self, at: usize) -> Outcome<Value> {
        self.value(self.bytes(at, CELL)?)
    }

    /// The value of a cell's bytes. A cell with a node may come from the module itself, so its number is checked.
    fn value(&self, cell: &[u8]) -> Outcome<Value> {
        let value = value(cell)?;
        if let Value::Node(id) = value {
            let node = self.graph.nodes.get(id as usize);
            if node.is_none_or(|node| node.op == Op::Constant) {
                return no("a cell is of no kind that circom writes");
            }
        }
        Ok(value)
    }

    fn write_short(&mut self, at: usize, x: i32) -> Outcome<()> {
        let mut cell = [0; CELL];
        cell[..4].copy_from_slice(&x.to_le_bytes());
        self.store(at, &cell)
    }

    fn write(&mut self, at: usize, value: Value) -> Outcome<()> {
        let mut cell = [0; CELL];
        match value {
            Value::Node(id) => {
                cell[..4].copy_from_slice(&id.to_le_bytes());
                cell[KIND] = NODE;
            }
            Value::Known(x) => {
                cell[KIND] = LONG | MONTGOMERY;
                for (place, limb) in cell[8..].chunks_exact_mut(8).zip(x.0 .0) {
                    place.copy_from_slice(&limb.to_le_bytes());
                }
            }
        }
        self.store(at, &cell)
    }

    fn copy(&mut self, to: usize, from: usize) -> Outcome<()> {
        let cell: [u8; CELL] = self.bytes(from, CELL)?.try_into().expect("a cell");
        self.store(to, &cell)
    }

    fn call(&mut self, function: u32, arguments: Vec<Word>) -> Outcome<Option<Word>> {
        let module = self.module;
        let Some(f) = module.functions.get(function as usize) else {
            return no("a function that is not there");
        };
        let Some(code) = &f.code else {
            return no(format!("the function {:?} is not known", f.name));
        };
        if self.depth == DEPTH {
            return no("calls are nested too deeply");
        }
        self.depth += 1;
        self.spend(f.locals)?;
        let mut locals = arguments;
        locals.resize(f.locals, Word::Int(0));
        let mut frame = Frame {
            function,
            code,
            locals,
            stack: Vec::new(),
        };
        let end = self.run(&mut frame, 0, code.len())?;
        self.depth -= 1;
        match end {
            End::Returned(word) if f.results > 0 => Ok(word),
            _ => Ok(None),
        }
    }

    /// Run a function's code from one place to another.
    fn run(&mut self, frame: &mut Frame<'m>, from: usize, to: usize) -> Outcome<End> {
        let code = frame.code;
        let mut at = from;
        while at != to {
            let ins = code[at];
            at += 1;
            self.spend(1)?;
            if frame.stack.len() > MAX_WORDS {
                return no("a function's stack is too large");
            }
            match ins {
                Ins::Const(x) => frame.stack.push(Word::Int(x)),
                Ins::Const64(x) => frame.stack.push(Word::Long(x)),
                Ins::Get(i) => {
                    let word = *frame.local(i)?;
                    frame.stack.push(word);
                }
                Ins::Set(i) => *frame.local(i)? = frame.pop()?,
                Ins::Tee(i) => {
                    let word = frame.pop()?;
                    *frame.local(i)? = word;
                    frame.stack.push(word);
                }
                Ins::Drop => drop(frame.pop()?),
                Ins::Load(offset) => {
                    let place = frame.address()? + offset as usize;
                    let bytes = self.bytes(place, 4)?.try_into().expect("4 bytes");
                    frame.stack.push(Word::Int(i32::from_le_bytes(bytes)));
                }
                Ins::Load64(offset) => {
                    let place = frame.address()? + offset as usize;
                    let bytes = self.bytes(place, 8)?.try_into().expect("8 bytes");
                    frame.stack.push(Word::Long(i64::from_le_bytes(bytes)));
                }
                Ins::Store(offset) => {
                    let word = frame.int()?;
                    let place = frame.address()? + offset as usize;
                    self.store(place, &word.to_le_bytes())?;
                }
                Ins::Binary(op) => {
                    let y = frame.int()?;
                    let x = frame.int()?;
                    frame.stack.push(Word::Int(computed(op, x, y)));
                }
                Ins::Eqz => {
                    let word = match frame.pop()? {
                        Word::Int(x) => Word::Int(i32::from(x == 0)),
                        Word::Truth { node, negated } => Word::Truth {
                            node,
                            negated: !negated,
                        },
                        _ => return no("a word of another kind"),
                    };
                    frame.stack.push(word);
                }
                Ins::Eqz64 => {
                    let x = frame.long()?;
                    frame.stack.push(Word::Int(i32::from(x == 0)));
                }
                Ins::Eq64 => {
                    let (y, x) = (frame.long()?, frame.long()?);
                    frame.stack.push(Word::Int(i32::from(x == y)));
                }
                Ins::Shl64 => {
                    let (y, x) = (frame.long()?, frame.long()?);
                    frame.stack.push(Word::Long(x << (y & 63)));
                }
                Ins::Or64 => {
                    let (y, x) = (frame.long()?, frame.long()?);
                    frame.stack.push(Word::Long(x | y));
                }
                Ins::Extend => {
                    let x = frame.int()?;
                    frame.stack.push(Word::Long(i64::from(x as u32)));
                }
                Ins::Wrap => {
                    let x = frame.long()?;
                    frame.stack.push(Word::Int(x as i32));
                }
                Ins::MemorySize => {
                    let pages = (self.memory.len() / PAGE) as i32;
                    frame.stack.push(Word::Int(pages));
                }
                Ins::MemoryGrow => {
                    let pages = self.memory.len() / PAGE;
                    let more = frame.address()?;
                    if pages + more > self.limits.pages {
                        return no("the circuit's memory is too large");
                    }
                    self.memory.resize((pages + more) * PAGE, 0);
                    frame.stack.push(Word::Int(pages as i32));
                }
                Ins::Call(function) => self.called(frame, function)?,
                Ins::CallIndirect => {
                    let place = frame.address()?;
                    match self.module.table.get(place) {
                        Some(function) => self.called(frame, *function)?,
                        None => return no("a function that the table does not have"),
                    }
                }
                Ins::Return => return Ok(End::Returned(frame.stack.pop())),
                Ins::Jump(target) => at = inside(target, from, to)?,
                Ins::JumpIf(target) => match frame.pop()? {
                    Word::Int(0) => {}
                    Word::Int(_) => at = inside(target, from, to)?,
                    _ => return no("how often a loop runs depends on the inputs"),
                },
                Ins::If { otherwise, end } => match frame.pop()? {
                    Word::Int(0) => at = otherwise as usize,
                    Word::Int(_) => {}
                    Word::Truth { node, negated } => {
                        self.branch(frame, at, otherwise as usize, end as usize, node, negated)?;
                        at = end as usize;
                    }
                    _ => return no("a word of another kind"),
                },
            }
        }
        Ok(End::Reached)
    }

    /// A branch whose condition depends on the inputs: `code[then..]`, and what follows `otherwise` up to `end`.
    fn branch(
        &mut self,
        frame: &mut Frame<'m>,
        then: usize,
        otherwise: usize,
        end: usize,
        node: Id,
        negated: bool,
    ) -> Outcome<()> {
        let body = &frame.code[then..end];
        let fails = body.contains(&Ins::Call(self.print_error));
        if otherwise == end && fails && body.last() == Some(&Ins::Return) {
            let condition = Value::Node(node);
            let holds = if negated {
                condition
            } else {
                self.graph.negated(condition)?
            };
            return self.graph.check(holds);
        }
        if self.branches.len() == DEPTH {
            return no("branches that depend on the inputs are nested too deeply");
        }
        self.spend(2 * frame.locals.len())?;
        // The jump over the other side belongs to neither side.
        let then_end = if otherwise == end { end } else { otherwise - 1 };
        let before = (frame.locals.clone(), frame.stack.len());
        let mut sides = Vec::new();
        for (from, to, holds) in [(then, then_end, !negated), (otherwise, end, negated)] {
            frame.locals.clone_from(&before.0);
            self.branches.push(Vec::new());
            self.graph.enter(node, holds);
            let ended = self.run(frame, from, to)?;
            self.graph.leave();
            if matches!(ended, End::Returned(_)) || frame.stack.len() != before.1 {
                return no("a branch that depends on the inputs ends its function");
            }
            let written = self.branches.pop().expect("pushed above");
            self.writes -= written.len();
            sides.push((self.undone(&written)?, frame.locals.clone()));
        }
        let (second, _) = sides.pop().expect("two sides");
        let (first, other) = sides.pop().expect("two sides");
        for (local, other) in frame.locals.iter_mut().zip(other) {
            if *local != other {
                *local = Word::Lost;
            }
        }
        let mut places: Vec<(usize, usize)> = first.keys().chain(second.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        for (at, size) in places {
            let kept = self.bytes(at, size)?.to_vec();
            let x = first.get(&(at, size)).unwrap_or(&kept);
            let y = second.get(&(at, size)).unwrap_or(&kept);
            if x == y {
                self.store(at, x)?;
                continue;
            }
            if size != CELL {
                return no("branches that depend on the inputs leave different addresses");
            }
            let (x, y) = (self.value(x)?, self.value(y)?);
            let (x, y) = if negated { (y, x) } else { (x, y) };
            let chosen = self.graph.choice(node, x, y)?;
            self.write(at, chosen)?;
        }
        Ok(())
    }

    /// Undo the writes of a branch, and return the written bytes.
    fn undone(&mut self, written: &[Written]) -> Outcome<HashMap<(usize, usize), Vec<u8>>> {
        let mut left = HashMap::new();
        for w in written {
            left.insert((w.at, w.size), self.bytes(w.at, w.size)?.to_vec());
        }
        for w in written.iter().rev() {
            self.memory[w.at..w.at + w.size].copy_from_slice(&w.old[..w.size]);
        }
        Ok(left)
    }

    fn called(&mut self, frame: &mut Frame<'m>, function: u32) -> Outcome<()> {
        let Some(known) = self.known.get(function as usize).copied().flatten() else {
            let Some(f) = self.module.functions.get(function as usize) else {
                return no("a function that is not there");
            };
            let Some(first) = frame.stack.len().checked_sub(f.parameters) else {
                return no("the stack is empty");
            };
            let arguments = frame.stack.split_off(first);
            let result = self.call(function, arguments)?;
            frame.stack.extend(result);
            return Ok(());
        };
        // circom's code for setting an input tests whether the value is short, to store it in short form.
        let setting = frame.function == self.set_input;
        match known {
            Known::Message => {
                for _ in 0..self.module.functions[function as usize].parameters {
                    frame.pop()?;
                }
            }
            Known::Nothing => drop(frame.pop()?),
            Known::Copy => {
                let (from, to) = (frame.address()?, frame.address()?);
                self.copy(to, from)?;
            }
            Known::CopyMany => {
                let (count, from, to) = (frame.address()?, frame.address()?, frame.address()?);
                self.spend(count)?;
                for i in 0..count {
                    self.copy(to + CELL * i, from + CELL * i)?;
                }
            }
            Known::IsTrue => {
                let at = frame.address()?;
                let word = match self.short(at)? {
                    Some(x) => Word::Int(i32::from(x != 0)),
                    None => {
                        let value = self.read(at)?;
                        match self.graph.truth(value)? {
                            Value::Known(x) => Word::Int(i32::from(x == Fr::from(true))),
                            Value::Node(node) => Word::Truth {
                                node,
                                negated: false,
                            },
                        }
                    }
                };
                frame.stack.push(word);
            }
            Known::ToInt => {
                let at = frame.address()?;
                let word = match (self.short(at)?, self.read(at)?) {
                    (Some(x), _) => x,
                    (_, Value::Known(x)) => lowest(x),
                    _ if setting => 0,
                    _ => return no("an index depends on the inputs"),
                };
                frame.stack.push(Word::Int(word));
            }
            Known::Equal => {
                let (y, x) = (frame.address()?, frame.address()?);
                if !setting {
                    return no("a comparison outside of templates");
                }
                let same = self.read(x)? == self.read(y)?;
                frame.stack.push(Word::Int(i32::from(same)));
            }
            Known::Negate => {
                let (x, to) = (frame.address()?, frame.address()?);
                let value = self.read(x)?;
                let zero = Value::Known(Fr::from(false));
                let result = self.graph.binary(Binary::Sub, zero, value)?;
                self.write(to, result)?;
            }
            Known::Invert => {
                let (x, to) = (frame.address()?, frame.address()?);
                let value = self.read(x)?;
                let one = Value::Known(Fr::from(true));
                let result = self.graph.binary(Binary::Div, one, value)?;
                self.write(to, result)?;
            }
            Known::Complement => {
                let (x, to) = (frame.address()?, frame.address()?);
                let value = self.read(x)?;
                let result = self.graph.complement(value)?;
                self.write(to, result)?;
            }
            Known::Not => {
                let (x, to) = (frame.address()?, frame.address()?);
                let value = self.read(x)?;
                let truth = self.graph.truth(value)?;
                let result = self.graph.negated(truth)?;
                self.write(to, result)?;
            }
            Known::Binary(op) => {
                let (y, x, to) = (frame.address()?, frame.address()?, frame.address()?);
                if let (Some(a), Some(b)) = (self.short(x)?, self.short(y)?) {
                    if let Some(result) = of_words(op, a, b) {
                        return self.write_short(to, result);
                    }
                }
                let (x, y) = (self.read(x)?, self.read(y)?);
                let result = self.graph.binary(op, x, y)?;
                self.write(to, result)?;
            }
        }
        Ok(())
    }
}

/// The target of a jump, which must be inside the code to run.
fn inside(target: u32, from: usize, to: usize) -> Outcome<usize> {
    let target = target as usize;
    if (from..=to).contains(&target) {
        Ok(target)
    } else {
        no("a branch that depends on the inputs is left")
    }
}

/// The value in a cell's bytes.
fn value(cell: &[u8]) -> Outcome<Value> {
    let word = u32::from_le_bytes(cell[..4].try_into().expect("4 bytes"));
    let kind = cell[KIND];
    if kind & LONG != 0 {
        let number = limbs(&cell[8..]);
        if number >= Fr::MODULUS {
            return no("a constant is not below the group order");
        }
        return Ok(Value::Known(if kind & MONTGOMERY != 0 {
            Fr::new_unchecked(number)
        } else {
            Fr::from_bigint(number).expect("compared above")
        }));
    }
    if kind & NODE != 0 {
        return Ok(Value::Node(word));
    }
    Ok(Value::Known(Fr::from(word as i32)))
}

/// circom's `Fr_toInt` of a number: its lowest 32 bits, or minus the lowest 32 bits of its negative.
fn lowest(x: Fr) -> i32 {
    let number = x.into_bigint();
    if number > Fr::MODULUS_MINUS_ONE_DIV_TWO {
        let mut magnitude = Fr::MODULUS;
        magnitude.sub_with_borrow(&number);
        (magnitude.0[0] as i32).wrapping_neg()
    } else {
        number.0[0] as i32
    }
}

fn computed(op: wasm::Binary, x: i32, y: i32) -> i32 {
    let (u, v) = (x as u32, y as u32);
    match op {
        wasm::Binary::Add => x.wrapping_add(y),
        wasm::Binary::Sub => x.wrapping_sub(y),
        wasm::Binary::Mul => x.wrapping_mul(y),
        wasm::Binary::And => x & y,
        wasm::Binary::Or => x | y,
        wasm::Binary::Shl => x.wrapping_shl(v),
        wasm::Binary::ShrU => u.wrapping_shr(v) as i32,
        wasm::Binary::Eq => i32::from(x == y),
        wasm::Binary::Ne => i32::from(x != y),
        wasm::Binary::GtU => i32::from(u > v),
        wasm::Binary::GeU => i32::from(u >= v),
        wasm::Binary::LtU => i32::from(u < v),
        wasm::Binary::LeU => i32::from(u <= v),
    }
}

/// An operation on words with a word as its result, as in loop counters.
fn of_words(op: Binary, x: i32, y: i32) -> Option<i32> {
    let small = |v: i64| i32::try_from(v).ok();
    let (a, b) = (i64::from(x), i64::from(y));
    match op {
        Binary::Add => small(a + b),
        Binary::Sub => small(a - b),
        Binary::Mul => small(a * b),
        Binary::Eq => Some(i32::from(x == y)),
        Binary::Neq => Some(i32::from(x != y)),
        Binary::Lt => Some(i32::from(x < y)),
        Binary::Leq => Some(i32::from(x <= y)),
        Binary::Gt => Some(i32::from(x > y)),
        Binary::Geq => Some(i32::from(x >= y)),
        Binary::Land => Some(i32::from(x != 0 && y != 0)),
        Binary::Lor => Some(i32::from(x != 0 || y != 0)),
        _ => None,
    }
}
