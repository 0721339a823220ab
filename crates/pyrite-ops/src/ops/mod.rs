//! The families of operators, a table each.

use pyrite_ir::OpDef;

mod activation;
mod activation_backward;
mod attention;
mod binary;
mod composite;
mod convolution;
mod copy;
mod create;
mod distance;
mod embedding;
mod fft;
mod grid;
mod higher_order;
mod index;
mod join;
mod linalg;
mod logic;
mod loss;
mod matmul;
mod norm;
mod pad;
mod pool;
mod random;
mod reduce;
mod renamed;
mod scan;
mod scatter;
mod softmax;
mod sort;
mod special;
mod statistics;
mod symbolic;
mod ternary;
mod unary;
mod upsample;
mod view;

/// Every table.
pub const TABLES: &[&[OpDef]] = &[
    activation::OPS,
    activation_backward::OPS,
    attention::OPS,
    binary::OPS,
    composite::OPS,
    convolution::OPS,
    copy::OPS,
    create::OPS,
    distance::OPS,
    embedding::OPS,
    fft::OPS,
    grid::OPS,
    higher_order::OPS,
    index::OPS,
    join::OPS,
    linalg::OPS,
    logic::OPS,
    loss::OPS,
    matmul::OPS,
    norm::LAYER,
    norm::GROUP,
    norm::BATCH,
    norm::COMPOSITE,
    pad::OPS,
    pool::OPS,
    random::OPS,
    reduce::SUMS,
    reduce::EXTREMES,
    reduce::MOMENTS,
    reduce::NORMS,
    renamed::OPS,
    scan::OPS,
    scatter::OPS,
    softmax::OPS,
    sort::SELECT,
    sort::SEARCH,
    sort::UNIQUE,
    special::OPS,
    statistics::OPS,
    symbolic::OPS,
    ternary::OPS,
    unary::OPS,
    upsample::OPS,
    view::OPS,
];
