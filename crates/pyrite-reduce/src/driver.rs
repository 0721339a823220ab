//! The search: asks the oracle about what passes propose, and keeps what still fails.

use std::time::{Duration, Instant};

use pyrite_oracle::{Class, Oracle, Signature, Verdict};
use rustc_hash::FxHashMap;

use crate::passes::{PASSES, Pass, bottom_up};
use crate::saved::{Keep, Saved};
use crate::{Candidate, Size};

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many candidates are judged side by side.
    pub jobs: usize,
    /// No new round of proposals is begun after this time.
    pub time_budget: Option<Duration>,
    /// No candidate is judged after this many.
    pub max_queries: Option<u64>,
    /// Which values of the program count.
    pub follow: Follow,
    /// Where the values of nodes are kept.
    pub keep: Keep,
    /// How many nodes or outputs at most go at once in passes that begin with large chunks; as many as there are where `None`.
    pub max_granularity: Option<usize>,
}

/// Which values of a program count when parts of it are looked at alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// All, the first of the program first.
    #[default]
    Everything,
    /// Those that reach a floating-point result through floating-point values, the worst first. A part whose error the
    /// whole program hides behind a bool is another failure.
    Floats,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            jobs: 1,
            time_budget: None,
            max_queries: None,
            follow: Follow::Everything,
            keep: Keep::InMemory,
            max_granularity: None,
        }
    }
}

/// Is told how a search goes.
pub trait Progress {
    /// A candidate was judged.
    fn judged(&mut self, queries: u64, verdict: &Verdict) {
        let _ = (queries, verdict);
    }

    /// A smaller candidate fails: it is the best so far. Whoever wants to keep it writes it down now.
    fn improved(&mut self, pass: &str, best: &Candidate, size: Size) {
        let _ = (pass, best, size);
    }

    /// Whether the search should end with what it has.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// A pass begins.
    fn began(&mut self, pass: &str) {
        let _ = pass;
    }
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {}

/// The start does not fail, so there is nothing to reduce.
#[derive(Clone, Debug, PartialEq)]
pub struct NotReproduced(pub Verdict);

/// What a search found.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The smallest candidate that fails as the start does.
    pub best: Candidate,
    /// How the start fails.
    pub signature: Signature,
    /// How the best fails: the same where it is held, in detail maybe otherwise.
    pub found: Signature,
    /// How many candidates were judged and counted.
    pub queries: u64,
    /// The passes that have nothing smaller to propose that fails; all of them when the search came to its end.
    pub minimal_for: Vec<&'static str>,
    /// The largest candidate that passed although it is part of one that failed.
    pub passing: Option<Candidate>,
    /// Other failures that were met, the first of each kind.
    pub others: Vec<(Signature, Candidate)>,
}

/// Reduces a candidate; see the crate's text.
pub fn reduce(
    start: Candidate,
    oracle: &dyn Oracle<Candidate>,
    options: Options,
    progress: &mut dyn Progress,
) -> Result<Reduction, NotReproduced> {
    let mut memo = FxHashMap::default();
    let verdict = judge_start(&start, oracle, options, &mut memo);
    progress.judged(1, &verdict);
    let Some(signature) = verdict.signature().cloned() else { return Err(NotReproduced(verdict)) };
    memo.insert(start.key(), Known { verdict, counted: true });
    let mut search = Search {
        oracle,
        options,
        progress,
        begun: Instant::now(),
        size: start.size(),
        best: start,
        found: signature.clone(),
        signature,
        memo,
        queries: 1,
        passing: None,
        others: Vec::new(),
        pass: "",
        minimal: None,
    };
    // A pass that comes to its end has nothing more to propose until another one changes the candidate. One that took nodes
    // away sends the search back to its first pass. After any other change the passes behind it come first: what sizes and
    // values become seldom decides which nodes are needed.
    let mut done = vec![false; PASSES.len()];
    let mut next = 0;
    while let Some(index) = (next..PASSES.len()).chain(0..next).find(|index| !done[*index]) {
        let Pass { name, propose, .. } = PASSES[index];
        search.pass = name;
        search.progress.began(name);
        let before = search.size;
        propose(&mut search);
        if search.is_over() {
            break;
        }
        if search.size < before {
            done.fill(false);
        }
        next = if search.size.nodes < before.nodes { 0 } else { index + 1 };
        done[index] = search.size == before || PASSES[index].exhausts;
    }
    let minimal_for = PASSES.iter().zip(&done).filter(|(_, done)| **done).map(|(pass, _)| pass.name).collect();
    Ok(Reduction {
        best: search.best,
        signature: search.signature,
        found: search.found,
        queries: search.queries,
        minimal_for,
        passing: search.passing.map(|(_, candidate)| candidate),
        others: search.others,
    })
}

