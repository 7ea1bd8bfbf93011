//! One-dimensional arrays of float64 and views of them, with the functions of numpy that the accountant uses, because the page has no numpy.
//!
//! Sums are in numpy's order. `exp` and similar functions come from the C library musl, with an error of at most a unit in the last place.
use std::cell::RefCell;
use std::rc::Rc;

use crate::fourier::{transform, Complex};
use crate::objects::{find, forget, keep, shelf, Shelf};
use crate::wire::{Arguments, Outcome, Results};

thread_local! {
    static ARRAYS: Shelf<Vec<f64>> = shelf();
}

/// Runs the function with a name; None if this module has no such function.
pub fn run(name: &str, a: &mut Arguments, out: &mut Results) -> Option<Outcome<()>> {
    Some(match name {
        "array_full" => full(a, out),
        "array_range" => range(a, out),
        "array_floats" => floats(a, out),
        "array_length" => length(a, out),
        "array_bytes" => bytes(a, out),
        "array_drop" => ARRAYS.with(|shelf| forget(shelf, a)),
        "array_set" => set(a),
        "array_one" => one(a, out),
        "array_two" => two(a, out),
        "array_fold" => fold(a, out),
        "array_running" => running(a, out),
        "array_chosen" => chosen(a, out),
        "array_put" => put(a),
        "array_counts" => counts(a, out),
        "array_search" => search(a, out),
        "array_transform" => transformed(a, out),
        "array_back" => back(a, out),
        _ => return None,
    })
}

fn stored(array: Vec<f64>, out: &mut Results) -> Outcome<()> {
    ARRAYS.with(|shelf| keep(shelf, array, out));
    Ok(())
}

/// Every `step`-th item of an array from `start` on.
struct View {
    array: Rc<RefCell<Vec<f64>>>,
    start: i64,
    step: i64,
    length: usize,
}

impl View {
    fn read(a: &mut Arguments) -> Outcome<Self> {
        let array = ARRAYS.with(|shelf| find(shelf, a))?;
        let (start, step, length): (i64, i64, usize) = (a.integer()?, a.integer()?, a.number()?);
        let last = start + step * (length.max(1) as i64 - 1);
        let inside = 0..array.borrow().len() as i64;
        if length > 0 && !(inside.contains(&start) && inside.contains(&last)) {
            return Err("a view reaches beyond its array".to_owned());
        }
        Ok(Self {
            array,
            start,
            step,
            length,
        })
    }

    fn place(&self, i: usize) -> usize {
        (self.start + self.step * i as i64) as usize
    }

    fn values(&self) -> Vec<f64> {
        let array = self.array.borrow();
        if self.step == 1 {
            let start = self.start as usize;
            return array[start..start + self.length].to_vec();
        }
        (0..self.length).map(|i| array[self.place(i)]).collect()
    }

    fn write(&self, value: impl Fn(usize, f64) -> f64) {
        let mut array = self.array.borrow_mut();
        for i in 0..self.length {
            let place = self.place(i);
            array[place] = value(i, array[place]);
        }
    }
}

/// A number, or an array with the length of the other operand.
enum Operand {
    One(f64),
    Many(Vec<f64>),
}

impl Operand {
    fn read(a: &mut Arguments) -> Outcome<Self> {
        match a.integer()? {
            0 => Ok(Self::One(a.float()?)),
            _ => Ok(Self::Many(View::read(a)?.values())),
        }
    }

    fn at(&self, i: usize) -> f64 {
        match self {
            Self::One(x) => *x,
            Self::Many(xs) => xs[i],
        }
    }

    fn fits(&self, length: usize) -> Outcome<()> {
        match self {
            Self::Many(xs) if xs.len() != length => {
                Err(format!("arrays of {} and {length} items", xs.len()))
            }
            _ => Ok(()),
        }
    }
}

fn full(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (length, value) = (a.number()?, a.float()?);
    stored(vec![value; length], out)
}

