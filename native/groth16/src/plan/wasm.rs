//! A reader of the WebAssembly modules that circom writes: the few instructions of their templates and functions, with their
//! jumps resolved.
//!
//! The reader skips the functions of the field (`Fr_..`); the tracer identifies them by their names in the module's name
//! section. A function with any other instruction has no code here, and cannot be traced.
use std::collections::HashMap;
use std::ops::Range;

use crate::error::{malformed, Error, Result};

/// An instruction. Jumps lead to places in the same function's code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ins {
    Const(i32),
    Const64(i64),
    Get(u32),
    Set(u32),
    Tee(u32),
    Drop,
    Load(u32),
    Load64(u32),
    Store(u32),
    Binary(Binary),
    Eqz,
    Eqz64,
    Eq64,
    Shl64,
    Or64,
    Extend,
    Wrap,
    Call(u32),
    CallIndirect,
    MemorySize,
    MemoryGrow,
    Jump(u32),
    JumpIf(u32),
    /// If the condition is false, continue at `otherwise`: after the `else`, or at the end if there is none.
    If {
        otherwise: u32,
        end: u32,
    },
    Return,
}

/// An operation on two words of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Shl,
    ShrU,
    Eq,
    Ne,
    GtU,
    GeU,
    LtU,
    LeU,
}

/// A function's parameters and results are words; its code is missing if the reader does not support an instruction.
pub struct Function {
    pub name: String,
    pub parameters: usize,
    pub locals: usize,
    pub results: usize,
    pub code: Option<Vec<Ins>>,
}

/// A module before any code runs.
pub struct Module {
    pub functions: Vec<Function>,
    /// The functions of the table, for indirect calls.
    pub table: Vec<u32>,
    pub memory: Vec<u8>,
    names: HashMap<String, u32>,
}

pub const PAGE: usize = 1 << 16;
/// The maximum number of a function's locals; circom uses some dozens.
const MAX_LOCALS: usize = 1 << 12;

