//! A build target beside a repro, for those whose Python runs under Buck or Bazel.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SessionError;

/// The build system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Buck: a file BUCK.
    Buck,
    /// Bazel: a file BUILD.bazel.
    Bazel,
}

impl Target {
    /// Writes the target's file into the folder of a repro, and returns its path.
    pub fn write(self, folder: &Path) -> Result<PathBuf, SessionError> {
        let (name, text) = match self {
            Self::Buck => (
                "BUCK",
                "# The label of torch is your repository's.\npython_binary(\n    name = \"repro\",\n    main = \"repro.py\",\n    \
                 resources = glob([\"storages/**\"]),\n    deps = [\"//third-party/python:torch\"],\n)\n",
            ),
            Self::Bazel => (
                "BUILD.bazel",
                "# The label of torch is your repository's.\npy_binary(\n    name = \"repro\",\n    srcs = [\"repro.py\"],\n    \
                 data = glob([\"storages/**\"]),\n    deps = [\"@pypi//torch\"],\n)\n",
            ),
        };
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(SessionError::system(format!("{} cannot be written", path.display())))?;
        Ok(path)
    }
}
