//! Reads the text of a schedule ([`text`](super::text)).
//!
//! Statements are rebuilt from what the text says of them: a GEMM from its call, a fused bmm link by link. Reading what was
//! printed and printing it again gives the same text.

use std::str::FromStr as _;

use pyrite_ir::lower::Place;
use pyrite_ir::{Device, Kind, Meta, Node, OpRef, Registry, StorageId, Target, Value};
use pyrite_loops::{
    Access, AccessId, Axis, AxisId, Binary, BufferId, Compare, Inst, Kernel, Lanes, Number, Phase, Reduce, Reduction,
    ResultId, Shift, Table, Type, Unary, Val, Write,
};
use pyrite_sym::{Expr, SymEnv, SymInt};
use pyrite_tensor::{DType, MemoryFormat};

use super::text::lower;
use super::{Buffer, ExternCall, Op, Origin, Reuse, Schedule, Statement};
use crate::bmm::{Block, Bmm, FusedBmm, Link};
use crate::conv::Conv;
use crate::gemm::{Epilogue, Gemm};
use crate::rows::Rows;

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseScheduleError {
    /// The line, from 1 on.
    pub line: usize,
    /// What was expected there.
    pub message: String,
}

/// Reads a schedule. Operators are looked up in the registry.
pub fn parse(text: &str, registry: &Registry) -> Result<Schedule, ParseScheduleError> {
    let mut reader = Reader { lines: text.lines().collect(), at: 0, registry, env: SymEnv::new(), buffers: Vec::new() };
    reader.schedule().map_err(|message| ParseScheduleError { line: reader.at.max(1), message })
}

type Parsed<T> = Result<T, String>;

struct Reader<'t, 'r> {
    lines: Vec<&'t str>,
    /// The next line.
    at: usize,
    registry: &'r Registry,
    env: SymEnv,
    buffers: Vec<Buffer>,
}

/// What is left of a line.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn skip(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Takes a text if it comes next.
    fn take(&mut self, wanted: &str) -> bool {
        self.skip();
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, wanted: &str) -> Parsed<()> {
        if self.take(wanted) { Ok(()) } else { Err(format!("expected `{wanted}` at `{}`", self.0)) }
    }

    /// A word: letters, digits, `_`, `.`, `-` and `+`.
    fn word(&mut self) -> Parsed<&'a str> {
        self.skip();
        let end = self.0.find(|c: char| !(c.is_alphanumeric() || "_.-+".contains(c))).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        if word.is_empty() { Err(format!("expected a word at `{rest}`")) } else { Ok(word) }
    }

    /// Everything before one of these characters that is not in brackets.
    fn until(&mut self, ends: &[char]) -> &'a str {
        self.skip();
        let mut depth = 0u32;
        for (at, c) in self.0.char_indices() {
            if depth == 0 && ends.contains(&c) {
                let (before, rest) = self.0.split_at(at);
                self.0 = rest;
                return before.trim();
            }
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        std::mem::take(&mut self.0).trim()
    }

    /// A number behind a prefix, such as `b3`.
    fn id(&mut self, prefix: &str) -> Parsed<u32> {
        self.expect(prefix)?;
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits.parse().map_err(|_| format!("expected a number behind `{prefix}` at `{rest}`"))
    }

    /// Ids behind a prefix, separated by commas.
    fn ids(&mut self, prefix: &str) -> Parsed<Vec<u32>> {
        let mut found = Vec::new();
        while !self.is_done() {
            found.push(self.id(prefix)?);
            if !self.take(",") {
                break;
            }
        }
        Ok(found)
    }

    fn is_done(&mut self) -> bool {
        self.skip();
        self.0.is_empty()
    }

    fn end(&mut self) -> Parsed<()> {
        if self.is_done() { Ok(()) } else { Err(format!("expected the end of the line at `{}`", self.0)) }
    }

    /// A text in quotes, as Rust writes it.
    fn quoted(&mut self) -> Parsed<String> {
        self.expect("\"")?;
        let mut found = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Ok(found);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => found.push('\n'),
                    Some((_, 't')) => found.push('\t'),
                    Some((_, 'r')) => found.push('\r'),
                    Some((_, '0')) => found.push('\0'),
                    Some((_, other @ ('"' | '\\' | '\''))) => found.push(other),
                    _ => return Err("an escape that is not known".to_owned()),
                },
                c => found.push(c),
            }
        }
        Err("a text without an end".to_owned())
    }
}

