//! Attention in single precision, `softmax(q @ kᵀ * scale + bias) @ v`, for sequences that are too short to fill a device with the
//! tiles of a vendor's library.
//!
//! A block has 16 queries of a head. It brings keys and values to shared memory, 64 or 32 at a time, and takes them in one tile
//! after the other: a row's largest score and the sum of its exponentials go from tile to tile, and what was summed up so far is
//! rescaled when a larger score comes (an online softmax). Sixteen threads share the keys of two queries, and later the
//! elements of their results, so scores change hands through shared memory. Keys behind the last query of a block are not
//! read where queries see only keys before them.
//!
//! Sums are in single precision by `fma.rn`, exponentials are those of `pyrite-math`. A query that sees no key gives zeros.

use pyrite_loops::Unary;

use crate::Launch;
use crate::emit::HEADER;
use crate::scalar::function;
use crate::text::{Body, Class, Reg};

/// Queries of a block, and those of a thread.
const QUERIES: i64 = 16;
const OWN: i64 = 2;
/// Threads of a block, and those that share queries.
const THREADS: i64 = 128;
const SHARING: i64 = 16;
/// Elements that are moved at once, and what rows in shared memory are longer than they need to be, because of its banks.
const LANES: i64 = 4;
/// The entry.
const ENTRY: &str = "attention";
/// The bits of minus infinity.
const LEAST: u64 = 0xff80_0000;

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mask {
    /// All.
    None,
    /// Those that are not behind it.
    Causal,
}

/// A kind of attention; sizes but that of a head are arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attention {
    /// The elements of a query, a key, a value.
    pub size: i64,
    /// Which keys a query sees.
    pub mask: Mask,
    /// Whether something is added to scores.
    pub bias: bool,
}

/// The sizes of attention, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Batches, heads, queries, keys.
    pub batch: i64,
    /// Heads of a batch.
    pub heads: i64,
    /// Queries of a head.
    pub queries: i64,
    /// Keys of a head.
    pub keys: i64,
    /// From batch to batch, head to head, row to row: queries, keys, values, results.
    pub apart: [[i64; 3]; 4],
    /// What is added to scores: from batch to batch, head to head, query to query, key to key.
    pub bias: [i64; 4],
}

/// The addresses of attention.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Queries, keys, values, results.
    pub tensors: [u64; 4],
    /// What is added to scores.
    pub bias: u64,
}

/// The tensors, by the names of their parameters.
const TENSORS: [&str; 4] = ["q", "k", "v", "out"];

impl Attention {
    /// Whether heads have a size that threads can share.
    pub fn has_size(size: i64) -> bool {
        size % SHARING == 0 && (SHARING..=128).contains(&size)
    }

    /// Whether the kernel can have sizes and addresses: vectors of rows begin where vectors may.
    pub fn takes(&self, sizes: &Sizes, addresses: &Addresses) -> bool {
        Self::has_size(self.size)
            && sizes.keys > 0
            && sizes.queries.max(sizes.keys) < 1 << 30
            && sizes.apart.iter().flatten().all(|step| step % LANES == 0)
            && addresses.tensors.iter().all(|address| address % 16 == 0)
            && (!self.bias || addresses.bias.is_multiple_of(4))
    }

    /// The launch for sizes and addresses that it takes; nothing if there is no result.
    pub fn launch(&self, sizes: &Sizes, addresses: &Addresses, scale: f32) -> Option<Launch> {
        let tiles = (sizes.queries + QUERIES - 1) / QUERIES;
        let grid = u32::try_from(sizes.batch * sizes.heads * tiles).ok().filter(|grid| *grid > 0)?;
        let bytes = |elements: &i64| (elements * 4) as u64;
        let mut params = addresses.tensors.to_vec();
        params.push(addresses.bias);
        params.extend(sizes.apart.iter().flatten().map(bytes));
        params.extend(sizes.bias.iter().map(bytes));
        params.extend([sizes.heads, sizes.queries, sizes.keys, tiles].map(|size| size as u64));
        params.push(u64::from(scale.to_bits()));
        Some(Launch { entry: ENTRY.to_owned(), grid, block: THREADS as u32, params, rows_at_once: 0 })
    }

