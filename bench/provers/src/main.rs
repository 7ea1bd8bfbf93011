//! `ragaudit-other-provers arkworks|taceo CIRCUIT.r1cs WITNESS.wtns`: prove with another prover over arkworks' types.
//! Prints wall and processor seconds of the second of two proofs, and the process's peak memory, as JSON.
use std::path::Path;
use std::time::Instant;

use ark_bn254::{Bn254, Fr};
use ark_ff::PrimeField;
use ark_groth16::{Groth16, Proof};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};
use ark_std::rand::rngs::OsRng;
use ark_std::UniformRand;
use ragaudit_groth16::r1cs::{Matrix, R1cs, Witness};
use taceo_groth16::{ConstraintMatrices, LibSnarkReduction};

type Rows = Vec<Vec<(Fr, usize)>>;

struct Circuit {
    instance: usize,
    matrices: [Rows; 3],
    values: Vec<Fr>,
}

impl Circuit {
    fn read(r1cs: &Path, witness: &Path) -> Self {
        let system = R1cs::read(r1cs).expect("a constraint system");
        let rows = |matrix: &Matrix| -> Rows {
            let row = |row: &[(u32, u32)]| {
                let entry = |&(wire, k): &(u32, u32)| (system.coefficients[k as usize], wire as usize);
                row.iter().map(entry).collect()
            };
            matrix.rows().map(row).collect()
        };
        let data = std::fs::read(witness).expect("a witness");
        let values = Witness::parse(&data).expect("a witness");
        Self {
            instance: 1 + system.public,
            matrices: [&system.a, &system.b, &system.c].map(rows),
            values: values.0.iter().map(|x| Fr::from_bigint(*x).expect("below r")).collect(),
        }
    }

    fn prove(&self, which: &str, key: &ark_groth16::ProvingKey<Bn254>) -> Proof<Bn254> {
        let (r, s) = (Fr::rand(&mut OsRng), Fr::rand(&mut OsRng));
        let constraints = self.matrices[0].len();
        if which == "arkworks" {
            return Groth16::<Bn254>::create_proof_with_reduction_and_matrices(
                key, r, s, &self.matrices, self.instance, constraints, &self.values,
            )
            .expect("a proof");
        }
        let [a, b, c] = self.matrices.clone();
        let count = |rows: &Rows| rows.iter().map(Vec::len).sum();
        let matrices = ConstraintMatrices {
            num_instance_variables: self.instance,
            num_witness_variables: self.values.len() - self.instance,
            num_constraints: constraints,
            a_num_non_zero: count(&a),
            b_num_non_zero: count(&b),
            c_num_non_zero: count(&c),
            a,
            b,
            c,
        };
        taceo_groth16::Groth16::<Bn254>::prove::<LibSnarkReduction>(key, r, s, &matrices, &self.values)
            .expect("a proof")
    }
}

impl ConstraintSynthesizer<Fr> for &Circuit {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let mut wires = vec![Variable::One];
        for (i, value) in self.values.iter().enumerate().skip(1) {
            wires.push(if i < self.instance {
                cs.new_input_variable(|| Ok(*value))?
            } else {
                cs.new_witness_variable(|| Ok(*value))?
            });
        }
        let side = |m: usize, i: usize| {
            let terms = self.matrices[m][i].iter();
            terms.fold(LinearCombination::new(), |sum, &(k, wire)| sum + (k, wires[wire]))
        };
        for i in 0..self.matrices[0].len() {
            cs.enforce_r1cs_constraint(|| side(0, i), || side(1, i), || side(2, i))?;
        }
        Ok(())
    }
}

/// Processor seconds of this process so far, and its peak memory in bytes.
fn used() -> (f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|t| t.parse::<u64>().expect("ticks")).sum();
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("peak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("KiB");
    (ticks as f64 / 100.0, kib * 1024)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, which, r1cs, witness] = &arguments[..] else {
        eprintln!("usage: {} arkworks|taceo CIRCUIT.r1cs WITNESS.wtns", arguments[0]);
        std::process::exit(2);
    };
    let circuit = Circuit::read(Path::new(r1cs), Path::new(witness));
    let key = Groth16::<Bn254>::generate_random_parameters_with_reduction(&circuit, &mut OsRng)
        .expect("a key");
    let verifying = ark_groth16::prepare_verifying_key(&key.vk);
    let mut figures = (0.0, 0.0);
    for _ in 0..2 {
        let (start, before) = (Instant::now(), used().0);
        let proof = circuit.prove(which, &key);
        figures = (start.elapsed().as_secs_f64(), used().0 - before);
        let inputs = &circuit.values[1..circuit.instance];
        assert!(Groth16::<Bn254>::verify_proof(&verifying, &proof, inputs).expect("a verdict"));
    }
    let (wall, cpu) = figures;
    println!(
        "{{\"seconds\": {wall:.3}, \"cpu_seconds\": {cpu:.2}, \"peak_bytes\": {}}}",
        used().1
    );
}
