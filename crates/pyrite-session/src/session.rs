//! A session: everything that is done about one failing program.
//!
//! [`Session::run`] confirms the failure by running the program several times, says what kind it is, finds the stage it
//! begins with, reduces the program, proves the result, and writes a report beside it. Each step is a method that returns
//! data, so that a caller may take them one by one.
//!
//! Where a stage is looked for, every question compiles the program once more. Pyrite's own backends take milliseconds for
//! that and are asked about the whole program. Others take up to minutes: they are asked about the smallest program, which
//! fails in the same way, and for so long and no longer.
//!
//! Invariants:
//! - nothing is written before the failure is confirmed, and a folder that holds another session is never touched;
//! - a step that has no answer leaves the others their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyrite_debug::torch::{Checked, GuiltyKernel, LaunchTime, check_kernels, watch_for};
use pyrite_debug::{Found, Isolated, Question};
use pyrite_oracle::{Class, Oracle, Signature, Verdict, signal_name};
use pyrite_reduce::Candidate;
use pyrite_trace::event::{Finding, Kernel, KernelTime};
use pyrite_trace::{Event, Stage, Topic};
use serde_json::{Value as Json, json};

use crate::analyze::{Analysis, analyze_apart};
use crate::backend::missing;
use crate::bisect::{Patience, bisect_by, data, lines};
use crate::machine::{self, Torch, WITHOUT_AMX};
use crate::minify::{Minified, Minify, Reduced};
use crate::program::Program;
use crate::reporter::{Reporter, Standing};
use crate::story::Story;
use crate::{Host, Options, SessionError, folder, tracing};

/// The signal of an instruction that the processor refuses.
const SIGILL: i32 = 4;

/// How long a session bisects unless told otherwise.
const BISECTING: Duration = Duration::from_mins(2);

/// The backend of files that name none.
const USUAL: &str = "aot_eager_decomp_partition";

/// Which program is bisected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bisecting {
    /// The one that came in.
    Whole,
    /// What the minifier left of it.
    Smallest,
}

/// Who chose the backend of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    User,
    File,
    Default,
}

/// A session on a file; see the module's text.
pub struct Session<'a> {
    host: &'a Host,
    options: Options,
    reporter: &'a dyn Reporter,
    file: PathBuf,
    question: Question,
    /// Who chose the backend.
    chosen: Chosen,
    candidate: Candidate,
    story: Story,
    /// The workers of all steps: what they have imported and compiled once serves the next step.
    workers: Arc<Isolated>,
    /// The verdict of the runs that confirm, where all agree, and how long the last took.
    known: Option<(Verdict, Duration)>,
}

/// What several runs of a program said.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The verdict of each run.
    pub verdicts: Vec<Verdict>,
    /// What kind of failure it is, or why there is none, in words.
    pub kind: String,
}

impl Confirmed {
    /// How the program fails, if it does.
    pub fn signature(&self) -> Option<&Signature> {
        self.verdicts.iter().find_map(Verdict::signature)
    }

    /// How many runs failed.
    pub fn failed(&self) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.signature().is_some()).count()
    }

    /// Why a question has no answer, where nothing failed and one has none.
    pub fn invalid(&self) -> Option<&str> {
        let reason = |verdict: &'_ Verdict| matches!(verdict, Verdict::Invalid(_));
        match self.verdicts.iter().find(|verdict| reason(verdict)) {
            Some(Verdict::Invalid(why)) if self.signature().is_none() => Some(why),
            _ => None,
        }
    }
}

/// What a whole session found.
#[derive(Clone, Debug)]
pub struct Debugged {
    /// The backend under test.
    pub backend: String,
    /// What the first runs said.
    pub confirmed: Confirmed,
    /// Where the failure begins, if that was found.
    pub bisected: Option<Found>,
    /// Where results diverge, value by value, where results differ at all.
    pub analysis: Option<Analysis>,
    /// The kernel that is guilty, where Inductor compiled the program and one was found.
    pub kernel: Option<GuiltyKernel>,
    /// The smallest program, where there is a failure.
    pub minified: Option<Minified>,
    /// What the steps found, in order and in words.
    pub steps: Vec<Finding>,
    /// The folder of the result.
    pub folder: Option<PathBuf>,
    /// The report, in Markdown.
    pub report: Option<PathBuf>,
}

