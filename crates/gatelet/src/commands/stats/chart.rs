//! Renders a bar chart for the terminal.

use crate::terminal::{BAD, GOOD, paint, thousands};

/// How many bars a chart has at most.
pub(super) const MAX_BARS: usize = 40;

/// How many characters the longest bar has.
const WIDTH: usize = 40;

/// The longest label, in characters.
const LABEL_WIDTH: usize = 32;

/// One bar, a part of which is bad.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: usize,
    pub(super) bad: usize,
}

/// Renders the bars, one per line.
pub(super) fn draw(bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let label = |bar: &Bar| bar.label.chars().take(LABEL_WIDTH).collect::<String>();
    let width = bars.iter().map(|bar| label(bar).chars().count()).max().unwrap_or(0);
    let lines = bars.iter().map(|bar| {
        let length = scaled(bar.value, most);
        // Even a small bad part is visible.
        let bad = scaled(bar.bad, most).max(usize::from(bar.bad != 0)).min(length.max(1));
        let good = "█".repeat(length.saturating_sub(bad));
        let (good, bad) = (paint(GOOD, &good), paint(BAD, "▒".repeat(bad)));
        format!("{:width$} {good}{bad} {}", label(bar), thousands(bar.value))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn scaled(value: usize, most: usize) -> usize {
    (value * WIDTH).div_ceil(most)
}
