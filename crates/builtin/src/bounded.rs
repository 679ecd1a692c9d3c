//! A text buffer with a limit, for results that tools build.
//!
//! A few hundred bytes of arguments can ask for gigabytes of text. A tool whose result
//! may be longer than its arguments writes it into [`Bounded`].

use std::{fmt, io};

use native::ToolError;

/// The maximum size of a result.
pub(super) const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// A text of at most [`MAX_OUTPUT_BYTES`] bytes: writing more is an error.
#[derive(Default)]
pub(super) struct Bounded {
    text: String,
}

impl Bounded {
    /// Appends a text whole, or not at all.
    pub(super) fn push(&mut self, text: &str) -> Result<(), ToolError> {
        if MAX_OUTPUT_BYTES - self.text.len() < text.len() {
            return Err(too_long());
        }
        self.text.push_str(text);
        Ok(())
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text).map_err(|_| fmt::Error)
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.push(text).map_err(|fault| io::Error::other(fault.message().to_owned()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates the error for a result that would be longer.
pub(super) fn too_long() -> ToolError {
    let message =
        format!("the answer would be longer than {} MiB; ask for less", MAX_OUTPUT_BYTES >> 20);
    ToolError::new("TooLong", message)
}
