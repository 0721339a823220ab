//! A schedule as text; [`parse`](super::parse) reads it back.
//!
//! ```text
//! symbol s0 hint 4 low 2                       the symbols of sizes
//! buffer b0: f32[4*s0] = input 0               also `constant "w"`, `scratch`; nothing for what is computed
//! input b0 f32[s0, 4] stride [4, 1] offset 0
//! reach b0 i32[4] stride [1] offset 0          a view that may lie outside of its input, in the same storage
//! loop relu                                    also `gemm`, `bmm`, `conv`, `call`
//!   axes s0, 4
//!   rows i0                                    the axes that all phases share; `lanes rows` where vectors go across them
//!   phase i1
//!     v0 = load f32 b0[4*i0 + i1]
//!     v1 = const f32 0.0
//!     v2 = max v0 v1
//!     store f32 b1[4*i0 + i1] = v2
//!   reuse b0 for b1                            the result b1 is written over b0
//!   free b0
//! return [b1 f32[s0, 4] stride [4, 1] offset 0]
//! ```
//!
//! A call is `name: results = operator(arguments)`. The kernel of an epilogue, and each link of a fused bmm, stands in the
//! statement with the axes by which it goes through the rows: after `epilogue relu along i1 64 positions 80`, the axis `i1`
//! counts through 64 rows, 80 of its positions in each.

use std::fmt::{self, Write as _};

use pyrite_ir::Value;
use pyrite_ir::lower::Place;
use pyrite_loops::{AccessId, AxisId, BufferId, Inst, Kernel, Lanes, Number, Write};
use pyrite_sym::SymInt;

use super::{AsKernel, ExternCall, Op, Origin, Schedule};
use crate::bmm::Link;
use crate::rows::Rows;

impl<K: AsKernel> fmt::Display for Schedule<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.buffers.iter().map(|buffer| &buffer.elements);
        if let Some(SymInt::Expr(node)) =
            sizes.into_iter().chain(self.input_sizes()).find(|size| size.as_int().is_none())
        {
            for symbol in node.1.symbols() {
                let hint = symbol.hint.map(|hint| format!(" hint {hint}")).unwrap_or_default();
                writeln!(f, "symbol {}{hint} low {}", symbol.name, symbol.low)?;
            }
        }
        for (number, buffer) in self.buffers.iter().enumerate() {
            write!(f, "buffer b{number}: {}[{}]", buffer.dtype, buffer.elements)?;
            match &buffer.origin {
                Origin::Input(number) => writeln!(f, " = input {number}")?,
                Origin::Constant(name) => writeln!(f, " = constant {name:?}")?,
                Origin::Computed => writeln!(f)?,
                Origin::Scratch => writeln!(f, " = scratch")?,
            }
        }
        for input in &self.inputs {
            writeln!(f, "input {}", value(input))?;
        }
        for reach in &self.reaches {
            writeln!(f, "reach {}", place(reach))?;
        }
        for statement in &self.statements {
            match &statement.op {
                Op::Loop(own) => {
                    writeln!(f, "loop {}", own.kernel().name)?;
                    f.write_str(&kernel(own.kernel(), 2))?;
                }
                Op::Gemm(gemm) => {
                    writeln!(f, "gemm {}", call(&gemm.call))?;
                    if let Some(epilogue) = &gemm.epilogue {
                        let own = epilogue.kernel.kernel();
                        writeln!(f, "  epilogue {} along {}", own.name, rows(&epilogue.rows))?;
                        f.write_str(&kernel(own, 4))?;
                    }
                }
                Op::Bmm(fused) => {
                    writeln!(f, "bmm")?;
                    for link in &fused.links {
                        match link {
                            Link::Bmm(bmm) => writeln!(
                                f,
                                "  link {}: {} = {}({}, {})",
                                bmm.node.name,
                                place(&bmm.out),
                                bmm.op.name(),
                                place(&bmm.lhs),
                                place(&bmm.rhs)
                            )?,
                            Link::Kernel(own, along) => {
                                writeln!(f, "  link {} along {}", own.kernel().name, rows(along))?;
                                f.write_str(&kernel(own.kernel(), 4))?;
                            }
                        }
                    }
                    for block in &fused.blocks {
                        let over = block.over.map(|over| format!(" over {over}")).unwrap_or_default();
                        writeln!(f, "  block b{} of {} bytes{over}", block.buffer.0, block.row)?;
                    }
                }
                Op::Conv(conv) => writeln!(f, "conv {}", call(&conv.call))?,
                Op::Call(own) => writeln!(f, "call {}", call(own))?,
            }
            for reuse in &statement.reuses {
                writeln!(f, "  reuse b{} for b{}", reuse.dead.0, reuse.result.0)?;
            }
            if !statement.frees.is_empty() {
                writeln!(f, "  free {}", buffers(&statement.frees))?;
            }
        }
        for operator in &self.fallbacks {
            writeln!(f, "fallback {operator}")?;
        }
        writeln!(f, "return {}", value(&self.output))
    }
}

impl<K> Schedule<K> {
    fn input_sizes(&self) -> impl Iterator<Item = &SymInt> {
        self.inputs.iter().flat_map(|input| match input {
            Value::Int(size) => vec![size],
            Value::Tensor(place) => place.meta.shape.iter().chain(&place.meta.stride).collect(),
            _ => Vec::new(),
        })
    }
}

fn buffers(ids: &[BufferId]) -> String {
    ids.iter().map(|id| format!("b{}", id.0)).collect::<Vec<_>>().join(", ")
}

