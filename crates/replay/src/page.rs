//! The page with the figures: tables in Markdown, and plots as SVG.

mod measured;
mod plot;
mod sizes;
mod table;

use std::io;
use std::path::Path;

pub use measured::Measured;
pub use sizes::{SIZES, Sizes};

/// Writes the tables and the plots into a directory.
pub fn write(directory: &Path, measured: &Measured<'_>) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("context.md"), table::page(measured))?;
    std::fs::write(directory.join("context-ways.svg"), plot::ways(measured))?;
    std::fs::write(directory.join("context-sizes.svg"), plot::sizes(measured.sizes))
}
