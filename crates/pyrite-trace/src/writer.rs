//! The thread that writes a trace down, so that what is traced waits for as little as possible.
//!
//! Records are written in the order they are handed over. [`Writer::flush`] waits until all of them are on disk. What
//! cannot be written is remembered and told at the end. In a process that was forked off there is no such thread, and
//! nothing is handed over.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::directory::{Directory, TraceError};
use crate::event::{Event, Record};

/// How long anybody waits for the disk.
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes an event when its turn comes.
pub(crate) type Maker = Box<dyn FnOnce() -> Event + Send>;

enum Job {
    Write(Record),
    /// A record whose event is still to be made.
    Make(Record, Maker),
    Flush(Sender<()>),
}

/// A trace that is being written.
pub(crate) struct Writer {
    folder: PathBuf,
    jobs: Sender<Job>,
    thread: JoinHandle<Option<TraceError>>,
    pid: u32,
}

impl Writer {
    /// Goes on writing a directory in a thread of its own.
    pub(crate) fn start(mut directory: Directory) -> std::io::Result<Self> {
        let folder = directory.folder().to_owned();
        let (jobs, todo) = channel();
        let thread = std::thread::Builder::new().name("pyrite-trace".to_owned()).spawn(move || {
            let mut failed = None;
            for job in todo {
                let record = match job {
                    Job::Write(record) => record,
                    Job::Make(record, make) => Record { event: make(), ..record },
                    Job::Flush(done) => {
                        let _ = done.send(());
                        continue;
                    }
                };
                if failed.is_none() {
                    failed = directory.write(&record).err();
                }
            }
            failed
        })?;
        Ok(Self { folder, jobs, thread, pid: std::process::id() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }

    pub(crate) fn write(&self, record: Record) {
        if self.is_ours() {
            let _ = self.jobs.send(Job::Write(record));
        }
    }

    /// The same for a record whose event is made when its turn comes.
    pub(crate) fn make(&self, record: Record, event: Maker) {
        if self.is_ours() {
            let _ = self.jobs.send(Job::Make(record, event));
        }
    }

    /// How to wait until everything handed over so far is on disk.
    pub(crate) fn flush(&self) -> impl FnOnce() + use<> {
        let (done, heard) = channel();
        let asked = self.is_ours() && self.jobs.send(Job::Flush(done)).is_ok();
        move || {
            if asked {
                let _ = heard.recv_timeout(PATIENCE);
            }
        }
    }

    /// Writes what is left, and says where the trace is, or what could not be written.
    pub(crate) fn finish(self) -> Result<PathBuf, TraceError> {
        if !self.is_ours() {
            return Ok(self.folder);
        }
        drop(self.jobs);
        match self.thread.join() {
            Ok(Some(error)) => Err(error),
            _ => Ok(self.folder),
        }
    }
}
