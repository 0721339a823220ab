//! The run of a launch.
//!
//! Threads of a warp that are at the same instruction run it together, operand by operand.

#![expect(unsafe_code, reason = "kernels work on raw memory")]

use std::ops::Range;

use super::memory::{History, Region, Touch, Who};
use super::parse::{Entry, Instruction, Kind, Mode, Module, Op, Operand, Space, Special, Ty};
use super::values::{binary, convert, cut, fma, test, unary};
use crate::Launch;

/// How many instructions the threads of a block may run together.
const STEPS: u64 = 1 << 33;
const WARP: usize = 32;

/// What is wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, block {block}, thread {thread}: {what}")]
pub struct Trap {
    /// The line of the instruction.
    pub line: usize,
    /// The block.
    pub block: u32,
    /// The thread.
    pub thread: u32,
    /// What is wrong.
    pub what: String,
}

/// Where threads are after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// At the one behind it.
    Next,
    /// Elsewhere.
    Jump(usize),
    /// They wait for the others of the block.
    Wait,
}

/// The state of a block.
struct Block<'a> {
    module: &'a Module,
    entry: &'a Entry,
    launch: &'a Launch,
    regions: &'a [Region],
    number: u32,
    /// The registers: the first one of all threads, then the second.
    registers: Vec<u64>,
    /// The next instruction of each thread; behind the last one it has ended.
    next: Vec<usize>,
    waits: Vec<bool>,
    /// How often the threads have met.
    epoch: u32,
    shared: Vec<u8>,
    shared_history: History,
    history: &'a mut History,
    last_region: usize,
    steps: u64,
}

impl Module {
    /// Runs a launch on memory.
    ///
    /// # Safety
    /// The regions are memory that the caller may read, and write where they say so; nobody else touches it meanwhile.
    pub unsafe fn run(&self, launch: &Launch, regions: &[Region]) -> Result<(), Trap> {
        let fail = |what: String| Trap { line: 0, block: 0, thread: 0, what };
        let entry = self.entries.get(&launch.entry);
        let entry = entry.ok_or_else(|| fail(format!("there is no entry {}", launch.entry)))?;
        if entry.params != launch.params.len() {
            return Err(fail(format!("{} parameters for {}", launch.params.len(), entry.params)));
        }
        let threads = launch.block as usize;
        let mut history = History::default();
        for number in 0..launch.grid {
            let mut block = Block {
                module: self,
                entry,
                launch,
                regions,
                number,
                registers: vec![0; threads * entry.registers],
                next: vec![0; threads],
                waits: vec![false; threads],
                epoch: 0,
                shared: vec![0; entry.shared],
                shared_history: History::default(),
                history: &mut history,
                last_region: 0,
                steps: 0,
            };
            block.run()?;
        }
        Ok(())
    }
}

