//! Objects that outlive a call, by number: parts of statements, batches, arrays. A number is never reused.
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::wire::{Arguments, Outcome, Results};

pub struct Store<T> {
    last: i64,
    objects: HashMap<i64, Rc<RefCell<T>>>,
}

pub type Shelf<T> = RefCell<Store<T>>;

pub fn shelf<T>() -> Shelf<T> {
    RefCell::new(Store {
        last: 0,
        objects: HashMap::new(),
    })
}

pub fn keep<T>(shelf: &Shelf<T>, object: T, results: &mut Results) {
    let mut store = shelf.borrow_mut();
    store.last += 1;
    let number = store.last;
    store.objects.insert(number, Rc::new(RefCell::new(object)));
    results.integer(number);
}

pub fn find<T>(shelf: &Shelf<T>, arguments: &mut Arguments) -> Outcome<Rc<RefCell<T>>> {
    let number = arguments.integer()?;
    let store = shelf.borrow();
    let object = store.objects.get(&number);
    object
        .cloned()
        .ok_or_else(|| format!("there is no object {number}"))
}

pub fn forget<T>(shelf: &Shelf<T>, arguments: &mut Arguments) -> Outcome<()> {
    let number = arguments.integer()?;
    shelf.borrow_mut().objects.remove(&number);
    Ok(())
}
