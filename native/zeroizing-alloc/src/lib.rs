//! An allocator that overwrites memory before it frees it, so that later allocations never contain secrets.
//!
//! The owner of a value cannot wipe all of its copies: a growing vector leaves its old content in freed memory, libraries
//! clone values, and threads pass boxes to one another. Provers therefore allocate through [`Wiping`].
use std::alloc::{GlobalAlloc, Layout, System};

/// Dropping a value overwrites the stacks of the current thread pool, also after a panic. The drop does not wait: a busy
/// thread overwrites its stack when it becomes idle.
pub struct Stacks;

impl Drop for Stacks {
    fn drop(&mut self) {
        rayon::spawn_broadcast(|_| wipe_stack());
    }
}

/// The overwritten bytes of a thread's stack, which has 2 MiB: more than any computation here uses.
const STACK: usize = 1 << 18;

#[inline(never)]
fn wipe_stack() {
    let mut area = [0u8; STACK];
    std::hint::black_box(&mut area);
}

/// The system's allocator, with freed memory overwritten by zeros.
pub struct Wiping;

// SAFETY: every request goes to the system's allocator with the layout that it came with; blocks are the caller's until
// they are given back.
unsafe impl GlobalAlloc for Wiping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        System.alloc(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        System.alloc_zeroed(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        wipe(block, layout.size());
        System.dealloc(block, layout);
    }

    /// Allocates a new block, copies and frees the old one, because the system's reallocation could leave a copy in memory.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let moved = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(block, moved, size.min(layout.size()));
            self.dealloc(block, layout);
        }
        moved
    }
}

/// Overwrites a block with zeros. No optimisation removes the writes.
#[inline(never)]
unsafe fn wipe(block: *mut u8, size: usize) {
    let (before, pages) = dropped(block, size);
    std::ptr::write_bytes(block, 0, before);
    std::ptr::write_bytes(block.add(before + pages), 0, size - before - pages);
    std::hint::black_box(block);
}

/// Returns the whole pages of a large block to the kernel. The result has the bytes before these pages, and the bytes of the
/// pages. The pages then read as zeros; they are seldom read again, because the C library returns large blocks to the kernel
/// anyway. Miri has no kernel.
#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn dropped(block: *mut u8, size: usize) -> (usize, usize) {
    const LARGE: usize = 1 << 25;
    /// No kernel's pages are larger.
    const PAGE: usize = 1 << 16;
    if size < LARGE {
        return (0, 0);
    }
    let before = block.align_offset(PAGE);
    let pages = (size - before) / PAGE * PAGE;
    match libc::madvise(block.add(before).cast(), pages, libc::MADV_DONTNEED) {
        0 => (before, pages),
        _ => (0, 0),
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
unsafe fn dropped(_: *mut u8, _: usize) -> (usize, usize) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All allocations of these tests go through the allocator, also in Miri and under the address sanitiser.
    #[global_allocator]
    static MEMORY: Wiping = Wiping;

    /// Growing vectors, text, maps, boxes that threads pass to one another, and the stacks of a pool after a panic.
    #[test]
    fn ordinary_work_goes_on() {
        // Miri interprets.
        let maximum = if cfg!(miri) { 20 } else { 300 };
        let mut grown = Vec::new();
        let mut named = std::collections::HashMap::new();
        for i in 0..maximum {
            grown.push(Box::new(i));
            named.insert(i.to_string(), vec![i; i as usize]);
        }
        grown.shrink_to_fit();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
        let pool = pool.expect("two threads");
        let sum: u64 = pool.install(|| {
            let _stacks = Stacks;
            grown
                .iter()
                .map(|i| named[&i.to_string()].len() as u64 + **i)
                .sum()
        });
        assert_eq!(sum, maximum * (maximum - 1));
        let (send, receive) = std::sync::mpsc::channel();
        pool.spawn_broadcast(move |_| send.send(Box::new([7u8; 100])).expect("open"));
        assert_eq!(receive.iter().map(|b| b[99]).collect::<Vec<_>>(), [7, 7]);
        let failed = pool.install(|| {
            std::panic::catch_unwind(|| {
                let _stacks = Stacks;
                assert!(grown.is_empty(), "a panic");
            })
        });
        assert!(failed.is_err());
    }

    /// Blocks below and above the size from which pages are dropped, at and beside their borders.
    #[test]
    fn blocks_are_overwritten() {
        for size in [
            0usize,
            1,
            4095,
            1 << 20,
            (1 << 25) - 1,
            1 << 25,
            (1 << 25) + 70_001,
        ] {
            let mut block = vec![0xa5u8; size + 2];
            // SAFETY: the bytes but the first and the last, which are the vector's.
            unsafe { wipe(block.as_mut_ptr().add(1), size) };
            // Compared as a whole, which Miri does at once.
            assert!(block[1..=size] == vec![0u8; size], "{size}");
            assert_eq!((block[0], block[size + 1]), (0xa5, 0xa5));
        }
    }

    #[test]
    fn grown_blocks_keep_what_they_held() {
        let layout = Layout::from_size_align(100, 64).unwrap();
        // SAFETY: the block is used within its sizes, and given back once.
        unsafe {
            let block = Wiping.alloc(layout);
            block.write_bytes(7, 100);
            let grown = Wiping.realloc(block, layout, 5000);
            assert!(grown.addr().is_multiple_of(64));
            assert!(std::slice::from_raw_parts(grown, 100)
                .iter()
                .all(|b| *b == 7));
            let layout = Layout::from_size_align(5000, 64).unwrap();
            let less = Wiping.realloc(grown, layout, 10);
            assert!(std::slice::from_raw_parts(less, 10).iter().all(|b| *b == 7));
            Wiping.dealloc(less, Layout::from_size_align(10, 64).unwrap());
        }
    }
}
