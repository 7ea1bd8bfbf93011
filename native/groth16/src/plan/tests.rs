use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField, UniformRand};
use ark_std::test_rng;

use super::graph::{Binary, Graph, Value};
use super::numbers::{self, Number};
use super::program::{compile, fnv};
use super::trace::trace;
use super::wasm::{self, Function, Ins, Module};
use super::{plan, Limits, Plan, Traced};

/// Numbers that operators treat specially, and random numbers.
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
            let actual = numbers::digits(&x, from, count);
            let expected = (0..count.min(256 - from))
                .filter(|i| x.get_bit((from + i) as usize))
                .fold(0, |sum, i| sum | 1 << i);
            assert_eq!(actual, expected, "{from} {count}");
        }
    }
}

/// A plan with every kind of register: inputs a (one value) and b (two), and wires of sums, digits and comparisons.
fn small() -> Plan {
    let mut graph = Graph::new(3, 100);
    let [x, y, z] = [0, 1, 2].map(Value::Node);
    let known = |k: u64| Value::Known(Fr::from(k));
    let mut wires = vec![graph.id(known(1)).unwrap()];
    let mut wire = |graph: &mut Graph, op, x, y| {
        let value = graph.binary(op, x, y).unwrap();
        wires.push(graph.id(value).unwrap());
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
    let actual = run(&plan, 31, [40, 5]).unwrap();
    assert_eq!(actual, [1, 71, 355, 44, 0, 0, 3, 1]);
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
    let mut graph = Graph::new(1, 100);
    let one = Value::Known(Fr::from(1u64));
    let digit = graph.binary(Binary::And, Value::Node(0), one).unwrap();
    let less = graph.binary(Binary::Sub, digit, one).unwrap();
    let product = graph.binary(Binary::Mul, digit, less).unwrap();
    assert_eq!(product, Value::Known(Fr::from(0u64)));
    let other = graph.binary(Binary::Sub, Value::Node(0), one).unwrap();
    let product = graph.binary(Binary::Mul, Value::Node(0), other).unwrap();
    assert_ne!(product, Value::Known(Fr::from(0u64)));
}

/// A truncated or changed file is refused, or is another valid plan: no step accesses a missing register.
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
    let plan = |module: &[u8]| plan(module, &Limits::WIDE);
    assert!(plan(b"").is_err());
    assert!(plan(b"\0asm\x01\0\0\0\x01").is_err());
    let empty = plan(b"\0asm\x01\0\0\0").unwrap().unwrap_err();
    assert!(empty.to_string().contains("no function"));
}

/// A plan of a few bytes that states 2^32 - 1 values of an input allocates no memory for them.
#[test]
fn registers_take_no_room_before_the_inputs_are_there() {
    let maximum = u32::MAX;
    let mut file = b"ragplan1".to_vec();
    for count in [1, 0, maximum, 0, 0] {
        file.extend(u32::to_le_bytes(count));
    }
    file.extend(fnv("a").to_le_bytes());
    file.extend(maximum.to_le_bytes());
    let plan = Plan::parse(&file, "plan").unwrap();
    assert!(plan.witness(&[("a", &[numbers::ONE])]).is_none());
    assert!(plan.witness(&[]).is_none());
}

const SHARED: usize = 16;
const LIMITS: Limits = Limits {
    steps: 10_000,
    pages: 2,
    nodes: 100,
    writes: 10,
};
/// The addresses of the input's cell and of the cell with 1.
const OWN: i32 = 8192;
const ONE: i32 = 8256;
const COPY: u32 = 0;
const COPY_MANY: u32 = 1;
const IS_TRUE: u32 = 2;
const INIT: u32 = 7;

/// A module like circom's with one input `a`, which is the only wire except the first, with the code `init` and the code
/// `follows`, which runs after the input is set.
fn module(init: &[Ins], follows: &[Ins]) -> Module {
    let function = |name: &str, parameters, results, code: &[Ins]| Function {
        name: name.into(),
        parameters,
        locals: parameters + 2,
        results,
        code: (!name.starts_with("Fr_")).then(|| [code, &[Ins::Return]].concat()),
    };
    let cell = SHARED as i32 - 8;
    let copy = |to: i32, from: i32| [Ins::Const(to), Ins::Const(from), Ins::Call(COPY)];
    let (otherwise, end) = (6, 9);
    let get = [
        &[Ins::Get(0), Ins::If { otherwise, end }][..],
        &copy(cell, OWN),
        &[Ins::Jump(end)],
        &copy(cell, ONE),
    ]
    .concat();
    let functions = vec![
        function("Fr_copy", 2, 0, &[]),
        function("Fr_copyn", 3, 0, &[]),
        function("Fr_isTrue", 1, 1, &[]),
        function("printErrorMessage", 1, 0, &[]),
        function("getSharedRWMemoryStart", 0, 1, &[Ins::Const(SHARED as i32)]),
        function("getInputSize", 0, 1, &[Ins::Const(1)]),
        function("getWitnessSize", 0, 1, &[Ins::Const(2)]),
        function("init", 1, 0, init),
        function(
            "setInputSignal",
            3,
            0,
            &[&copy(OWN, cell), follows].concat(),
        ),
        function("getWitness", 1, 0, &get),
    ];
    let mut memory = vec![0; 1 << 16];
    let table = SHARED + 40;
    memory[table..table + 8].copy_from_slice(&fnv("a").to_le_bytes());
    memory[table + 12] = 1;
    memory[ONE as usize] = 1;
    Module::new(functions, Vec::new(), memory)
}

