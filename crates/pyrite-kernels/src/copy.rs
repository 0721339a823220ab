//! Copies of short runs, inlined.
//!
//! Convolutions copy lines of an image, a few dozen elements each, so many times that calling the C library for each costs
//! more than the copies do.

/// Copies elements, with a few instructions where there are at most 64 of them.
///
/// # Panics
/// When the lengths differ.
#[expect(
    clippy::inline_always,
    reason = "a call would cost more than the copy, and loops have their processor's vectors"
)]
#[inline(always)]
pub fn copy_short<T: Copy>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "a copy between different lengths");
    match to.len() {
        0..4 => {
            // Not a loop, which would be taken for a call again.
            if let ([first, ..], [to, ..]) = (from, &mut *to) {
                *to = *first;
            }
            if let ([_, second, ..], [_, to, ..]) = (from, &mut *to) {
                *to = *second;
            }
            if let ([_, _, third], [_, _, to]) = (from, to) {
                *to = *third;
            }
        }
        4..=8 => ends::<T, 4>(from, to),
        9..=16 => ends::<T, 8>(from, to),
        17..=32 => ends::<T, 16>(from, to),
        33..=64 => ends::<T, 32>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` elements.
#[expect(clippy::inline_always, reason = "part of `copy_short`")]
#[inline(always)]
fn ends<T: Copy, const N: usize>(from: &[T], to: &mut [T]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut::<N>()) {
        *to = *from;
    }
}

/// Copies elements that are `step` apart, from `at` on.
///
/// # Panics
/// When there are fewer than the target takes.
#[expect(clippy::inline_always, reason = "as for `copy_short`")]
#[inline(always)]
pub fn copy_steps<T: Copy>(x: &[T], at: usize, step: usize, target: &mut [T]) {
    let Some(last) = target.len().checked_sub(1) else { return };
    match step {
        1 => copy_short(&x[at..=at + last], target),
        // The last element has perhaps no neighbour.
        2 => {
            let pairs = x[at..at + 2 * last].as_chunks::<2>().0;
            for (target, pair) in target.iter_mut().zip(pairs) {
                *target = pair[0];
            }
            target[last] = x[at + 2 * last];
        }
        _ => {
            for (target, value) in target.iter_mut().zip(x[at..].iter().step_by(step)) {
                *target = *value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_apart_are_copied_to_the_last() {
        let from: Vec<u16> = (0..600).collect();
        for (len, step) in (0..100).flat_map(|len| (1..6).map(move |step| (len, step))) {
            let mut to = vec![0; len];
            copy_steps(&from[..=3 + len.max(1) * step - step], 3, step, &mut to);
            let expected: Vec<u16> = from[3..].iter().step_by(step).take(len).copied().collect();
            assert_eq!(to, expected, "{len} elements, {step} apart");
        }
    }

    #[test]
    fn runs_of_every_length_are_copied_whole() {
        for len in 0..200 {
            let from: Vec<u16> = (0..len).map(|at| at * 7 + 1).collect();
            let mut to = vec![0; from.len()];
            copy_short(&from, &mut to);
            assert_eq!(to, from, "{len} elements");
        }
    }
}