fn sizes(sizes: &[SymInt]) -> String {
    sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn place(place: &Place) -> String {
    let meta = &place.meta;
    format!(
        "b{} {}[{}] stride [{}] offset {}",
        place.buffer.0,
        meta.dtype,
        sizes(&meta.shape),
        sizes(&meta.stride),
        meta.offset
    )
}

fn value(of: &Value<Place>) -> String {
    match of {
        Value::None => "None".to_owned(),
        Value::Tensor(of) => place(of),
        Value::Bool(of) => if *of { "True" } else { "False" }.to_owned(),
        Value::Int(size) => format!("size {size}"),
        Value::Float(of) => format!("float {of:?}"),
        Value::Complex(of) => format!("complex {:?} {:?}", of.re, of.im),
        Value::Str(text) => format!("{text:?}"),
        Value::DType(dtype) => format!("dtype {dtype}"),
        Value::Device(device) => format!("device {:?}", device.to_string()),
        Value::Layout(layout) => format!("layout {:?}", &**layout),
        Value::MemoryFormat(format) => format!("format {}", format.torch_name()),
        Value::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", ")),
        Value::Slice(parts) => format!("slice [{}]", parts.iter().map(value).collect::<Vec<_>>().join(", ")),
        Value::Graph(name) => format!("graph {:?}", &**name),
    }
}

fn call(call: &ExternCall) -> String {
    let args: Vec<String> = call.args.iter().map(value).collect();
    format!("{}: {} = {}({})", call.node.name, value(&call.results), call.op.name(), args.join(", "))
}

fn rows(rows: &Rows) -> String {
    let digits: Vec<String> = rows.digits.iter().map(|(axis, count)| format!("i{} {count}", axis.0)).collect();
    format!("{} positions {}", digits.join(", "), rows.positions)
}

fn axes(axes: &[AxisId]) -> String {
    axes.iter().map(|axis| format!("i{}", axis.0)).collect::<Vec<_>>().join(", ")
}

/// A kernel, its lines indented by so many spaces.
fn kernel(kernel: &Kernel, indent: usize) -> String {
    let mut text = String::new();
    let mut line = |more: usize, content: String| {
        let _ = writeln!(text, "{:1$}{2}", "", indent + more, content.trim_end());
    };
    let extents: Vec<SymInt> = kernel.axes.iter().map(|axis| axis.extent.clone()).collect();
    line(0, format!("axes {}", sizes(&extents)));
    line(0, format!("rows {}", axes(&kernel.rows)));
    if kernel.lanes == Lanes::Rows {
        line(0, "lanes rows".to_owned());
    }
    for phase in &kernel.phases {
        line(0, format!("phase {}", axes(&phase.axes)));
        for (value, inst) in phase.code.iter() {
            let content = instruction(kernel, inst);
            line(2, if inst.writes() { content } else { format!("v{} = {content}", value.0) });
        }
        for reduce in &phase.reduces {
            let index = reduce.index.map(|index| format!(" v{}", index.0)).unwrap_or_default();
            let ty = lower(kernel.results[reduce.result.0 as usize]);
            line(2, format!("r{} {ty} = {} v{}{index}", reduce.result.0, lower(reduce.op), reduce.value.0));
        }
    }
    text
}

/// The name of a variant.
pub(super) fn lower(variant: impl fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

fn instruction(kernel: &Kernel, inst: &Inst) -> String {
    let element = |id: AccessId| {
        let access = kernel.access(id);
        format!("{} b{}[{}]", access.dtype, access.buffer.0, pyrite_loops::index(access))
    };
    match *inst {
        Inst::Const(Number::Int(number), ty) => format!("const {} {number}", lower(ty)),
        Inst::Const(Number::Float(number), ty) => format!("const {} {number:?}", lower(ty)),
        Inst::Load(access) => format!("load {}", element(access)),
        Inst::Gather { access, at } => format!("gather {} at v{}", element(access), at.0),
        Inst::Store { access, value } => format!("store {} = v{}", element(access), value.0),
        Inst::Scatter { access, at, value, write } => {
            let name = if write == Write::Add { "scatter-add" } else { "scatter" };
            format!("{name} {} at v{} = v{}", element(access), at.0, value.0)
        }
        Inst::Index(axis) => format!("index i{}", axis.0),
        Inst::Offset(access) => format!("offset {}", element(access)),
        Inst::Size(number) => format!("size {}", kernel.numbers[number as usize]),
        Inst::Result(result) => format!("result r{}", result.0),
        Inst::Before(result) => format!("before r{} {}", result.0, lower(kernel.results[result.0 as usize])),
        Inst::Unary(op, a) => format!("{} v{}", lower(op), a.0),
        Inst::Binary(op, a, b) => format!("{} v{} v{}", lower(op), a.0, b.0),
        Inst::Fma(a, b, c) => format!("fma v{} v{} v{}", a.0, b.0, c.0),
        Inst::Fnma(a, b, c) => format!("fnma v{} v{} v{}", a.0, b.0, c.0),
        Inst::Shift(shift, a, by) => format!("shift {} v{} {by}", lower(shift), a.0),
        Inst::Bits(to, a) => format!("bits {} v{}", lower(to), a.0),
        Inst::Table(table, at) => format!("table {} v{}", lower(table), at.0),
        Inst::Patch { op, a, mask, value } => format!("patch {} v{} v{} v{}", lower(op), a.0, mask.0, value.0),
        Inst::Compare(op, a, b) => format!("{} v{} v{}", lower(op), a.0, b.0),
        Inst::Select(condition, a, b) => format!("select v{} v{} v{}", condition.0, a.0, b.0),
        Inst::Cast(to, a) => format!("cast {} v{}", lower(to), a.0),
        Inst::Wrap(to, a) => format!("wrap {to} v{}", a.0),
        Inst::Bounded { index, extent } => format!("bounded v{} v{}", index.0, extent.0),
    }
}
