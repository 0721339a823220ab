//! Small GEMMs and convolutions against double precision, run by the interpreter, which finds races and accesses outside of operands.

#![expect(unsafe_code, reason = "kernels work on raw memory")]

use pyrite_ptx::assemble::Assembler;
use pyrite_ptx::gemm::{Addresses, Dense, Gemm, Images, Sizes, Tile, Windows};
use pyrite_ptx::interp::{Module, Region};

const KINDS: [Dense; 2] = [Dense::Steps, Dense::Lines];

/// A GEMM of plain matrices.
fn plain(lhs: Dense, rhs: Dense, bias: bool, tile: Tile) -> Gemm {
    Gemm { lhs, rhs, bias, tile, windows: None }
}

/// Numbers that are not multiples of each other.
fn numbers(count: i64, seed: i64) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

/// Memory whose first element lies where vectors may begin, with elements behind the last one that must not be touched.
struct Memory(Vec<[f32; 4]>);

impl Memory {
    fn of(values: &[f32]) -> Self {
        Self(values.chunks(4).map(|chunk| std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0.0))).collect())
    }

    fn region(&mut self, count: i64, writable: bool) -> Region {
        let start = self.0.as_mut_ptr().addr() as u64;
        Region { start: start.next_multiple_of(16), bytes: count as u64 * 4, writable }
    }
}

/// A copy of numbers that begins where vectors may.
fn padded(values: &[f32]) -> Memory {
    // One vector more, since allocations begin at multiples of four bytes.
    let mut memory = Memory::of(values);
    memory.0.push([0.0; 4]);
    let shift = (memory.0.as_ptr().addr() % 16) / 4;
    assert_eq!(shift % 4, shift, "elements are aligned");
    let flat: Vec<f32> = std::iter::repeat_n(0.0, (4 - shift) % 4).chain(values.iter().copied()).collect();
    memory.0.iter_mut().flatten().zip(flat).for_each(|(to, from)| *to = from);
    memory
}

/// Runs a GEMM on copies of its operands; what it writes.
fn run(gemm: Gemm, sizes: &Sizes, operands: [&[f32]; 3], results: i64) -> Vec<f32> {
    let mut memory = operands.map(padded);
    let mut out = padded(&vec![f32::NAN; results as usize]);
    let [lhs, rhs, bias] = &mut memory;
    let regions = [
        lhs.region(operands[0].len() as i64, false),
        rhs.region(operands[1].len() as i64, false),
        bias.region(operands[2].len() as i64, false),
        out.region(results, true),
    ];
    let [lhs, rhs, bias, to] = [0, 1, 2, 3].map(|number: usize| regions[number].start);
    let addresses = Addresses { lhs, rhs, bias, out: to };
    assert!(gemm.takes(sizes, &addresses), "{gemm:?} {sizes:?}");
    let launch = gemm.launch(sizes, &addresses).unwrap();
    let module = Module::parse(&gemm.text()).unwrap_or_else(|error| panic!("{error}\n{}", gemm.text()));
    // SAFETY: the regions are the memory above.
    unsafe { module.run(&launch, &regions) }
        .unwrap_or_else(|trap| panic!("{gemm:?} {sizes:?}: {trap}\n{}", gemm.text()));
    let start = (to - out.0.as_ptr().addr() as u64) as usize / 4;
    out.0.iter().flatten().copied().skip(start).take(results as usize).collect()
}