impl Block<'_> {
    fn ended(&self, thread: usize) -> bool {
        self.next[thread] >= self.entry.code.len()
    }

    fn run(&mut self) -> Result<(), Trap> {
        let threads = self.next.len();
        loop {
            for first in (0..threads).step_by(WARP) {
                self.warp(first..(first + WARP).min(threads))?;
            }
            let Some(waiting) = (0..threads).find(|thread| self.waits[*thread]) else { return Ok(()) };
            // Everybody waits or has ended.
            let at = self.next[waiting];
            if let Some(absent) = (0..threads).find(|thread| !self.waits[*thread] || self.next[*thread] != at) {
                let line = self.entry.code[at].line;
                let thread = absent as u32;
                let what = "the thread does not reach the barrier that others wait at".to_owned();
                return Err(Trap { line, block: self.number, thread, what });
            }
            self.waits.fill(false);
            self.next.iter_mut().for_each(|next| *next += 1);
            self.epoch += 1;
            self.shared_history.clear();
        }
    }

    /// Runs the threads of a warp until each waits or has ended.
    fn warp(&mut self, threads: Range<usize>) -> Result<(), Trap> {
        let entry = self.entry;
        loop {
            if self.lockstep(threads.clone())? {
                return Ok(());
            }
            let runnable = |block: &Self, thread: &usize| !block.waits[*thread] && !block.ended(*thread);
            let lowest = threads.clone().filter(|thread| runnable(self, thread)).map(|thread| self.next[thread]).min();
            let Some(at) = lowest else { return Ok(()) };
            let instruction = &entry.code[at];
            let mut lanes = [0usize; WARP];
            let mut count = 0;
            for thread in threads.clone() {
                if self.next[thread] != at || self.waits[thread] {
                    continue;
                }
                if self.takes_part(instruction, thread) {
                    lanes[count] = thread;
                    count += 1;
                } else {
                    self.next[thread] += 1;
                }
            }
            self.count_step(instruction, threads.start)?;
            let after = self.together(instruction, &lanes[..count])?;
            lanes[..count].iter().for_each(|thread| self.go_on(*thread, at, after));
        }
    }

    /// Runs a warp as long as all of its threads are at the same instruction, which spares asking each where it is; tells
    /// whether all of them wait or have ended.
    fn lockstep(&mut self, threads: Range<usize>) -> Result<bool, Trap> {
        let entry = self.entry;
        let mut at = self.next[threads.start];
        let together = |thread: usize| self.next[thread] == at && !self.waits[thread];
        if !threads.clone().all(together) {
            return Ok(false);
        }
        let mut lanes = [0usize; WARP];
        loop {
            let Some(instruction) = entry.code.get(at) else {
                threads.for_each(|thread| self.next[thread] = at);
                return Ok(true);
            };
            let mut count = 0;
            for thread in threads.clone() {
                if self.takes_part(instruction, thread) {
                    lanes[count] = thread;
                    count += 1;
                }
            }
            self.count_step(instruction, threads.start)?;
            let after = self.together(instruction, &lanes[..count])?;
            match after {
                After::Next => at += 1,
                _ if count == 0 => at += 1,
                After::Jump(to) if count == threads.len() => at = to,
                After::Jump(_) | After::Wait => {
                    threads.clone().for_each(|thread| self.next[thread] = at + 1);
                    lanes[..count].iter().for_each(|thread| self.go_on(*thread, at, after));
                    return Ok(after == After::Wait && count == threads.len());
                }
            }
        }
    }

    /// Whether the guard of an instruction lets a thread run it.
    fn takes_part(&self, instruction: &Instruction, thread: usize) -> bool {
        instruction.guard.is_none_or(|(register, wanted)| (self.read(thread, register) != 0) == wanted)
    }

    fn count_step(&mut self, instruction: &Instruction, thread: usize) -> Result<(), Trap> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(self.trap(instruction, thread, "the block does not come to an end"));
        }
        Ok(())
    }

    /// Where a thread is after an instruction.
    fn go_on(&mut self, thread: usize, at: usize, after: After) {
        match after {
            After::Next => self.next[thread] = at + 1,
            After::Jump(to) => self.next[thread] = to,
            After::Wait => {
                self.next[thread] = at;
                self.waits[thread] = true;
            }
        }
    }

    fn trap(&self, instruction: &Instruction, thread: usize, what: impl Into<String>) -> Trap {
        Trap { line: instruction.line, block: self.number, thread: thread as u32, what: what.into() }
    }

    fn read(&self, thread: usize, register: usize) -> u64 {
        self.registers[register * self.next.len() + thread]
    }

    fn write(&mut self, thread: usize, operand: &Operand, value: u64) {
        if let Operand::Register(register) = operand {
            self.registers[register * self.next.len() + thread] = value;
        }
    }

    fn value(&self, thread: usize, operand: &Operand) -> u64 {
        match operand {
            Operand::Register(register) => self.read(thread, *register),
            Operand::Number(number) => *number,
            Operand::Special(special) => u64::from(match special {
                Special::Thread => thread as u32,
                Special::Threads => self.launch.block,
                Special::Block => self.number,
                Special::Blocks => self.launch.grid,
            }),
            Operand::Address(register, further) => self.read(thread, *register).wrapping_add(*further),
            Operand::Param(number) => self.launch.params[*number],
            // Shared memory begins at zero in its own space; tables are apart by more than they are long.
            Operand::Symbol(name) => {
                self.module.tables.keys().position(|known| known == name).map_or(0, |table| (table as u64) << 32)
            }
            Operand::List(_) => 0,
        }
    }

    /// Runs an instruction for some lanes of a warp.
    fn together(&mut self, instruction: &Instruction, lanes: &[usize]) -> Result<After, Trap> {
        match instruction.op {
            Op::Branch(to) => return Ok(After::Jump(to)),
            Op::Return => return Ok(After::Jump(self.entry.code.len())),
            Op::Barrier => return Ok(After::Wait),
            Op::Prefetch => {
                for thread in lanes {
                    let place = self.value(*thread, &instruction.operands[0]);
                    self.check(instruction, *thread, place, 1, false)?;
                }
            }
            Op::Shuffle(mode) => {
                let (Some(first), operands) = (lanes.first(), &instruction.operands) else { return Ok(After::Next) };
                if lanes.len() < WARP {
                    return Err(self.trap(
                        instruction,
                        *first,
                        "a shuffle that not all lanes of the warp take part in",
                    ));
                }
                let values = self.values(&operands[1], lanes);
                for (lane, thread) in lanes.iter().enumerate() {
                    let by = self.value(*thread, &operands[2]) as usize;
                    let from = if mode == Mode::Butterfly { lane ^ by } else { by };
                    let taken = values.get(from).copied();
                    let taken = taken
                        .ok_or_else(|| self.trap(instruction, *thread, "a shuffle from a lane that does not exist"))?;
                    self.write(*thread, &operands[0], taken);
                }
            }
            _ => match (self.computed(instruction, lanes), &instruction.operands[..]) {
                (Some(values), [Operand::Register(register), ..]) => {
                    let first = register * self.next.len();
                    lanes.iter().zip(values).for_each(|(thread, value)| self.registers[first + thread] = value);
                }
                _ => {
                    for thread in lanes {
                        self.alone(instruction, *thread)?;
                    }
                }
            },
        }
        Ok(After::Next)
    }

    /// An operand of some lanes.
    fn values(&self, operand: &Operand, lanes: &[usize]) -> [u64; WARP] {
        let mut values = [0; WARP];
        match operand {
            Operand::Register(register) => {
                let first = register * self.next.len();
                let registers = &self.registers[first..first + self.next.len()];
                lanes.iter().zip(&mut values).for_each(|(thread, value)| *value = registers[*thread]);
            }
            Operand::Number(number) => values[..lanes.len()].fill(*number),
            other => lanes.iter().zip(&mut values).for_each(|(thread, value)| *value = self.value(*thread, other)),
        }
        values
    }

    /// What an instruction that only computes gives for some lanes; nothing for other instructions.
    fn computed(&self, instruction: &Instruction, lanes: &[usize]) -> Option<[u64; WARP]> {
        let operands = &instruction.operands;
        let of = |number: usize| self.values(&operands[number], lanes);
        let mut given = [0; WARP];
        let each = given.iter_mut().take(lanes.len()).enumerate();
        match instruction.op {
            Op::Binary(op, ty) => {
                let (a, b) = (of(1), of(2));
                each.for_each(|(lane, given)| *given = binary(op, ty, a[lane], b[lane]));
            }
            Op::Unary(op, ty) => {
                let a = of(1);
                each.for_each(|(lane, given)| *given = unary(op, ty, a[lane]));
            }
            Op::Fma(ty) => {
                let (a, b, c) = (of(1), of(2), of(3));
                each.for_each(|(lane, given)| *given = fma(ty, a[lane], b[lane], c[lane]));
            }
            Op::Mad(ty) => {
                let (a, b, c) = (of(1), of(2), of(3));
                each.for_each(|(lane, given)| {
                    *given = cut(a[lane].wrapping_mul(b[lane]).wrapping_add(c[lane]), ty.bits);
                });
            }
            Op::Setp(op, ty) => {
                let (a, b) = (of(1), of(2));
                each.for_each(|(lane, given)| *given = u64::from(test(op, ty, a[lane], b[lane])));
            }
            Op::Selp => {
                let (a, b, c) = (of(1), of(2), of(3));
                each.for_each(|(lane, given)| *given = if c[lane] != 0 { a[lane] } else { b[lane] });
            }
            Op::Convert { to, from, round } => {
                let a = of(1);
                each.for_each(|(lane, given)| *given = convert(to, from, round, a[lane]));
            }
            Op::Mov => given = of(1),
            _ => return None,
        }
        Some(given)
    }

    /// Runs an instruction for one thread.
    fn alone(&mut self, instruction: &Instruction, thread: usize) -> Result<(), Trap> {
        let operands = &instruction.operands;
        let of = |number: usize| self.value(thread, &operands[number]);
        let given = match instruction.op {
            Op::Pack(bits) => {
                let Some(Operand::List(list)) = operands.get(1) else { return Ok(()) };
                list.iter().rev().fold(0, |whole, part| whole << bits | cut(self.read(thread, *part), bits))
            }
            Op::Unpack(bits) => {
                let (Some(Operand::List(list)), whole) = (operands.first(), of(1)) else { return Ok(()) };
                for (number, part) in list.iter().enumerate() {
                    let value = cut(whole >> (bits as usize * number), bits);
                    self.write(thread, &Operand::Register(*part), value);
                }
                return Ok(());
            }
            Op::Load { space, ty, lanes, relaxed } => {
                return self.load(instruction, thread, (space, ty, lanes, relaxed));
            }
            Op::Store { space, ty, lanes, relaxed } => {
                return self.store(instruction, thread, (space, ty, lanes, relaxed));
            }
            Op::AtomicAdd(ty) => {
                let (address, value) = (of(0), of(1));
                self.check(instruction, thread, address, ty.bits / 8, true)?;
                self.note(instruction, thread, address, Touch::Relaxed)?;
                let sum = binary(super::parse::Binary::Add, ty, read_memory(address, ty), value);
                write_memory(address, ty, sum);
                return Ok(());
            }
            Op::CompareAndSwap(ty) => {
                let (address, old, new) = (of(1), of(2), of(3));
                self.check_swap(instruction, thread, address, ty)?;
                let found = read_memory(address, ty);
                if found == cut(old, ty.bits) {
                    write_memory(address, ty, new);
                }
                found
            }
            // The others are run for all lanes at once.
            _ => return Ok(()),
        };
        self.write(thread, &operands[0], given);
        Ok(())
    }

    fn load(
        &mut self,
        instruction: &Instruction,
        thread: usize,
        (space, ty, lanes, relaxed): (Space, Ty, usize, bool),
    ) -> Result<(), Trap> {
        let operands = &instruction.operands;
        let address = self.value(thread, &operands[1]);
        let size = u64::from(ty.bits / 8);
        if !address.is_multiple_of(size * lanes as u64) && space != Space::Param {
            let what = format!("a load of {} bytes from {address:#x}, which is no multiple", size * lanes as u64);
            return Err(self.trap(instruction, thread, what));
        }
        for lane in 0..lanes {
            let place = address.wrapping_add(lane as u64 * size);
            let raw = match space {
                Space::Param => address,
                Space::Const => {
                    let words = self.module.tables.values().nth((place >> 32) as usize);
                    let word = words.and_then(|words| words.get(cut(place, 32) as usize / 8)).copied();
                    word.ok_or_else(|| self.trap(instruction, thread, format!("a load from byte {place} of a table")))?
                }
                Space::Shared => {
                    self.check_shared(instruction, thread, place, size, Touch::Read)?;
                    let mut bytes = [0; 8];
                    bytes[..size as usize].copy_from_slice(&self.shared[place as usize..(place + size) as usize]);
                    u64::from_le_bytes(bytes)
                }
                Space::Global => {
                    self.check(instruction, thread, place, ty.bits / 8, false)?;
                    self.note(instruction, thread, place, if relaxed { Touch::Relaxed } else { Touch::Read })?;
                    read_memory(place, ty)
                }
            };
            // A register is at least 32 bits wide, but for half precisions.
            let value = match ty.kind {
                Kind::Signed if ty.bits < 32 => u64::from(((raw << (64 - ty.bits)) as i64 >> (64 - ty.bits)) as u32),
                _ => raw,
            };
            match &operands[0] {
                Operand::List(list) => self.write(thread, &Operand::Register(list[lane]), value),
                one => self.write(thread, one, value),
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        instruction: &Instruction,
        thread: usize,
        (space, ty, lanes, relaxed): (Space, Ty, usize, bool),
    ) -> Result<(), Trap> {
        let operands = &instruction.operands;
        let address = self.value(thread, &operands[0]);
        let size = u64::from(ty.bits / 8);
        if !address.is_multiple_of(size * lanes as u64) {
            let what = format!("a store of {} bytes to {address:#x}, which is no multiple", size * lanes as u64);
            return Err(self.trap(instruction, thread, what));
        }
        for lane in 0..lanes {
            let value = match &operands[1] {
                Operand::List(list) => self.read(thread, list[lane]),
                one => self.value(thread, one),
            };
            let place = address.wrapping_add(lane as u64 * size);
            if space == Space::Shared {
                self.check_shared(instruction, thread, place, size, Touch::Write)?;
                let bytes = value.to_le_bytes();
                self.shared[place as usize..(place + size) as usize].copy_from_slice(&bytes[..size as usize]);
                continue;
            }
            self.check(instruction, thread, place, ty.bits / 8, true)?;
            self.note(instruction, thread, place, if relaxed { Touch::Relaxed } else { Touch::Write })?;
            write_memory(place, ty, value);
        }
        Ok(())
    }

    fn who(&self, thread: usize) -> Who {
        Who { block: self.number, thread: thread as u32, epoch: self.epoch }
    }

    fn note(&mut self, instruction: &Instruction, thread: usize, place: u64, touch: Touch) -> Result<(), Trap> {
        let who = self.who(thread);
        match self.history.note(place, who, touch) {
            Some(other) => {
                let (block, of) = (other.block, other.thread);
                let what =
                    format!("a race at {place:#x} with thread {of} of block {block}: nothing orders their accesses");
                Err(self.trap(instruction, thread, what))
            }
            None => Ok(()),
        }
    }

    fn check_shared(
        &mut self,
        instruction: &Instruction,
        thread: usize,
        place: u64,
        size: u64,
        touch: Touch,
    ) -> Result<(), Trap> {
        let bytes = self.shared.len() as u64;
        if place.checked_add(size).is_none_or(|end| end > bytes) {
            return Err(self.trap(instruction, thread, format!("byte {place} of {bytes} bytes of shared memory")));
        }
        let who = self.who(thread);
        match self.shared_history.note(place, who, touch) {
            Some(other) => {
                let what = format!("a race in shared memory with thread {}: no barrier is between", other.thread);
                Err(self.trap(instruction, thread, what))
            }
            None => Ok(()),
        }
    }

    /// Whether bytes are within the memory of the launch.
    fn check(
        &mut self,
        instruction: &Instruction,
        thread: usize,
        place: u64,
        size: u32,
        write: bool,
    ) -> Result<(), Trap> {
        let holds = |region: &Region| {
            place >= region.start
                && place.checked_add(u64::from(size)).is_some_and(|end| end <= region.start + region.bytes)
                && (region.writable || !write)
        };
        if self.regions.get(self.last_region).is_some_and(holds) {
            return Ok(());
        }
        if let Some(found) = self.regions.iter().position(holds) {
            self.last_region = found;
            return Ok(());
        }
        let verb = if write { "a write to" } else { "a read of" };
        let nearest = self.regions.iter().min_by_key(|region| {
            place.saturating_sub(region.start + region.bytes).max(region.start.saturating_sub(place))
        });
        let near = nearest.map_or_else(String::new, |region| {
            let index = place.wrapping_sub(region.start) as i64;
            format!("; that is byte {index} of the nearest buffer, which has {} bytes", region.bytes)
        });
        Err(self.trap(instruction, thread, format!("{verb} {size} bytes outside of the launch's memory{near}")))
    }

    /// A half word that is replaced may hold a byte that belongs to the launch and one beside it that does not: the
    /// memory of a device is handed out in larger pieces.
    fn check_swap(&mut self, instruction: &Instruction, thread: usize, place: u64, ty: Ty) -> Result<(), Trap> {
        let size = ty.bits / 8;
        if (0..size).all(|byte| self.check(instruction, thread, place + u64::from(byte), 1, true).is_err()) {
            return self.check(instruction, thread, place, size, true);
        }
        self.note(instruction, thread, place, Touch::Relaxed)
    }
}

/// The bytes of a number in memory that was checked.
fn read_memory(place: u64, ty: Ty) -> u64 {
    // SAFETY: callers have checked that the place is within a region, which the caller of the run has lent.
    unsafe {
        match ty.bits {
            8 => u64::from((place as *const u8).read_unaligned()),
            16 => u64::from((place as *const u16).read_unaligned()),
            32 => u64::from((place as *const u32).read_unaligned()),
            _ => (place as *const u64).read_unaligned(),
        }
    }
}

fn write_memory(place: u64, ty: Ty, value: u64) {
    // SAFETY: callers have checked that the place is within a region that may be written, lent by the caller of the run.
    unsafe {
        match ty.bits {
            8 => (place as *mut u8).write_unaligned(value as u8),
            16 => (place as *mut u16).write_unaligned(value as u16),
            32 => (place as *mut u32).write_unaligned(value as u32),
            _ => (place as *mut u64).write_unaligned(value),
        }
    }
}
