//! Where a failure begins: which stage, which part of it, which single steps.
//!
//! Stages are whole backends, each doing one thing more than the one before; the first that fails so is the guilty one.
//! In it, steps are left out: Pyrite's numbered rewrites, or the steps that PyTorch's own bisector numbers. Every step
//! that is found is left out before the next is looked for, so that several culprits come out. Settings that make the
//! failure vanish are named too, and whether the compiler makes the same code twice.
//!
//! Every question may take a whole compilation. When the time given is over nothing more is asked: what is known by then
//! is the answer, and what was not asked is listed. A search that was cut short names no step.

use std::cell::{Cell, RefCell};
use std::path::Path;

use pyrite_bisect::{Switch, assembler_switches, culprits, stages, subsystems, switches};
use pyrite_compiler::{Options, find};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_oracle::{Signature, Verdict};
use pyrite_reduce::Candidate;
use serde::Serialize;

use crate::judge::Question;

/// Whether a compiler makes the same code of the same program twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Determinism {
    /// It does.
    Same,
    /// It does not: what is found may not be found again.
    Different,
    /// It shows no code.
    Unknown,
}

/// What a bisection found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The backend with which the failure begins.
    pub backend: String,
    /// What that backend adds.
    pub adds: String,
    /// The part of it whose steps are guilty, where steps can be left out.
    pub part: Option<String>,
    /// The guilty steps, the first first.
    pub culprits: Vec<String>,
    /// Settings of it that make the failure vanish.
    pub vanishes_with: Vec<Switch>,
    /// Whether the program is on a GPU, where Triton and its assembler are a part of the backend.
    pub elsewhere: bool,
    /// Other versions of Triton that were tried, by their folders, and the verdicts with them.
    pub versions: Vec<(String, Verdict)>,
    /// Whether it makes the same code twice.
    pub determinism: Determinism,
    /// How the program fails.
    pub signature: Signature,
    /// How many questions it took.
    pub queries: u64,
    /// What was skipped because the time budget was spent.
    pub unasked: Vec<String>,
}

/// How much work a bisection may be.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// How many guilty steps are looked for.
    pub culprits: usize,
    /// Whether the time is over; looked at before every question but the first.
    pub over: &'a dyn Fn() -> bool,
}

/// How many steps are allowed where all are.
const ALL: u64 = 1 << 40;

/// Finds the stage, the part and the steps; the verdict where the program does not fail. `ask` judges the candidate;
/// `scratch` is a folder for what compilers write down.
pub fn bisect(
    candidate: &Candidate,
    question: &Question,
    effort: Effort<'_>,
    scratch: &Path,
    ask: &dyn Fn(&Question) -> Verdict,
) -> Result<Found, Verdict> {
    let asker = Asker { question, ask, over: effort.over, queries: Cell::new(0), unasked: RefCell::default() };
    // However little time there is, the failure itself is asked for.
    let whole = asker.judged(&question.backend, None, &[]);
    let Some(signature) = whole.signature().cloned() else { return Err(whole) };
    let fails = |verdict: &Verdict| verdict.signature().is_some_and(|found| signature.holds(found));

    // Stages are few, and each is a whole compiler: the first that fails is asked for in order.
    let row = stages(question.backend.split('?').next().unwrap_or_default());
    let last = row.len() - 1;
    let earlier = |index: &usize| {
        let stage = &row[*index].0;
        asker.ask(stage, None, &[], || format!("whether it fails with {stage}")).is_some_and(|verdict| fails(&verdict))
    };
    let guilty = (0..last).find(earlier).unwrap_or(last);
    let (name, adds) = row[guilty].clone();
    let backend = if guilty == last { question.backend.clone() } else { name.clone() };

    let search = Search { candidate, scratch, most: effort.culprits, asker: &asker };
    let (part, culprits) = if name.starts_with("torch:") {
        search.parts_of_torch(&name, &backend)
    } else {
        (None, search.rewrites(&backend))
    };
    let without = |switch: &&Switch| {
        let what = || format!("whether it vanishes with {}", switch.setting);
        let verdict = asker.ask(&with_setting(&backend, switch.setting), None, &[], what);
        matches!(verdict, Some(Verdict::Pass | Verdict::Noise))
    };
    let mut vanishes_with: Vec<Switch> = switches(&name).iter().filter(without).copied().collect();
    let mut versions = Vec::new();
    let elsewhere = candidate.graph.is_elsewhere();
    if elsewhere {
        // The highest level without the failure says it all.
        vanishes_with.extend(assembler_switches(&name).iter().find(without).copied());
        if name == "torch:inductor" {
            for folder in other_tritons() {
                let what = || format!("whether it vanishes with Triton from {folder}");
                let verdict = asker.ask(&with_setting(&backend, &format!("triton={folder}")), None, &[], what);
                versions.extend(verdict.map(|verdict| (folder, verdict)));
            }
        }
    }
    let determinism = search.determinism(&name, &backend);
    let (queries, unasked) = (asker.queries.get(), asker.unasked.into_inner());
    Ok(Found {
        backend: name,
        adds,
        part,
        culprits,
        vanishes_with,
        elsewhere,
        versions,
        determinism,
        signature,
        queries,
        unasked,
    })
}