impl Debugged {
    /// Whether there is a repro that was seen to fail as announced.
    pub fn is_proven(&self) -> bool {
        self.minified.as_ref().is_some_and(|minified| minified.proven)
    }

    /// As an object for programs: `outcome`, `backend`, `signature`, `program`, `proof`, `folder`, `repro`, `report`, what the
    /// reduction, the bisection and the analysis found, and the steps.
    pub fn data(&self) -> Json {
        let signature = self.minified.as_ref().map(|minified| &minified.signature).or(self.confirmed.signature());
        let step =
            |step: &Finding| json!({"step": step.step, "text": step.text, "seconds": step.seconds, "data": step.data});
        json!({
            "outcome": self.outcome(),
            "backend": self.backend,
            "signature": signature.map(ToString::to_string),
            "program": self.minified.as_ref().map(|minified| &minified.program),
            "proof": self.minified.as_ref().map(Minified::proof),
            "folder": self.folder,
            "repro": self.minified.as_ref().map(|minified| &minified.repro),
            "report": self.report,
            "minify": self.minified.as_ref().map(Minified::data),
            "bisect": self.bisected.as_ref().map(data),
            "analyze": self.analysis.as_ref().map(Analysis::data),
            "kernel": self.kernel.as_ref().map(GuiltyKernel::data),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }

    /// The outcome in a word: `proven`, `seen` (but not proven), `noise`, `invalid` or `pass`.
    pub fn outcome(&self) -> &'static str {
        match (self.confirmed.signature(), &self.minified) {
            (Some(_), Some(minified)) if minified.proven => "proven",
            (Some(_), _) => "seen",
            (None, _) if self.confirmed.invalid().is_some() => "invalid",
            (None, _) if self.confirmed.verdicts.contains(&Verdict::Noise) => "noise",
            (None, _) => "pass",
        }
    }
}

impl<'a> Session<'a> {
    /// Opens a file for a session.
    pub fn open(
        host: &'a Host,
        file: &Path,
        options: Options,
        reporter: &'a dyn Reporter,
    ) -> Result<Self, SessionError> {
        if let Some(out) = &options.out {
            folder::check_unused(out)?;
        }
        let program = Program::open_for(host, file, &options)?;
        let (backend, chosen) = match &options.backend {
            Some(backend) => (backend.clone(), Chosen::User),
            None => match program.said_backend()? {
                Some(backend) => (backend, Chosen::File),
                None => (USUAL.to_owned(), Chosen::Default),
            },
        };
        let reference = program.reference(options.reference.as_ref(), &backend);
        program.check_imports([&backend, &reference], &host.python.imports)?;
        let question = program.question(&options, &backend)?;
        let candidate = program.candidate(options.seed)?;
        let workers = Arc::new(host.workers(&question, options.limits())?);
        let (file, story) = (file.to_owned(), Story::begin());
        Ok(Self { host, options, reporter, file, question, chosen, candidate, story, workers, known: None })
    }