fn range(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (first, length) = (a.integer()?, a.number::<i64>()?);
    stored((first..first + length).map(|i| i as f64).collect(), out)
}

fn floats(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (items, _) = a.bytes()?.as_chunks();
    stored(items.iter().map(|x| f64::from_le_bytes(*x)).collect(), out)
}

fn length(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let array = ARRAYS.with(|shelf| find(shelf, a))?;
    out.integer(array.borrow().len() as i64);
    Ok(())
}

fn bytes(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let values = View::read(a)?.values();
    let content: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    out.bytes(&content);
    Ok(())
}

fn set(a: &mut Arguments) -> Outcome<()> {
    let (view, values) = (View::read(a)?, Operand::read(a)?);
    values.fits(view.length)?;
    view.write(|i, _| values.at(i));
    Ok(())
}

fn one(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let function: fn(f64) -> f64 = match a.text()? {
        "copy" => |x| x,
        "negative" => |x| -x,
        "abs" => f64::abs,
        "floor" => f64::floor,
        "exp" => f64::exp,
        "expm1" => f64::exp_m1,
        "log" => f64::ln,
        "cos" => f64::cos,
        "sin" => f64::sin,
        other => return Err(format!("there is no function {other} of one array")),
    };
    let mut values = View::read(a)?.values();
    values.iter_mut().for_each(|x| *x = function(*x));
    stored(values, out)
}

fn two(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let truth = |x: bool| f64::from(u8::from(x));
    let function: &dyn Fn(f64, f64) -> f64 = match a.text()? {
        "add" => &|x, y| x + y,
        "subtract" => &|x, y| x - y,
        "multiply" => &|x, y| x * y,
        "divide" => &|x, y| x / y,
        // The accountant only squares.
        "power" => &|x, y| if y == 2.0 { x * x } else { f64::powf(x, y) },
        "minimum" => &|x, y| if y < x || y.is_nan() { y } else { x },
        "maximum" => &|x, y| if y > x || y.is_nan() { y } else { x },
        "hypot" => &f64::hypot,
        "arctan2" => &f64::atan2,
        "greater" => &|x, y| truth(x > y),
        "greater_equal" => &|x, y| truth(x >= y),
        "less" => &|x, y| truth(x < y),
        "less_equal" => &|x, y| truth(x <= y),
        other => return Err(format!("there is no function {other} of two arrays")),
    };
    let (x, y) = (Operand::read(a)?, Operand::read(a)?);
    let length = match (&x, &y) {
        (Operand::Many(xs), _) | (_, Operand::Many(xs)) => xs.len(),
        _ => 1,
    };
    x.fits(length)?;
    y.fits(length)?;
    stored(
        (0..length).map(|i| function(x.at(i), y.at(i))).collect(),
        out,
    )
}

