//! Field, Poseidon, DGS-1 noise and int4 products: the arithmetic of `docs/protocol.md` in Rust.