/// The variable that names folders with other versions of Triton, each as `pip install --target FOLDER triton==VERSION` makes
/// it.
pub const OTHER_TRITONS: &str = "PYRITE_TRITON";

fn other_tritons() -> Vec<String> {
    let named = std::env::var_os(OTHER_TRITONS).unwrap_or_default();
    let has_triton = |folder: &std::path::PathBuf| folder.join("triton").is_dir();
    std::env::split_paths(&named).filter(has_triton).map(|folder| folder.display().to_string()).collect()
}

/// Asks while there is time, and notes what is not asked.
struct Asker<'a> {
    question: &'a Question,
    ask: &'a dyn Fn(&Question) -> Verdict,
    over: &'a dyn Fn() -> bool,
    queries: Cell<u64>,
    unasked: RefCell<Vec<String>>,
}

impl Asker<'_> {
    /// The verdict on the program with a backend, so many of its rewrites, and without those refused; nothing when the
    /// time is over.
    fn ask(
        &self,
        backend: &str,
        rewrites: Option<u64>,
        refused: &[String],
        what: impl FnOnce() -> String,
    ) -> Option<Verdict> {
        if (self.over)() {
            let what = what();
            let mut unasked = self.unasked.borrow_mut();
            if !unasked.contains(&what) {
                unasked.push(what);
            }
            return None;
        }
        Some(self.judged(backend, rewrites, refused))
    }

    fn judged(&self, backend: &str, rewrites: Option<u64>, refused: &[String]) -> Verdict {
        self.queries.set(self.queries.get() + 1);
        let (backend, refused) = (backend.to_owned(), refused.to_vec());
        (self.ask)(&Question { backend, rewrites, refused, ..self.question.clone() })
    }
}

fn with_setting(backend: &str, setting: &str) -> String {
    format!("{backend}{}{setting}", if backend.contains('?') { '&' } else { '?' })
}

struct Search<'a> {
    candidate: &'a Candidate,
    scratch: &'a Path,
    most: usize,
    asker: &'a Asker<'a>,
}