fn check(gemm: Gemm, (batch, rows, steps, columns): (i64, i64, i64, i64)) {
    let pitch = |dense: Dense, lines: i64| if dense == Dense::Steps { steps } else { lines };
    let sizes = Sizes {
        batch,
        rows,
        steps,
        columns,
        lhs: pitch(gemm.lhs, rows),
        rhs: pitch(gemm.rhs, columns),
        apart: [rows * steps, steps * columns, rows * columns],
        ..Sizes::default()
    };
    let (a, b, bias) = (numbers(batch * rows * steps, 1), numbers(batch * steps * columns, 2), numbers(columns, 3));
    let found = run(gemm, &sizes, [&a, &b, &bias], batch * rows * columns);
    let at = |dense: Dense, line: i64, step: i64, lines: i64| match dense {
        Dense::Steps => line * steps + step,
        Dense::Lines => step * lines + line,
    };
    for number in 0..batch {
        for row in 0..rows {
            for column in 0..columns {
                let mut sum = if gemm.bias { f64::from(bias[column as usize]) } else { 0.0 };
                for step in 0..steps {
                    let left = a[(number * rows * steps + at(gemm.lhs, row, step, rows)) as usize];
                    let right = b[(number * steps * columns + at(gemm.rhs, column, step, columns)) as usize];
                    sum += f64::from(left) * f64::from(right);
                }
                let have = f64::from(found[((number * rows + row) * columns + column) as usize]);
                let allowed = 1e-6 * (steps as f64).sqrt() * 4.0;
                assert!(
                    (have - sum).abs() <= allowed,
                    "{gemm:?} {sizes:?} at {number}, {row}, {column}: {have} is not {sum}"
                );
            }
        }
    }
}

#[test]
fn every_layout_and_tile_gives_the_sums_of_products() {
    let sizes = [(1, 32, 128, 32), (1, 36, 132, 40), (2, 4, 8, 4), (1, 64, 256, 36), (3, 20, 300, 68)];
    for (number, shape) in sizes.into_iter().enumerate() {
        for (kind, lhs) in KINDS.into_iter().enumerate() {
            for (other, rhs) in KINDS.into_iter().enumerate() {
                let tile = Tile::ALL[(number + kind * 2 + other) % 3];
                check(plain(lhs, rhs, (number + kind + other) % 2 == 0, tile), shape);
            }
        }
    }
    for tile in Tile::ALL {
        // Rows need no multiple where steps are dense.
        check(plain(Dense::Steps, Dense::Lines, true, tile), (1, 67, 68, 68));
        check(plain(Dense::Lines, Dense::Steps, false, tile), (2, 68, 76, 36));
    }
}

/// A convolution of images with its steps in parts, against its definition.
fn check_windows(tile: Tile, windows: Windows, images: Images, (count, made_channels, parts): (i64, i64, i64)) {
    let Images { read: [height, width], made: [rows, columns], stride, padding, channels } = images;
    let area = i64::from(windows.height * windows.width);
    let all = channels * area;
    let gemm = Gemm { lhs: Dense::Steps, rhs: Dense::Lines, bias: false, tile, windows: Some(windows) };
    let made = count * made_channels * rows * columns;
    let sizes = Sizes {
        batch: parts,
        rows: made_channels,
        steps: all / parts,
        columns: count * rows * columns,
        lhs: all,
        rhs: 0,
        apart: [all / parts, 0, made],
        images,
    };
    let (weights, pixels) = (numbers(made_channels * all, 1), numbers(count * channels * height * width, 2));
    let found = run(gemm, &sizes, [&weights, &pixels, &[]], parts * made);
    for number in 0..made {
        let (column, rest) = (number % columns, number / columns);
        let (row, rest) = (rest % rows, rest / rows);
        let (channel, image) = (rest % made_channels, rest / made_channels);
        let mut sum = 0.0;
        for step in 0..all {
            let (from, place) = (step / area, step % area);
            let y = row * stride[0] - padding[0] + place / i64::from(windows.width);
            let x = column * stride[1] - padding[1] + place % i64::from(windows.width);
            if (0..height).contains(&y) && (0..width).contains(&x) {
                let pixel = pixels[(((image * channels + from) * height + y) * width + x) as usize];
                sum += f64::from(pixel) * f64::from(weights[(channel * all + step) as usize]);
            }
        }
        let have: f64 = (0..parts).map(|part| f64::from(found[(part * made + number) as usize])).sum();
        let allowed = 1e-6 * (all as f64).sqrt() * 4.0;
        assert!((have - sum).abs() <= allowed, "{gemm:?} {sizes:?} at {number}: {have} is not {sum}");
    }
}

