//! A program in double precision.
//!
//! Storages are cast, not tensors: tensors that shared memory share it afterwards, so that a write through one is seen
//! through the other. A storage that tensors of several element types look into cannot be cast without breaking that,
//! and stays as it is.

use std::collections::HashMap;

use pyrite_ir::{Graph, Value};
use pyrite_tensor::{DType, Layout, Storage, Tensor};

/// Casts a program and its inputs: afterwards the inputs, the constants and every type that the program names are in
/// double precision, and the inputs and constants are memory of their own.
pub fn in_double(graph: &mut Graph, inputs: &mut [Value<Tensor>]) {
    let mut doubles = Doubles::default();
    inputs.iter().for_each(|value| value.each(&mut |tensor| doubles.expect(tensor)));
    each_constant(graph, &mut |tensor| doubles.expect(tensor));
    let doubles = std::cell::RefCell::new(doubles);
    for value in inputs.iter_mut() {
        *value = doubles.borrow_mut().value(value);
    }
    graph.map_constants(&|tensor| doubles.borrow_mut().tensor(tensor));
    graph.map_dtypes(&DType::to_double);
}

fn each_constant(graph: &Graph, f: &mut dyn FnMut(&Tensor)) {
    graph.constants().values().for_each(&mut *f);
    graph.subgraphs().values().for_each(|nested| each_constant(nested, f));
}

/// Storages and their casts.
#[derive(Default)]
pub(crate) struct Doubles {
    /// By the storage's identity, which is its own while it is held here.
    storages: HashMap<usize, Cast>,
}

struct Cast {
    storage: Storage,
    /// The type of everything that looks into it; nothing where there are several.
    dtype: Option<DType>,
    /// The whole storage in double precision, made at its first use.
    whole: Option<Tensor>,
}

impl Doubles {
    /// Takes note of a tensor that will be cast.
    pub(crate) fn expect(&mut self, tensor: &Tensor) {
        let dtype = tensor.dtype();
        let cast = self.storages.entry(tensor.storage().id()).or_insert_with(|| Cast {
            storage: tensor.storage().clone(),
            dtype: Some(dtype),
            whole: None,
        });
        if cast.dtype != Some(dtype) {
            cast.dtype = None;
        }
    }

    /// A value with its tensors cast.
    pub(crate) fn value(&mut self, value: &Value<Tensor>) -> Value<Tensor> {
        value.map(&mut |tensor| self.tensor(tensor))
    }

    /// The cast of a tensor that was expected; the tensor itself if it was not, or has nothing to cast.
    pub(crate) fn tensor(&mut self, tensor: &Tensor) -> Tensor {
        let Some(cast) = self.storages.get_mut(&tensor.storage().id()) else { return tensor.clone() };
        let Some(dtype) = cast.dtype.filter(|dtype| dtype.to_double() != *dtype) else { return tensor.clone() };
        if cast.whole.is_none() {
            let count = (cast.storage.nbytes() / dtype.size()) as i64;
            let all = Tensor::new(cast.storage.clone(), dtype, Layout::contiguous(&[count]));
            cast.whole = all.ok().map(|all| all.cast(dtype.to_double()));
        }
        let view = cast.whole.as_ref().map(|whole| whole.view(dtype.to_double(), tensor.layout().clone()));
        match view {
            Some(Ok(view)) => view,
            _ => tensor.cast(dtype.to_double()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_that_share_memory_share_it_in_double_precision() {
        let base = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4]);
        let tail = base.view(DType::F32, Layout::new(&[2], &[1], 2)).unwrap();
        let mut doubles = Doubles::default();
        [&base, &tail].into_iter().for_each(|tensor| doubles.expect(tensor));
        let (base, tail) = (doubles.tensor(&base), doubles.tensor(&tail));
        assert_eq!((base.dtype(), tail.dtype()), (DType::F64, DType::F64));
        tail.write_f64s(&[7.0, 8.0]);
        assert_eq!(base.to_f64s(), [1.0, 2.0, 7.0, 8.0]);
    }

    #[test]
    fn memory_that_is_read_as_two_types_keeps_both() {
        let floats = Tensor::from_slice(&[1.0f32, 2.0], &[2]);
        let bits = floats.view(DType::I32, Layout::contiguous(&[2])).unwrap();
        let mut doubles = Doubles::default();
        [&floats, &bits].into_iter().for_each(|tensor| doubles.expect(tensor));
        assert_eq!(doubles.tensor(&floats).dtype(), DType::F32);
        assert!(doubles.tensor(&floats).storage().same(doubles.tensor(&bits).storage()));
    }
}
