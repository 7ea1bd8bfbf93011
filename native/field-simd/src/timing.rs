//! Whether the time of some work depends on a secret, in the manner of dudect (Reparaz, Balasch and Verbauwhede, "Dude, is my
//! code constant time?", 2017): for tests of `make test-full`.
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};

/// The limit of the statistic for a function with input-independent time, also on a busy machine. By chance, the statistic
/// exceeds 5 once in a million times.
pub const STEADY: f64 = 20.0;
/// The statistic of a function whose time depends on its input exceeds this value.
pub const UNSTEADY: f64 = 60.0;
/// Runs before the measurement, because the first runs compute tables.
const WARMING: usize = 20;

/// Runs work on one thread, so that the thread's counts and processor time belong to the work.
pub fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(work)
}

/// Processor time of this thread, in nanoseconds.
fn processor_time() -> f64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of our own.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    assert_eq!(done, 0);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Welch's statistic of two samples, and the difference of their means relative to the second mean.
fn welch(samples: &[Vec<f64>; 2]) -> [f64; 2] {
    let of = |sample: &Vec<f64>| {
        let n = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / n;
        let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n)
    };
    let [(a, of_a), (b, of_b)] = [of(&samples[0]), of(&samples[1])];
    [(a - b) / (of_a + of_b).sqrt(), (a - b) / b]
}

/// The largest |t| between the times for the two classes of inputs, taken in random order about `samples` times each, over what
/// remains when the slowest half, quarter and tenth of all are left out, which other work has disturbed; and by what part the
/// classes' means differ there.
pub fn leak<I: Send, O>(
    samples: usize,
    inputs: impl Fn(bool, &mut StdRng) -> I + Sync,
    work: impl Fn(&I) -> O + Sync,
) -> [f64; 2] {
    let mut times: Vec<(f64, bool)> = Vec::with_capacity(2 * samples);
    alone(|| {
        let mut rng = StdRng::seed_from_u64(2);
        for k in 0..2 * samples + WARMING {
            let class = rng.gen();
            let input = inputs(class, &mut rng);
            let start = processor_time();
            let _ = std::hint::black_box(work(std::hint::black_box(&input)));
            if k >= WARMING {
                times.push((processor_time() - start, class));
            }
        }
    });
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let cropped = |kept: f64| {
        let mut samples = [Vec::new(), Vec::new()];
        for (time, class) in &times[..(times.len() as f64 * kept) as usize] {
            samples[usize::from(*class)].push(*time);
        }
        match samples.iter().all(|s| s.len() > 1) {
            true => welch(&samples).map(f64::abs),
            // All that is left is of one class.
            false => [f64::INFINITY; 2],
        }
    };
    let all = [0.5, 0.75, 0.9].map(cropped);
    all.into_iter()
        .fold([0.0; 2], |maximum, own| match own[0] > maximum[0] {
            true => own,
            false => maximum,
        })
}
