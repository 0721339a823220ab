//! Programs that write to their inputs, in double precision: what they leave behind is what was written.

use pyrite_compiler::{Options, find};
use pyrite_debug::execute;
use pyrite_interp::Mode;
use pyrite_ir::{Graph, Meta, Value};
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::{DType, Layout, Tensor};

/// Writes to an input through a view of another that shares its memory, to a constant, and rounds on the way.
const PROGRAM: &str = "
import torch
from torch import device

class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('count', torch.tensor([1.0, 2.0]))

    def forward(self, base, tail, half):
        count = self.count
        view = torch.ops.aten.view.default(tail, [2, 1])
        written = torch.ops.aten.add_.Tensor(view, 0.1)
        counted = torch.ops.aten.mul_.Tensor(count, 3.0)
        narrow = torch.ops.aten._to_copy.default(half, dtype = torch.bfloat16)
        wide = torch.ops.aten._to_copy.default(narrow, dtype = torch.float32)
        both = torch.ops.aten.add.Tensor(base, wide)
        return (both, view)
";

fn program() -> (Graph, Vec<Value<Tensor>>) {
    let mut graph = read_text(PROGRAM, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let base = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4]);
    let tail = base.view(DType::F32, Layout::new(&[2], &[1], 2)).expect("a view");
    let half = Tensor::from_slice(&[0.1f32; 4], &[4]).cast(DType::F16);
    let inputs: Vec<Value<Tensor>> = [base, tail, half].into_iter().map(Value::Tensor).collect();
    let ids: Vec<_> = graph.placeholders().map(|(id, _)| id).collect();
    for (id, input) in ids.into_iter().zip(&inputs) {
        graph.set_meta(id, input.map(&mut |tensor| Meta::of(tensor)));
    }
    (graph, inputs)
}

#[test]
fn every_backend_leaves_its_writes_in_double_precision() {
    let (graph, inputs) = program();
    let options = Options { mode: Mode::Fp64, ..Options::default() };
    let half = Tensor::from_slice(&[0.1f32], &[1]).cast(DType::F16).to_f64s()[0];
    for name in ["eager", "pre_dispatch_eager", "aot_eager", "aot_eager_decomp_partition", "invoke_subgraph", "ts"] {
        let backend = find(name).expect("a backend");
        let ran = execute(&graph, &inputs, &backend, &options, &mut |_| {}, &mut |_, _| {}).expect(name);
        let left: Vec<&Tensor> = ran.results.inputs.iter().filter_map(Value::as_tensor).collect();
        assert_eq!(left[0].dtype(), DType::F64, "{name}");
        assert_eq!(left[0].to_f64s(), [1.0, 2.0, 3.1, 4.1], "{name}");
        assert!(left[0].storage().same(left[1].storage()), "{name}: the inputs came apart");
        assert_eq!(ran.results.buffers[0].1.to_f64s(), [3.0, 6.0], "{name}");
        let Value::List(outputs) = &ran.results.outputs[0] else { panic!("{name}: no list") };
        let (both, view) = (outputs[0].as_tensor().expect("a tensor"), outputs[1].as_tensor().expect("a tensor"));
        assert_eq!((both.dtype(), view.dtype()), (DType::F64, DType::F64), "{name}");
        assert_eq!(both.to_f64s(), [1.0 + half, 2.0 + half, 3.1 + half, 4.1 + half], "{name}");
        assert!(view.storage().same(left[0].storage()), "{name}: an output lost the input it is a view of");
    }
    assert_eq!(inputs[0].as_tensor().map(Tensor::to_f64s), Some(vec![1.0, 2.0, 3.0, 4.0]), "a run gets copies");
}
