//! Counts of steps, of one thread: for tests that hold secrets' work to be the same.
use std::cell::Cell;
use std::thread::LocalKey;

/// Steps of one kind.
pub type Counter = LocalKey<Cell<usize>>;

thread_local! {
    /// Additions of points.
    pub static ADDITIONS: Cell<usize> = const { Cell::new(0) };
    /// Inversions that additions share.
    pub static INVERSIONS: Cell<usize> = const { Cell::new(0) };
    /// Additions of points that have no chord.
    pub static SPECIAL: Cell<usize> = const { Cell::new(0) };
    /// Entries of tables that reads have gone over.
    pub static READS: Cell<usize> = const { Cell::new(0) };
    /// Permutations of 17 elements.
    pub static PERMUTATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts.
pub fn add(counter: &'static Counter, steps: usize) {
    counter.set(counter.get() + steps);
}

/// All counts since the last time, in the order above.
pub fn take() -> [usize; 5] {
    [&ADDITIONS, &INVERSIONS, &SPECIAL, &READS, &PERMUTATIONS].map(|counter| counter.replace(0))
}
