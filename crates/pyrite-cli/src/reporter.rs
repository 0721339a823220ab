//! What a session's progress looks like on a terminal, or as lines of JSON.

use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};
use pyrite_diag::{Diagnostic, counted};
use pyrite_session::minify::{Minified, Reduced};
use pyrite_session::{Reporter, Searching, Standing};
use pyrite_trace::event::Finding;
use serde_json::json;

use crate::failure::tell_one;
use crate::interrupt;

/// Prints what a session finds: on standard output results, on standard error talk and bars.
pub struct Printer {
    json: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Printer {
    /// For people, or for programs.
    pub fn new(json: bool) -> Self {
        Self { json, bar: Mutex::new(None) }
    }

    fn bar(&self) -> ProgressBar {
        let mut bar = self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let new = || {
            let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
            let bar = if self.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        };
        bar.get_or_insert_with(new).clone()
    }
}

impl Reporter for Printer {
    fn confirming(&self, run: u32, runs: u32, backend: &str) {
        if !self.json {
            eprintln!("run {run} of {runs}: {backend} compiles and runs the program …");
        }
    }

    fn found(&self, finding: &Finding) {
        // The report has these; on the terminal the reduced program tells them.
        if matches!(finding.step.as_str(), "detail" | "prove") {
            return;
        }
        if self.json {
            println!("{}", json!({"step": finding.step, "result": finding.data}));
        } else {
            println!("{}: {}", finding.step, finding.text);
        }
    }

    fn searching(&self, search: &Searching<'_>) {
        let bar = self.bar();
        if let Some((nodes, elements)) = search.best {
            bar.set_message(format!("{}: {nodes} nodes, {elements} elements, {} queries", search.pass, search.queries));
        }
        bar.tick();
    }

    fn searched(&self) {
        self.bar().finish_and_clear();
    }

    fn reduced(&self, reduced: &Reduced) {
        if self.json {
            println!("{}", json!({"step": "minify", "result": reduced.data()}));
        } else {
            tell_reduced(reduced);
        }
    }

    fn note(&self, text: &str) {
        self.bar().println(text);
    }

    fn next(&self, text: &str) {
        if !self.json {
            eprintln!("next: {text}");
        }
    }

    fn warn(&self, diagnostic: Diagnostic) {
        tell_one(diagnostic);
    }

    fn standing(&self, standing: Standing) {
        interrupt::watch(move || {
            eprintln!("{}", standing.farewell());
            standing.clean_up();
        });
    }
}

/// Prints what a reduction came to, for people.
pub fn tell_reduced(reduced: &Reduced) {
    match reduced {
        Reduced::Smaller(minified) => tell_minified(minified),
        Reduced::Nothing { reason, .. } => println!("nothing to shrink: {reason}"),
    }
}

/// The begin of a sentence on inputs without data.
pub fn missing_data(inputs: usize) -> String {
    counted(inputs as u64, "input has", "inputs have")
}

fn tell_minified(minified: &Minified) {
    println!("{}", minified.signature);
    if let Some(flaky) = &minified.flaky {
        println!(
            "it fails only sometimes: {flaky}; each verdict is right with a probability of at least {}, all {} with {:.2}",
            minified.confidence,
            minified.queries,
            minified.confidence_of_all()
        );
        if let Some((failed, runs)) = flaky.proof {
            println!("the proof: {failed} of {runs} runs");
        }
    }
    let size = |nodes: usize, elements: usize| {
        let (nodes, elements) =
            (counted(nodes as u64, "node", "nodes"), counted(elements as u64, "element", "elements"));
        format!("{nodes}, {elements}")
    };
    println!(
        "{} became {} in {}, {:.1} s",
        size(minified.nodes_before, minified.elements_before),
        size(minified.nodes_after, minified.elements_after),
        counted(minified.queries, "query", "queries"),
        minified.seconds
    );
    if minified.user_data {
        println!("the inputs still contain data of the original program");
    } else {
        println!("none of the program's data is left; the inputs are {}", minified.data);
    }
    for signature in &minified.others {
        println!("another failure was found and saved separately: {signature}");
    }
    println!("{}: {}", minified.repro.display(), minified.proof());
    println!("\n{}", minified.program);
}