impl Module {
    /// The number of the function with a name.
    pub fn named(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Read a module whose memory begins with at most `max_pages` pages.
    pub fn parse(data: &[u8], max_pages: usize) -> Result<Self> {
        let mut reader = Reader { data, at: 0 };
        if reader.take(8)? != b"\0asm\x01\0\0\0" {
            return reader.fail("the file is not a WebAssembly module of version 1");
        }
        let mut types: Vec<(usize, usize)> = Vec::new();
        let mut kinds: Vec<u32> = Vec::new();
        let mut imports = 0;
        let mut bodies: Vec<Range<usize>> = Vec::new();
        let mut names: HashMap<u32, String> = HashMap::new();
        let mut table = Vec::new();
        let mut memory = Vec::new();
        while reader.at < data.len() {
            let id = reader.byte()?;
            let size = reader.number()? as usize;
            let start = reader.at;
            let body = reader.take(size)?;
            let mut r = Reader {
                data: &data[..start + body.len()],
                at: start,
            };
            match id {
                0 if r.text()? == "name" => names = r.function_names()?,
                1 => {
                    for _ in 0..r.number()? {
                        r.expect(0x60)?;
                        types.push((r.value_types()?, r.value_types()?));
                    }
                }
                2 => {
                    for _ in 0..r.number()? {
                        r.text()?;
                        r.text()?;
                        r.expect(0)?;
                        kinds.push(r.number()?);
                        imports += 1;
                    }
                }
                3 => {
                    for _ in 0..r.number()? {
                        kinds.push(r.number()?);
                    }
                }
                5 => {
                    r.expect(1)?;
                    let limited = r.byte()? == 1;
                    let pages = r.number()? as usize;
                    if limited {
                        r.number()?;
                    }
                    if pages > max_pages {
                        return r.fail("the memory is too large");
                    }
                    memory = vec![0; pages * PAGE];
                }
                9 => {
                    for _ in 0..r.number()? {
                        r.expect(0)?;
                        let first = r.constant()? as usize;
                        let count = r.number()? as usize;
                        if first != table.len() || count > body.len() {
                            return r.fail("the table has gaps");
                        }
                        for _ in 0..count {
                            table.push(r.number()?);
                        }
                    }
                }
                10 => {
                    for _ in 0..r.number()? {
                        let size = r.number()? as usize;
                        let from = r.at;
                        r.take(size)?;
                        bodies.push(from..from + size);
                    }
                }
                11 => {
                    for _ in 0..r.number()? {
                        r.expect(0)?;
                        let at = r.constant()? as u32 as usize;
                        let size = r.number()? as usize;
                        let bytes = r.take(size)?;
                        let Some(place) = memory.get_mut(at..at + bytes.len()) else {
                            return r.fail("a data segment lies outside the memory");
                        };
                        place.copy_from_slice(bytes);
                    }
                }
                _ => {}
            }
        }
        if kinds.len() != imports + bodies.len() {
            return reader.fail("the number of functions does not match their bodies");
        }
        let mut functions = Vec::with_capacity(kinds.len());
        for (i, kind) in kinds.iter().enumerate() {
            let Some(&(parameters, results)) = types.get(*kind as usize) else {
                return reader.fail("a function has an unknown type");
            };
            let name = names.remove(&(i as u32)).unwrap_or_default();
            let field = name.starts_with("Fr_");
            let body = i.checked_sub(imports).map(|i| bodies[i].clone());
            let (locals, code) = match body {
                Some(body) if !field => body_of(data, body, parameters)?,
                _ => (parameters, None),
            };
            functions.push(Function {
                name,
                parameters,
                locals,
                results,
                code,
            });
        }
        if let Some(bad) = table.iter().find(|f| **f as usize >= functions.len()) {
            return reader.fail(format!("the table has function {bad}"));
        }
        Ok(Self::new(functions, table, memory))
    }

    pub fn new(functions: Vec<Function>, table: Vec<u32>, memory: Vec<u8>) -> Self {
        let names = (0..).zip(&functions);
        let names = names.map(|(i, f)| (f.name.clone(), i)).collect();
        Self {
            functions,
            table,
            memory,
            names,
        }
    }
}

/// The number of locals of a function's body, and its code.
fn body_of(
    data: &[u8],
    body: Range<usize>,
    parameters: usize,
) -> Result<(usize, Option<Vec<Ins>>)> {
    let mut r = Reader {
        data: &data[..body.end],
        at: body.start,
    };
    let mut locals = parameters;
    for _ in 0..r.number()? {
        locals += r.number()? as usize;
        r.byte()?;
    }
    if locals > MAX_LOCALS {
        return r.fail("a function has too many locals");
    }
    Ok((locals, r.code()?))
}

/// An open block while code is read: the target of jumps to it, or the jumps that wait for its end.
struct Block {
    start: Option<u32>,
    /// The `if` that opened the block, and whether its `else` was read.
    branch: Option<(usize, bool)>,
    waiting: Vec<usize>,
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, reason: impl Into<String>) -> Result<T> {
        malformed(format!("byte {} of the circuit's code", self.at), reason)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.data.get(self.at..self.at.saturating_add(count)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => self.fail("the module is truncated"),
        }
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        match self.byte()? {
            found if found == byte => Ok(()),
            found => self.fail(format!("expected byte {byte}, found {found}")),
        }
    }