    /// Does everything.
    pub fn run(mut self) -> Result<Debugged, SessionError> {
        let confirmed = self.confirm()?;
        let mut found = Debugged {
            backend: self.question.backend.clone(),
            confirmed,
            bisected: None,
            analysis: None,
            kernel: None,
            minified: None,
            steps: Vec::new(),
            folder: None,
            report: None,
        };
        let Some(signature) = found.confirmed.signature().cloned() else {
            found.steps = self.story.steps().to_vec();
            return Ok(found);
        };
        let when = if self.question.backend.contains(':') { Bisecting::Smallest } else { Bisecting::Whole };
        if when == Bisecting::Whole {
            found.bisected = self.bisect()?;
        }
        let folder = match &self.options.out {
            Some(out) => out.clone(),
            None => folder::beside(&self.file, self.options.beside.as_deref(), "debug")?,
        };
        // Before the trace begins: to see what works here, something small is compiled.
        let machine = machine::environment(self.host, self.torch());
        let _trace = tracing::begin(&folder, self.reporter);
        let _stage = pyrite_trace::stage(Stage::Debug);
        tracing::tell_program(&self.candidate.graph, "program.py");
        if when == Bisecting::Whole {
            found.analysis = self.analyze(&signature);
        }
        self.story.tell_trace();
        let minified = match self.minify(&folder)? {
            Reduced::Smaller(minified) => Some(*minified),
            Reduced::Nothing { .. } => None,
        };
        if when == Bisecting::Smallest {
            // What compiles for long is asked for the result first.
            found.analysis = self.analyze(&signature);
        }
        if let (Bisecting::Smallest, Some(minified)) = (when, minified.as_ref().filter(|minified| minified.proven)) {
            found.kernel = self.find_kernel(minified);
            found.bisected = self.bisect_smallest(minified)?;
        }
        found.minified = minified;
        self.story.tell_trace();
        if let Some(target) = self.options.target {
            let path = target.write(&folder)?;
            self.say("target", &path.display().to_string(), json!({"target": path}));
        }
        found.report = Some(self.report(&signature, &folder, &machine)?);
        found.folder = Some(folder);
        found.steps = self.story.steps().to_vec();
        Ok(found)
    }

    /// Runs the program several times and says what kind of failure it is.
    pub fn confirm(&mut self) -> Result<Confirmed, SessionError> {
        self.reporter.standing(Standing::Confirming { file: self.file.clone() });
        let (runs, backend) = (self.options.runs, self.question.backend.clone());
        match self.chosen {
            Chosen::User => {}
            Chosen::File => {
                let text = format!("{backend}, which the file names; --backend tests another");
                self.say("backend", &text, json!({"backend": backend, "from": "file"}));
            }
            Chosen::Default => {
                let text = format!("{backend}, because the file names none; --backend tests another");
                self.say("backend", &text, json!({"backend": backend, "from": "default"}));
            }
        }
        let (mut verdicts, mut took) = self.ask_often(runs)?;
        if self.may_fail_forward(&verdicts) {
            let question = Question { forward_only: true, ..self.question.clone() };
            let workers = Arc::new(self.host.workers(&question, self.options.limits())?);
            let before =
                (std::mem::replace(&mut self.workers, workers), std::mem::replace(&mut self.question, question));
            let (forward, time) = self.ask_often(runs)?;
            if forward.iter().any(|verdict| verdict.signature().is_some()) {
                (verdicts, took, self.options.forward_only) = (forward, time, true);
                let text = "the program cannot be differentiated, so only its forward graph is tested";
                self.say("confirm", text, json!({"forward_only": true}));
            } else {
                (self.workers, self.question) = before;
            }
        }
        let kind = kind_of_all(&verdicts, &backend);
        let first = verdicts.first().filter(|first| first.signature().is_some());
        let agree = first.is_some_and(|first| verdicts.iter().all(|verdict| same_failure(first, verdict)));
        self.known = first.filter(|_| agree).map(|verdict| (verdict.clone(), took));
        let confirmed = Confirmed { verdicts, kind };
        let (count, signature) = (confirmed.failed(), confirmed.signature());
        let object = json!({
            "failed": count, "runs": runs, "backend": backend, "kind": confirmed.kind, "signature": signature,
        });
        if let Some(problem) = confirmed.invalid().and_then(missing) {
            return Err(SessionError::of(problem));
        }
        self.say("confirm", &format!("{count} of {runs} runs of {backend} fail: {}", confirmed.kind), object);
        if let Some(why) = confirmed.invalid() {
            self.say("confirm", why, json!({"reason": why}));
        }
        if signature.is_none() {
            self.reporter.next(&next_after(&confirmed.verdicts, &backend));
        }
        if let Some(Class::Signal(SIGILL)) = signature.map(|signature| signature.class)
            && backend.starts_with("torch:")
        {
            let text =
                format!("if torch's own kernels fault on this processor, {WITHOUT_AMX}; `pyrite doctor` tries it");
            self.say("help", &text, json!({"hint": text}));
        }
        if let Some(message) = signature.and_then(|signature| signature.detail.message.as_ref()) {
            let detail = message.lines().next().unwrap_or_default();
            self.say("detail", detail, json!({"message": message}));
        }
        Ok(confirmed)
    }

