//! `pyrite completions SHELL`: a script that lets a shell complete the words of this command.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Cli, ExitCode, Outcome};

/// Print a shell completion script
#[derive(clap::Args)]
#[command(after_help = "\
bash: pyrite completions bash > ~/.local/share/bash-completion/completions/pyrite
zsh:  pyrite completions zsh > a folder of $fpath, as _pyrite
fish: pyrite completions fish > ~/.config/fish/completions/pyrite.fish")]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub fn run(&self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "pyrite", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
