use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField, UniformRand};
use ark_std::test_rng;

use super::graph::{Binary, Graph, Value};
use super::numbers::{self, Number};
use super::program::{compile, fnv};
use super::{plan, Plan, Traced};

/// The numbers that operators treat apart, and random ones.
fn samples() -> Vec<Number> {
    let mut rng = test_rng();
    let mut minus_one = Fr::MODULUS;
    minus_one.sub_with_borrow(&numbers::ONE);
    let mut above_half = Fr::MODULUS_MINUS_ONE_DIV_TWO;
    above_half.add_with_carry(&numbers::ONE);
    let mut all = vec![
        numbers::ZERO,
        numbers::ONE,
        numbers::word(u64::MAX),
        numbers::ONE << 64,
        numbers::ONE << 253,
        Fr::MODULUS_MINUS_ONE_DIV_TWO,
        above_half,
        minus_one,
    ];
    all.extend((0..20).map(|i| Fr::rand(&mut rng).into_bigint() >> (12 * i)));
    all
}

#[test]
fn divisions_leave_a_rest_below_the_divisor() {
    for x in samples() {
        assert_eq!(
            numbers::divide(&x, &numbers::ZERO),
            (numbers::ZERO, numbers::ZERO)
        );
        for y in samples().into_iter().filter(|y| *y != numbers::ZERO) {
            let (quotient, rest) = numbers::divide(&x, &y);
            assert!(rest < y);
            let (mut product, high) = quotient.mul(&y);
            assert_eq!(high, numbers::ZERO);
            product.add_with_carry(&rest);
            assert_eq!(product, x);
        }
    }
}

#[test]
fn digits_are_those_of_the_number() {
    for x in samples() {
        for (from, count) in [
            (0, 1),
            (1, 64),
            (63, 2),
            (64, 64),
            (190, 64),
            (191, 1),
            (250, 6),
            (255, 64),
        ] {
            let found = numbers::digits(&x, from, count);
            let expected = (0..count.min(256 - from))
                .filter(|i| x.get_bit((from + i) as usize))
                .fold(0, |sum, i| sum | 1 << i);
            assert_eq!(found, expected, "{from} {count}");
        }
    }
}

/// A plan with every kind of register: inputs a (one value) and b (two), and wires of sums, digits and comparisons.
fn small() -> Plan {
    let mut graph = Graph::new(3);
    let [x, y, z] = [0, 1, 2].map(Value::Node);
    let known = |k: u64| Value::Known(Fr::from(k));
    let mut wires = vec![graph.id(known(1))];
    let mut wire = |graph: &mut Graph, op, x, y| {
        let value = graph.binary(op, x, y).unwrap();
        wires.push(graph.id(value));
        value
    };
    let sum = wire(&mut graph, Binary::Add, x, y);
    let product = wire(&mut graph, Binary::Mul, sum, z);
    let shifted = wire(&mut graph, Binary::Shr, product, known(3));
    let digit = wire(&mut graph, Binary::And, shifted, known(1));
    wire(&mut graph, Binary::Mul, digit, x);
    wire(&mut graph, Binary::IntDiv, x, known(10));
    wire(&mut graph, Binary::Lt, x, y);
    let equal = graph.binary(Binary::Eq, z, known(5)).unwrap();
    graph.check(equal).unwrap();
    compile(&Traced {
        inputs: vec![(fnv("a"), 1), (fnv("b"), 2)],
        graph,
        wires,
    })
}

fn run(plan: &Plan, a: u64, b: [u64; 2]) -> Option<Vec<u64>> {
    let (a, b) = ([numbers::word(a)], b.map(numbers::word));
    let witness = plan.witness(&[("b", &b), ("a", &a)])?;
    Some(witness.0.iter().map(|x| x.0[0]).collect())
}

#[test]
fn wires_follow_from_the_inputs_by_name() {
    let plan = small();
    let found = run(&plan, 31, [40, 5]).unwrap();
    assert_eq!(found, [1, 71, 355, 44, 0, 0, 3, 1]);
    assert_eq!(
        run(&plan, 31, [41, 5]).unwrap(),
        [1, 72, 360, 45, 1, 31, 3, 1]
    );
    assert!(run(&plan, 31, [40, 6]).is_none(), "the check fails");
}

#[test]
fn inputs_that_are_not_the_circuits_are_refused() {
    let plan = small();
    let (one, two) = ([numbers::ONE], [numbers::ONE, numbers::word(5)]);
    assert!(plan.witness(&[("a", &one), ("b", &two)]).is_some());
    let large = [Fr::MODULUS];
    for wrong in [
        vec![("a", &one[..])],
        vec![("a", &one[..]), ("c", &two[..])],
        vec![("a", &one[..]), ("a", &one[..])],
        vec![("a", &two[..]), ("b", &two[..])],
        vec![("a", &one[..]), ("b", &two[..]), ("c", &two[..])],
        vec![("a", &large[..]), ("b", &two[..])],
    ] {
        assert!(plan.witness(&wrong).is_none());
    }
}

#[test]
fn a_digit_times_itself_less_one_is_nothing_to_check() {
    let mut graph = Graph::new(1);
    let one = Value::Known(Fr::from(1u64));
    let digit = graph.binary(Binary::And, Value::Node(0), one).unwrap();
    let less = graph.binary(Binary::Sub, digit, one).unwrap();
    let product = graph.binary(Binary::Mul, digit, less).unwrap();
    assert_eq!(product, Value::Known(Fr::from(0u64)));
    let other = graph.binary(Binary::Sub, Value::Node(0), one).unwrap();
    let product = graph.binary(Binary::Mul, Value::Node(0), other).unwrap();
    assert_ne!(product, Value::Known(Fr::from(0u64)));
}

/// A file that was cut or changed is refused, or is another plan that runs: no step reads or writes where nothing is.
#[test]
fn files_are_read_strictly() {
    let plan = small();
    let bytes = plan.to_bytes();
    assert_eq!(Plan::parse(&bytes, "plan").unwrap(), plan);
    for size in 0..bytes.len() {
        assert!(Plan::parse(&bytes[..size], "plan").is_err());
    }
    let mut read = 0;
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            if let Ok(other) = Plan::parse(&changed, "plan") {
                read += 1;
                run(&other, 31, [40, 5]);
            }
        }
    }
    assert!(read > 0);
}

#[test]
fn what_is_no_module_is_refused() {
    assert!(plan(b"").is_err());
    assert!(plan(b"\0asm\x01\0\0\0\x01").is_err());
    let empty = plan(b"\0asm\x01\0\0\0").unwrap().unwrap_err();
    assert!(empty.to_string().contains("no function"));
}
