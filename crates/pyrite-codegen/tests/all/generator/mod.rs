//! Random well-formed kernels with their buffers.

use pyrite_loops::{
    Access, AccessId, AxisId, Binary, BufferId, Compare, Inst, Kernel, Lanes, Number, Phase, Reduce, Reduction,
    ResultId, Type, Unary, Val, Write,
};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::DType;

/// A kernel and memory for it.
pub struct Generated {
    pub kernel: Kernel,
    pub buffers: Vec<Vec<u8>>,
    pub dtypes: Vec<DType>,
}

const DTYPES: [DType; 10] = [
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];
const TYPES: [Type; 5] = [Type::Bool, Type::I32, Type::I64, Type::F32, Type::F64];

struct Source {
    state: u64,
    env: SymEnv,
    kernel: Kernel,
    buffers: Vec<Vec<u8>>,
    dtypes: Vec<DType>,
    extents: Vec<i64>,
}

/// The kernel of a seed.
pub fn generate(seed: u64) -> Generated {
    let mut source = Source {
        state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678,
        env: SymEnv::new(),
        kernel: Kernel { name: format!("seed{seed}"), ..Kernel::default() },
        buffers: Vec::new(),
        dtypes: Vec::new(),
        extents: Vec::new(),
    };
    source.build();
    Generated { kernel: source.kernel, buffers: source.buffers, dtypes: source.dtypes }
}

impl Source {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn axis(&mut self) -> AxisId {
        let room = 30_000 / self.extents.iter().map(|e| (*e).max(1)).product::<i64>();
        let wanted = self.pick(&[0, 1, 2, 3, 5, 7, 8, 16, 17, 33, 64, 100, 1000, 2500]);
        let extent = if self.one_in(3) || wanted > 0 { wanted } else { 4 };
        let extent = extent.min(room.max(1));
        self.extents.push(extent);
        self.kernel.add_axis(extent.into())
    }

    fn build(&mut self) {
        self.kernel.lanes = self.pick(&[Lanes::Phase, Lanes::Rows]);
        for _ in 0..self.below(3) {
            let axis = self.axis();
            self.kernel.rows.push(axis);
        }
        let few = self.extents.iter().map(|e| (*e).max(1)).product::<i64>() <= 8;
        if self.kernel.lanes == Lanes::Rows && few && self.one_in(2) {
            // Enough rows that several vectors of them are reduced side by side.
            let extent = 130 + self.below(200) as i64;
            self.extents.push(extent);
            let axis = self.kernel.add_axis(extent.into());
            self.kernel.rows.push(axis);
        }
        let mut axes = Vec::new();
        let phases = 1 + self.below(3);
        for _ in 0..phases {
            let mut own = Vec::new();
            for _ in 0..self.below(3) {
                own.push(self.axis());
            }
            axes.push(own);
        }
        let mut results: Vec<ResultId> = Vec::new();
        for own in axes {
            let mut phase = Phase { axes: own, ..Phase::default() };
            self.code(&mut phase, &mut results);
            self.kernel.phases.push(phase);
        }
    }

    fn running(&self, phase: &Phase) -> Vec<AxisId> {
        self.kernel.rows.iter().chain(&phase.axes).copied().collect()
    }

    /// Steps for the axes that run, and how many elements they span to either side of the first.
    fn steps(&mut self, phase: &Phase, injective: bool) -> (Vec<i64>, i64, i64) {
        let mut steps = vec![0; self.kernel.axes.len()];
        let mut axes = self.running(phase);
        if self.one_in(3) && !axes.is_empty() {
            let at = self.below(axes.len());
            axes.swap_remove(at);
            let missing: Vec<AxisId> = self.running(phase).into_iter().filter(|a| !axes.contains(a)).collect();
            if injective {
                axes.insert(0, missing[0]);
            }
        }
        if self.one_in(4) && axes.len() > 1 {
            let (i, j) = (self.below(axes.len()), self.below(axes.len()));
            axes.swap(i, j);
        }
        let (mut low, mut high, mut unit) = (0, 0, 1);
        for axis in axes.iter().rev() {
            let extent = self.extents[axis.0 as usize].max(1);
            if self.one_in(6) {
                unit *= 2;
            }
            let backwards = self.one_in(10);
            steps[axis.0 as usize] = if backwards { -unit } else { unit };
            if backwards {
                low += unit * (extent - 1);
            } else {
                high += unit * (extent - 1);
            }
            unit *= extent;
        }
        (steps, low, high)
    }

