//! What tensors hold: plain numbers, numbers that the seed gives, or data.
//!
//! Plain contents say most about a failure. Data that came with the program may belong to somebody, so a result says
//! whether any is left; numbers that a seed gives are nobody's, and need not be stored. The seed gives the storages of
//! inputs one after the other, normally distributed floats and zeros for everything else, as PyTorch's reader does for
//! those that have no file: so which numbers those are depends on the inputs before.

use pyrite_ir::Value;
use pyrite_tensor::random::{TorchGenerator, rand_strided};
use pyrite_tensor::{DType, Storage, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Candidate;

/// The largest whole number that counts as small.
const SMALL: f64 = 9.0;

/// What a tensor holds, the plainest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Zeros and ones.
    Bits,
    /// Small whole numbers.
    Small,
    /// What the seed gives.
    Generated,
    /// Anything else.
    Data,
}

/// What a tensor holds, whatever the seed gives.
pub(crate) fn of(tensor: &Tensor) -> Content {
    tensor.to_c128s().iter().map(|z| kind(z.re, z.im)).max().unwrap_or(Content::Bits)
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

/// How far a tensor is from zeros and ones: small whole numbers count one each, data three.
pub(crate) fn cost(tensor: &Tensor) -> usize {
    let each = tensor.to_c128s();
    let costs = each.iter().map(|z| match kind(z.re, z.im) {
        Content::Bits => 0,
        Content::Small => 1,
        Content::Generated | Content::Data => 3,
    });
    costs.sum()
}

/// The storages of a candidate's inputs in their order, each once, with the element type of the first tensor over it.
fn storages(candidate: &Candidate) -> Vec<(Storage, DType)> {
    let mut found: Vec<(Storage, DType)> = Vec::new();
    let mut seen: FxHashSet<usize> = FxHashSet::default();
    for input in &candidate.inputs {
        if let Value::Tensor(tensor) = input
            && seen.insert(tensor.storage().id())
        {
            found.push((tensor.storage().clone(), tensor.dtype()));
        }
    }
    found
}

/// The next storage of a form that a generator gives; `None` where the size is no multiple of the element's.
fn next(generator: &mut TorchGenerator, storage: &Storage, dtype: DType) -> Option<Storage> {
    let count = storage.nbytes() / dtype.size();
    let made = rand_strided(&[count as i64], &[1], dtype, generator).ok()?;
    (made.storage().nbytes() == storage.nbytes()).then(|| made.storage().clone())
}

/// How many elements are looked at before all are drawn: normal numbers come in blocks of so many, so that the first block
/// is the same however many follow.
const BLOCK: usize = 16;

/// Whether a storage may be what a generator gives next, by its first block.
fn may_be_next(generator: &TorchGenerator, storage: &Storage, dtype: DType) -> bool {
    let count = storage.nbytes() / dtype.size();
    if count < 2 * BLOCK {
        return true;
    }
    let first = rand_strided(&[BLOCK as i64], &[1], dtype, &mut generator.clone());
    let bytes = BLOCK * dtype.size();
    first.is_ok_and(|first| first.storage().read::<u8>()[..bytes] == storage.read::<u8>()[..bytes])
}

/// The ids of the storages that the candidate's seed gives.
pub fn drawn(candidate: &Candidate) -> FxHashSet<usize> {
    let mut generator = TorchGenerator::new(candidate.seed);
    let mut found = FxHashSet::default();
    for (storage, dtype) in storages(candidate) {
        if !may_be_next(&generator, &storage, dtype) {
            continue;
        }
        let mut ahead = generator.clone();
        if next(&mut ahead, &storage, dtype).is_some_and(|made| *made.read::<u8>() == *storage.read::<u8>()) {
            found.insert(storage.id());
            generator = ahead;
        }
    }
    found
}

/// The candidate with the contents of these storages from the seed, beside those that are from it already.
pub(crate) fn redrawn(candidate: &Candidate, more: &FxHashSet<usize>) -> Candidate {
    let already = drawn(candidate);
    let mut generator = TorchGenerator::new(candidate.seed);
    let mut made: FxHashMap<usize, Storage> = FxHashMap::default();
    for (storage, dtype) in storages(candidate) {
        if more.contains(&storage.id()) || already.contains(&storage.id()) {
            made.extend(next(&mut generator, &storage, dtype).map(|new| (storage.id(), new)));
        }
    }
    let inputs = candidate.inputs.iter().map(|input| {
        input.map(&mut |tensor| match made.get(&tensor.storage().id()) {
            Some(storage) => {
                Tensor::new(storage.clone(), tensor.dtype(), tensor.layout().clone()).unwrap_or_else(|_| tensor.clone())
            }
            None => tensor.clone(),
        })
    });
    Candidate { inputs: inputs.collect(), ..candidate.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storages_of_any_size_are_known_again_and_changed_ones_are_not() {
        let graph = pyrite_ir::Builder::new().finish();
        for count in [1, 15, 16, 17, 31, 32, 33, 47, 1000] {
            let mut generator = TorchGenerator::new(3);
            let made: Vec<Tensor> = [DType::F32, DType::F16, DType::F64, DType::I64]
                .into_iter()
                .map(|dtype| rand_strided(&[count], &[1], dtype, &mut generator).expect("a tensor"))
                .collect();
            let inputs: Vec<Value<Tensor>> = made.iter().cloned().map(Value::Tensor).collect();
            let whole = Candidate { graph: graph.clone(), inputs, seed: 3 };
            assert_eq!(drawn(&whole).len(), 4, "{count} elements");
            assert!(drawn(&Candidate { seed: 4, ..whole.clone() }).len() <= 1, "zeros are those of any seed");
            // Without the first, the others are not what comes next.
            let rest = Candidate { inputs: whole.inputs[1..].to_vec(), ..whole.clone() };
            assert!(drawn(&rest).len() <= 1);
            let ids = rest.inputs.iter().filter_map(Value::as_tensor).map(|t| t.storage().id()).collect();
            assert_eq!(drawn(&redrawn(&rest, &ids)).len(), 3, "{count} elements");
        }
    }
}
