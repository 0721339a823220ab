//! Scatters: several threads may reach one element.
//!
//! Adding is atomic. Sums of integers do not depend on the order; those of floats do, in their last places. Of several
//! writes that replace, any may count.

use pyrite_loops::{AccessId, Phase, Write};
use pyrite_tensor::DType;

use crate::nest::Emitter;
use crate::text::{Class, Reg};

impl Emitter<'_> {
    /// Writes values, each so many elements further.
    pub(crate) fn scatter(&mut self, id: AccessId, phase: &Phase, at: &[Reg], values: &[Reg], write: Write) {
        if self.sum_up(id, values) {
            return;
        }
        let dtype = self.kernel.access(id).dtype;
        let address = self.address(id, phase);
        for (at, value) in at.iter().zip(values) {
            let place = self.body.op(Class::B64, "mad.lo.s64", &[at, &dtype.size().to_string(), &address]);
            match write {
                Write::Set => self.set(dtype, &place, value),
                Write::Add => self.add(dtype, &place, value),
            }
        }
    }

    fn add(&mut self, dtype: DType, place: &str, value: &str) {
        let guard = self.guard();
        let whole = match dtype {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I32 => "u32",
            DType::I64 => "u64",
            _ => return self.add_narrow(dtype, place, value),
        };
        self.body.line(&format!("{guard}red.global.add.{whole} [{place}], {value}"));
    }

    /// Adds to an element that has no instruction for it: what is there is replaced until nobody else has in between.
    fn add_narrow(&mut self, dtype: DType, place: &str, value: &str) {
        let (again, done) = (self.body.label(), self.body.label());
        if let Some(healthy) = self.healthy.clone() {
            self.body.line(&format!("@!{healthy} bra {done}"));
        }
        if dtype == DType::Bool {
            // Bool is added by or: only a true value changes anything.
            let one = self.body.constant(Class::B32, 1);
            self.body.line(&format!("@{value} st.relaxed.gpu.global.u8 [{place}], {one}"));
            self.body.place(&done);
            return;
        }
        // Of 8 bits the half word is replaced that holds them.
        let even = self.body.op(Class::B64, "and.b64", &[place, "0xfffffffffffffffe"]);
        let old = self.body.reg(Class::B16);
        self.body.line(&format!("ld.relaxed.gpu.global.b16 {old}, [{even}]"));
        self.body.place(&again);
        let new = match dtype {
            DType::F16 | DType::BF16 => {
                let wide = match dtype {
                    DType::F16 => self.body.op(Class::B32, "cvt.f32.f16", &[&old]),
                    _ => self.of_upper_half(&old),
                };
                let sum = self.body.op(Class::B32, "add.rn.f32", &[&wide, value]);
                self.narrowed(dtype, &sum)
            }
            _ => {
                let wide = self.body.op(Class::B32, "cvt.u32.u16", &[&old]);
                let sum = if dtype == DType::I16 {
                    self.body.op(Class::B32, "add.s32", &[&wide, value])
                } else {
                    self.byte_added(&wide, place, value)
                };
                self.body.op(Class::B16, "cvt.u16.u32", &[&sum])
            }
        };
        let found = self.body.op(Class::B16, "atom.global.cas.b16", &[&format!("[{even}]"), &old, &new]);
        let differs = self.body.op(Class::Pred, "setp.ne.s16", &[&found, &old]);
        self.body.line(&format!("mov.b16 {old}, {found}"));
        self.body.line(&format!("@{differs} bra {again}"));
        self.body.place(&done);
    }

    /// A half word with a number added to the byte that an address is at.
    fn byte_added(&mut self, word: &str, place: &str, value: &str) -> Reg {
        let odd = self.body.op(Class::B64, "and.b64", &[place, "1"]);
        let odd = self.body.op(Class::B32, "cvt.u32.u64", &[&odd]);
        let by = self.body.op(Class::B32, "shl.b32", &[&odd, "3"]);
        let byte = self.body.op(Class::B32, "shr.u32", &[word, &by]);
        let sum = self.body.op(Class::B32, "add.s32", &[&byte, value]);
        let sum = self.body.op(Class::B32, "and.b32", &[&sum, "0xff"]);
        let sum = self.body.op(Class::B32, "shl.b32", &[&sum, &by]);
        let low = self.body.constant(Class::B32, 0xff);
        let mask = self.body.op(Class::B32, "shl.b32", &[&low, &by]);
        let keep = self.body.op(Class::B32, "not.b32", &[&mask]);
        let kept = self.body.op(Class::B32, "and.b32", &[word, &keep]);
        self.body.op(Class::B32, "or.b32", &[&kept, &sum])
    }

    /// Notes a fault where a mask is true, and touches no memory any more that an index leads to.
    pub(crate) fn fault_where(&mut self, outside: &str, index: &str, extent: &str) {
        let to = self.param(crate::emit::Param::Fault);
        let one = self.body.constant(Class::B32, 1);
        // Of several threads that note something, any may count.
        self.body.line(&format!("@{outside} st.relaxed.gpu.global.b32 [{to}], {one}"));
        self.body.line(&format!("@{outside} st.relaxed.gpu.global.b64 [{to}+8], {index}"));
        self.body.line(&format!("@{outside} st.relaxed.gpu.global.b64 [{to}+16], {extent}"));
        if let Some(healthy) = self.healthy.clone() {
            let inside = self.body.op(Class::Pred, "not.pred", &[outside]);
            self.body.line(&format!("and.pred {healthy}, {healthy}, {inside}"));
        }
    }
}