/// The reason why such code has no plan, or an empty text.
fn refused(init: &[Ins], follows: &[Ins], limits: &Limits) -> String {
    let traced = trace(&module(init, follows), limits);
    traced.map_or_else(|reason| reason.to_string(), |_| String::new())
}

/// A loop that runs `count` times, of five steps each.
fn counted(count: i32) -> Vec<Ins> {
    vec![
        Ins::Const(count),
        Ins::Set(1),
        Ins::Get(1),
        Ins::Const(1),
        Ins::Binary(wasm::Binary::Sub),
        Ins::Tee(1),
        Ins::JumpIf(2),
    ]
}

#[test]
fn code_that_never_ends_has_no_plan() {
    let traced = trace(&module(&[], &[]), &LIMITS).unwrap();
    let result = compile(&traced).witness(&[("a", &[numbers::word(77)])]);
    assert_eq!(result.unwrap().0, [numbers::ONE, numbers::word(77)]);
    for (init, follows) in [(&[Ins::Jump(0)][..], &[][..]), (&[], &[Ins::Jump(3)])] {
        let reason = refused(init, follows, &LIMITS);
        assert_eq!(reason, "the circuit's code takes more than 10000 steps");
    }
}

/// A loop that uses all allowed steps passes, and one more iteration is refused.
#[test]
fn steps_are_counted_one_by_one() {
    let within = |count, steps| refused(&counted(count), &[], &Limits { steps, ..LIMITS });
    let taken = |count| (0..).find(|steps| within(count, *steps).is_empty());
    let (short, long) = (taken(10).unwrap(), taken(100).unwrap());
    assert_eq!(long - short, 5 * 90);
    let reason = format!("the circuit's code takes more than {long} steps");
    assert_eq!(within(101, long), reason);
}

/// One instruction can copy any number of cells, and each cell counts.
#[test]
fn cells_that_are_copied_at_once_are_counted() {
    let copy = |count| [0, 0, count].map(Ins::Const);
    let copied = |count| [&copy(count)[..], &[Ins::Call(COPY_MANY)]].concat();
    let limits = Limits {
        steps: 1000,
        ..LIMITS
    };
    assert_eq!(refused(&copied(10), &[], &limits), "");
    assert!(refused(&copied(1200), &[], &limits).contains("more than 1000 steps"));
}

#[test]
fn memory_stacks_and_branches_have_limits() {
    let actual = |init: &[Ins], follows: &[Ins]| refused(init, follows, &LIMITS);
    let grow = |pages| [Ins::Const(pages), Ins::MemoryGrow, Ins::Drop];
    assert_eq!(actual(&grow(1), &[]), "");
    assert!(actual(&grow(2), &[]).contains("memory is too large"));
    let pushing = actual(&[Ins::Const(1), Ins::Jump(0)], &[]);
    assert!(pushing.contains("stack is too large"));
    let calling = actual(&[Ins::Const(0), Ins::Call(INIT)], &[]);
    assert!(calling.contains("calls are nested too deeply"));
    // Nested branches on whether the input is 0, with `writes` writes each.
    let branches = |count: usize, writes: usize| {
        let store = [Ins::Const(ONE + 64), Ins::Const(0), Ins::Store(0)];
        let end = 3 + 3 * count as u32 * (1 + writes as u32);
        let otherwise = end;
        let asked = [
            Ins::Const(OWN),
            Ins::Call(IS_TRUE),
            Ins::If { otherwise, end },
        ];
        [&asked[..], &store.repeat(writes)].concat().repeat(count)
    };
    assert_eq!(actual(&[], &branches(5, 2)), "");
    assert!(actual(&[], &branches(5, 3)).contains("write too much"));
    assert!(
        actual(&[], &branches(201, 0)).contains("branches that depend on the inputs are nested")
    );
    let few = |nodes| refused(&[], &branches(1, 0), &Limits { nodes, ..LIMITS });
    // Five nodes: the input, the wire that is 1, 0, the comparison, and its negation.
    assert_eq!(few(5), "");
    assert!(few(4).contains("more than 4 operations"));
    let one = Limits { nodes: 1, ..LIMITS };
    assert!(refused(&[], &[], &one).contains("2 wires"));
    assert!(few(0).contains("1 values of inputs"));
}

/// A module can write a cell that claims to contain a node.
#[test]
fn cells_of_nodes_that_are_not_there_are_refused() {
    for (kind, node) in [(0x20, 1), (0x20, 100), (0x10, 0)] {
        let word = [Ins::Const(OWN), Ins::Const(node), Ins::Store(0)];
        let kind = [Ins::Const(OWN + 4), Ins::Const(kind << 24), Ins::Store(0)];
        let reason = refused(&[], &[word, kind].concat(), &LIMITS);
        match node {
            0 => assert_eq!(reason, ""),
            _ => assert_eq!(reason, "a cell is of no kind that circom writes"),
        }
    }
}

/// The first bytes of a module, with only the section of the memory.
#[test]
fn memory_is_limited_before_it_is_taken() {
    let file = |pages: u8| [&b"\0asm\x01\0\0\0"[..], &[5, 3, 1, 0, pages]].concat();
    assert_eq!(Module::parse(&file(2), 2).unwrap().memory.len(), 2 << 16);
    assert!(Module::parse(&file(3), 2).is_err());
}
