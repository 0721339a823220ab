//! The options of commands that leave repros behind when a backend fails.

use std::path::PathBuf;
use std::sync::Arc;

use pyrite_compiler::{Backend, find};
use pyrite_debug::{Accuracy, Level, ReproAfter, Switches, Tracing, WrapConfig, wrap_compiler_debug};
use pyrite_session::{SessionError, environment};

/// Repros written by a failing run
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Repros")]
pub struct Leaving {
    /// Write a repro when the backend fails: of the captured program, or of each graph after ahead-of-time autograd
    /// [default: PYRITE_REPRO_AFTER]
    #[arg(long, value_name = "STAGE", value_parser = ["capture", "dynamo", "aot"])]
    repro_after: Option<String>,
    /// When to write it: 1 on an error, 2 also minified, 3 before every run, 4 also when results differ
    /// [default: PYRITE_REPRO_LEVEL, else 2]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=4))]
    repro_level: Option<u32>,
    /// Disable the caches of torch backends
    #[arg(long)]
    fresh_caches: bool,
    /// Sizes in the repro: symbolic as in the program, or the concrete sizes of the call
    #[arg(long, value_name = "SIZES", value_parser = ["symbolic", "real"], default_value = "symbolic")]
    tracing: String,
    /// Only for errors whose message contains this text
    #[arg(long, value_name = "TEXT")]
    repro_filter: Option<String>,
    /// Where to write repros [default: PYRITE_DEBUG_DIR, else pyrite_debug]
    #[arg(long, value_name = "FOLDER")]
    debug_dir: Option<PathBuf>,
}

impl Leaving {
    /// The backend, wrapped if that was asked for, here or in the environment.
    pub fn wrap(
        &self,
        backend: Backend,
        reference: &Backend,
        accuracy: Accuracy,
        switches: Switches,
    ) -> Result<Backend, SessionError> {
        let backend = if self.fresh_caches { without_caches(backend) } else { backend };
        let after = match &self.repro_after {
            Some(name) => ReproAfter::from_name(name),
            None => environment::parsed("PYRITE_REPRO_AFTER", "`capture` or `aot`", ReproAfter::from_name)?,
        };
        let level = match self.repro_level {
            Some(number) => Level::from_number(number),
            None => environment::parsed("PYRITE_REPRO_LEVEL", "a number from 1 to 4", |text| {
                Level::from_number(text.parse().ok()?)
            })?,
        };
        if after.is_none() && level.is_none() {
            return Ok(backend);
        }
        let config = WrapConfig {
            after: after.unwrap_or(ReproAfter::Capture),
            level: level.unwrap_or(Level::Minified),
            folder: self.debug_dir.clone().unwrap_or_else(environment::debug_folder),
            only_errors_with: self.repro_filter.clone(),
            reference: reference.clone(),
            accuracy,
            switches,
            tracing: if self.tracing == "real" { Tracing::Real } else { Tracing::Symbolic },
            shrinking: pyrite_debug::Shrinking::AtOnce,
            tell: Arc::new(|text| eprintln!("{text}")),
        };
        Ok(wrap_compiler_debug(&backend, &config))
    }
}

/// One of torch's backends with its caches off; others have none.
fn without_caches(backend: Backend) -> Backend {
    let joint = if backend.name.contains('?') { '&' } else { '?' };
    let name = format!("{}{joint}force_disable_caches=true", backend.name);
    if backend.name.starts_with("torch:") { find(&name).unwrap_or(backend) } else { backend }
}