    /// The module.
    pub fn text(&self) -> String {
        let mut writer = Writer { body: Body::default(), kind: *self };
        writer.block();
        let mut params: Vec<String> = TENSORS.map(str::to_owned).to_vec();
        params.push("bias".to_owned());
        params.extend(TENSORS.iter().flat_map(|name| ["batch", "head", "row"].map(|step| format!("{name}_{step}"))));
        params.extend(["bias_batch", "bias_head", "bias_row", "bias_key"].map(str::to_owned));
        params.extend(["heads", "queries", "keys", "tiles", "scale"].map(str::to_owned));
        let params: Vec<String> = params.iter().map(|name| format!("    .param .u64 {name}")).collect();
        format!(
            "{HEADER}\n.visible .entry {ENTRY}(\n{}\n)\n.maxntid {THREADS}, 1, 1\n{{\n    .shared .align 16 .b8 shared[{}];\n{}}}\n",
            params.join(",\n"),
            self.layout()[4],
            writer.body.finish()
        )
    }

    /// The name of its entry.
    pub fn entry() -> &'static str {
        ENTRY
    }

    /// Keys that are in shared memory.
    fn keys(&self) -> i64 {
        if self.size <= 64 { 64 } else { 32 }
    }

    /// Bytes from row to row in shared memory: queries and keys, values, scores.
    fn pitches(&self) -> [i64; 3] {
        [(self.size + LANES) * 4, self.size * 4, (self.keys() + LANES) * 4]
    }

    /// Where queries, keys, values and scores begin in shared memory, and where all ends.
    fn layout(&self) -> [i64; 5] {
        let [rows, values, scores] = self.pitches();
        let mut at = 0;
        let parts = [QUERIES * rows, self.keys() * rows, self.keys() * values, QUERIES * scores, 0];
        parts.map(|bytes| {
            at += bytes;
            at - bytes
        })
    }

    /// How a thread's part of a result lies: in so many vectors of so many elements.
    fn vectors(&self) -> (i64, i64) {
        let each = self.size / SHARING;
        let width = if each % 4 == 0 {
            4
        } else if each % 2 == 0 {
            2
        } else {
            1
        };
        (each / width, width)
    }
}

/// Writes the entry.
struct Writer {
    body: Body,
    kind: Attention,
}

/// What a thread brings of a tensor to shared memory.
struct Source {
    /// The address of the thread's first vector, and bytes from row to row.
    from: Reg,
    pitch: Reg,
    /// The row of the first vector, and its place in shared memory.
    row: Reg,
    to: Reg,
    /// How many rows, how many of them apart, and bytes from one to the next in shared memory.
    count: i64,
    apart: i64,
    bytes: i64,
}

impl Writer {
    fn b64(&mut self, name: &str, operands: &[&str]) -> Reg {
        self.body.op(Class::B64, name, operands)
    }

    fn b32(&mut self, name: &str, operands: &[&str]) -> Reg {
        self.body.op(Class::B32, name, operands)
    }

    fn pred(&mut self, name: &str, operands: &[&str]) -> Reg {
        self.body.op(Class::Pred, name, operands)
    }

    fn param(&mut self, name: &str) -> Reg {
        self.b64("ld.param.u64", &[&format!("[{name}]")])
    }

    fn number(&mut self, name: &str) -> Reg {
        let wide = self.param(name);
        self.b32("cvt.u32.u64", &[&wide])
    }

    fn wide(&mut self, narrow: &str) -> Reg {
        self.b64("cvt.u64.u32", &[narrow])
    }

    fn barrier(&mut self) {
        self.body.line("bar.sync 0");
    }

    /// The address of a tensor's head.
    fn head(&mut self, name: &str, batch: &str, head: &str) -> Reg {
        let (base, batches) = (self.param(name), self.param(&format!("{name}_batch")));
        let base = self.b64("mad.lo.s64", &[batch, &batches, &base]);
        let heads = self.param(&format!("{name}_head"));
        self.b64("mad.lo.s64", &[head, &heads, &base])
    }

