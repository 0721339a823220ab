//! Loops compiled for the widest vectors that the processor at hand has.
//!
//! The binary is built for every processor of its architecture, so the compiler may use old instructions only. What is
//! handed to [`vectorized`] as a [`Loop`] is compiled several times, and the best version that the processor can run is
//! picked when it is called. A result can differ in its last bit between processors, because some multiply and add
//! without rounding in between.

/// A piece of work that is worth wide vectors: a loop over slices without branches or calls.
pub trait Loop {
    /// What it gives.
    type Output;
    /// Does the work; `FUSED` says whether the processor multiplies and adds in one step ([`multiply_add`]). It and all
    /// that it calls must be `#[inline(always)]`: what is not inlined is not compiled anew.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

/// Does the work with the widest vectors there are.
#[expect(unsafe_code, reason = "whether a processor has an instruction is known only when the program runs")]
pub fn vectorized<L: Loop>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    {
        let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if has_avx2 && has_avx512 {
            // SAFETY: the processor has been asked for every feature that the function enables.
            return unsafe { with_avx512(work) };
        }
        if has_avx2 {
            // SAFETY: the processor has been asked for every feature that the function enables.
            return unsafe { with_avx2(work) };
        }
        work.run::<false>()
    }
    #[cfg(not(target_arch = "x86_64"))]
    work.run::<{ cfg!(target_arch = "aarch64") }>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
fn with_avx512<L: Loop>(work: L) -> L::Output {
    work.run::<true>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<L: Loop>(work: L) -> L::Output {
    work.run::<true>()
}

/// `a·b + c`, rounded once where the processor can.
#[expect(clippy::inline_always, reason = "part of a `Loop`")]
#[inline(always)]
pub fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    // The fused operation is a slow call where it is not an instruction.
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}