/// numpy's sum: eight partial sums for runs of at most 128 items; longer arrays are halved.
fn pairwise(xs: &[f64]) -> f64 {
    match xs.len() {
        0..8 => xs.iter().sum(),
        8..=128 => {
            let mut sums = [0.0; 8];
            let (rows, rest) = xs.as_chunks::<8>();
            sums.copy_from_slice(&rows[0]);
            for row in &rows[1..] {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            let [a, b, c, d, e, f, g, h] = sums;
            let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
            rest.iter().fold(sum, |sum, x| sum + x)
        }
        n => {
            let (low, high) = xs.split_at(n / 2 - n / 2 % 8);
            pairwise(low) + pairwise(high)
        }
    }
}

fn fold(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (name, initial) = (a.text()?, a.optional(Arguments::float)?);
    let values = View::read(a)?.values();
    if name == "sum" {
        out.float(pairwise(&values));
        return Ok(());
    }
    let better: fn(f64, f64) -> bool = match name {
        "max" => |x, y| x > y,
        "min" => |x, y| x < y,
        other => return Err(format!("there is no fold {other}")),
    };
    let pick = |best: f64, x: &f64| {
        if better(*x, best) || x.is_nan() {
            *x
        } else {
            best
        }
    };
    let first = initial.or(values.first().copied());
    let first = first.ok_or("an empty array has no largest item")?;
    out.float(values.iter().fold(first, pick));
    Ok(())
}

fn running(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let function: fn(f64, f64) -> f64 = match a.text()? {
        "sum" => |sum, x| sum + x,
        "max" => |best, x| if x > best { x } else { best },
        other => return Err(format!("there is no running {other}")),
    };
    let mut values = View::read(a)?.values();
    for i in 1..values.len() {
        values[i] = function(values[i - 1], values[i]);
    }
    stored(values, out)
}

fn chosen(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (values, mask) = (View::read(a)?.values(), View::read(a)?.values());
    if values.len() != mask.len() {
        return Err("a mask of another length".to_owned());
    }
    let pairs = values.into_iter().zip(mask);
    stored(
        pairs.filter(|(_, m)| *m != 0.0).map(|(x, _)| x).collect(),
        out,
    )
}

fn put(a: &mut Arguments) -> Outcome<()> {
    let (view, mask, values) = (View::read(a)?, View::read(a)?.values(), Operand::read(a)?);
    let places: Vec<usize> = (0..mask.len()).filter(|i| mask[*i] != 0.0).collect();
    if view.length != mask.len() {
        return Err("a mask of another length".to_owned());
    }
    values.fits(places.len())?;
    let mut array = view.array.borrow_mut();
    for (i, place) in places.into_iter().enumerate() {
        array[view.place(place)] = values.at(i);
    }
    Ok(())
}

fn counts(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (places, weights) = (View::read(a)?.values(), View::read(a)?.values());
    let minimum: usize = a.number()?;
    if places.len() != weights.len() || places.iter().any(|x| *x < 0.0) {
        return Err("places below 0, or not one weight for each".to_owned());
    }
    let largest = places.iter().fold(0.0, |a: f64, b| a.max(b + 1.0));
    let mut sums = vec![0.0; minimum.max(largest as usize)];
    for (place, weight) in places.iter().zip(weights) {
        sums[*place as usize] += weight;
    }
    stored(sums, out)
}

/// The number of items before the insertion point of a value in an ascending array.
fn search(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (values, value) = (View::read(a)?.values(), a.float()?);
    out.integer(values.partition_point(|x| *x <= value) as i64);
    Ok(())
}

fn transformed(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let re = View::read(a)?.values();
    let (n, im) = (power(re.len())?, vec![0.0; re.len()]);
    let mut x = Complex { re, im };
    transform(&mut x, false);
    for mut part in [x.re, x.im] {
        part.truncate(n / 2 + 1);
        stored(part, out)?;
    }
    Ok(())
}

/// The real array with the given first half of its transform.
fn back(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (re, im) = (View::read(a)?.values(), View::read(a)?.values());
    let n = power(a.number()?)?;
    if re.len() != n / 2 + 1 || im.len() != re.len() {
        return Err("not half a transform of that size".to_owned());
    }
    let mut x = Complex {
        re: vec![0.0; n],
        im: vec![0.0; n],
    };
    for k in 0..n {
        let (from, sign) = if k <= n / 2 { (k, 1.0) } else { (n - k, -1.0) };
        (x.re[k], x.im[k]) = (re[from], sign * im[from]);
    }
    // As in numpy, the imaginary parts of these two items are ignored.
    (x.im[0], x.im[n / 2]) = (0.0, 0.0);
    transform(&mut x, true);
    stored(x.re.iter().map(|x| x / n as f64).collect(), out)
}

fn power(n: usize) -> Outcome<usize> {
    match n.is_power_of_two() && n > 1 {
        true => Ok(n),
        false => Err(format!("{n} is not a power of two above 1")),
    }
}