impl Search<'_> {
    /// Guilty rewrites of Pyrite's own pipeline.
    fn rewrites(&self, backend: &str) -> Vec<String> {
        let steps = &mut |without: &[String]| rewrites_of(self.candidate, backend, without);
        if steps(&[]).is_empty() {
            return Vec::new();
        }
        self.whole(steps, &|n, without| {
            self.asker.ask(backend, Some(n), without, || "which further rewrites are guilty".to_owned())
        })
    }

    /// The guilty steps that were found before the time was over.
    fn whole(
        &self,
        steps: &mut dyn FnMut(&[String]) -> Vec<String>,
        judge: &dyn Fn(u64, &[String]) -> Option<Verdict>,
    ) -> Vec<String> {
        // How many were known when a question stayed open. What comes after it is no answer.
        let known = Cell::new(usize::MAX);
        let mut found = culprits(self.most, steps, &mut |n, without| {
            judge(n, without).unwrap_or_else(|| {
                known.set(known.get().min(without.len()));
                Verdict::Invalid("the time is over".to_owned())
            })
        });
        found.names.truncate(known.get());
        found.names
    }

    /// The guilty part of one of torch's backends, and its guilty steps.
    fn parts_of_torch(&self, name: &str, backend: &str) -> (Option<String>, Vec<String>) {
        for subsystem in subsystems(name) {
            let without = with_setting(backend, &format!("limit={}:0", subsystem.name));
            let verdict = self.asker.ask(&without, None, &[], || format!("the {}", subsystem.what));
            if !matches!(verdict, Some(Verdict::Pass | Verdict::Noise)) {
                continue;
            }
            let file = self.scratch.join("steps.json");
            let limited = |n: u64, without: &[String]| {
                let numbers: Vec<&str> = without.iter().filter_map(|step| step.split(':').next()).collect();
                let skip = if numbers.is_empty() { "-1".to_owned() } else { numbers.join(",") };
                let setting = format!("limit={0}:{n}&skip={0}:{skip}&steps={1}", subsystem.name, file.display());
                let what = || format!("which further steps are guilty among the {}", subsystem.what);
                self.asker.ask(&with_setting(backend, &setting), None, &[], what)
            };
            // Steps keep their numbers when others are left out, and those that are left out count.
            let steps = &mut |without: &[String]| {
                let _ = std::fs::remove_file(&file);
                limited(ALL, without);
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                let names: Vec<String> = serde_json::from_str(&text).unwrap_or_default();
                names.iter().enumerate().map(|(number, name)| format!("{number}: {name}")).collect()
            };
            let found = self.whole(steps, &limited);
            return (Some(format!("{} ({})", subsystem.what, subsystem.name)), found);
        }
        (None, Vec::new())
    }

    /// Compiles twice and compares the code.
    fn determinism(&self, name: &str, backend: &str) -> Determinism {
        let code = |number: u32| -> Option<String> {
            if name == "torch:inductor" {
                let file = self.scratch.join(format!("code_{number}.json"));
                let what = || "whether two compilations generate the same code".to_owned();
                self.asker.ask(&with_setting(backend, &format!("code={}", file.display())), None, &[], what)?;
                return std::fs::read_to_string(file).ok().filter(|code| code != "[]");
            }
            if name.contains(':') {
                return None;
            }
            let executable = (find(backend)?.compile)(self.candidate.graph.clone(), &Options::default()).ok()?;
            let text = executable.graphs().iter().map(|(_, graph)| print(graph, &PrintOptions::default())).collect();
            Some(text).filter(|text: &String| !text.is_empty())
        };
        match (code(1), code(2)) {
            (Some(first), Some(second)) if first == second => Determinism::Same,
            (Some(_), Some(_)) => Determinism::Different,
            _ => Determinism::Unknown,
        }
    }
}

