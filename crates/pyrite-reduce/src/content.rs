//! What tensors hold: plain numbers, generated ones, or data.
//!
//! Plain contents say most about a failure. Data that came with the program may belong to somebody, so a result says
//! whether any is left; numbers that a seed gives are nobody's.

use pyrite_tensor::Tensor;
use pyrite_tensor::random::CounterGenerator;

/// The seed of generated contents.
pub const SEED: u64 = 0;

/// The largest whole number that counts as small.
const SMALL: f64 = 9.0;

/// What a tensor holds, the plainest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Zeros and ones.
    Bits,
    /// Small whole numbers.
    Small,
    /// What [`generated`] gives.
    Generated,
    /// Anything else.
    Data,
}

/// What a tensor holds.
pub(crate) fn of(tensor: &Tensor) -> Content {
    let worst = tensor.to_c128s().iter().map(|z| kind(z.re, z.im)).max().unwrap_or(Content::Bits);
    let made = worst == Content::Data
        && tensor.dtype().is_float()
        && generated(tensor).is_some_and(|made| made.to_f64s() == tensor.to_f64s());
    if made { Content::Generated } else { worst }
}

fn kind(re: f64, im: f64) -> Content {
    if im == 0.0 && (re == 0.0 || re == 1.0) {
        Content::Bits
    } else if im == 0.0 && re.fract() == 0.0 && re.abs() <= SMALL {
        Content::Small
    } else {
        Content::Data
    }
}

/// How far a tensor is from zeros and ones: small whole numbers count one each, generated ones two, data three.
pub(crate) fn cost(tensor: &Tensor) -> usize {
    if of(tensor) == Content::Generated {
        return 2 * tensor.numel();
    }
    let each = tensor.to_c128s();
    let costs = each.iter().map(|z| match kind(z.re, z.im) {
        Content::Bits => 0,
        Content::Small => 1,
        Content::Generated | Content::Data => 3,
    });
    costs.sum()
}

/// A tensor of the same form with normally distributed numbers from the seed; `None` for what holds no floating-point
/// numbers.
pub(crate) fn generated(tensor: &Tensor) -> Option<Tensor> {
    if !tensor.dtype().is_float() {
        return None;
    }
    let made = crate::candidate::copied(tensor);
    CounterGenerator::new(SEED, 0).fill_normal(&made);
    Some(made)
}
