//! Montgomery's product by the instructions with two carry chains (BMI2's MULX, ADX's ADCX and ADOX), which compilers do
//! not generate for it.
use std::arch::asm;
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether the processor has these instructions.
#[inline(always)]
pub fn detected() -> bool {
    static FOUND: AtomicU8 = AtomicU8::new(0);
    match FOUND.load(Ordering::Relaxed) {
        0 => {
            let found = is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("adx");
            FOUND.store(1 + u8::from(found), Ordering::Relaxed);
            found
        }
        state => state == 2,
    }
}

/// sum += (word at `at` of a) b, with the low words on one carry chain and the high words on the other. The fifth word of
/// the sum is in c.
macro_rules! row {
    ($at:literal) => {
        concat!(
            "mov rdx, [{a} + ",
            $at,
            "]\n",
            "xor eax, eax\n",
            "mulx {c}, rax, [{b}]\n",
            "adcx {s0}, rax\n",
            "adox {s1}, {c}\n",
            "mulx {c}, rax, [{b} + 8]\n",
            "adcx {s1}, rax\n",
            "adox {s2}, {c}\n",
            "mulx {c}, rax, [{b} + 16]\n",
            "adcx {s2}, rax\n",
            "adox {s3}, {c}\n",
            "mulx {c}, rax, [{b} + 24]\n",
            "adcx {s3}, rax\n",
            "mov eax, 0\n",
            "adcx {c}, rax\n",
            "adox {c}, rax\n",
        )
    };
}

/// sum = (sum + m p) / 2^64, with the m that clears the lowest word.
macro_rules! reduction {
    () => {
        concat!(
            "mov rdx, {s0}\n",
            "imul rdx, {inv}\n",
            "xor eax, eax\n",
            "mulx {h}, rax, [{p}]\n",
            "adcx {s0}, rax\n",
            "adox {s1}, {h}\n",
            "mulx {h}, {s0}, [{p} + 8]\n",
            "adcx {s0}, {s1}\n",
            "adox {s2}, {h}\n",
            "mulx {h}, {s1}, [{p} + 16]\n",
            "adcx {s1}, {s2}\n",
            "adox {s3}, {h}\n",
            "mulx {h}, {s2}, [{p} + 24]\n",
            "adcx {s2}, {s3}\n",
            "mov {s3:e}, 0\n",
            "adcx {h}, {s3}\n",
            "adox {h}, {c}\n",
            "mov {s3}, {h}\n",
        )
    };
}

/// a b / 2^256 mod p, for a and b below 2 p < 2^255: below 2 p. `inv` is -1/p mod 2^64.
///
/// # Safety
/// The processor has the instructions: [`detected`].
#[inline(always)]
pub unsafe fn product(a: &[u64; 4], b: &[u64; 4], p: &[u64; 4], inv: u64) -> [u64; 4] {
    let (s0, s1, s2, s3): (u64, u64, u64, u64);
    // SAFETY: reads the four words behind each pointer and nothing else; all registers written are outputs.
    unsafe {
        asm!(
            "mov rdx, [{a}]",
            "xor eax, eax",
            "mulx {s1}, {s0}, [{b}]",
            "mulx {s2}, rax, [{b} + 8]",
            "adcx {s1}, rax",
            "mulx {s3}, rax, [{b} + 16]",
            "adcx {s2}, rax",
            "mulx {c}, rax, [{b} + 24]",
            "adcx {s3}, rax",
            "mov eax, 0",
            "adcx {c}, rax",
            reduction!(),
            row!("8"),
            reduction!(),
            row!("16"),
            reduction!(),
            row!("24"),
            reduction!(),
            a = in(reg) a.as_ptr(),
            b = in(reg) b.as_ptr(),
            p = in(reg) p.as_ptr(),
            inv = in(reg) inv,
            s0 = out(reg) s0,
            s1 = out(reg) s1,
            s2 = out(reg) s2,
            s3 = out(reg) s3,
            c = out(reg) _,
            h = out(reg) _,
            out("rax") _,
            out("rdx") _,
            options(pure, readonly, nostack),
        );
    }
    [s0, s1, s2, s3]
}