    fn block(&mut self) {
        let Attention { size, mask, bias } = self.kind;
        let [at_queries, at_keys, at_values, at_scores, _] = self.kind.layout();
        let [pitch, value_pitch, score_pitch] = self.kind.pitches();
        let keys_at_once = self.kind.keys();
        let block = self.b32("mov.u32", &["%ctaid.x"]);
        let thread = self.b32("mov.u32", &["%tid.x"]);
        let (tiles, heads) = (self.number("tiles"), self.number("heads"));
        let (queries, keys) = (self.number("queries"), self.number("keys"));
        let tile = self.b32("rem.u32", &[&block, &tiles]);
        let rest = self.b32("div.u32", &[&block, &tiles]);
        let (head, batch) = (self.b32("rem.u32", &[&rest, &heads]), self.b32("div.u32", &[&rest, &heads]));
        let [head, batch] = [&head, &batch].map(|index| self.wide(index));
        let first_query = self.b32("mul.lo.s32", &[&tile, &QUERIES.to_string()]);
        let base = self.b32("mov.u32", &["shared"]);
        let [q, k, v, out] = TENSORS.map(|name| self.head(name, &batch, &head));
        let q = self.source("q", &q, &thread, (&base, at_queries), (QUERIES, pitch));
        let k = self.source("k", &k, &thread, (&base, at_keys), (keys_at_once, pitch));
        let v = self.source("v", &v, &thread, (&base, at_values), (keys_at_once, value_pitch));
        self.bring(&[&q], &first_query, &queries);
        // The thread's queries, and its place among those that share them.
        let lane = self.b32("and.b32", &[&thread, &(SHARING - 1).to_string()]);
        let pair = self.b32("shr.u32", &[&thread, &SHARING.trailing_zeros().to_string()]);
        let row = self.b32("mul.lo.s32", &[&pair, &OWN.to_string()]);
        let query = self.b32("add.s32", &[&first_query, &row]);
        let from_query = self.b32("mad.lo.s32", &[&row, &pitch.to_string(), &base]);
        let from_key = self.b32("mad.lo.s32", &[&lane, &pitch.to_string(), &base]);
        let from_score = self.b32("mad.lo.s32", &[&row, &score_pitch.to_string(), &base]);
        let to_score = self.b32("mad.lo.s32", &[&lane, "4", &from_score]);
        let (vectors, width) = self.kind.vectors();
        let from_value = self.b32("mad.lo.s32", &[&lane, &(width * 4).to_string(), &base]);
        let added = bias.then(|| {
            let address = self.head("bias", &batch, &head);
            let rows = self.param("bias_row");
            let wide = self.wide(&query);
            (self.b64("mad.lo.s64", &[&wide, &rows, &address]), rows, self.param("bias_key"))
        });
        let scale = self.number("scale");
        let end = match mask {
            Mask::None => keys.clone(),
            Mask::Causal => {
                let behind = self.b32("add.s32", &[&first_query, &QUERIES.to_string()]);
                self.b32("min.s32", &[&behind, &keys])
            }
        };
        let own: Vec<Reg> = (0..OWN).map(|number| self.b32("add.s32", &[&query, &number.to_string()])).collect();
        let largest: Vec<Reg> = own.iter().map(|_| self.body.constant(Class::B32, LEAST)).collect();
        let sums: Vec<Reg> = own.iter().map(|_| self.body.constant(Class::B32, 0)).collect();
        let results: Vec<Vec<Reg>> =
            own.iter().map(|_| (0..size / SHARING).map(|_| self.body.constant(Class::B32, 0)).collect()).collect();
        let at = self.body.constant(Class::B32, 0);
        let (next, done) = (self.body.label(), self.body.label());
        self.body.place(&next);
        self.bring(&[&k, &v], &at, &keys);
        self.barrier();
        let mut scores = self.scores((&from_query, &from_key), (at_queries, at_keys));
        let first_key = self.b32("add.s32", &[&at, &lane]);
        for (number, query) in own.iter().enumerate() {
            for (run, score) in scores[number].iter_mut().enumerate() {
                let key = self.b32("add.s32", &[&first_key, &(run as i64 * SHARING).to_string()]);
                let mut seen = self.pred("setp.lt.s32", &[&key, &keys]);
                *score = self.b32("mul.rn.f32", &[score, &scale]);
                if let Some((address, rows, columns)) = &added {
                    let inside = self.pred("setp.lt.s32", &[query, &queries]);
                    let inside = self.pred("and.pred", &[&inside, &seen]);
                    let wide = self.wide(&key);
                    let place = self.b64("mad.lo.s64", &[&wide, columns, address]);
                    let place =
                        if number > 0 { self.b64("mad.lo.s64", &[rows, &number.to_string(), &place]) } else { place };
                    let more = self.body.constant(Class::B32, 0);
                    self.body.line(&format!("@{inside} ld.global.b32 {more}, [{place}]"));
                    *score = self.b32("add.rn.f32", &[score, &more]);
                }
                if mask == Mask::Causal {
                    let before = self.pred("setp.le.s32", &[&key, query]);
                    seen = self.pred("and.pred", &[&seen, &before]);
                }
                let least = self.body.constant(Class::B32, LEAST);
                *score = self.b32("selp.b32", &[score, &least, &seen]);
            }
            self.take_in((&largest[number], &sums[number]), &mut scores[number], &results[number]);
            for (run, score) in scores[number].iter().enumerate() {
                let place = at_scores + number as i64 * score_pitch + run as i64 * SHARING * 4;
                self.body.line(&format!("st.shared.b32 [{to_score}+{place}], {score}"));
            }
        }
        self.barrier();
        self.add_values(&results, (&from_score, at_scores), (&from_value, at_values), (vectors, width));
        self.barrier();
        self.body.line(&format!("add.s32 {at}, {at}, {keys_at_once}"));
        let over = self.pred("setp.ge.s32", &[&at, &end]);
        self.body.line(&format!("@{over} bra {done}"));
        self.body.line(&format!("bra {next}"));
        self.body.place(&done);
        let row_bytes = self.param("out_row");
        let wide_lane = self.wide(&lane);
        let out = self.b64("mad.lo.s64", &[&wide_lane, &(width * 4).to_string(), &out]);
        for ((query, sum), result) in own.iter().zip(&sums).zip(&results) {
            // A query that sees no key has sums of nothing.
            let none = self.body.constant(Class::B32, 0);
            let one = self.body.constant(Class::B32, u64::from(1f32.to_bits()));
            let empty = self.pred("setp.eq.f32", &[sum, &none]);
            let sum = self.b32("selp.b32", &[&one, sum, &empty]);
            let inside = self.pred("setp.lt.s32", &[query, &queries]);
            let wide = self.wide(query);
            let to = self.b64("mad.lo.s64", &[&wide, &row_bytes, &out]);
            for (number, part) in result.chunks(width as usize).enumerate() {
                let part: Vec<Reg> = part.iter().map(|one| self.b32("div.rn.f32", &[one, &sum])).collect();
                let place = number as i64 * SHARING * width * 4;
                self.body.line(&format!("@{inside} st.global{}.b32 [{to}+{place}], {}", many(width), list(&part)));
            }
        }
        self.body.line("ret");
    }