/// The variant of that name.
fn named<T: Copy + std::fmt::Debug>(all: &[T], name: &str) -> Option<T> {
    all.iter().copied().find(|variant| lower(*variant) == name)
}

const TYPES: &[Type] = &[Type::Bool, Type::I32, Type::I64, Type::F32, Type::F64];
const FORMATS: &[MemoryFormat] =
    &[MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d, MemoryFormat::Preserve];

impl<'t> Reader<'t, '_> {
    /// The next line that is not empty, if it is at least so far indented.
    fn peek(&mut self, indent: usize) -> Option<&'t str> {
        while self.lines.get(self.at).is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        let line: &'t str = self.lines.get(self.at)?;
        (line.len() - line.trim_start().len() >= indent).then(|| line.trim())
    }

    /// Takes the next line if it begins with a word.
    fn line(&mut self, indent: usize, word: &str) -> Option<Cursor<'t>> {
        let rest = self.peek(indent)?.strip_prefix(word)?;
        let ends = rest.is_empty() || rest.starts_with(' ');
        ends.then(|| {
            self.at += 1;
            Cursor(rest)
        })
    }

    fn schedule(&mut self) -> Parsed<Schedule> {
        let (mut inputs, mut reaches, mut statements) = (Vec::new(), Vec::new(), Vec::new());
        let (mut fallbacks, mut output) = (Vec::new(), None);
        while self.peek(0).is_some() {
            if let Some(mut cursor) = self.line(0, "symbol") {
                let name = cursor.word()?;
                let hint = if cursor.take("hint ") { Some(number(cursor.word()?)?) } else { None };
                cursor.expect("low ")?;
                let low = number(cursor.word()?)?;
                self.env.named(name, hint, low);
            } else if let Some(mut cursor) = self.line(0, "buffer") {
                let buffer = self.buffer(&mut cursor)?;
                self.buffers.push(buffer);
            } else if let Some(mut cursor) = self.line(0, "input") {
                inputs.push(self.value(&mut cursor)?);
                cursor.end()?;
            } else if let Some(mut cursor) = self.line(0, "reach") {
                reaches.push(self.place(&mut cursor)?);
                cursor.end()?;
            } else if let Some(mut cursor) = self.line(0, "fallback") {
                fallbacks.push(cursor.word()?.to_owned());
            } else if let Some(mut cursor) = self.line(0, "return") {
                output = Some(self.value(&mut cursor)?);
                cursor.end()?;
            } else {
                let op = self.op()?;
                statements.push(self.planned(op)?);
            }
        }
        let output = output.ok_or("expected `return` at the end")?;
        Ok(Schedule { buffers: std::mem::take(&mut self.buffers), statements, inputs, reaches, output, fallbacks })
    }

    fn buffer(&mut self, cursor: &mut Cursor<'t>) -> Parsed<Buffer> {
        let number = cursor.id("b")?;
        if number as usize != self.buffers.len() {
            return Err(format!("expected buffer b{}", self.buffers.len()));
        }
        cursor.expect(":")?;
        let dtype = dtype(cursor.word()?)?;
        cursor.expect("[")?;
        let elements = self.size(cursor.until(&[']']))?;
        cursor.expect("]")?;
        let origin = if cursor.take("= input ") {
            Origin::Input(cursor.id("")? as usize)
        } else if cursor.take("= constant ") {
            Origin::Constant(cursor.quoted()?.into())
        } else if cursor.take("= scratch") {
            Origin::Scratch
        } else {
            Origin::Computed
        };
        cursor.end()?;
        Ok(Buffer { origin, dtype, elements })
    }

    fn size(&self, text: &str) -> Parsed<SymInt> {
        let expr = Expr::parse(text).map_err(|error| format!("{error}: `{text}`"))?;
        Ok(SymInt::from_expr(expr, &self.env))
    }

    fn sizes(&self, cursor: &mut Cursor<'t>) -> Parsed<Vec<SymInt>> {
        cursor.expect("[")?;
        let mut found = Vec::new();
        while !cursor.take("]") {
            found.push(self.size(cursor.until(&[',', ']']))?);
            cursor.take(",");
        }
        Ok(found)
    }

    fn place(&self, cursor: &mut Cursor<'t>) -> Parsed<Place> {
        let buffer = BufferId(cursor.id("b")?);
        if buffer.0 as usize >= self.buffers.len() {
            return Err(format!("there is no buffer b{}", buffer.0));
        }
        let dtype = dtype(cursor.word()?)?;
        let shape = self.sizes(cursor)?;
        cursor.expect("stride")?;
        let stride = self.sizes(cursor)?;
        cursor.expect("offset")?;
        let offset = self.size(cursor.until(&[',', ')', ']', '=']))?;
        let mut meta = Meta::strided(&shape, &stride, dtype);
        meta.offset = offset;
        meta.storage = StorageId::fresh();
        Ok(Place { buffer, meta })
    }

    fn list(&self, cursor: &mut Cursor<'t>, end: &str) -> Parsed<Vec<Value<Place>>> {
        let mut found = Vec::new();
        while !cursor.take(end) {
            if cursor.is_done() {
                return Err(format!("expected `{end}`"));
            }
            found.push(self.value(cursor)?);
            cursor.take(",");
        }
        Ok(found)
    }

    fn value(&self, cursor: &mut Cursor<'t>) -> Parsed<Value<Place>> {
        cursor.skip();
        if cursor.0.starts_with('"') {
            return Ok(Value::Str(cursor.quoted()?.into()));
        }
        if cursor.take("[") {
            return Ok(Value::List(self.list(cursor, "]")?));
        }
        if cursor.0.starts_with('b') && cursor.0[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Value::Tensor(self.place(cursor)?));
        }
        Ok(match cursor.word()? {
            "None" => Value::None,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "size" => Value::Int(self.size(cursor.until(&[',', ')', ']', '=']))?),
            "float" => Value::Float(float(cursor.word()?)?),
            "complex" => Value::Complex(num_complex::Complex64::new(float(cursor.word()?)?, float(cursor.word()?)?)),
            "dtype" => Value::DType(dtype(cursor.word()?)?),
            "device" => Value::Device(Device::from_name(&cursor.quoted()?)),
            "layout" => Value::Layout(cursor.quoted()?.into()),
            "graph" => Value::Graph(cursor.quoted()?.into()),
            "format" => {
                let name = cursor.word()?;
                let format = FORMATS.iter().find(|format| format.torch_name() == name);
                Value::MemoryFormat(*format.ok_or_else(|| format!("there is no memory format {name}"))?)
            }
            "slice" => {
                cursor.expect("[")?;
                let parts: [Value<Place>; 3] =
                    self.list(cursor, "]")?.try_into().map_err(|_| "a slice has three parts".to_owned())?;
                Value::Slice(Box::new(parts))
            }
            other => return Err(format!("expected a value at `{other}`")),
        })
    }

    fn operator(&self, name: &str) -> Parsed<OpRef> {
        self.registry.get(name).cloned().ok_or_else(|| format!("there is no operator {name}"))
    }

    fn call(&self, cursor: &mut Cursor<'t>) -> Parsed<ExternCall> {
        let name = cursor.word()?;
        cursor.expect(":")?;
        let results = self.value(cursor)?;
        cursor.expect("=")?;
        let op = self.operator(cursor.word()?)?;
        cursor.expect("(")?;
        let args = self.list(cursor, ")")?;
        cursor.end()?;
        Ok(ExternCall { node: node(name, &op), op, args, results })
    }

    fn op(&mut self) -> Parsed<Op> {
        if let Some(mut cursor) = self.line(0, "loop") {
            let name = cursor.word()?;
            return Ok(Op::Loop(self.kernel(name, 2)?));
        }
        if let Some(mut cursor) = self.line(0, "gemm") {
            let call = self.call(&mut cursor)?;
            let mut gemm = Gemm::of(call, &self.buffers).map_err(|call| format!("{} is no GEMM", call.op.name()))?;
            if let Some(mut cursor) = self.line(2, "epilogue") {
                let name = cursor.word()?;
                let rows = rows(&mut cursor)?;
                gemm.epilogue = Some(Epilogue { kernel: self.kernel(name, 4)?, rows });
            }
            return Ok(Op::Gemm(Box::new(gemm)));
        }
        if let Some(mut cursor) = self.line(0, "conv") {
            let call = self.call(&mut cursor)?;
            let conv = Conv::of(call, &self.buffers);
            return Ok(Op::Conv(Box::new(conv.map_err(|call| format!("{} does not suit tiles", call.op.name()))?)));
        }
        if let Some(mut cursor) = self.line(0, "call") {
            return Ok(Op::Call(Box::new(self.call(&mut cursor)?)));
        }
        match self.line(0, "bmm") {
            Some(_) => Ok(Op::Bmm(Box::new(self.bmm()?))),
            None => {
                Err("expected symbol, buffer, input, reach, loop, gemm, bmm, conv, call, fallback or return".to_owned())
            }
        }
    }

    fn bmm(&mut self) -> Parsed<FusedBmm> {
        let mut links = Vec::new();
        while let Some(mut cursor) = self.line(2, "link") {
            let name = cursor.word()?;
            if cursor.take(":") {
                let out = self.place(&mut cursor)?;
                cursor.expect("=")?;
                let op = self.operator(cursor.word()?)?;
                cursor.expect("(")?;
                let lhs = self.place(&mut cursor)?;
                cursor.expect(",")?;
                let rhs = self.place(&mut cursor)?;
                cursor.expect(")")?;
                links.push(Link::Bmm(Box::new(Bmm { node: node(name, &op), op, lhs, rhs, out })));
            } else {
                let rows = rows(&mut cursor)?;
                links.push(Link::Kernel(self.kernel(name, 4)?, rows));
            }
        }
        let mut fused = FusedBmm::of_links(links, &self.buffers)?;
        while let Some(mut cursor) = self.line(2, "block") {
            let buffer = BufferId(cursor.id("b")?);
            cursor.expect("of")?;
            let row = number(cursor.word()?)? as usize;
            cursor.expect("bytes")?;
            let over = if cursor.take("over ") { Some(number(cursor.word()?)? as usize) } else { None };
            fused.blocks.push(Block { buffer, row, over });
        }
        Ok(fused)
    }

    /// A statement with what follows it about memory.
    fn planned(&mut self, op: Op) -> Parsed<Statement> {
        let mut statement = Statement::from(op);
        while let Some(mut cursor) = self.line(2, "reuse") {
            let dead = BufferId(cursor.id("b")?);
            cursor.expect("for")?;
            statement.reuses.push(Reuse { dead, result: BufferId(cursor.id("b")?) });
        }
        if let Some(mut cursor) = self.line(2, "free") {
            statement.frees = cursor.ids("b")?.into_iter().map(BufferId).collect();
        }
        Ok(statement)
    }

    fn kernel(&mut self, name: &str, indent: usize) -> Parsed<Kernel> {
        let mut kernel = Kernel { name: name.to_owned(), ..Kernel::default() };
        let mut cursor = self.line(indent, "axes").ok_or("expected `axes`")?;
        while !cursor.is_done() {
            kernel.axes.push(Axis { extent: self.size(cursor.until(&[',']))? });
            cursor.take(",");
        }
        let mut cursor = self.line(indent, "rows").ok_or("expected `rows`")?;
        kernel.rows = cursor.ids("i")?.into_iter().map(AxisId).collect();
        if let Some(mut cursor) = self.line(indent, "lanes") {
            cursor.expect("rows")?;
            kernel.lanes = Lanes::Rows;
        }
        while let Some(mut cursor) = self.line(indent, "phase") {
            let axes = cursor.ids("i")?.into_iter().map(AxisId).collect();
            kernel.phases.push(Phase { axes, ..Phase::default() });
            while let Some(line) = self.peek(indent + 2) {
                self.at += 1;
                self.instruction(&mut kernel, line)?;
            }
        }
        match pyrite_loops::verify(&kernel).first() {
            Some(problem) => Err(format!("the kernel {name} is wrong: {problem}")),
            None => Ok(kernel),
        }
    }

    /// One line of a phase.
    fn instruction(&self, kernel: &mut Kernel, line: &'t str) -> Parsed<()> {
        let mut cursor = Cursor(line);
        let cursor = &mut cursor;
        let phase = kernel.phases.len() - 1;
        if cursor.0.starts_with('r') && cursor.0[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let result = cursor.id("r")?;
            let ty = ty(cursor.word()?)?;
            cursor.expect("=")?;
            let name = cursor.word()?;
            let op = named(Reduction::ALL, name).ok_or_else(|| format!("there is no reduction {name}"))?;
            let value = Val(cursor.id("v")?);
            let index = if cursor.is_done() { None } else { Some(Val(cursor.id("v")?)) };
            let result = ResultId(result);
            set_result(kernel, result, ty);
            kernel.phases[phase].reduces.push(Reduce { op, value, index, result });
            return cursor.end();
        }
        let value = if cursor.0.starts_with('v') {
            let value = cursor.id("v")?;
            cursor.expect("=")?;
            Some(value)
        } else {
            None
        };
        let inst = self.inst(kernel, cursor)?;
        cursor.end()?;
        let mut known = true;
        let next = kernel.phases[phase].code.len() as u32;
        inst.each_operand(|operand| known &= operand.0 < next);
        if !known {
            return Err("an operand that comes later".to_owned());
        }
        let ty = type_of(kernel, &kernel.phases[phase], &inst)?;
        let pushed = kernel.phases[phase].code.push(inst, ty);
        if pushed.0 != next || value.is_some_and(|value| value != next) || value.is_none() != inst.writes() {
            return Err(format!("expected the value v{next}"));
        }
        Ok(())
    }

    fn inst(&self, kernel: &mut Kernel, cursor: &mut Cursor<'t>) -> Parsed<Inst> {
        let word = cursor.word()?;
        Ok(match word {
            "const" => {
                let ty = ty(cursor.word()?)?;
                let text = cursor.word()?;
                let number = if ty.is_float() { Number::Float(float(text)?) } else { Number::Int(number(text)?) };
                Inst::Const(number, ty)
            }
            "load" => Inst::Load(self.access(kernel, cursor)?),
            "offset" => Inst::Offset(self.access(kernel, cursor)?),
            "gather" => {
                let access = self.access(kernel, cursor)?;
                cursor.expect("at")?;
                Inst::Gather { access, at: Val(cursor.id("v")?) }
            }
            "store" => {
                let access = self.access(kernel, cursor)?;
                cursor.expect("=")?;
                Inst::Store { access, value: Val(cursor.id("v")?) }
            }
            "scatter" | "scatter-add" => {
                let access = self.access(kernel, cursor)?;
                cursor.expect("at")?;
                let at = Val(cursor.id("v")?);
                cursor.expect("=")?;
                let write = if word == "scatter" { Write::Set } else { Write::Add };
                Inst::Scatter { access, at, value: Val(cursor.id("v")?), write }
            }
            "index" => Inst::Index(AxisId(cursor.id("i")?)),
            "size" => {
                let size = self.size(cursor.until(&[]))?;
                Inst::Size(kernel.add_number(size))
            }
            "result" => Inst::Result(ResultId(cursor.id("r")?)),
            "before" => {
                let result = ResultId(cursor.id("r")?);
                set_result(kernel, result, ty(cursor.word()?)?);
                Inst::Before(result)
            }
            "select" => Inst::Select(Val(cursor.id("v")?), Val(cursor.id("v")?), Val(cursor.id("v")?)),
            "fma" => Inst::Fma(Val(cursor.id("v")?), Val(cursor.id("v")?), Val(cursor.id("v")?)),
            "fnma" => Inst::Fnma(Val(cursor.id("v")?), Val(cursor.id("v")?), Val(cursor.id("v")?)),
            "shift" => {
                let shift = of_name(Shift::ALL, cursor.word()?)?;
                let a = Val(cursor.id("v")?);
                let by = u32::try_from(number(cursor.word()?)?).map_err(|_| "a shift is not negative".to_owned())?;
                Inst::Shift(shift, a, by)
            }
            "bits" => Inst::Bits(ty(cursor.word()?)?, Val(cursor.id("v")?)),
            "table" => Inst::Table(of_name(Table::ALL, cursor.word()?)?, Val(cursor.id("v")?)),
            "patch" => {
                let op = of_name(Unary::ALL, cursor.word()?)?;
                let (a, mask) = (Val(cursor.id("v")?), Val(cursor.id("v")?));
                Inst::Patch { op, a, mask, value: Val(cursor.id("v")?) }
            }
            "cast" => Inst::Cast(ty(cursor.word()?)?, Val(cursor.id("v")?)),
            "wrap" => Inst::Wrap(dtype(cursor.word()?)?, Val(cursor.id("v")?)),
            "bounded" => Inst::Bounded { index: Val(cursor.id("v")?), extent: Val(cursor.id("v")?) },
            name => {
                if let Some(op) = named(Unary::ALL, name) {
                    Inst::Unary(op, Val(cursor.id("v")?))
                } else if let Some(op) = named(Binary::ALL, name) {
                    Inst::Binary(op, Val(cursor.id("v")?), Val(cursor.id("v")?))
                } else if let Some(op) = named(Compare::ALL, name) {
                    Inst::Compare(op, Val(cursor.id("v")?), Val(cursor.id("v")?))
                } else {
                    return Err(format!("there is no instruction {name}"));
                }
            }
        })
    }

    /// `f32 b0[4*i0 + i1]`: the index is linear in the axes, so a step is the difference that one position makes.
    fn access(&self, kernel: &mut Kernel, cursor: &mut Cursor<'t>) -> Parsed<AccessId> {
        let dtype = dtype(cursor.word()?)?;
        let buffer = BufferId(cursor.id("b")?);
        if buffer.0 as usize >= self.buffers.len() {
            return Err(format!("there is no buffer b{}", buffer.0));
        }
        cursor.expect("[")?;
        let text = cursor.until(&[']']);
        cursor.expect("]")?;
        let index = Expr::parse(text).map_err(|error| format!("{error}: `{text}`"))?;
        let at = |only: Option<usize>| {
            index.substitute(&|name| {
                let axis: usize = name.strip_prefix('i')?.parse().ok()?;
                Some(Expr::int(i64::from(Some(axis) == only)))
            })
        };
        let offset = at(None);
        let step = |axis: usize| SymInt::from_expr(at(Some(axis)).sub(&offset), &self.env);
        let steps = (0..kernel.axes.len()).map(step).collect();
        Ok(kernel.add_access(Access { buffer, dtype, offset: SymInt::from_expr(offset.clone(), &self.env), steps }))
    }
}

