//! Renders the results of the benchmark: tables in Markdown and plots as SVG.

mod measurements;
mod plot;
mod sizes;
mod table;

use std::io;
use std::path::Path;

pub use measurements::Measurements;
pub use sizes::{BreakEven, MAX_SHORT_CHARS, SIZES, Sizes};

/// Writes the tables and the plots into a directory.
pub fn write(directory: &Path, measured: &Measurements<'_>) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("context.md"), table::page(measured))?;
    std::fs::write(directory.join("context-ways.svg"), plot::contexts(measured))?;
    std::fs::write(directory.join("context-sizes.svg"), plot::sizes(measured.sizes))
}
