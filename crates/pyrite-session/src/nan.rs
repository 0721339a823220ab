//! The first NaN of a training script: which kernel made it of finite numbers.
//!
//! A script is run as it would run alone, with every kernel of Inductor's looked at. The first that makes NaN, or an infinity
//! that eager would not make, ends the run. Beside `kernel.py` the folder then has `program.py`: the graph of that kernel
//! with the inputs of that step, which `pyrite debug` reads.

use std::path::Path;

use pyrite_debug::torch::{Checked, GuiltyKernel, ScriptFailure, Watch, check_kernels};
use pyrite_diag::{Code, Diagnostic, Location};
use serde_json::json;

use crate::reporter::Reporter;
use crate::story::Story;
use crate::{Host, Options, SessionError, folder};

/// What a script came to whose kernels were watched for NaN.
pub enum FirstNan {
    /// The kernel that makes the first one.
    Made(Box<GuiltyKernel>),
    /// None was made.
    Nowhere,
    /// None was made before the script itself failed with this exit code.
    ScriptFailed(i32),
}

/// Runs a script with its arguments until a kernel makes NaN or infinity of finite numbers.
pub fn first_nan(
    host: &Host,
    script: &Path,
    words: &[String],
    options: &Options,
    reporter: &dyn Reporter,
) -> Result<FirstNan, SessionError> {
    let failed = |what: &str, cause: String| {
        SessionError::of(
            Diagnostic::error(Code::new("nan::failed"), what)
                .at(Location::in_file(script))
                .cause(cause)
                .hint("run the script alone to see what it raises; --python names the interpreter that has torch"),
        )
    };
    if !script.is_file() {
        return Err(failed("the script cannot be read", format!("there is no file {}", script.display())));
    }
    let out = match &options.out {
        Some(out) => {
            folder::check_unused(out)?;
            out.clone()
        }
        None => folder::beside(script, options.beside.as_deref(), "nan")?,
    };
    reporter.note("running the script with every compiled kernel checked for NaN and infinity …");
    let mut story = Story::begin();
    let checked = check_kernels(script, words, &host.python, &out, Watch::Nan, options.time())
        .map_err(|why| failed("the script cannot be checked", why))?;
    let kernel = match checked {
        Checked::Nothing { launches, failed: ended, .. } => {
            let mut text = format!("no kernel makes NaN or infinity of finite numbers in {launches} launches");
            if let Some(ScriptFailure { code, line }) = &ended {
                text.push_str(&format!("; then the script ends with exit code {code}: {line}"));
            }
            let code = ended.as_ref().map(|ended| ended.code);
            reporter.found(story.tell(
                "kernel",
                &text,
                json!({"kernel": null, "launches": launches, "exit_code": code.unwrap_or(0)}),
            ));
            let _ = std::fs::remove_file(out.join("kernels.json"));
            // It goes only if nothing else is in it.
            let _ = std::fs::remove_dir(&out);
            return Ok(code.map_or(FirstNan::Nowhere, FirstNan::ScriptFailed));
        }
        Checked::Guilty(kernel) => *kernel,
    };
    let mut lines = kernel.lines();
    lines.push(format!("it is call {} of its graph", kernel.call));
    reporter.found(story.tell("kernel", &lines.join("; "), kernel.data()));
    if let Some(program) = &kernel.program {
        reporter.next(&format!(
            "`pyrite debug {} --backend torch:inductor` debugs the graph with the inputs of that step",
            program.display()
        ));
    }
    Ok(FirstNan::Made(Box::new(kernel)))
}
