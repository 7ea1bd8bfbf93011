//! Witnesses without circom's runtime. A plan computes the value of every wire from the inputs.
//!
//! The crate derives the plan of a circuit once, from the code that circom generates for witnesses ([`trace`]). The circuit
//! therefore has no second description. The plan is a list of operations without branches and addresses ([`graph`],
//! [`program`]), so the number of steps is the same for all inputs. The operations include circom's assertions. Code with
//! loops or addresses that depend on the inputs has no plan.
mod graph;
mod numbers;
mod program;
#[cfg(test)]
mod tests;
mod trace;
mod wasm;

pub use program::Plan;

use crate::error::Result;

/// Why a circuit has no plan.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Untraceable(String);

impl Untraceable {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The limits of a circuit's code while its plan is derived. Code that exceeds a limit has no plan.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of followed instructions, of words that calls and branches store, and of copied cells.
    pub steps: u64,
    /// Pages of 64 KiB of the code's memory.
    pub pages: usize,
    /// The number of operations, inputs and constants; also the maximum number of checks, and of wires.
    pub nodes: usize,
    /// The number of writes that open branches may have to undo.
    pub writes: usize,
}

impl Limits {
    /// About twenty times the needs of the largest circuit here (256 documents and three gains: 217 million steps, 430 pages
    /// and 3.65 million nodes). Code that never ends stops after minutes and uses some gigabytes.
    pub const WIDE: Self = Self {
        steps: 1 << 32,
        pages: 1 << 14,
        nodes: 1 << 26,
        writes: 1 << 22,
    };
}

/// The computation of a circuit's code.
struct Traced {
    /// The inputs: the hash of each name, and the number of its values.
    inputs: Vec<(u64, u32)>,
    graph: graph::Graph,
    wires: Vec<graph::Id>,
}

/// The plan of a circuit with the code `module`, or the reason why it has none within the limits.
pub fn plan(module: &[u8], limits: &Limits) -> Result<std::result::Result<Plan, Untraceable>> {
    let module = wasm::Module::parse(module, limits.pages)?;
    Ok(trace::trace(&module, limits).map(|traced| program::compile(&traced)))
}