    /// What a thread brings of the rows of a tensor.
    fn source(
        &mut self,
        name: &str,
        head: &str,
        thread: &str,
        (base, offset): (&str, i64),
        (rows, bytes): (i64, i64),
    ) -> Source {
        let across = self.kind.size / LANES;
        // Threads behind the last whole row bring nothing.
        let apart = THREADS / across;
        let (deep, along) =
            (self.b32("div.u32", &[thread, &across.to_string()]), self.b32("rem.u32", &[thread, &across.to_string()]));
        let wide = self.wide(&along);
        let pitch = self.param(&format!("{name}_row"));
        let from = self.b64("mad.lo.s64", &[&wide, "16", head]);
        let to = self.b32("mad.lo.s32", &[&deep, &bytes.to_string(), base]);
        let to = self.b32("mad.lo.s32", &[&along, "16", &to]);
        let to = self.b32("add.s32", &[&to, &offset.to_string()]);
        Source { from, pitch, row: deep, to, count: rows, apart, bytes }
    }

    /// Brings rows of tensors to shared memory, from one on; those behind the last one are zero.
    fn bring(&mut self, sources: &[&Source], first: &str, rows: &str) {
        let mut found = Vec::new();
        for source in sources {
            for number in (0..source.count).step_by(source.apart as usize) {
                let place = self.b32("add.s32", &[&source.row, &number.to_string()]);
                let row = self.b32("add.s32", &[&place, first]);
                let whole = self.pred("setp.lt.s32", &[&place, &source.count.min(number + source.apart).to_string()]);
                let inside = self.pred("setp.lt.s32", &[&row, rows]);
                let inside = self.pred("and.pred", &[&inside, &whole]);
                let wide = self.wide(&row);
                let address = self.b64("mad.lo.s64", &[&wide, &source.pitch, &source.from]);
                let vector: Vec<Reg> = (0..LANES).map(|_| self.body.constant(Class::B32, 0)).collect();
                self.body.line(&format!("@{inside} ld.global.v4.b32 {}, [{address}]", list(&vector)));
                found.push((whole, format!("[{}+{}]", source.to, number * source.bytes), vector));
            }
        }
        for (whole, place, vector) in found {
            self.body.line(&format!("@{whole} st.shared.v4.b32 {place}, {}", list(&vector)));
        }
    }

    fn shared(&mut self, width: i64, address: &str, offset: i64) -> Vec<Reg> {
        let registers: Vec<Reg> = (0..width).map(|_| self.body.reg(Class::B32)).collect();
        self.body.line(&format!("ld.shared{}.b32 {}, [{address}+{offset}]", many(width), list(&registers)));
        registers
    }

