//! Renders the results of the benchmark: tables in Markdown and plots as SVG.

mod measurements;
mod plot;
mod sizes;
mod table;

use std::io;
use std::path::Path;

pub use measurements::{BySize, Measurements, PricePair};
pub use sizes::{BreakEven, MAX_SHORT_CHARS, SIZES, SizeRow, Sizes};

/// Writes the tables and the plots into a directory, under the name of the page.
pub fn write(directory: &Path, name: &str, measured: &Measurements<'_>) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join(format!("{name}.md")), table::page(measured))?;
    std::fs::write(directory.join(format!("{name}-ways.svg")), plot::contexts(measured))?;
    match &measured.sizes {
        Some(sizes) => {
            std::fs::write(directory.join(format!("{name}-sizes.svg")), plot::sizes(&sizes.all))
        }
        None => Ok(()),
    }
}
