//! Running a program with other rounding.
//!
//! A [`Perturbation`] watches an interpreted run and moves what is computed by a unit in the last place, up or down or not at
//! all, as another order of operations might. What programs are given in single or double precision is moved too: a sum
//! whose terms are moved scatters as a sum in another order does. Half-precision inputs are not, because sums over them
//! are kept in single precision. What rounds nothing is left alone: views, moves of data, maxima and other picks, integers,
//! and tensors of whole numbers, such as masks and counts.

use pyrite_ir::{Eval, Kind, Node, Operator, Target, Tolerance, Value};
use pyrite_tensor::{DType, Tensor};

/// Moves values by their rounding; the same seed moves the same values.
pub struct Perturbation {
    state: u64,
}

impl Perturbation {
    /// One of many.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Moves the value of a node, in place.
    pub fn apply(&mut self, node: &Node, value: &Value<Tensor>) {
        let rounds = match &node.kind {
            Kind::Call(Target::Op(op)) => rounds(op),
            Kind::Placeholder | Kind::GetAttr(_) => true,
            Kind::Call(_) | Kind::Output => false,
        };
        if !rounds {
            return;
        }
        let given = !matches!(node.kind, Kind::Call(_));
        value.each(&mut |tensor| {
            let half = tensor.dtype().size() < 4;
            if tensor.dtype().is_float()
                && !tensor.dtype().is_float8()
                && tensor.layout().is_dense()
                && !(given && half)
            {
                self.tensor(tensor);
            }
        });
    }

    fn tensor(&mut self, tensor: &Tensor) {
        let mut values = tensor.to_f64s();
        if values.iter().all(|value| value.fract() == 0.0 || !value.is_finite()) {
            return;
        }
        let digits = match tensor.dtype() {
            DType::F16 => 10,
            DType::BF16 => 7,
            DType::F32 => 23,
            _ => 52,
        };
        for value in &mut values {
            if *value == 0.0 || !value.is_finite() {
                continue;
            }
            let step = match self.next() & 3 {
                0 => 1.0,
                1 => -1.0,
                _ => continue,
            };
            let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
            *value += step * 2f64.powi(exponent - digits);
        }
        tensor.write_f64s(&values);
    }

    /// The next number of a splitmix generator.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Whether an operator computes numbers, which are rounded. Views, moves of data, and operators that pick elements, compare
/// them or change their signs do not; their records say so.
pub(crate) fn rounds(op: &Operator) -> bool {
    !matches!(op.def.eval, Eval::View) && op.def.tolerance != Tolerance::Exact
}

#[cfg(test)]
mod tests {
    use super::*;

    fn perturbed(values: &[f32], dtype: DType, kind: Kind) -> Vec<f64> {
        let tensor = Tensor::from_slice(values, &[values.len() as i64]).cast(dtype);
        Perturbation::new(1).apply(&Node::new("x", kind, Vec::new()), &Value::Tensor(tensor.clone()));
        tensor.to_f64s()
    }

    #[test]
    fn values_move_by_at_most_a_unit_in_the_last_place() {
        let values: Vec<f32> = (0..64).map(|i| 1.0 + i as f32 / 64.5).collect();
        let moved = perturbed(&values, DType::F32, Kind::Placeholder);
        let steps: Vec<f64> =
            moved.iter().zip(&values).map(|(m, v)| (m - f64::from(*v)) * f64::from(1u32 << 23)).collect();
        assert!(steps.iter().all(|step| [-1.0, 0.0, 1.0].contains(step)), "{steps:?}");
        assert!(steps.contains(&1.0) && steps.contains(&-1.0) && steps.contains(&0.0));
    }

    #[test]
    fn whole_numbers_and_halves_that_are_given_stay() {
        assert_eq!(perturbed(&[1.0, 0.0, 7.0], DType::F32, Kind::Placeholder), [1.0, 0.0, 7.0]);
        assert_eq!(perturbed(&[0.5, 1.5], DType::BF16, Kind::Placeholder), [0.5, 1.5]);
    }
}
