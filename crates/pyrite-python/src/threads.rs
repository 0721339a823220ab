//! The threads that kernels use.

use std::sync::Once;

/// Starts them once, as many as `PYRITE_NUM_THREADS` says, else one per core. The calling thread does its share of the
/// work: handing a small product over and waiting costs more than the product.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let wanted = std::env::var("PYRITE_NUM_THREADS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        // Whoever built the pool before decided for all.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(wanted).use_current_thread().build_global();
    });
}