/// The type of what an instruction gives.
fn type_of(kernel: &Kernel, phase: &Phase, inst: &Inst) -> Parsed<Type> {
    let element = |access: AccessId| {
        Type::of(kernel.access(access).dtype).ok_or_else(|| "elements of a type that loops do not have".to_owned())
    };
    let result = |id: ResultId| {
        kernel.results.get(id.0 as usize).copied().ok_or_else(|| format!("there is no result r{}", id.0))
    };
    Ok(match *inst {
        Inst::Const(_, ty) | Inst::Cast(ty, _) | Inst::Bits(ty, _) => ty,
        Inst::Load(access) | Inst::Gather { access, .. } => element(access)?,
        Inst::Store { value, .. } | Inst::Scatter { value, .. } => phase.code.ty(value),
        Inst::Index(_) | Inst::Offset(_) | Inst::Size(_) | Inst::Bounded { .. } | Inst::Table(..) => Type::I64,
        Inst::Result(id) | Inst::Before(id) => result(id)?,
        Inst::Unary(_, a)
        | Inst::Binary(_, a, _)
        | Inst::Fma(a, ..)
        | Inst::Fnma(a, ..)
        | Inst::Shift(_, a, _)
        | Inst::Patch { a, .. }
        | Inst::Select(_, a, _)
        | Inst::Wrap(_, a) => phase.code.ty(a),
        Inst::Compare(..) => Type::Bool,
    })
}