    /// The verdicts of several runs, and how long the last took.
    fn ask_often(&self, runs: u32) -> Result<(Vec<Verdict>, Duration), SessionError> {
        let mut took = Duration::ZERO;
        let ask = |run: u32| {
            self.reporter.confirming(run, runs, &self.question.backend);
            let begun = Instant::now();
            let verdict = self.workers.judge(&self.candidate);
            took = begun.elapsed();
            if self.reporter.is_cancelled() {
                let standing = Standing::Confirming { file: self.file.clone() };
                return Err(SessionError::Interrupted(Box::new(standing)));
            }
            Ok(verdict)
        };
        // A backend of torch.compile takes seconds for any program, and a session is there for those that fail.
        let ahead = self.options.jobs > 1 && self.question.backend.starts_with("torch:");
        let verdicts: Result<_, _> = std::thread::scope(|scope| {
            if ahead {
                scope.spawn(|| self.workers.try_ahead(&self.candidate));
            }
            (1..=runs).map(ask).collect()
        });
        Ok((verdicts?, took))
    }

    /// Whether gradients may be all that keeps a question from having an answer: an operator of the program has none.
    fn may_fail_forward(&self, verdicts: &[Verdict]) -> bool {
        let no_derivative = |verdict: &Verdict| matches!(verdict, Verdict::Invalid(why) if why.contains("derivative"));
        !self.question.forward_only && verdicts.iter().all(no_derivative)
    }

    /// Finds where the failure of the whole program begins.
    pub fn bisect(&mut self) -> Result<Option<Found>, SessionError> {
        let (candidate, question, file) = (self.candidate.clone(), self.question.clone(), self.file.clone());
        self.bisect_program(&candidate, &question, &file)
    }

    /// The same for the smallest program, with the backend that it was reduced with.
    pub fn bisect_smallest(&mut self, minified: &Minified) -> Result<Option<Found>, SessionError> {
        let smallest = Program::open(&minified.repro, &self.host.reading)?;
        let backend = smallest.read.get("backend").unwrap_or(&self.question.backend).to_owned();
        let question = Question { backend, seed: smallest.seed(None), ..self.question.clone() };
        self.bisect_program(&smallest.candidate(None)?, &question, &minified.repro)
    }

    fn bisect_program(
        &mut self,
        candidate: &Candidate,
        question: &Question,
        file: &Path,
    ) -> Result<Option<Found>, SessionError> {
        let patience =
            Patience { question: self.options.time(), search: Some(self.options.budget().unwrap_or(BISECTING)) };
        match bisect_by(&self.workers, candidate, question, self.options.culprits, patience)? {
            Ok(found) => {
                self.say("bisect", &lines(&found).join("; "), data(&found));
                if !found.unasked.is_empty() {
                    let (file, backend) = (file.display(), &question.backend);
                    self.reporter.next(&format!("`pyrite bisect {file} --backend '{backend}'` tests the rest"));
                }
                Ok(Some(found))
            }
            Err(verdict) => {
                self.say("bisect", "the failure did not come again", json!({"verdict": verdict.name()}));
                Ok(None)
            }
        }
    }

