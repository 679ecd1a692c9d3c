//! Renders plots as SVG, each with a description for screen readers; colours come from
//! the style sheet.

use maud::{Markup, html};

use crate::readable;

/// One line of a plot.
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    /// The CSS class of its colour: `a`, `b` or `c`.
    pub(crate) class: &'a str,
    /// One value per minute; `None` for a gap.
    pub(crate) values: Vec<Option<f64>>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 56.0;
/// Where lines end, so that a dot at the end is not cut off.
const RIGHT: f64 = WIDTH - 6.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 12.0;

/// Renders lines over the last minutes, the newest on the right.
pub(crate) fn lines(title: &str, unit: &str, series: &[Series<'_>]) -> Markup {
    let all = series.iter().flat_map(|line| &line.values).flatten().copied();
    let highest = round_up(all.fold(0.0, f64::max));
    let last: Vec<String> = series
        .iter()
        .map(|line| {
            let last = line.values.iter().rev().flatten().next().copied().unwrap_or(0.0);
            format!("{} {}{unit}", line.name, abbreviate(last))
        })
        .collect();
    let n_minutes = series.iter().map(|line| line.values.len()).max().unwrap_or(0);
    let since = if n_minutes < 60 { format!("{n_minutes} min ago") } else { "1 h ago".to_owned() };
    let described = format!("{title} over the last {n_minutes} minutes; now: {}", last.join(", "));
    html! {
        ul.legend { @for line in series { li class=(line.class) { i {} (line.name) } } }
        svg.plot viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(described) {
            @for share in [0.0, 0.5, 1.0] {
                line.axis x1=(LEFT) x2=(RIGHT) y1=(y(share)) y2=(y(share)) {}
                text x=(LEFT - 6.0) y=(y(share) + 4.0) text-anchor="end" { (abbreviate(highest * share)) }
            }
            text x=(LEFT) y=(HEIGHT - 4.0) { (since) }
            text x=(RIGHT) y=(HEIGHT - 4.0) text-anchor="end" { "now" }
            @for line in series {
                @for points in polylines(&line.values, highest) { polyline class=(line.class) points=(points) {} }
            }
        }
    }
}

/// Renders spans of time as bars; each is a name with its begin and end in milliseconds.
pub(crate) fn spans(total: f64, spans: &[(&str, f64, f64)]) -> Markup {
    let height = 22.0 * spans.len() as f64;
    let scale = 440.0 / total.max(0.001);
    html! {
        svg.plot.spans viewBox={ "0 0 640 " (height) } role="img" aria-label="Stages of the call; the table below has the same figures" {
            @for (at, (name, begin, end)) in spans.iter().enumerate() {
                text x="0" y=(22.0 * at as f64 + 15.0) { (name) }
                rect.bar x=(coordinate(110.0 + begin * scale)) y=(22.0 * at as f64 + 5.0)
                    width=(coordinate(((end - begin) * scale).max(1.5))) height="12" rx="3" {}
                text x=(coordinate((118.0 + end * scale).min(580.0))) y=(22.0 * at as f64 + 15.0) { (readable::millis(end - begin)) }
            }
        }
    }
}

/// Returns the points of each part of a line between gaps.
fn polylines(values: &[Option<f64>], highest: f64) -> Vec<String> {
    let step = (RIGHT - LEFT) / (values.len().max(2) - 1) as f64;
    let mut runs: Vec<Vec<String>> = vec![Vec::new()];
    for (at, value) in values.iter().enumerate() {
        match value {
            Some(value) => {
                let x = LEFT + step * at as f64;
                let point = format!("{},{}", coordinate(x), coordinate(y(value / highest)));
                if let Some(run) = runs.last_mut() {
                    run.push(point);
                }
            }
            None => runs.push(Vec::new()),
        }
    }
    let points = |run: Vec<String>| match &run[..] {
        // A line from a point to itself is drawn as a dot.
        [only] => format!("{only} {only}"),
        _ => run.join(" "),
    };
    runs.into_iter().filter(|run| !run.is_empty()).map(points).collect()
}

fn y(share: f64) -> f64 {
    let room = HEIGHT - BOTTOM - TOP;
    TOP + room * (1.0 - share)
}

fn coordinate(value: f64) -> String {
    format!("{value:.1}")
}

/// Rounds up to a number that is good for an axis.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 10.0];
    steps.iter().map(|step| step * power).find(|step| value <= *step).unwrap_or(10.0 * power)
}

/// Renders a number in a few characters, such as `12k`.
pub(crate) fn abbreviate(value: f64) -> String {
    match value {
        v if v >= 1_000_000.0 => format!("{:.1}M", v / 1_000_000.0),
        v if v >= 10_000.0 => format!("{:.0}k", v / 1_000.0),
        v if v >= 1_000.0 => format!("{:.1}k", v / 1_000.0),
        v if v >= 10.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, expected) in [(0.0, 1.0), (7.0, 10.0), (13.0, 20.0), (300.0, 400.0), (0.3, 0.4)]
        {
            assert!((round_up(value) - expected).abs() < 1e-9, "{value}");
        }
        assert_eq!(abbreviate(12_345.0), "12k");
        assert_eq!(abbreviate(0.5), "0.5");
    }

    #[test]
    fn a_gap_breaks_a_line() {
        assert_eq!(polylines(&[Some(1.0), None, Some(1.0), Some(0.0)], 1.0).len(), 2);
    }
}
