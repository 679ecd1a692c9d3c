//! The settings of the worker pool.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::Limits;

/// The settings of the worker pool.
#[derive(Clone, Debug)]
pub struct Config {
    /// The executable of gatelet.
    pub program: PathBuf,
    /// Arguments before those of a worker.
    pub arguments: Vec<OsString>,
    /// The number of scripts that run at once; further ones wait.
    pub workers: usize,
    /// The number of scripts of one session that may wait.
    pub waiting: usize,
    /// How long a worker is kept for the next script of its owner.
    pub idle: Duration,
    pub limits: Limits,
}
