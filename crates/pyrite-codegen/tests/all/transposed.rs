//! Kernels that read and write across their lanes, around every edge of the squares that are transposed.

use crate::harness::run;
use pyrite_codegen::tiles;
use pyrite_codegen::x86::{self, Width};
use pyrite_loops::{Access, AxisId, Binary, BufferId, Inst, Kernel, Phase, Type};
use pyrite_tensor::DType;

const SIZES: [i64; 8] = [1, 3, 8, 15, 16, 17, 33, 50];

/// Which accesses go across the lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Across {
    Read,
    Written,
    Both,
}

/// `out[i, j] = a[i, j] + b[i, j] + i`, with two batches of `rows` times `cols` and some of the buffers transposed.
fn kernel(across: Across, rows: i64, cols: i64, outer: bool) -> Kernel {
    let mut kernel = Kernel { name: "transposed".to_owned(), ..Kernel::default() };
    let (batch, i, j) = (kernel.add_axis(2.into()), kernel.add_axis(rows.into()), kernel.add_axis(cols.into()));
    let mut access = |buffer, transposed: bool| {
        let steps = if transposed { [rows * cols, 1, rows] } else { [rows * cols, cols, 1] };
        let (buffer, dtype, steps) = (BufferId(buffer), DType::F32, steps.map(Into::into).to_vec());
        kernel.add_access(Access { buffer, dtype, offset: 0.into(), steps })
    };
    let a = access(0, false);
    let b = access(1, across != Across::Written);
    let out = access(2, across != Across::Read);
    let mut phase = Phase { axes: if outer { vec![i, j] } else { vec![j] }, ..Phase::default() };
    kernel.rows = if outer { vec![batch] } else { vec![batch, i] };
    let x = phase.code.push(Inst::Load(a), Type::F32);
    let y = phase.code.push(Inst::Load(b), Type::F32);
    let sum = phase.code.push(Inst::Binary(Binary::Add, x, y), Type::F32);
    let index = phase.code.push(Inst::Index(AxisId(i.0)), Type::I64);
    let index = phase.code.push(Inst::Cast(Type::F32, index), Type::F32);
    let value = phase.code.push(Inst::Binary(Binary::Add, sum, index), Type::F32);
    phase.code.push(Inst::Store { access: out, value }, Type::F32);
    kernel.phases.push(phase);
    kernel
}

#[test]
fn what_lies_across_the_lanes_is_read_and_written_where_it_is() {
    for width in [Width::Avx2, Width::Avx512].into_iter().filter(|width| width.is_available()) {
        for across in [Across::Read, Across::Written, Across::Both] {
            for (rows, cols) in SIZES.into_iter().flat_map(|rows| SIZES.map(|cols| (rows, cols))) {
                for outer in [false, true] {
                    let kernel = kernel(across, rows, cols, outer);
                    let count = 2 * rows * cols;
                    let numbers = |seed: i64| (0..count).flat_map(|n| ((n * 7 + seed) as f32).to_ne_bytes()).collect();
                    let buffers: Vec<Vec<u8>> = vec![numbers(1), numbers(1000), vec![0; 4 * count as usize]];
                    let (mut expected, mut actual) = (buffers.clone(), buffers);
                    run(&tiles::compile(&kernel), &kernel, &mut expected).unwrap();
                    run(&x86::compile(&kernel, width).unwrap(), &kernel, &mut actual).unwrap();
                    assert_eq!(actual, expected, "{width:?} {across:?} {rows} {cols} {outer}");
                }
            }
        }
    }
}