    /// A number in LEB128, signed or not, of at most `bits` bits.
    fn leb(&mut self, signed: bool, bits: u32) -> Result<i64> {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                if signed && shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Ok(value);
            }
            if shift >= bits {
                return self.fail("a number is too long");
            }
        }
    }

    fn number(&mut self) -> Result<u32> {
        let value = self.leb(false, 32)?;
        u32::try_from(value).map_err(|_| Error::Malformed {
            place: format!("byte {} of the circuit's code", self.at),
            reason: "a number is too long".into(),
        })
    }

    fn text(&mut self) -> Result<String> {
        let size = self.number()? as usize;
        let bytes = self.take(size)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn value_types(&mut self) -> Result<usize> {
        let count = self.number()? as usize;
        Ok(self.take(count)?.len())
    }

    /// A constant expression: one `i32.const`.
    fn constant(&mut self) -> Result<i32> {
        self.expect(0x41)?;
        let value = self.leb(true, 32)? as i32;
        self.expect(0x0b)?;
        Ok(value)
    }

    fn function_names(&mut self) -> Result<HashMap<u32, String>> {
        let mut names = HashMap::new();
        while self.at < self.data.len() {
            let id = self.byte()?;
            let size = self.number()? as usize;
            if id != 1 {
                self.take(size)?;
                continue;
            }
            for _ in 0..self.number()? {
                let function = self.number()?;
                names.insert(function, self.text()?);
            }
        }
        Ok(names)
    }

    /// The instructions of a function, or `None` if the reader does not support one of them.
    fn code(&mut self) -> Result<Option<Vec<Ins>>> {
        let mut code: Vec<Ins> = Vec::new();
        let mut open = vec![Block {
            start: None,
            branch: None,
            waiting: Vec::new(),
        }];
        loop {
            let opcode = self.byte()?;
            let ins = match opcode {
                0x02..=0x04 => {
                    if self.byte()? != 0x40 {
                        return Ok(None); // a block with a result
                    }
                    let at = code.len();
                    open.push(Block {
                        start: (opcode == 0x03).then_some(at as u32),
                        branch: (opcode == 0x04).then_some((at, false)),
                        waiting: Vec::new(),
                    });
                    if opcode != 0x04 {
                        continue;
                    }
                    Ins::If {
                        otherwise: 0,
                        end: 0,
                    }
                }
                0x05 => {
                    let at = code.len();
                    let Some(block) = open.last_mut() else {
                        return self.fail("an else stands alone");
                    };
                    let Some((branch, false)) = block.branch else {
                        return self.fail("an else stands alone");
                    };
                    block.branch = Some((branch, true));
                    block.waiting.push(at);
                    if let Ins::If { otherwise, .. } = &mut code[branch] {
                        *otherwise = at as u32 + 1;
                    }
                    Ins::Jump(0)
                }
                0x0b => {
                    let Some(block) = open.pop() else {
                        return self.fail("an end stands alone");
                    };
                    let here = code.len() as u32;
                    for at in block.waiting {
                        match &mut code[at] {
                            Ins::Jump(to) | Ins::JumpIf(to) => *to = here,
                            _ => return self.fail("a jump is lost"),
                        }
                    }
                    if let Some((branch, with_else)) = block.branch {
                        if let Ins::If { otherwise, end } = &mut code[branch] {
                            *end = here;
                            if !with_else {
                                *otherwise = here;
                            }
                        }
                    }
                    if open.is_empty() {
                        code.push(Ins::Return);
                        return Ok(Some(code));
                    }
                    continue;
                }
                0x0c | 0x0d => {
                    let depth = self.number()? as usize;
                    let at = code.len();
                    let count = open.len();
                    let Some(block) = count.checked_sub(depth + 1).map(|i| &mut open[i]) else {
                        return self.fail("a jump leaves its function");
                    };
                    let to = block.start.unwrap_or(0);
                    if block.start.is_none() {
                        block.waiting.push(at);
                    }
                    if opcode == 0x0c {
                        Ins::Jump(to)
                    } else {
                        Ins::JumpIf(to)
                    }
                }
                0x0f => Ins::Return,
                0x10 => Ins::Call(self.number()?),
                0x11 => {
                    self.number()?;
                    self.expect(0)?;
                    Ins::CallIndirect
                }
                0x1a => Ins::Drop,
                0x20 => Ins::Get(self.number()?),
                0x21 => Ins::Set(self.number()?),
                0x22 => Ins::Tee(self.number()?),
                0x28 => Ins::Load(self.offset()?),
                0x29 => Ins::Load64(self.offset()?),
                0x36 => Ins::Store(self.offset()?),
                0x3f => {
                    self.expect(0)?;
                    Ins::MemorySize
                }
                0x40 => {
                    self.expect(0)?;
                    Ins::MemoryGrow
                }
                0x41 => Ins::Const(self.leb(true, 32)? as i32),
                0x42 => Ins::Const64(self.leb(true, 64)?),
                0x45 => Ins::Eqz,
                0x46 => Ins::Binary(Binary::Eq),
                0x47 => Ins::Binary(Binary::Ne),
                0x49 => Ins::Binary(Binary::LtU),
                0x4b => Ins::Binary(Binary::GtU),
                0x4d => Ins::Binary(Binary::LeU),
                0x4f => Ins::Binary(Binary::GeU),
                0x50 => Ins::Eqz64,
                0x51 => Ins::Eq64,
                0x6a => Ins::Binary(Binary::Add),
                0x6b => Ins::Binary(Binary::Sub),
                0x6c => Ins::Binary(Binary::Mul),
                0x71 => Ins::Binary(Binary::And),
                0x72 => Ins::Binary(Binary::Or),
                0x74 => Ins::Binary(Binary::Shl),
                0x76 => Ins::Binary(Binary::ShrU),
                0x84 => Ins::Or64,
                0x86 => Ins::Shl64,
                0xa7 => Ins::Wrap,
                0xad => Ins::Extend,
                _ => return Ok(None),
            };
            code.push(ins);
        }
    }

    fn offset(&mut self) -> Result<u32> {
        self.number()?; // alignment
        self.number()
    }
}
