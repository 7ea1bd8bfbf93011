//! Counts of the steps of one thread, for tests that the work on secrets is the same for all values.
use std::cell::Cell;
use std::thread::LocalKey;

/// Steps of one kind.
pub type Counter = LocalKey<Cell<usize>>;

thread_local! {
    /// Additions of points.
    pub static ADDITIONS: Cell<usize> = const { Cell::new(0) };
    /// Inversions that additions share.
    pub static INVERSIONS: Cell<usize> = const { Cell::new(0) };
    /// Additions of points without a chord.
    pub static SPECIAL: Cell<usize> = const { Cell::new(0) };
    /// Entries of tables that reads scanned.
    pub static READS: Cell<usize> = const { Cell::new(0) };
    /// Permutations of 17 elements.
    pub static PERMUTATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Add steps to a counter.
pub fn add(counter: &'static Counter, steps: usize) {
    counter.set(counter.get() + steps);
}

/// All counts since the last call, in the order above.
pub fn take() -> [usize; 5] {
    [&ADDITIONS, &INVERSIONS, &SPECIAL, &READS, &PERMUTATIONS].map(|counter| counter.replace(0))
}