/// The verdict on the start. Where there are jobs for it, the first question of the search is asked beside it: it takes
/// as long, and only a start that does not fail asks it in vain.
fn judge_start(
    start: &Candidate,
    oracle: &dyn Oracle<Candidate>,
    options: Options,
    memo: &mut FxHashMap<[u8; 32], Known>,
) -> Verdict {
    if options.jobs < 2 || options.keep != Keep::InMemory {
        return oracle.judge(start);
    }
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let first = bottom_up::first_question(start, options.follow).filter(Candidate::is_program)?;
            Some((first.key(), Known { verdict: oracle.judge(&first), counted: false }))
        });
        let verdict = oracle.judge(start);
        if let Ok(Some((key, known))) = beside.join() {
            memo.insert(key, known);
        }
        verdict
    })
}

/// A verdict, and whether the search has come to it. One that was asked for ahead of its turn counts in its turn.
struct Known {
    verdict: Verdict,
    counted: bool,
}

/// The state of a search, as passes see it.
pub struct Search<'a> {
    oracle: &'a dyn Oracle<Candidate>,
    options: Options,
    progress: &'a mut dyn Progress,
    begun: Instant,
    best: Candidate,
    size: Size,
    signature: Signature,
    found: Signature,
    memo: FxHashMap<[u8; 32], Known>,
    queries: u64,
    passing: Option<(Size, Candidate)>,
    others: Vec<(Signature, Candidate)>,
    pass: &'static str,
    minimal: Option<Form>,
}

/// What a candidate is but for the contents of its inputs: its outline, and the shape of every input.
type Form = (Size, Vec<Vec<i64>>);

fn form_of(candidate: &Candidate) -> Form {
    let mut shapes = Vec::new();
    for input in &candidate.inputs {
        input.each(&mut |tensor| shapes.push(tensor.shape().to_vec()));
    }
    (candidate.outline(), shapes)
}

