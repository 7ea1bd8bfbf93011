//! Groth16 over BN254 in the file formats of circom and snarkjs.