/// Notes the type of a reduced number.
fn set_result(kernel: &mut Kernel, result: ResultId, ty: Type) {
    let index = result.0 as usize;
    kernel.results.resize(kernel.results.len().max(index + 1), ty);
    kernel.results[index] = ty;
}

fn node(name: &str, op: &OpRef) -> Node {
    Node::new(name, Kind::Call(Target::Op(op.clone())), Vec::new())
}

fn rows(cursor: &mut Cursor<'_>) -> Parsed<Rows> {
    cursor.expect("along")?;
    let mut digits = Vec::new();
    loop {
        let axis = AxisId(cursor.id("i")?);
        digits.push((axis, number(cursor.word()?)?));
        if !cursor.take(",") {
            break;
        }
    }
    cursor.expect("positions")?;
    let positions = number(cursor.word()?)?;
    cursor.end()?;
    Ok(Rows { digits, positions })
}

fn dtype(name: &str) -> Parsed<DType> {
    DType::from_abbr(name).ok_or_else(|| format!("there is no element type {name}"))
}

fn ty(name: &str) -> Parsed<Type> {
    named(TYPES, name).ok_or_else(|| format!("there is no register type {name}"))
}

/// The variant of a name.
fn of_name<T: Copy + std::fmt::Debug>(all: &[T], name: &str) -> Parsed<T> {
    named(all, name).ok_or_else(|| format!("there is no {name}"))
}

fn number(text: &str) -> Parsed<i64> {
    text.parse().map_err(|_| format!("expected an integer at `{text}`"))
}

fn float(text: &str) -> Parsed<f64> {
    f64::from_str(text).map_err(|_| format!("expected a number at `{text}`"))
}