    fn symbolic(&mut self, steps: Vec<i64>) -> Vec<SymInt> {
        let dynamic = self.one_in(4);
        let mut out = Vec::new();
        for step in steps {
            out.push(if dynamic && step != 0 && self.one_in(2) {
                let name = format!("s{}", self.next());
                self.env.named(&name, Some(step), i64::MIN)
            } else {
                step.into()
            });
        }
        out
    }

    /// A buffer of random elements, and an access that begins `low` elements in.
    fn access(&mut self, dtype: DType, steps: Vec<i64>, low: i64, len: i64) -> AccessId {
        let bytes = (0..len).flat_map(|_| self.element(dtype)).collect();
        self.buffers.push(bytes);
        self.dtypes.push(dtype);
        let steps = self.symbolic(steps);
        let buffer = BufferId(self.buffers.len() as u32 - 1);
        self.kernel.add_access(Access { buffer, dtype, offset: low.into(), steps })
    }

    fn float(&mut self) -> f64 {
        match self.below(24) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => -0.0,
            4 => 0.0,
            5 => 1e-41,
            6 => 3e38,
            _ => ((self.next() % 20_001) as f64 - 10_000.0) / 256.0,
        }
    }

    fn element(&mut self, dtype: DType) -> Vec<u8> {
        let float = self.float();
        let int = if self.one_in(8) { self.next() as i64 } else { self.below(200) as i64 - 100 };
        match dtype {
            DType::Bool => vec![u8::from(int & 1 == 1)],
            DType::U8 | DType::I8 => vec![int as u8],
            DType::I16 => (int as i16).to_ne_bytes().to_vec(),
            DType::I32 => (int as i32).to_ne_bytes().to_vec(),
            DType::F16 => half::f16::from_f64(float).to_ne_bytes().to_vec(),
            DType::BF16 => half::bf16::from_f64(float).to_ne_bytes().to_vec(),
            DType::F32 => (float as f32).to_ne_bytes().to_vec(),
            DType::F64 => float.to_ne_bytes().to_vec(),
            _ => int.to_ne_bytes().to_vec(),
        }
    }

    fn value(&mut self, phase: &mut Phase, ty: Type) -> Val {
        let known: Vec<Val> =
            phase.code.iter().filter(|(v, inst)| phase.code.ty(*v) == ty && !inst.writes()).map(|(v, _)| v).collect();
        if !known.is_empty() && !self.one_in(6) {
            let at =
                if self.one_in(2) { known.len() - 1 - self.below(known.len().min(4)) } else { self.below(known.len()) };
            return known[at];
        }
        match self.below(4) {
            0 => {
                let number =
                    if ty.is_float() { Number::Float(self.float()) } else { Number::Int(self.below(50) as i64 - 20) };
                phase.code.push(Inst::Const(number, ty), ty)
            }
            1 if ty == Type::I64 && !self.running(phase).is_empty() => {
                let axes = self.running(phase);
                let axis = self.pick(&axes);
                phase.code.push(Inst::Index(axis), ty)
            }
            _ => {
                let of_type: Vec<DType> = DTYPES.into_iter().filter(|d| Type::of(*d) == Some(ty)).collect();
                let dtype = self.pick(&of_type);
                let (steps, low, high) = self.steps(phase, false);
                let access = self.access(dtype, steps, low, low + high + 1);
                phase.code.push(Inst::Load(access), ty)
            }
        }
    }

    /// An index below an extent, seldom out of bounds.
    fn index(&mut self, phase: &mut Phase, extent: i64) -> Val {
        let (steps, low, high) = self.steps(phase, false);
        let access = self.access(DType::I64, steps, low, low + high + 1);
        let wild = self.one_in(40);
        let buffer = self.kernel.access(access).buffer.0 as usize;
        let count = self.buffers[buffer].len() / 8;
        let mut bytes = Vec::new();
        for _ in 0..count {
            let n = self.below(2 * extent as usize) as i64 - extent;
            bytes.extend(if wild && self.one_in(50) { extent } else { n }.to_ne_bytes());
        }
        self.buffers[buffer] = bytes;
        let index = phase.code.push(Inst::Load(access), Type::I64);
        let number = self.kernel.add_number(extent.into());
        let extent = phase.code.push(Inst::Size(number), Type::I64);
        phase.code.push(Inst::Bounded { index, extent }, Type::I64)
    }

    fn step(&mut self, phase: &mut Phase) {
        let ty = self.pick(&TYPES);
        match self.below(12) {
            0 | 1 => {
                let a = self.value(phase, ty);
                let of_float: Vec<Unary> = Unary::ALL.iter().copied().filter(|op| *op != Unary::Not).collect();
                let of_int = [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Not];
                let op = match ty {
                    Type::Bool => Unary::Not,
                    Type::I32 | Type::I64 => self.pick(&of_int),
                    Type::F32 | Type::F64 => self.pick(&of_float),
                };
                phase.code.unary(op, a);
            }
            2..=4 => {
                let (a, b) = (self.value(phase, ty), self.value(phase, ty));
                let op = match ty {
                    Type::Bool => self.pick(&[Binary::And, Binary::Or, Binary::Xor]),
                    Type::I64 if self.one_in(8) => Binary::Draw,
                    Type::I32 | Type::I64 => self.pick(&[
                        Binary::Add,
                        Binary::Sub,
                        Binary::Mul,
                        Binary::Max,
                        Binary::Min,
                        Binary::And,
                        Binary::Or,
                        Binary::Xor,
                    ]),
                    Type::F32 | Type::F64 => self.pick(&[
                        Binary::Add,
                        Binary::Sub,
                        Binary::Mul,
                        Binary::Div,
                        Binary::Max,
                        Binary::Min,
                        Binary::Fmod,
                        Binary::Pow,
                        Binary::Atan2,
                    ]),
                };
                phase.code.binary(op, a, b);
            }
            5 => {
                let op = self.pick(&[Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge]);
                let (a, b) = (self.value(phase, ty), self.value(phase, ty));
                phase.code.compare(op, a, b);
            }
            6 => {
                let (c, a, b) = (self.value(phase, Type::Bool), self.value(phase, ty), self.value(phase, ty));
                phase.code.select(c, a, b);
            }
            7 | 8 => {
                let a = self.value(phase, ty);
                let to = self.pick(&TYPES);
                phase.code.cast(to, a);
            }
            9 => {
                let to = self.pick(&DTYPES);
                let a = self.value(phase, Type::of(to).unwrap());
                phase.code.push(Inst::Wrap(to, a), Type::of(to).unwrap());
            }
            10 => {
                let extent = 1 + self.below(40) as i64;
                let at = self.index(phase, extent);
                let dtype = self.pick(&DTYPES);
                let (steps, low, high) =
                    if self.one_in(2) { (vec![0; self.kernel.axes.len()], 0, 0) } else { self.steps(phase, false) };
                let access = self.access(dtype, steps, low, low + high + extent);
                phase.code.push(Inst::Gather { access, at }, Type::of(dtype).unwrap());
            }
            _ => {
                self.value(phase, ty);
            }
        }
    }

    fn code(&mut self, phase: &mut Phase, results: &mut Vec<ResultId>) {
        for result in results.clone() {
            if self.one_in(2) {
                let ty = self.kernel.results[result.0 as usize];
                phase.code.push(Inst::Result(result), ty);
            }
        }
        let large = self.one_in(12);
        for _ in 0..if large { 150 } else { 1 + self.below(14) } {
            self.step(phase);
        }
        for _ in 0..=self.below(2) {
            let ty = self.pick(&TYPES);
            let value = self.value(phase, ty);
            let of_type: Vec<DType> = DTYPES.into_iter().filter(|d| Type::of(*d) == Some(ty)).collect();
            let dtype = self.pick(&of_type);
            let (steps, low, high) = self.steps(phase, true);
            let access = self.access(dtype, steps, low, low + high + 1);
            phase.code.push(Inst::Store { access, value }, ty);
        }
        if self.one_in(5) && (self.kernel.lanes == Lanes::Phase || phase.axes.is_empty()) {
            let dtype = self.pick(&DTYPES);
            let ty = Type::of(dtype).unwrap();
            let at = self.index(phase, 20);
            let access = self.access(dtype, vec![0; self.kernel.axes.len()], 0, 20);
            let value = self.value(phase, ty);
            let write = if ty.is_float() { Write::Set } else { self.pick(&[Write::Set, Write::Add]) };
            phase.code.push(Inst::Scatter { access, at, value, write }, ty);
        }
        for _ in 0..self.below(3) {
            self.reduce(phase, results);
        }
    }

    fn reduce(&mut self, phase: &mut Phase, results: &mut Vec<ResultId>) {
        let ty = self.pick(&TYPES);
        let mut value = self.value(phase, ty);
        let op = match ty {
            Type::Bool => self.pick(&[Reduction::Any, Reduction::All]),
            _ => self.pick(&[
                Reduction::Sum,
                Reduction::Prod,
                Reduction::Max,
                Reduction::Min,
                Reduction::ArgMax,
                Reduction::ArgMin,
            ]),
        };
        let mut index = None;
        match op {
            Reduction::Sum if ty.is_float() => {
                let small = phase.code.cast(Type::I32, value);
                let small = phase.code.wrap(DType::I8, small);
                value = phase.code.cast(ty, small);
            }
            // The sign of a zero that is the largest or the smallest depends on the order.
            Reduction::Max | Reduction::Min if ty.is_float() => {
                let zero = phase.code.number(0.0, ty);
                value = phase.code.binary(Binary::Add, value, zero);
            }
            Reduction::Prod if ty.is_float() => {
                let zero = phase.code.number(0.0, ty);
                let (one, less) = (phase.code.number(1.0, ty), phase.code.number(-1.0, ty));
                let above = phase.code.compare(Compare::Gt, value, zero);
                value = phase.code.select(above, one, less);
            }
            Reduction::ArgMax | Reduction::ArgMin => {
                let mut position = phase.code.integer(0, Type::I64);
                for axis in phase.axes.clone() {
                    let extent = phase.code.integer(self.extents[axis.0 as usize], Type::I64);
                    let at = phase.code.push(Inst::Index(axis), Type::I64);
                    position = phase.code.binary(Binary::Mul, position, extent);
                    position = phase.code.binary(Binary::Add, position, at);
                }
                index = Some(position);
            }
            _ => {}
        }
        let result = self.kernel.add_result(if index.is_some() { Type::I64 } else { ty });
        phase.reduces.push(Reduce { op, value, index, result });
        results.push(result);
    }
}

/// Where two buffers differ; NaNs are equal.
pub fn first_difference(a: &[u8], b: &[u8], dtype: DType) -> Option<usize> {
    let size = dtype.size();
    let float = |x: &[u8]| match dtype {
        DType::F64 => f64::from_ne_bytes(x.try_into().unwrap()),
        DType::F32 => f32::from_ne_bytes(x.try_into().unwrap()).into(),
        DType::F16 => half::f16::from_ne_bytes(x.try_into().unwrap()).into(),
        DType::BF16 => half::bf16::from_ne_bytes(x.try_into().unwrap()).into(),
        _ => 0.0,
    };
    let differ = |(x, y): (&[u8], &[u8])| x != y && !(float(x).is_nan() && float(y).is_nan());
    a.chunks_exact(size).zip(b.chunks_exact(size)).position(differ)
}
