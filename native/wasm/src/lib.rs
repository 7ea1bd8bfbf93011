//! A verifier's native computations for a page (`docs/browser.md`): the verifiers of the scan argument and of Groth16,
//! Poseidon, signatures, and the arrays of the accountant. One exported function runs all of them on bytes that begin with
//! the name of the computation.
//!
//! The module has no imports: no clock, no randomness, no threads. A panic ends the instance, and its message stays readable.
use std::cell::RefCell;
use std::sync::Once;

mod arrays;
mod engine;
mod fourier;
mod objects;
#[cfg(target_arch = "wasm32")]
mod pairs;
mod proofs;
mod signatures;
mod wire;

use wire::{Arguments, Outcome, Results};

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static PANIC: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

const DONE: u8 = 0;
const REFUSED: u8 = 1;

/// The address for a request of `length` bytes.
#[no_mangle]
pub extern "C" fn room(length: usize) -> *mut u8 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let words = info.to_string().into_bytes();
            PANIC.with(|stored| *stored.borrow_mut() = words);
        }))
    });
    REQUEST.with(|request| {
        let mut request = request.borrow_mut();
        request.clear();
        request.resize(length, 0);
        request.as_mut_ptr()
    })
}

/// Runs the request. Returns the length of the answer; the first byte of the answer tells whether the request succeeded.
#[no_mangle]
pub extern "C" fn call() -> usize {
    let request = REQUEST.with(|request| std::mem::take(&mut *request.borrow_mut()));
    let mut results = Results::default();
    let outcome = run(Arguments::new(&request), &mut results);
    let (status, content) = match outcome {
        Ok(()) => (DONE, results.into_bytes()),
        Err(reason) => (REFUSED, reason.into_bytes()),
    };
    ANSWER.with(|answer| {
        let mut answer = answer.borrow_mut();
        answer.clear();
        answer.push(status);
        answer.extend(content);
        answer.len()
    })
}

/// The address of the last call's answer.
#[no_mangle]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.with(|answer| answer.borrow().as_ptr())
}

/// The address of a panic's message.
#[no_mangle]
pub extern "C" fn panic_words() -> *const u8 {
    PANIC.with(|words| words.borrow().as_ptr())
}

/// The number of bytes of the message; 0 before a panic.
#[no_mangle]
pub extern "C" fn panic_length() -> usize {
    PANIC.with(|words| words.borrow().len())
}

fn run(mut arguments: Arguments, results: &mut Results) -> Outcome<()> {
    let name = arguments.text()?;
    let rest = &mut arguments;
    let known = proofs::run(name, rest, results)
        .or_else(|| signatures::run(name, rest, results))
        .or_else(|| arrays::run(name, rest, results));
    known.unwrap_or_else(|| Err(format!("there is no function {name}")))?;
    arguments.end()
}
