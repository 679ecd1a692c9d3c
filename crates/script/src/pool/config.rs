//! How many workers there are, and how they are started.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::limits::Limits;

/// How many workers there are, and how they are started.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our own executable.
    pub program: PathBuf,
    /// What stands before the arguments of a worker.
    pub arguments: Vec<OsString>,
    /// Scripts that run at once; further ones wait.
    pub workers: usize,
    /// Scripts of one session that may wait.
    pub waiting: usize,
    pub limits: Limits,
}
