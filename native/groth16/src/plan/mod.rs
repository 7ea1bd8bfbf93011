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

/// What a circuit's code computes.
struct Traced {
    /// The inputs: the hash of a name, and how many values it has.
    inputs: Vec<(u64, u32)>,
    graph: graph::Graph,
    wires: Vec<graph::Id>,
}

/// The plan of a circuit whose code is `module`, or why there is none.
pub fn plan(module: &[u8]) -> Result<std::result::Result<Plan, Untraceable>> {
    let module = wasm::Module::parse(module)?;
    Ok(trace::trace(&module).map(|traced| program::compile(&traced)))
}