/// The optional rewrites that a backend makes of a program, in their order.
fn rewrites_of(candidate: &Candidate, backend: &str, refused: &[String]) -> Vec<String> {
    let options = Options { refused: refused.to_vec(), ..Options::default() };
    let compiled = find(backend).map(|backend| (backend.compile)(candidate.graph.clone(), &options));
    compiled.and_then(Result::ok).map(|executable| executable.rewrites().to_vec()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyrite_ir::{Builder, Meta, Value};
    use pyrite_ops::registry;
    use pyrite_oracle::{Class, Stage};
    use pyrite_tensor::Tensor;

    fn candidate() -> Candidate {
        let input = Tensor::from_slice(&[0.5f32, 1.0, 2.0, 3.0], &[2, 2]);
        let mut builder = Builder::new();
        let mut value = builder.placeholder("x", Some(Value::Tensor(Meta::of(&input))));
        for name in ["aten.silu.default", "aten.hardswish.default", "aten.silu.default", "aten.softplus.default"] {
            let op = registry().get(name).expect("an operator");
            let args = op.schema.bind_in_order(&[Value::Tensor(value)]).expect("arguments");
            let meta = builder.node(value).meta.clone().expect("metadata");
            value = builder.call(op, args);
            builder.set_meta(value, meta);
        }
        builder.output(vec![value].into());
        Candidate { graph: builder.finish(), inputs: vec![Value::Tensor(input)], seed: 0 }
    }

    #[test]
    fn planted_rewrites_are_found_with_their_stage_several_at_once() {
        let (candidate, name) = (candidate(), "aot_eager_decomp_partition");
        let all = rewrites_of(&candidate, name, &[]);
        let planted: Vec<String> = vec![all[1].clone(), all[all.len() - 1].clone()];
        // A compiler that is wrong wherever one of the planted rewrites is made.
        let ask = |question: &Question| {
            let made: Vec<String> = match question.backend.as_str() {
                name if name == "aot_eager_decomp_partition" => {
                    let all = rewrites_of(&candidate, name, &question.refused);
                    let limit = question.rewrites.map_or(all.len(), |n| (n as usize).min(all.len()));
                    all[..limit].to_vec()
                }
                _ => Vec::new(),
            };
            if made.iter().any(|name| planted.contains(name)) {
                Verdict::Fail(Signature::new(Stage::Forward, Class::Value))
            } else {
                Verdict::Pass
            }
        };
        let question = Question { backend: name.to_owned(), reference: "eager".to_owned(), ..Question::default() };
        let scratch = std::env::temp_dir();
        let effort = Effort { culprits: 8, over: &|| false };
        let found = bisect(&candidate, &question, effort, &scratch, &ask).expect("a failure");
        assert_eq!(found.unasked, Vec::<String>::new());
        assert_eq!((found.backend.as_str(), &found.culprits), (name, &planted));
        assert_eq!(found.determinism, Determinism::Same);
        assert!(matches!(bisect(&candidate, &question, effort, &scratch, &|_| Verdict::Pass), Err(Verdict::Pass)));

        // With no time at all the failure is confirmed, no step is named, and what was not asked is said.
        let found = bisect(&candidate, &question, Effort { over: &|| true, ..effort }, &scratch, &ask);
        let found = found.expect("a failure");
        assert_eq!((found.queries, found.culprits.len()), (1, 0));
        assert_eq!(found.unasked.last().map(String::as_str), Some("which further rewrites are guilty"));
    }

    #[test]
    fn steps_found_in_time_are_kept_and_the_one_that_was_searched_for_is_not() {
        let (candidate, name) = (candidate(), "aot_eager_decomp_partition");
        let all = rewrites_of(&candidate, name, &[]);
        let planted: Vec<String> = vec![all[1].clone(), all[all.len() - 1].clone()];
        let over = Cell::new(false);
        let ask = |question: &Question| {
            // The time ends with the first question about the second culprit.
            over.set(over.get() || !question.refused.is_empty());
            let made = if question.backend == name { rewrites_of(&candidate, name, &question.refused) } else { vec![] };
            let limit = question.rewrites.map_or(made.len(), |n| (n as usize).min(made.len()));
            let wrong = made[..limit].iter().any(|rewrite| planted.contains(rewrite));
            if wrong { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
        };
        let question = Question { backend: name.to_owned(), reference: "eager".to_owned(), ..Question::default() };
        let effort = Effort { culprits: 8, over: &|| over.get() };
        let found = bisect(&candidate, &question, effort, &std::env::temp_dir(), &ask).expect("a failure");
        assert_eq!(found.culprits, planted[..1]);
        assert_eq!(found.unasked, ["which further rewrites are guilty"]);
    }
}
