//! Loads and stores of all lanes.
//!
//! AVX-512 has masked forms of all it needs but gathers of narrow elements; AVX2 masks only elements of 32 and 64 bits.
//! Where no instruction fits, elements are copied one by one between memory and the frame.

use iced_x86::code_asm::{
    AsmMemoryOperand, CodeLabel, byte_ptr, dword_ptr, ptr, qword_ptr,
    registers::{
        gpr8::{cl, r15b},
        gpr16::{self, r15w},
        gpr32::{eax, ecx, r15d},
        gpr64::{r11, r15, rax, rcx, rdx, rsp},
    },
    word_ptr,
};
use pyrite_loops::{AccessId, Direction};
use pyrite_tensor::DType;

use super::EmitError;
use super::emitter::{Done, Emitter, K, POINTERS, X, Y, Z, frame, mr, rm};
use super::layout::{COUNT, FIRST, MASK32, MASK64, SECOND};
use super::lower::Count;
use super::region::{Context, Pointer, Stores};
use super::registers::Registers;
use super::tile::part;
use super::vector::{Addressing, Element, Kind, Region, V, VectorOp};

impl Emitter<'_> {
    /// The step of an access along the lanes, where it is known.
    fn lane_step(&self, access: AccessId, cx: &Context) -> Option<i64> {
        cx.lane.map_or(Some(0), |axis| self.kernel.access(access).step(axis).as_int())
    }

    /// Where the first lane of an access is, `rax` elements further if that is asked for. May use `rax` and `rdx`.
    pub(super) fn address(
        &mut self,
        access: AccessId,
        further: bool,
        cx: &Context,
    ) -> Result<AsmMemoryOperand, EmitError> {
        let size = self.kernel.access(access).dtype.size();
        let base = match cx.pointers[access.0 as usize] {
            Pointer::Register(number) => POINTERS[number],
            Pointer::Frame(offset) => {
                let place = frame(offset);
                self.asm.mov(rdx, place)?;
                rdx
            }
        };
        let in_row = self.lane_step(access, cx) == Some(1);
        let indexed = cx.indexed && in_row;
        let ahead = match in_row {
            true if cx.blocks => (cx.copy * self.shape.lanes * size) as i32,
            true if indexed => (cx.copy * cx.stride * size) as i32,
            _ => 0,
        };
        let scale = size as i32;
        Ok(match (indexed, further) {
            (false, false) => ptr(base + ahead),
            (false, true) => ptr(base + rax * scale + ahead),
            (true, false) => ptr(base + r11 * scale + ahead),
            (true, true) => {
                self.asm.add(rax, r11)?;
                ptr(base + rax * scale + ahead)
            }
        })
    }

    pub(super) fn load(
        &mut self,
        regs: &mut Registers,
        region: &Region,
        v: V,
        (access, element, place): (AccessId, Element, Addressing),
        cx: &Context,
    ) -> Done {
        let position = v.0;
        match place {
            Addressing::Row | Addressing::Same | Addressing::RowAt(_) | Addressing::SameAt(_) => {
                let further = matches!(place, Addressing::RowAt(_) | Addressing::SameAt(_));
                if let Addressing::RowAt(at) | Addressing::SameAt(at) = place {
                    let at = self.source(regs, region, at, position)?;
                    self.asm.vmovq(rax, X[at])?;
                }
                self.release(regs, region, position);
                let d = self.target(regs, region, v, position, &[])?;
                let mut from = self.address(access, further, cx)?;
                if matches!(place, Addressing::Same | Addressing::SameAt(_)) {
                    return self.load_same(element, d, from);
                }
                let mut count = cx.count;
                if count == Count::Rest && !self.is_wide() && element.size() < 4 {
                    self.asm.lea(rdx, from)?;
                    self.copy_lanes(Direction::Read, access, element, Along::Row, cx)?;
                    from = frame(FIRST);
                    count = Count::Full;
                }
                self.load_row(element, d, from, count)
            }
            Addressing::Steps(at) | Addressing::At(at) => {
                let index = self.source(regs, region, at, position)?;
                let base = self.address(access, false, cx)?;
                self.asm.lea(rdx, base)?;
                self.gather(element, region.kind(at), index, cx.count)?;
                self.release(regs, region, position);
                let d = self.target(regs, region, v, position, &[])?;
                self.copy(element.kind(), d, 0)
            }
            Addressing::Transposed(slot) => {
                self.release(regs, region, position);
                let d = self.target(regs, region, v, position, &[])?;
                let from = frame(part(slot, cx.copy));
                self.load_row(element, d, from, Count::Full)
            }
            Addressing::OneByOne | Addressing::OneByOneAt(_) => {
                let mut along = Along::Step;
                if let Addressing::OneByOneAt(at) = place {
                    let at = self.source(regs, region, at, position)?;
                    let to = frame(SECOND);
                    self.put(Kind::W64, to, at)?;
                    along = Along::StepAt;
                }
                let base = self.address(access, false, cx)?;
                self.asm.lea(rdx, base)?;
                self.copy_lanes(Direction::Read, access, element, along, cx)?;
                self.release(regs, region, position);
                let d = self.target(regs, region, v, position, &[])?;
                let from = frame(FIRST);
                self.load_row(element, d, from, Count::Full)
            }
        }
    }

    /// One element in every lane.
    fn load_same(&mut self, element: Element, d: usize, from: AsmMemoryOperand) -> Done {
        let w = self.bytes(Kind::W32);
        match element {
            Element::B32 => rm!(self, vbroadcastss, w, d, from),
            Element::B64 => match self.bytes(Kind::W64) {
                32 => self.asm.vbroadcastsd(Y[d], from)?,
                _ => self.asm.vbroadcastsd(Z[d], from)?,
            },
            _ => {
                match element {
                    Element::U8 => self.asm.movzx(eax, byte_ptr(from))?,
                    Element::I8 => self.asm.movsx(eax, byte_ptr(from))?,
                    Element::I16 => self.asm.movsx(eax, word_ptr(from))?,
                    _ => self.asm.movzx(eax, word_ptr(from))?,
                }
                self.asm.vmovd(X[d], eax)?;
                if element == Element::F16 {
                    self.asm.vcvtph2ps(X[d], X[d])?;
                }
                match w {
                    16 => self.asm.vbroadcastss(X[d], X[d])?,
                    32 => self.asm.vbroadcastss(Y[d], X[d])?,
                    _ => self.asm.vbroadcastss(Z[d], X[d])?,
                }
            }
        }
        Ok(())
    }

    /// Elements that lie side by side.
    fn load_row(&mut self, element: Element, d: usize, from: AsmMemoryOperand, count: Count) -> Done {
        let kind = element.kind();
        let w = self.bytes(kind);
        if count == Count::Rest && self.is_wide() {
            macro_rules! zeroing {
                ($name:ident) => {
                    match w {
                        16 => self.asm.$name(X[d].k7().z(), from)?,
                        32 => self.asm.$name(Y[d].k7().z(), from)?,
                        _ => self.asm.$name(Z[d].k7().z(), from)?,
                    }
                };
            }
            match element {
                Element::B32 => zeroing!(vmovups),
                Element::B64 => zeroing!(vmovupd),
                Element::U8 => zeroing!(vpmovzxbd),
                Element::I8 => zeroing!(vpmovsxbd),
                Element::U16 => zeroing!(vpmovzxwd),
                Element::I16 => zeroing!(vpmovsxwd),
                Element::F16 => zeroing!(vcvtph2ps),
            }
            return Ok(());
        }
        match (element, count) {
            (Element::B32 | Element::B64, Count::Full) => rm!(self, vmovups, w, d, from),
            (Element::B32, Count::Rest) => {
                let mask = frame(MASK32);
                rm!(self, vmovups, w, 1, mask);
                match w {
                    16 => self.asm.vmaskmovps(X[d], X[1], from)?,
                    _ => self.asm.vmaskmovps(Y[d], Y[1], from)?,
                }
            }
            (Element::B64, Count::Rest) => {
                let mask = frame(MASK64);
                self.asm.vmovups(Y[1], mask)?;
                self.asm.vmaskmovpd(Y[d], Y[1], from)?;
            }
            (Element::U8, _) => rm!(self, vpmovzxbd, w, d, from),
            (Element::I8, _) => rm!(self, vpmovsxbd, w, d, from),
            (Element::U16, _) => rm!(self, vpmovzxwd, w, d, from),
            (Element::I16, _) => rm!(self, vpmovsxwd, w, d, from),
            (Element::F16, _) => rm!(self, vcvtph2ps, w, d, from),
        }
        Ok(())
    }

    /// Gathers to the emitter's own register 0, from `rdx` on.
    fn gather(&mut self, element: Element, by: Kind, index: usize, count: Count) -> Done {
        let (kind, lanes) = (element.kind(), self.bytes(Kind::W32));
        rr_zero(self, kind)?;
        if self.is_wide() {
            self.set_k6(count)?;
            match (element, by, lanes) {
                (Element::B64, Kind::W32, _) => self.asm.vgatherdpd(Z[0].k6(), ptr(rdx + Y[index] * 8))?,
                (Element::B64, ..) => self.asm.vgatherqpd(Z[0].k6(), ptr(rdx + Z[index] * 8))?,
                (_, Kind::W64, _) => self.asm.vgatherqps(Y[0].k6(), ptr(rdx + Z[index] * 4))?,
                (.., 32) => self.asm.vgatherdps(Y[0].k6(), ptr(rdx + Y[index] * 4))?,
                _ => self.asm.vgatherdps(Z[0].k6(), ptr(rdx + Z[index] * 4))?,
            }
            return Ok(());
        }
        match count {
            Count::Full => self.asm.vpcmpeqd(Y[1], Y[1], Y[1])?,
            Count::Rest => {
                let mask = frame(if kind == Kind::W64 { MASK64 } else { MASK32 });
                rm!(self, vmovups, self.bytes(kind), 1, mask);
            }
        }
        match (element, by, lanes) {
            (Element::B64, Kind::W32, _) => self.asm.vgatherdpd_3(Y[0], ptr(rdx + X[index] * 8), Y[1])?,
            (Element::B64, ..) => self.asm.vgatherqpd_3(Y[0], ptr(rdx + Y[index] * 8), Y[1])?,
            (_, Kind::W64, _) => self.asm.vgatherqps_3(X[0], ptr(rdx + Y[index] * 4), X[1])?,
            (.., 16) => self.asm.vgatherdps_3(X[0], ptr(rdx + X[index] * 4), X[1])?,
            _ => self.asm.vgatherdps_3(Y[0], ptr(rdx + Y[index] * 4), Y[1])?,
        }
        Ok(())
    }

    fn set_k6(&mut self, count: Count) -> Done {
        match count {
            Count::Full => self.asm.kxnorw(K[6], K[6], K[6])?,
            Count::Rest => self.asm.kmovw(K[6], K[7])?,
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        regs: &mut Registers,
        region: &Region,
        position: u32,
        (access, element, place, value): (AccessId, Element, Addressing, V),
        cx: &Context,
    ) -> Done {
        let s = self.source(regs, region, value, position)?;
        match place {
            Addressing::Same | Addressing::SameAt(_) => {
                let to = self.address(access, false, cx)?;
                self.store_same(element, to, s)?;
            }
            Addressing::Row | Addressing::RowAt(_) => {
                if let Addressing::RowAt(at) = place {
                    let at = self.source(regs, region, at, position)?;
                    self.asm.vmovq(rax, X[at])?;
                }
                let to = self.address(access, matches!(place, Addressing::RowAt(_)), cx)?;
                if cx.count == Count::Rest && !self.is_wide() && element.size() < 4 {
                    self.asm.lea(rdx, to)?;
                    let near = frame(FIRST);
                    self.store_row(element, near, s, Count::Full)?;
                    self.copy_lanes(Direction::Write, access, element, Along::Row, cx)?;
                } else if cx.stores == Stores::Streamed && element.size() >= 4 {
                    mr!(self, vmovntps, self.bytes(element.kind()), to, s);
                } else {
                    self.store_row(element, to, s, cx.count)?;
                }
            }
            Addressing::Steps(at) | Addressing::At(at) => {
                let index = self.source(regs, region, at, position)?;
                let base = self.address(access, false, cx)?;
                self.asm.lea(rdx, base)?;
                self.set_k6(cx.count)?;
                match (element, self.bytes(Kind::W32)) {
                    (Element::B64, _) => self.asm.vscatterdpd(ptr(rdx + Y[index] * 8).k6(), Z[s])?,
                    (_, 32) => self.asm.vscatterdps(ptr(rdx + Y[index] * 4).k6(), Y[s])?,
                    _ => self.asm.vscatterdps(ptr(rdx + Z[index] * 4).k6(), Z[s])?,
                }
            }
            Addressing::Transposed(slot) => {
                let to = frame(part(slot, cx.copy));
                self.store_row(element, to, s, Count::Full)?;
            }
            Addressing::OneByOne | Addressing::OneByOneAt(_) => {
                let mut along = Along::Step;
                if let Addressing::OneByOneAt(at) = place {
                    let at = self.source(regs, region, at, position)?;
                    let to = frame(SECOND);
                    self.put(Kind::W64, to, at)?;
                    along = Along::StepAt;
                }
                let base = self.address(access, false, cx)?;
                self.asm.lea(rdx, base)?;
                let near = frame(FIRST);
                self.store_row(element, near, s, Count::Full)?;
                self.copy_lanes(Direction::Write, access, element, along, cx)?;
            }
        }
        self.release(regs, region, position);
        Ok(())
    }

    /// The first lane as one element.
    fn store_same(&mut self, element: Element, to: AsmMemoryOperand, s: usize) -> Done {
        match element {
            Element::B32 => self.asm.vmovss(dword_ptr(to), X[s])?,
            Element::B64 => self.asm.vmovsd(qword_ptr(to), X[s])?,
            Element::F16 => {
                self.asm.vcvtps2ph(X[0], X[s], 0)?;
                self.asm.vmovd(ecx, X[0])?;
                self.asm.mov(word_ptr(to), gpr16::cx)?;
            }
            Element::I16 | Element::U16 => {
                self.asm.vmovd(ecx, X[s])?;
                self.asm.mov(word_ptr(to), gpr16::cx)?;
            }
            Element::I8 | Element::U8 => {
                self.asm.vmovd(ecx, X[s])?;
                self.asm.mov(byte_ptr(to), cl)?;
            }
        }
        Ok(())
    }

    /// Elements that lie side by side.
    fn store_row(&mut self, element: Element, to: AsmMemoryOperand, s: usize, count: Count) -> Done {
        let w = self.bytes(element.kind());
        if self.is_wide() {
            let to = if count == Count::Rest { to.k7() } else { to };
            match element {
                Element::B32 => mr!(self, vmovups, w, to, s),
                Element::B64 => mr!(self, vmovupd, w, to, s),
                Element::F16 => match w {
                    16 => self.asm.vcvtps2ph(to, X[s], 0)?,
                    32 => self.asm.vcvtps2ph(to, Y[s], 0)?,
                    _ => self.asm.vcvtps2ph(to, Z[s], 0)?,
                },
                Element::I16 | Element::U16 => mr!(self, vpmovdw, w, to, s),
                Element::I8 | Element::U8 => mr!(self, vpmovdb, w, to, s),
            }
            return Ok(());
        }
        match (element, count) {
            (Element::B32 | Element::B64, Count::Full) => mr!(self, vmovups, w, to, s),
            (Element::B32, Count::Rest) => {
                let mask = frame(MASK32);
                rm!(self, vmovups, w, 1, mask);
                match w {
                    16 => self.asm.vmaskmovps(to, X[1], X[s])?,
                    _ => self.asm.vmaskmovps(to, Y[1], Y[s])?,
                }
            }
            (Element::B64, Count::Rest) => {
                let mask = frame(MASK64);
                self.asm.vmovups(Y[1], mask)?;
                self.asm.vmaskmovpd(to, Y[1], Y[s])?;
            }
            (Element::F16, _) => match w {
                16 => self.asm.vcvtps2ph(to, X[s], 0)?,
                _ => self.asm.vcvtps2ph(to, Y[s], 0)?,
            },
            _ => self.store_packed(element, to, s, w)?,
        }
        Ok(())
    }

    /// The low bytes of 32-bit lanes, with AVX2.
    fn store_packed(&mut self, element: Element, to: AsmMemoryOperand, s: usize, w: usize) -> Done {
        let size = element.size();
        let packing = self.packing(size);
        if w == 16 {
            self.asm.vpshufb(X[0], X[s], packing)?;
            match size {
                1 => self.asm.vmovd(dword_ptr(to), X[0])?,
                _ => self.asm.vmovq(qword_ptr(to), X[0])?,
            }
            return Ok(());
        }
        self.asm.vbroadcasti128(Y[1], packing)?;
        self.asm.vpshufb(Y[0], Y[s], Y[1])?;
        self.asm.vextracti128(X[1], Y[0], 1)?;
        if size == 1 {
            self.asm.vpunpckldq(X[0], X[0], X[1])?;
            self.asm.vmovq(qword_ptr(to), X[0])?;
        } else {
            self.asm.vpunpcklqdq(X[0], X[0], X[1])?;
            self.asm.vmovups(to, X[0])?;
        }
        Ok(())
    }

    /// Copies the elements of the lanes that count between memory at `rdx` and the frame at [`FIRST`].
    fn copy_lanes(&mut self, way: Direction, access: AccessId, element: Element, along: Along, cx: &Context) -> Done {
        let size = element.size() as i32;
        let mut again = self.asm.create_label();
        self.asm.xor(ecx, ecx)?;
        self.asm.set_label(&mut again)?;
        let near = ptr(rsp + rcx * size + FIRST as i32);
        let far = if along == Along::StepAt {
            self.asm.mov(rax, ptr(rsp + rcx * 8 + SECOND as i32))?;
            ptr(rdx + rax * size)
        } else {
            ptr(rdx)
        };
        let (from, to) = if way == Direction::Read { (far, near) } else { (near, far) };
        match size {
            1 => {
                self.asm.mov(r15b, from)?;
                self.asm.mov(to, r15b)?;
            }
            2 => {
                self.asm.mov(r15w, from)?;
                self.asm.mov(to, r15w)?;
            }
            4 => {
                self.asm.mov(r15d, from)?;
                self.asm.mov(to, r15d)?;
            }
            _ => {
                self.asm.mov(r15, from)?;
                self.asm.mov(to, r15)?;
            }
        }
        match (along, cx.lane) {
            (Along::Row, _) => self.asm.add(rdx, size)?,
            (_, Some(axis)) => self.add_step(access, axis)?,
            (_, None) => {}
        }
        self.next_lane(again, cx)
    }

    /// Goes on with the next of the lanes that count, whose number is in `rcx`.
    fn next_lane(&mut self, again: CodeLabel, cx: &Context) -> Done {
        self.asm.inc(rcx)?;
        if cx.count == Count::Rest {
            let count = frame(COUNT);
            self.asm.cmp(rcx, count)?;
        } else {
            self.asm.cmp(rcx, self.shape.lanes as i32)?;
        }
        self.asm.jl(again)?;
        Ok(())
    }

    /// Emits [`VectorOp::AddAt`]: indices may be equal, so lane after lane reads what the one before has written.
    pub(super) fn add_at(
        &mut self,
        regs: &mut Registers,
        region: &Region,
        position: u32,
        op: &VectorOp,
        cx: &Context,
    ) -> Done {
        let VectorOp::AddAt { access, at, value } = *op else { return Ok(()) };
        let (at, value) =
            ((at, self.source(regs, region, at, position)?), (value, self.source(regs, region, value, position)?));
        self.put_arguments(region, value, at)?;
        let base = self.address(access, false, cx)?;
        self.asm.lea(rdx, base)?;
        let dtype = self.kernel.access(access).dtype;
        if !matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64) {
            self.call_add_at(regs, access, cx)?;
            self.release(regs, region, position);
            return Ok(());
        }
        let size = dtype.size() as i32;
        if cx.count == Count::Full
            && let Some(step) = self.lane_step(access, cx).and_then(|step| i32::try_from(step).ok())
            && let Some(last) = step.checked_mul(size * self.shape.lanes as i32)
        {
            let lanes = self.shape.lanes as i32;
            for lane in 0..lanes {
                self.asm.mov(rax, ptr(rsp + 8 * lane + SECOND as i32))?;
                self.add_lane(dtype, rsp + size * lane + FIRST as i32, rdx + rax * size + last / lanes * lane)?;
            }
        } else {
            let mut again = self.asm.create_label();
            self.asm.xor(ecx, ecx)?;
            self.asm.set_label(&mut again)?;
            self.asm.mov(rax, ptr(rsp + rcx * 8 + SECOND as i32))?;
            self.add_lane(dtype, rsp + rcx * size + FIRST as i32, rdx + rax * size)?;
            if let Some(axis) = cx.lane {
                self.add_step(access, axis)?;
            }
            self.next_lane(again, cx)?;
        }
        self.release(regs, region, position);
        Ok(())
    }

    /// Adds a lane's number to an element.
    fn add_lane(&mut self, dtype: DType, near: AsmMemoryOperand, far: AsmMemoryOperand) -> Done {
        match dtype {
            DType::F32 => {
                self.asm.vmovss(X[0], dword_ptr(far))?;
                self.asm.vaddss(X[0], X[0], dword_ptr(near))?;
                self.asm.vmovss(dword_ptr(far), X[0])?;
            }
            DType::F64 => {
                self.asm.vmovsd(X[0], qword_ptr(far))?;
                self.asm.vaddsd(X[0], X[0], qword_ptr(near))?;
                self.asm.vmovsd(qword_ptr(far), X[0])?;
            }
            DType::I32 => {
                self.asm.mov(r15d, dword_ptr(near))?;
                self.asm.add(dword_ptr(far), r15d)?;
            }
            _ => {
                self.asm.mov(r15, qword_ptr(near))?;
                self.asm.add(qword_ptr(far), r15)?;
            }
        }
        Ok(())
    }

    /// Moves `rdx` by a step of an access along an axis.
    fn add_step(&mut self, access: AccessId, axis: pyrite_loops::AxisId) -> Done {
        let size = self.kernel.access(access).dtype.size() as i32;
        if let Some(offset) = self.layout.steps[access.0 as usize][axis.0 as usize] {
            self.asm.add(rdx, frame(offset))?;
        } else {
            let step = self.kernel.access(access).step(axis).as_int().unwrap_or(0) as i32;
            self.asm.add(rdx, step * size)?;
        }
        Ok(())
    }
}

/// How the elements lie that are copied one by one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Row,
    Step,
    StepAt,
}

fn rr_zero(e: &mut Emitter<'_>, kind: Kind) -> Done {
    let w = e.bytes(kind);
    match w {
        16 => e.asm.vxorps(X[0], X[0], X[0])?,
        32 => e.asm.vxorps(Y[0], Y[0], Y[0])?,
        _ => e.asm.vxorps(Z[0], Z[0], Z[0])?,
    }
    Ok(())
}