#[test]
fn convolutions_are_gemms_of_windows() {
    let square = Windows { height: 3, width: 3 };
    let images = Images { read: [8, 8], made: [8, 8], stride: [1, 1], padding: [1, 1], channels: 8 };
    for tile in Tile::ALL {
        check_windows(tile, square, images, (2, 36, 2));
    }
    let halved = Images { read: [7, 10], made: [4, 5], stride: [2, 2], padding: [1, 1], channels: 12 };
    check_windows(Tile::Small, square, halved, (3, 20, 1));
    let points = Images { read: [6, 4], made: [3, 4], stride: [2, 1], padding: [0, 0], channels: 24 };
    check_windows(Tile::Tall, Windows { height: 1, width: 1 }, points, (2, 40, 3));
    let flat = Images { read: [5, 9], made: [4, 5], stride: [1, 2], padding: [0, 2], channels: 10 };
    check_windows(Tile::Large, Windows { height: 2, width: 4 }, flat, (1, 8, 1));
}

#[test]
fn a_missing_barrier_of_a_gemm_is_found() {
    Tile::ALL.into_iter().for_each(every_barrier_counts);
}

fn every_barrier_counts(tile: Tile) {
    let gemm = plain(Dense::Steps, Dense::Lines, false, tile);
    let sizes = Sizes { batch: 1, rows: 32, steps: 256, columns: 32, lhs: 256, rhs: 32, ..Sizes::default() };
    let mut memory = vec![[0.5f32; 4]; 32 * 256 / 4 * 2 + 32 * 32 / 4 + 4];
    let start = (memory.as_mut_ptr().addr() as u64).next_multiple_of(16);
    let regions = [Region { start, bytes: (32 * 256 * 2 + 32 * 32) * 4, writable: true }];
    let addresses = Addresses { lhs: start, rhs: start + 32 * 256 * 4, bias: 0, out: start + 32 * 256 * 8 };
    let launch = gemm.launch(&sizes, &addresses).unwrap();
    let text = gemm.text();
    let barriers = text.matches("bar.sync 0;").count();
    for number in 0..barriers {
        let place = text.match_indices("bar.sync 0;").nth(number).unwrap().0;
        let broken = format!("{}{}", &text[..place], &text[place + "bar.sync 0;".len()..]);
        let module = Module::parse(&broken).unwrap();
        // SAFETY: the region is the memory above.
        let trap = unsafe { module.run(&launch, &regions) }.unwrap_err();
        assert!(trap.what.contains("race in shared memory"), "{number}: {trap}");
    }
}

#[test]
fn operands_that_vectors_cannot_read_are_refused() {
    let gemm = plain(Dense::Steps, Dense::Lines, false, Tile::Small);
    let sizes = Sizes { batch: 1, rows: 32, steps: 32, columns: 32, lhs: 32, rhs: 32, ..Sizes::default() };
    let addresses = Addresses { lhs: 1024, rhs: 2048, bias: 0, out: 4096 };
    assert!(gemm.takes(&sizes, &addresses));
    assert!(!gemm.takes(&Sizes { steps: 30, ..sizes }, &addresses));
    assert!(!gemm.takes(&Sizes { columns: 33, ..sizes }, &addresses));
    assert!(!gemm.takes(&Sizes { lhs: 35, ..sizes }, &addresses));
    assert!(!gemm.takes(&sizes, &Addresses { rhs: 2052, ..addresses }));
}

#[test]
fn the_assembler_takes_every_kind() {
    let Some(assembler) = Assembler::find() else {
        println!("ptxas is not installed (PYRITE_PTXAS names one): nothing is assembled");
        return;
    };
    for lhs in KINDS {
        for rhs in KINDS {
            for tile in Tile::ALL {
                let windows = (lhs, rhs) == (Dense::Steps, Dense::Lines);
                let windows = windows.then_some(Windows { height: 3, width: 3 });
                let gemm = plain(lhs, rhs, true, tile);
                for gemm in [Some(gemm), windows.map(|windows| Gemm { windows: Some(windows), bias: false, ..gemm })] {
                    let Some(gemm) = gemm else { continue };
                    for architecture in ["sm_80", "sm_90"] {
                        let found = assembler.assemble(&gemm.text(), architecture);
                        let found = found.unwrap_or_else(|error| panic!("{gemm:?}: {error}"));
                        println!("{gemm:?} {architecture}: {found:?}");
                    }
                }
            }
        }
    }
}
