//! The log of a script, with a size limit.

/// The lines of `console.log`.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) lines: Vec<String>,
    /// Bytes that still fit.
    pub(super) n_free_bytes: usize,
    /// Lines that did not fit.
    pub(super) dropped: usize,
}

impl Log {
    pub(super) fn push(&mut self, line: String) {
        // After a line that did not fit, later ones are dropped too: the log has no gaps.
        if self.dropped != 0 || self.n_free_bytes < line.len() + 1 {
            self.dropped += 1;
            return;
        }
        self.n_free_bytes -= line.len() + 1;
        self.lines.push(line);
    }
}
