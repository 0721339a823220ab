//! Which of several settings a failure needs.

/// The smallest part of the settings, in their order, that can be found by leaving some out: without any single one of
/// the rest the failure is gone. None at all is tried first, then halves, quarters and so on.
pub fn necessary<T: Clone>(all: &[T], fails: &mut dyn FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = all.to_vec();
    let mut chunk = kept.len();
    while chunk >= 1 && !kept.is_empty() {
        let mut at = 0;
        let mut dropped = false;
        while at < kept.len() {
            let end = (at + chunk).min(kept.len());
            let fewer = [&kept[..at], &kept[end..]].concat();
            if fails(&fewer) {
                kept = fewer;
                dropped = true;
            } else {
                at = end;
            }
        }
        // Leaving one out may make another needless.
        if chunk > 1 || !dropped {
            chunk /= 2;
        }
    }
    kept
}
