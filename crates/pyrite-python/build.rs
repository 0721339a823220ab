//! Compiles the one C file against the headers of the interpreter that the module is built for.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=csrc/frame.c");
    println!("cargo:rerun-if-env-changed=PYO3_PYTHON");
    let python = std::env::var("PYO3_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let question = "import sysconfig; print(sysconfig.get_paths()['include'])";
    let answer = Command::new(&python).args(["-c", question]).output();
    let answer = answer.unwrap_or_else(|error| panic!("{python} cannot be started: {error}; set PYO3_PYTHON"));
    let include = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    let internal = format!("{include}/internal");
    cc::Build::new().file("csrc/frame.c").include(&include).include(internal).warnings(false).compile("pyrite_frame");
}