    /// Finds the guilty kernel of a program that Inductor compiles, and writes it beside the repro as `kernel.py`. What cannot be
    /// told stays untold: a repro is no less proven without.
    pub fn find_kernel(&mut self, minified: &Minified) -> Option<GuiltyKernel> {
        let inductor = minified.backend.split('?').next() == Some("torch:inductor");
        let watch = watch_for(minified.signature.class).filter(|_| inductor && minified.flaky.is_none())?;
        let folder = minified.repro.parent()?;
        let time = self.options.time();
        let (text, object) = match check_kernels(&minified.repro, &[], &self.host.python, folder, watch, time) {
            Ok(Checked::Guilty(kernel)) => {
                tell_times(&kernel.times);
                self.say("kernel", &kernel.lines().join("; "), kernel.data());
                return Some(*kernel);
            }
            Ok(Checked::Nothing { launches, compared, times, .. }) => {
                tell_times(&times);
                let text = format!(
                    "each of {launches} launches of kernels does on its own inputs what eager does ({compared} values compared), \
                     so no single kernel is guilty"
                );
                (text, json!({"kernel": null, "launches": launches, "compared": compared}))
            }
            Err(why) => (format!("the kernels cannot be checked: {why}"), json!({"kernel": null, "reason": why})),
        };
        self.say("kernel", &text, object);
        None
    }

    /// Says at which value a wrong result begins, and tells the trace of every value on the way. What cannot be told
    /// stays untold: programs of `cmd:` return no values, and a backend may fail on a program that returns all of them.
    pub fn analyze(&mut self, signature: &Signature) -> Option<Analysis> {
        let differs = matches!(signature.class, Class::Value | Class::Shape | Class::Stride | Class::Dtype);
        let by_command = [&self.question.backend, &self.question.reference].iter().any(|name| name.starts_with("cmd:"));
        if !differs || by_command {
            return None;
        }
        let analysis = analyze_apart(self.host, &self.candidate, &self.question, self.options.time())?;
        analysis.tell_trace();
        self.say("analyze", &analysis.sentence(), analysis.data());
        Some(analysis)
    }

    /// Reduces the program into a folder and proves the result.
    pub fn minify(&mut self, folder: &Path) -> Result<Reduced, SessionError> {
        let options = Options {
            reference: Some(self.question.reference.clone()),
            accuracy: Some(self.question.accuracy),
            seed: Some(self.question.seed),
            out: Some(folder.to_owned()),
            ..self.options.clone()
        };
        // A bisection in between has given the workers its own limits.
        self.workers.set_limits(self.options.limits());
        let search = Minify {
            host: self.host,
            file: &self.file,
            options: &options,
            reporter: self.reporter,
            workers: Some(self.workers.clone()),
            known: self.known.clone(),
        };
        let reduced = search.run(self.question.clone(), &self.candidate).inspect_err(|_| {
            tracing::discard(folder);
            // It goes only if nothing is in it.
            let _ = std::fs::remove_dir(folder);
        })?;
        self.reporter.reduced(&reduced);
        let (proof, line) = match &reduced {
            Reduced::Smaller(minified) => {
                self.reporter.standing(Standing::Explaining { repro: minified.repro.clone(), claim: minified.proof() });
                (proof_of(minified), minified.shown.as_ref().map(|shown| shown.line.clone()))
            }
            Reduced::Nothing { .. } => ("the smallest program is not proven".to_owned(), None),
        };
        self.say("prove", &proof, json!({"proven": reduced.is_proven(), "line": line}));
        Ok(reduced)
    }

    /// Writes the report.
    fn report(
        &mut self,
        signature: &Signature,
        folder: &Path,
        machine: &[(&str, String)],
    ) -> Result<PathBuf, SessionError> {
        let path = folder.join("report.md");
        let (title, backend) = (signature.to_string(), &self.question.backend);
        let text = self.story.markdown(&title, &self.file, backend, folder, machine, &self.options.changed());
        std::fs::write(&path, text).map_err(SessionError::system(format!("{} cannot be written", path.display())))?;
        self.say("report", &path.display().to_string(), json!({"report": path}));
        Ok(path)
    }