impl Search<'_> {
    /// The smallest candidate so far.
    pub fn best(&self) -> &Candidate {
        &self.best
    }

    /// Which values count.
    pub fn follow(&self) -> Follow {
        // What does not even run is looked for everywhere.
        if self.signature.class == Class::Value { self.options.follow } else { Follow::Everything }
    }

    /// Where the values of nodes are kept.
    pub fn keep(&self) -> Keep {
        self.options.keep
    }

    /// The values of a candidate's nodes, if it can be run eagerly.
    pub(crate) fn values_of(&self, candidate: &Candidate) -> Option<Saved> {
        Saved::of(candidate, self.options.keep)
    }

    /// Notes that no size of the best can be smaller.
    pub(crate) fn note_minimal_sizes(&mut self) {
        self.minimal = Some(form_of(&self.best));
    }

    /// Whether that was noted of what differs from the best in contents alone.
    pub(crate) fn are_sizes_minimal(&self) -> bool {
        self.minimal.as_ref().is_some_and(|known| *known == form_of(&self.best))
    }

    /// How large a chunk may be.
    pub(crate) fn granularity(&self) -> usize {
        self.options.max_granularity.unwrap_or(usize::MAX).max(1)
    }

    /// Whether time or queries are used up.
    pub fn is_over(&self) -> bool {
        self.progress.is_cancelled()
            || self.options.time_budget.is_some_and(|budget| self.begun.elapsed() >= budget)
            || self.options.max_queries.is_some_and(|most| self.queries >= most)
    }

    /// Judges proposals and accepts the first that fails as the start does and is smaller than the best; returns its
    /// place. No more proposals are made at a time than are judged side by side.
    pub fn first_failing(&mut self, proposals: impl IntoIterator<Item = Candidate>) -> Option<usize> {
        let mut proposals = proposals.into_iter();
        let mut before = 0;
        while !self.is_over() {
            let batch: Vec<Candidate> = proposals.by_ref().take(self.options.jobs.max(1)).collect();
            if batch.is_empty() {
                return None;
            }
            if let Some((place, _)) = self.first(&batch, Accept::Smaller) {
                return Some(before + place);
            }
            before += batch.len();
        }
        None
    }

    /// Judges proposals that may be larger than the best; returns the first that fails as the start does and how,
    /// without accepting it.
    pub fn probe(&mut self, proposals: &[Candidate]) -> Option<(usize, Signature)> {
        self.first(proposals, Accept::Nothing)
    }

    fn first(&mut self, proposals: &[Candidate], accept: Accept) -> Option<(usize, Signature)> {
        let mut at = 0;
        while at < proposals.len() && !self.is_over() {
            let end = (at + self.options.jobs.max(1)).min(proposals.len());
            let batch = &proposals[at..end];
            let keys = self.judge_all(batch, accept);
            for (offset, (candidate, key)) in batch.iter().zip(keys).enumerate() {
                let Some(known) = key.and_then(|key| self.memo.get_mut(&key)) else { continue };
                let verdict = known.verdict.clone();
                if !std::mem::replace(&mut known.counted, true) {
                    self.queries += 1;
                    self.progress.judged(self.queries, &verdict);
                }
                match verdict {
                    Verdict::Fail(found) | Verdict::Flaky { signature: found, .. } if self.signature.holds(&found) => {
                        if accept == Accept::Smaller {
                            self.best = candidate.clone();
                            self.size = self.best.size();
                            self.found = found.clone();
                            self.progress.improved(self.pass, &self.best, self.size);
                        }
                        return Some((at + offset, found));
                    }
                    Verdict::Fail(found) | Verdict::Flaky { signature: found, .. } => self.file(&found, candidate),
                    Verdict::Pass | Verdict::Noise => self.neighbour(candidate),
                    Verdict::Invalid(_) => {}
                }
            }
            at = end;
        }
        None
    }

    /// Asks for the verdicts of candidates side by side, and returns under which keys they are known; `None` for what is
    /// no smaller program.
    fn judge_all(&mut self, batch: &[Candidate], accept: Accept) -> Vec<Option<[u8; 32]>> {
        let keys: Vec<Option<[u8; 32]>> = batch
            .iter()
            .map(|candidate| {
                let wanted = accept == Accept::Nothing || candidate.is_smaller_than(&self.size);
                (wanted && candidate.is_program()).then(|| candidate.key())
            })
            .collect();
        let mut asked: Vec<([u8; 32], &Candidate)> = Vec::new();
        for (key, candidate) in keys.iter().zip(batch) {
            if let Some(key) = key
                && !self.memo.contains_key(key)
                && !asked.iter().any(|(known, _)| known == key)
            {
                asked.push((*key, candidate));
            }
        }
        let oracle = self.oracle;
        let verdicts: Vec<Verdict> = match asked.as_slice() {
            [(_, candidate)] => vec![oracle.judge(candidate)],
            _ => std::thread::scope(|scope| {
                let running: Vec<_> = asked.iter().map(|(_, c)| scope.spawn(move || oracle.judge(c))).collect();
                let panicked = |_| Verdict::Invalid("the oracle panicked".to_owned());
                running.into_iter().map(|asked| asked.join().unwrap_or_else(panicked)).collect()
            }),
        };
        for ((key, _), verdict) in asked.iter().zip(verdicts) {
            self.memo.insert(*key, Known { verdict, counted: false });
        }
        keys
    }

    /// Keeps another failure, the first of its kind.
    fn file(&mut self, found: &Signature, candidate: &Candidate) {
        if !self.others.iter().any(|(known, _)| known.holds(found)) {
            self.others.push((found.clone(), candidate.clone()));
        }
    }

    /// Keeps the largest candidate that passes.
    fn neighbour(&mut self, candidate: &Candidate) {
        let size = candidate.outline();
        if self.passing.as_ref().is_none_or(|(known, _)| *known < size) {
            self.passing = Some((size, candidate.clone()));
        }
    }
}

/// What to do with a candidate that fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accept {
    /// Make it the best if it is smaller.
    Smaller,
    /// Leave the best as it is.
    Nothing,
}
