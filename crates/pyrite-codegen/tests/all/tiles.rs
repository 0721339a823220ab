//! The tile interpreter on kernels whose results are known.

use crate::harness::{access, bytes, load, numbers, phase, run, store};
use pyrite_codegen::{Fault, tiles};
use pyrite_loops::{Binary, Inst, Kernel, Lanes, Reduce, Reduction, Type, Unary, Write};
use pyrite_tensor::DType;

/// Softmax over the second of two axes; along `lanes`.
fn softmax(rows: i64, columns: i64, lanes: Lanes) -> Kernel {
    let mut kernel = Kernel { name: "softmax".into(), lanes, ..Kernel::default() };
    let (i, j) = (kernel.add_axis(rows.into()), kernel.add_axis(columns.into()));
    kernel.rows = vec![i];
    let x = access(&mut kernel, 0, DType::F32, 0, &[columns, 1]);
    let y = access(&mut kernel, 1, DType::F32, 0, &[columns, 1]);
    let (most, sum) = (kernel.add_result(Type::F32), kernel.add_result(Type::F32));

    let mut first = phase(&[j]);
    let value = load(&kernel, &mut first, x);
    first.reduces.push(Reduce { op: Reduction::Max, value, index: None, result: most });
    let mut second = phase(&[j]);
    let value = load(&kernel, &mut second, x);
    let top = second.code.push(Inst::Result(most), Type::F32);
    let value = second.code.binary(Binary::Sub, value, top);
    let value = second.code.unary(Unary::Exp, value);
    store(&mut second, y, value);
    second.reduces.push(Reduce { op: Reduction::Sum, value, index: None, result: sum });
    let mut third = phase(&[j]);
    let value = load(&kernel, &mut third, y);
    let total = third.code.push(Inst::Result(sum), Type::F32);
    let value = third.code.binary(Binary::Div, value, total);
    store(&mut third, y, value);
    kernel.phases = vec![first, second, third];
    kernel
}

#[test]
fn the_rows_of_a_softmax_sum_to_one_along_either_axis() {
    for lanes in [Lanes::Phase, Lanes::Rows] {
        for (rows, columns) in [(1, 1), (3, 700), (700, 3), (0, 4)] {
            let kernel = softmax(rows, columns, lanes);
            let values: Vec<f32> = (0..rows * columns).map(|i| ((i * 37) % 11) as f32 * 0.5).collect();
            let mut buffers = [bytes(&values), bytes(&vec![0f32; values.len()])];
            run(&tiles::compile(&kernel), &kernel, &mut buffers).unwrap();
            for row in numbers::<f32>(&buffers[1]).chunks(columns as usize) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
            }
        }
    }
}

#[test]
fn an_embedding_reads_the_rows_it_is_told_and_refuses_others() {
    let mut kernel = Kernel { name: "embedding".into(), lanes: Lanes::Phase, ..Kernel::default() };
    let (i, j) = (kernel.add_axis(3.into()), kernel.add_axis(2.into()));
    kernel.rows = vec![i];
    let indices = access(&mut kernel, 0, DType::I64, 0, &[1, 0]);
    let table = access(&mut kernel, 1, DType::BF16, 0, &[0, 1]);
    let out = access(&mut kernel, 2, DType::F32, 0, &[2, 1]);
    let mut only = phase(&[j]);
    let index = load(&kernel, &mut only, indices);
    let extent = only.code.integer(4, Type::I64);
    let index = only.code.push(Inst::Bounded { index, extent }, Type::I64);
    let width = only.code.integer(2, Type::I64);
    let at = only.code.binary(Binary::Mul, index, width);
    let value = only.code.push(Inst::Gather { access: table, at }, Type::F32);
    store(&mut only, out, value);
    kernel.phases = vec![only];
    let table: Vec<half::bf16> = (0..8i8).map(|i| half::bf16::from_f32(i.into())).collect();
    let mut buffers = [bytes(&[2i64, 0, -1]), bytes(&table), bytes(&[0f32; 6])];
    run(&tiles::compile(&kernel), &kernel, &mut buffers).unwrap();
    assert_eq!(numbers::<f32>(&buffers[2]), [4.0, 5.0, 0.0, 1.0, 6.0, 7.0]);
    buffers[0] = bytes(&[0i64, 4, 0]);
    assert_eq!(run(&tiles::compile(&kernel), &kernel, &mut buffers), Err(Fault::OutOfBounds));
}

#[test]
fn the_first_nan_is_the_largest_and_ties_go_to_the_first() {
    for (values, expected) in
        [([1.0, 3.0, 3.0, 2.0], 1i64), ([1.0, f32::NAN, 9.0, f32::NAN], 1), ([f32::NEG_INFINITY; 4], 0)]
    {
        let mut kernel = Kernel { name: "argmax".into(), ..Kernel::default() };
        let axis = kernel.add_axis(4.into());
        let x = access(&mut kernel, 0, DType::F32, 0, &[1]);
        let y = access(&mut kernel, 1, DType::I64, 0, &[0]);
        let result = kernel.add_result(Type::I64);
        let mut first = phase(&[axis]);
        let value = load(&kernel, &mut first, x);
        let index = first.code.push(Inst::Index(axis), Type::I64);
        first.reduces.push(Reduce { op: Reduction::ArgMax, value, index: Some(index), result });
        let mut last = phase(&[]);
        let value = last.code.push(Inst::Result(result), Type::I64);
        store(&mut last, y, value);
        kernel.phases = vec![first, last];
        let mut buffers = [bytes(&values), bytes(&[0i64])];
        run(&tiles::compile(&kernel), &kernel, &mut buffers).unwrap();
        assert_eq!(numbers::<i64>(&buffers[1]), [expected], "{values:?}");
    }
}

#[test]
fn scattered_sums_add_up_where_indices_meet() {
    let mut kernel = Kernel { name: "histogram".into(), lanes: Lanes::Rows, ..Kernel::default() };
    let axis = kernel.add_axis(1000.into());
    kernel.rows = vec![axis];
    let x = access(&mut kernel, 0, DType::I64, 0, &[1]);
    let y = access(&mut kernel, 1, DType::I16, 0, &[0]);
    let mut only = phase(&[]);
    let at = load(&kernel, &mut only, x);
    let value = only.code.integer(1, Type::I32);
    only.code.push(Inst::Scatter { access: y, at, value, write: Write::Add }, Type::I32);
    kernel.phases = vec![only];
    let indices: Vec<i64> = (0..1000).map(|i| i % 3).collect();
    let mut buffers = [bytes(&indices), bytes(&[0i16; 3])];
    run(&tiles::compile(&kernel), &kernel, &mut buffers).unwrap();
    assert_eq!(numbers::<i16>(&buffers[1]), [334, 333, 333]);
}
