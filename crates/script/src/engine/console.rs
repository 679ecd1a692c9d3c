//! What a script logs, within bounds.

/// The lines of `console.log`.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) lines: Vec<String>,
    /// Bytes that still fit.
    pub(super) room: usize,
    /// Lines that did not fit.
    pub(super) dropped: usize,
}

impl Log {
    pub(super) fn push(&mut self, line: String) {
        // Once something did not fit, nothing later stands there as if it came next.
        if self.dropped != 0 || self.room < line.len() + 1 {
            self.dropped += 1;
            return;
        }
        self.room -= line.len() + 1;
        self.lines.push(line);
    }
}
