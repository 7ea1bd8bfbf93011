//! Witnesses without circom's runtime: a plan says for every wire how its value follows from the inputs.
//!
//! A plan is made once a circuit, from the code that circom itself wrote to compute witnesses ([`trace`]), so there is no
//! second description of a circuit to be kept in step with its sources. What is left of that code is a list of operations
//! without branches and addresses ([`graph`], [`program`]): a fixed number of steps whatever the inputs are. circom's
//! assertions are among them. Code whose loops or addresses depend on the inputs has no plan.
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

/// What a circuit's code may take while its plan is made. Code beyond them has no plan, whatever it would have computed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Instructions that are followed, words that calls and branches keep, and cells that are copied.
    pub steps: u64,
    /// Pages of 64 KiB of the code's memory.
    pub pages: usize,
    /// Operations, inputs and constants; of checks and of wires there may be as many each.
    pub nodes: usize,
    /// Writes that open branches may have to take back.
    pub writes: usize,
}

impl Limits {
    /// Some twenty times what the largest circuit here takes, of 256 documents and three gains: 217 million steps, 430
    /// pages and 3.65 million nodes. Code that never ends is given up after minutes; what it takes is some gigabytes.
    pub const WIDE: Self = Self {
        steps: 1 << 32,
        pages: 1 << 14,
        nodes: 1 << 26,
        writes: 1 << 22,
    };
}

/// What a circuit's code computes.
struct Traced {
    /// The inputs: the hash of a name, and how many values it has.
    inputs: Vec<(u64, u32)>,
    graph: graph::Graph,
    wires: Vec<graph::Id>,
}

/// The plan of a circuit whose code is `module`, or why there is none within the limits.
pub fn plan(module: &[u8], limits: &Limits) -> Result<std::result::Result<Plan, Untraceable>> {
    let module = wasm::Module::parse(module, limits.pages)?;
    Ok(trace::trace(&module, limits).map(|traced| program::compile(&traced)))
}
