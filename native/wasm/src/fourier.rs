//! The discrete Fourier transform of a power of two of points, by halves (Cooley and Tukey 1965).
use std::f64::consts::PI;

/// Real and imaginary parts.
pub struct Complex {
    pub re: Vec<f64>,
    pub im: Vec<f64>,
}

/// Transforms in place, by exp(-2 pi i jk / n), or by its inverse without the division by n.
///
/// Every root of unity is computed by itself, so the relative error in the 2-norm is below 8 log2(n) units of round-off
/// (Higham, Accuracy and Stability of Numerical Algorithms, Theorem 24.2).
pub fn transform(x: &mut Complex, inverse: bool) {
    let n = x.re.len();
    assert!(n.is_power_of_two() && x.im.len() == n);
    let bits = n.trailing_zeros();
    for i in 0..n {
        let j = if bits == 0 {
            i
        } else {
            i.reverse_bits() >> (usize::BITS - bits)
        };
        if i < j {
            x.re.swap(i, j);
            x.im.swap(i, j);
        }
    }
    let sign = if inverse { 1.0 } else { -1.0 };
    let roots: Vec<(f64, f64)> = (0..n / 2).map(|k| root(k, n, sign)).collect();
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for start in (0..n).step_by(2 * half) {
            for k in 0..half {
                let (c, s) = roots[k * stride];
                let (low, high) = (start + k, start + k + half);
                let re = x.re[high] * c - x.im[high] * s;
                let im = x.re[high] * s + x.im[high] * c;
                (x.re[high], x.im[high]) = (x.re[low] - re, x.im[low] - im);
                x.re[low] += re;
                x.im[low] += im;
            }
        }
        half *= 2;
    }
}

/// cos and sin of an angle below pi, from an angle in the first eighth of the circle, where both have an error of a unit.
fn root(k: usize, n: usize, sign: f64) -> (f64, f64) {
    // 2 pi k / n = (pi / 4) (8 k / n): the number of the eighth, and the rest within it.
    let (eighth, rest) = (8 * k / n, 8 * k % n);
    let angle = |part: usize| (part as f64 / n as f64) * (PI / 4.0);
    let (near, far) = (angle(rest), angle(n - rest));
    let (c, s) = match eighth {
        0 => (near.cos(), near.sin()),
        1 => (far.sin(), far.cos()),
        2 => (-near.sin(), near.cos()),
        _ => (-far.cos(), far.sin()),
    };
    (c, sign * s)
}