    fn torch(&self) -> Torch {
        let outside = |name: &&String| name.starts_with("torch:") || name.starts_with("python:");
        let took_part = [&self.question.backend, &self.question.reference].iter().any(outside);
        if took_part { Torch::TookPart } else { Torch::Absent }
    }

    fn say(&mut self, step: &str, text: &str, object: Json) {
        self.reporter.found(self.story.tell(step, text, object));
    }
}

/// Whether two verdicts are of one failure.
fn same_failure(one: &Verdict, other: &Verdict) -> bool {
    matches!((one.signature(), other.signature()), (Some(one), Some(other)) if one.holds(other))
}

/// What the runs say together, in words.
fn kind_of_all(verdicts: &[Verdict], backend: &str) -> String {
    let failed: Vec<&Signature> = verdicts.iter().filter_map(Verdict::signature).collect();
    let Some(signature) = failed.first() else {
        let invalid = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Invalid(_)));
        return if invalid {
            "invalid: the question has no answer"
        } else if verdicts.contains(&Verdict::Noise) {
            "noise: the results differ by no more than rounding explains"
        } else {
            "no failure: the program computes what it should"
        }
        .to_owned();
    };
    let kind = if backend.starts_with("cmd:") && signature.class == Class::Exit(1) {
        "the command reports the bug".to_owned()
    } else {
        kind_of(signature.class)
    };
    let (count, runs) = (failed.len(), verdicts.len());
    if count < runs { format!("flaky: {kind}, in {count} of {runs} runs") } else { kind }
}

/// What proves a reduced program, for the report.
fn proof_of(minified: &Minified) -> String {
    match (&minified.shown, minified.proven) {
        (Some(shown), true) => format!("`{}`: {}", shown.command, shown.line),
        (Some(shown), false) => {
            format!("seen only inside of Pyrite's worker; `{}`: {}", shown.command, shown.line)
        }
        (None, true) => "the repro fails so in a fresh process".to_owned(),
        (None, false) => "the smallest program is not proven".to_owned(),
    }
}

/// What to try where nothing fails.
fn next_after(verdicts: &[Verdict], backend: &str) -> String {
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Invalid(_))) {
        return "fix what is said above; `pyrite doctor` says what works on this machine, and --reference names another \
                reference backend"
            .to_owned();
    }
    if verdicts.contains(&Verdict::Noise) {
        return "--no-fp64 with --tol T judges by the tolerance alone, --accuracy strict by every bit; `pyrite analyze` \
                says where results diverge"
            .to_owned();
    }
    format!(
        "name the backend that fails with --backend (this was {backend}), run more often with --runs, or compare every bit \
         with --accuracy strict; what fails only in your script may need other inputs than the file has"
    )
}

/// A class of failures in plain words.
fn kind_of(class: Class) -> String {
    match class {
        Class::Error => "an error that the reference does not raise".to_owned(),
        Class::MissingError => "a result where the reference raises an error".to_owned(),
        Class::Hang => "a hang".to_owned(),
        Class::Signal(number) => format!("a crash, {}", signal_name(number)),
        Class::Exit(_) | Class::Garbage => "a crash".to_owned(),
        Class::OutOfMemory => "out of memory".to_owned(),
        Class::Fault => "a fault of a kernel on its device".to_owned(),
        _ => "wrong results".to_owned(),
    }
}

/// Tells the trace of the kernels of the smallest program, and how long each takes.
fn tell_times(times: &[LaunchTime]) {
    let _graph = pyrite_trace::graph(|| "repro".to_owned());
    for time in times {
        if !time.is_operator {
            let kernel = Kernel { name: time.name.clone(), loops: time.code.clone(), ..Kernel::default() };
            pyrite_trace::emit(Topic::Debug, || Event::Kernel(kernel));
        }
        let op = if time.is_operator { time.name.clone() } else { String::new() };
        let took = KernelTime { name: time.name.clone(), seconds: time.seconds, op };
        pyrite_trace::emit(Topic::Debug, || Event::KernelTime(took));
    }
}
