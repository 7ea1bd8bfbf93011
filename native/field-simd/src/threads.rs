//! The one thread pool that every parallel computation of the workspace runs on.
//!
//! A pool does not survive `fork`: a child process (Python's `ProcessPoolExecutor` forks by default on Linux)
//! would wait forever for threads that exist only in its parent. The pool therefore remembers its process.
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;

struct State {
    threads: Option<NonZeroUsize>,
    pool: Option<(u32, Arc<ThreadPool>)>,
}

static STATE: Mutex<State> = Mutex::new(State {
    threads: None,
    pool: None,
});

/// Upper bound of [`set`]: far more threads than any machine this runs on has cores.
pub const MAX_THREADS: usize = 1024;

/// Sets the number of threads of later computations. Running computations keep their threads.
pub fn set(threads: usize) -> Result<(), Error> {
    let count = NonZeroUsize::new(threads)
        .filter(|n| n.get() <= MAX_THREADS)
        .ok_or_else(|| {
            Error::invalid(
                "threads",
                format!("1 to {MAX_THREADS}"),
                threads.to_string(),
            )
        })?;
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.threads = Some(count);
    retire(&mut state);
    Ok(())
}

/// The number of threads: the value of [`set`], or the number of cores available to the process.
pub fn count() -> usize {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    chosen(&state)
}

/// Runs `work` on the pool; rayon calls inside it stay on the pool.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    Ok(current()?.install(work))
}

fn chosen(state: &State) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    state.threads.map_or_else(available, NonZeroUsize::get)
}

fn current() -> Result<Arc<ThreadPool>, Error> {
    let process = std::process::id();
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, pool)) = &state.pool {
        if *owner == process {
            return Ok(Arc::clone(pool));
        }
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(chosen(&state))
        .thread_name(|i| format!("rag-audit-{i}"))
        .build()
        .map_err(|e| Error::Threads(e.to_string()))?;
    let pool = Arc::new(pool);
    retire(&mut state);
    state.pool = Some((process, Arc::clone(&pool)));
    Ok(pool)
}

/// Drops the pool. A pool inherited through `fork` leaks, because its threads do not exist in this process.
fn retire(state: &mut State) {
    if let Some((owner, pool)) = state.pool.take() {
        if owner != std::process::id() {
            std::mem::forget(pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_has_the_chosen_size() {
        set(3).unwrap();
        assert_eq!(count(), 3);
        assert_eq!(run(rayon::current_num_threads).unwrap(), 3);
        set(1).unwrap();
        assert_eq!(run(rayon::current_num_threads).unwrap(), 1);
    }

    #[test]
    fn refuses_no_threads_and_too_many() {
        assert!(set(0).is_err());
        assert!(set(MAX_THREADS + 1).is_err());
    }
}
