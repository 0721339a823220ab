//! Between memory and registers: loads widen, stores narrow, neighbours are moved together.

use pyrite_loops::{AccessId, AxisId, Phase};
use pyrite_tensor::DType;

use crate::emit::Param;
use crate::nest::Emitter;
use crate::text::{Class, Reg};

/// The type of a load or a store of one element.
fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "u8",
        DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz => "u8",
        DType::I8 => "s8",
        DType::I16 => "s16",
        DType::F16 | DType::BF16 | DType::U16 => "b16",
        DType::I32 | DType::F32 | DType::U32 => "b32",
        DType::I64 | DType::F64 | DType::C64 | DType::C128 | DType::U64 => "b64",
    }
}

/// The class of the register that a load fills.
fn class(dtype: DType) -> Class {
    match dtype {
        DType::F16 | DType::BF16 => Class::B16,
        DType::I64 | DType::F64 => Class::B64,
        _ => Class::B32,
    }
}

impl Emitter<'_> {
    /// What precedes an access that an index leads to.
    pub(crate) fn guard(&self) -> String {
        self.healthy.as_ref().map(|healthy| format!("@{healthy} ")).unwrap_or_default()
    }

    /// The elements of an access at the present position and its neighbours.
    pub(crate) fn load(&mut self, id: AccessId, phase: &Phase) -> Vec<Reg> {
        if let Some(known) = self.kept(id).or_else(|| self.loaded_ahead(id)) {
            return known;
        }
        let found = self.loaded(id, phase);
        self.keep(id, &found);
        found
    }

    /// The same, from memory.
    pub(crate) fn loaded(&mut self, id: AccessId, phase: &Phase) -> Vec<Reg> {
        let dtype = self.kernel.access(id).dtype;
        let address = self.address(id, phase);
        let moves = self.lanes > 1 && self.moves_with_lanes(id);
        let raw = match (moves, self.lanes) {
            (false, _) => {
                let one =
                    self.body.op(class(dtype), &format!("ld.global.{}", element(dtype)), &[&format!("[{address}]")]);
                let wide = self.widened(dtype, &one);
                return vec![wide; self.lanes];
            }
            (true, 8) => {
                let pairs: Vec<Reg> = (0..4).map(|_| self.body.reg(Class::B32)).collect();
                let hint = self.eviction(id);
                self.body.line(&format!("ld.global{hint}.v4.b32 {{{}}}, [{address}]", pairs.join(", ")));
                let mut halves = Vec::new();
                for pair in pairs {
                    let (low, high) = (self.body.reg(Class::B16), self.body.reg(Class::B16));
                    self.body.line(&format!("mov.b32 {{{low}, {high}}}, {pair}"));
                    for half in [low, high] {
                        halves.push(if dtype == DType::I16 {
                            self.body.op(Class::B32, "cvt.s32.s16", &[&half])
                        } else {
                            half
                        });
                    }
                }
                halves
            }
            (true, lanes) => {
                let registers: Vec<Reg> = (0..lanes).map(|_| self.body.reg(class(dtype))).collect();
                let list = registers.join(", ");
                let hint = self.eviction(id);
                self.body.line(&format!("ld.global{hint}.v{lanes}.{} {{{list}}}, [{address}]", element(dtype)));
                self.prefetch(id, &address);
                registers
            }
        };
        raw.iter().map(|one| self.widened(dtype, one)).collect()
    }

    /// Which lines of the cache are evicted last, where rows are kept: those that all rows read.
    fn eviction(&self, id: AccessId) -> &'static str {
        let still = |row: &AxisId| self.kernel.access(id).step(*row).as_int() == Some(0);
        if self.row.is_some() && self.kernel.rows.iter().all(still) { ".L1::evict_last" } else { "" }
    }

    /// Brings what a thread loads at the next row to the cache, where its block takes rows one after the other.
    fn prefetch(&mut self, id: AccessId, address: &str) {
        let (Some(more), Some(row)) = (self.has_next_row.clone(), self.kernel.rows.last()) else { return };
        let access = self.kernel.access(id);
        let Some(step) = access.step(*row).as_int().filter(|step| *step > 0) else { return };
        let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
        let further = step * access.dtype.size() as i64 + offset.parse::<i64>().unwrap_or(0);
        self.body.line(&format!("@{more} prefetch.global.L2 [{base}+{further}]"));
    }

    /// The element so many elements further, of each lane.
    pub(crate) fn gather(&mut self, id: AccessId, phase: &Phase, at: &[Reg]) -> Vec<Reg> {
        let dtype = self.kernel.access(id).dtype;
        let address = self.address(id, phase);
        let guard = self.guard();
        let mut values = Vec::new();
        for at in at {
            let place = self.body.op(Class::B64, "mad.lo.s64", &[at, &dtype.size().to_string(), &address]);
            let one = self.body.constant(class(dtype), 0);
            self.body.line(&format!("{guard}ld.global.{} {one}, [{place}]", element(dtype)));
            values.push(self.widened(dtype, &one));
        }
        values
    }

    /// An element as it lies in memory, where a predicate says so; else zero.
    pub(crate) fn raw_load(&mut self, id: AccessId, address: &str, guard: &str) -> Reg {
        let dtype = self.kernel.access(id).dtype;
        let one = self.body.constant(class(dtype), 0);
        self.body.line(&format!("@{guard} ld.global.{} {one}, [{address}]", element(dtype)));
        one
    }

    /// Writes an element to shared memory as it lies in global memory.
    pub(crate) fn raw_to_shared(&mut self, dtype: DType, address: &str, raw: &str) {
        self.body.line(&format!("st.shared.{} [{address}], {raw}", element(dtype)));
    }

    /// An element from shared memory.
    pub(crate) fn shared_load(&mut self, dtype: DType, address: &str) -> Reg {
        let raw = self.body.op(class(dtype), &format!("ld.shared.{}", element(dtype)), &[&format!("[{address}]")]);
        self.widened(dtype, &raw)
    }

    /// Whether neighbours have elements of their own.
    fn moves_with_lanes(&self, id: AccessId) -> bool {
        self.lane_axis.is_some_and(|axis| self.kernel.access(id).step(axis).as_int() == Some(1))
    }

    fn widened(&mut self, dtype: DType, raw: &str) -> Reg {
        match dtype {
            DType::Bool => self.body.op(Class::Pred, "setp.ne.u32", &[raw, "0"]),
            DType::F16 => self.body.op(Class::B32, "cvt.f32.f16", &[raw]),
            DType::BF16 => self.of_upper_half(raw),
            _ => raw.to_owned(),
        }
    }

    /// A number whose upper half is given, and the lower one zero.
    pub(crate) fn of_upper_half(&mut self, half: &str) -> Reg {
        let wide = self.body.op(Class::B32, "cvt.u32.u16", &[half]);
        self.body.op(Class::B32, "shl.b32", &[&wide, "16"])
    }

    /// A value as it lies in memory.
    pub(crate) fn narrowed(&mut self, dtype: DType, value: &str) -> Reg {
        match dtype {
            DType::Bool => self.body.op(Class::B32, "selp.b32", &["1", "0", value]),
            DType::F16 => self.body.op(Class::B16, "cvt.rn.f16.f32", &[value]),
            DType::BF16 => self.body.op(Class::B16, "cvt.rn.bf16.f32", &[value]),
            _ => value.to_owned(),
        }
    }

    /// Writes elements.
    pub(crate) fn store(&mut self, id: AccessId, phase: &Phase, values: &[Reg]) {
        let access = self.kernel.access(id);
        let (dtype, buffer) = (access.dtype, access.buffer);
        let address = self.address(id, phase);
        let raw: Vec<Reg> = values.iter().map(|value| self.narrowed(dtype, value)).collect();
        self.forget(id);
        if self.row.is_some() && self.lane_axis.is_some() {
            let read_back: Vec<Reg> = match dtype {
                DType::F16 | DType::BF16 => raw.iter().map(|one| self.widened(dtype, one)).collect(),
                _ => values.to_vec(),
            };
            self.keep(id, &read_back);
        }
        // What never is read from memory is written only where the buffer is somebody else's: its rows have no pitch then.
        let guard = if self.stays_in_registers(buffer) {
            let pitch = self.param(Param::Pitch(id));
            format!("@{} ", self.body.op(Class::Pred, "setp.eq.u64", &[&pitch, "0"]))
        } else {
            String::new()
        };
        match self.lanes {
            1 => self.body.line(&format!("{guard}st.global.{} [{address}], {}", element(dtype), raw[0])),
            8 => {
                let halves: Vec<Reg> = raw
                    .iter()
                    .map(|one| {
                        if dtype == DType::I16 { self.body.op(Class::B16, "cvt.u16.u32", &[one]) } else { one.clone() }
                    })
                    .collect();
                let pairs: Vec<Reg> = halves
                    .chunks(2)
                    .map(|pair| self.body.op(Class::B32, "mov.b32", &[&format!("{{{}}}", pair.join(", "))]))
                    .collect();
                self.body.line(&format!("{guard}st.global.v4.b32 [{address}], {{{}}}", pairs.join(", ")));
            }
            lanes => {
                let list = raw.join(", ");
                self.body.line(&format!("{guard}st.global.v{lanes}.{} [{address}], {{{list}}}", element(dtype)));
            }
        }
    }

    /// Writes an element that an index leads to. Of several writes to one place any may count.
    pub(crate) fn set(&mut self, dtype: DType, place: &str, value: &str) {
        let raw = self.narrowed(dtype, value);
        let guard = self.guard();
        self.body.line(&format!("{guard}st.relaxed.gpu.global.{} [{place}], {raw}", element(dtype)));
    }
}