    /// The products of the thread's queries with its keys: by query, then by key.
    fn scores(&mut self, (query, key): (&str, &str), (at_queries, at_keys): (i64, i64)) -> Vec<Vec<Reg>> {
        let [pitch, ..] = self.kind.pitches();
        let runs = self.kind.keys() / SHARING;
        let scores: Vec<Vec<Reg>> =
            (0..OWN).map(|_| (0..runs).map(|_| self.body.constant(Class::B32, 0)).collect()).collect();
        for element in (0..self.kind.size).step_by(LANES as usize) {
            let queries: Vec<Vec<Reg>> =
                (0..OWN).map(|number| self.shared(LANES, query, at_queries + number * pitch + element * 4)).collect();
            for run in 0..runs {
                let key = self.shared(LANES, key, at_keys + run * SHARING * pitch + element * 4);
                for (query, scores) in queries.iter().zip(&scores) {
                    let score = &scores[run as usize];
                    for (a, b) in query.iter().zip(&key) {
                        self.body.line(&format!("fma.rn.f32 {score}, {a}, {b}, {score}"));
                    }
                }
            }
        }
        scores
    }

    /// The value of the threads that share a query, joined by an instruction: each of them has the result.
    fn joined(&mut self, op: &str, value: &str) -> Reg {
        let mut value = value.to_owned();
        for distance in [8, 4, 2, 1] {
            let other = self.body.reg(Class::B32);
            self.body.line(&format!("shfl.sync.bfly.b32 {other}, {value}, {distance}, 31, 0xffffffff"));
            value = self.b32(op, &[&value, &other]);
        }
        value
    }

    /// Takes the scores of a tile into a row: they become exponentials, and what was summed up before is rescaled.
    fn take_in(&mut self, (largest, sum): (&str, &str), scores: &mut [Reg], results: &[Reg]) {
        let mut best = scores[0].clone();
        for score in &scores[1..] {
            best = self.b32("max.NaN.f32", &[&best, score]);
        }
        let best = self.joined("max.NaN.f32", &best);
        let best = self.b32("max.NaN.f32", &[&best, largest]);
        // Where no key was seen yet, exponentials of minus infinity are zero, whatever is subtracted.
        let (none, least) = (self.body.constant(Class::B32, 0), self.body.constant(Class::B32, LEAST));
        let unseen = self.pred("setp.eq.f32", &[&best, &least]);
        let less = self.b32("selp.b32", &[&none, &best, &unseen]);
        let before = self.b32("sub.rn.f32", &[largest, &less]);
        let factor = function(&mut self.body, Unary::Exp, &before);
        self.body.line(&format!("mov.b32 {largest}, {best}"));
        let mut total: Option<Reg> = None;
        for score in scores.iter_mut() {
            let further = self.b32("sub.rn.f32", &[score, &less]);
            *score = function(&mut self.body, Unary::Exp, &further);
            total = Some(match total {
                Some(total) => self.b32("add.rn.f32", &[&total, score]),
                None => score.clone(),
            });
        }
        let total = self.joined("add.rn.f32", &total.unwrap_or_default());
        self.body.line(&format!("fma.rn.f32 {sum}, {sum}, {factor}, {total}"));
        for result in results {
            self.body.line(&format!("mul.rn.f32 {result}, {result}, {factor}"));
        }
    }

    /// Adds the values of a tile, each times its exponential.
    fn add_values(
        &mut self,
        results: &[Vec<Reg>],
        (score, at_scores): (&str, i64),
        (value, at_values): (&str, i64),
        (vectors, width): (i64, i64),
    ) {
        let [_, value_pitch, score_pitch] = self.kind.pitches();
        for key in (0..self.kind.keys()).step_by(LANES as usize) {
            let scores: Vec<Vec<Reg>> =
                (0..OWN).map(|number| self.shared(LANES, score, at_scores + number * score_pitch + key * 4)).collect();
            for step in 0..LANES {
                for number in 0..vectors {
                    let place = at_values + (key + step) * value_pitch + number * SHARING * width * 4;
                    let values = self.shared(width, value, place);
                    for (scores, results) in scores.iter().zip(results) {
                        let own = &results[(number * width) as usize..][..width as usize];
                        for (result, value) in own.iter().zip(&values) {
                            let score = &scores[step as usize];
                            self.body.line(&format!("fma.rn.f32 {result}, {score}, {value}, {result}"));
                        }
                    }
                }
            }
        }
    }
}

/// What an instruction is called that moves so many elements.
fn many(width: i64) -> String {
    if width > 1 { format!(".v{width}") } else { String::new() }
}

/// The registers of a vector, or the only one.
fn list(registers: &[Reg]) -> String {
    match registers {
        [one] => one.clone(),
        _ => format!("{{{}}}", registers.join(", ")),
    }
}
