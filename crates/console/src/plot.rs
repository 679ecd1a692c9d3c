//! Plots, drawn as SVG. Each says in words what it shows, for those who do not see
//! it; colours come from the style sheet.

use maud::{Markup, html};

use crate::when;

/// One line of a plot.
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    /// `a`, `b` or `c`: which of the colours.
    pub(crate) class: &'a str,
    /// One value for each place; `None` where there is none.
    pub(crate) values: Vec<Option<f64>>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 56.0;
/// Where lines end: a dot at the end of one is seen whole.
const RIGHT: f64 = WIDTH - 6.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 12.0;

/// Lines over the last minutes, the newest on the right.
pub(crate) fn lines(title: &str, unit: &str, series: &[Series<'_>]) -> Markup {
    let all = series.iter().flat_map(|line| &line.values).flatten().copied();
    let highest = nice(all.fold(0.0, f64::max));
    let last: Vec<String> = series
        .iter()
        .map(|line| {
            let last = line.values.iter().rev().flatten().next().copied().unwrap_or(0.0);
            format!("{} {}{unit}", line.name, short(last))
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
                text x=(LEFT - 6.0) y=(y(share) + 4.0) text-anchor="end" { (short(highest * share)) }
            }
            text x=(LEFT) y=(HEIGHT - 4.0) { (since) }
            text x=(RIGHT) y=(HEIGHT - 4.0) text-anchor="end" { "now" }
            @for line in series {
                @for points in runs(&line.values, highest) { polyline class=(line.class) points=(points) {} }
            }
        }
    }
}

/// The stages of a call, each as long as it took.
pub(crate) fn spans(total: f64, spans: &[(&str, f64, f64)]) -> Markup {
    let height = 22.0 * spans.len() as f64;
    let scale = 440.0 / total.max(0.001);
    html! {
        svg.plot.spans viewBox={ "0 0 640 " (height) } role="img" aria-label="Stages of the call; the table below has the same figures" {
            @for (at, (name, begin, end)) in spans.iter().enumerate() {
                text x="0" y=(22.0 * at as f64 + 15.0) { (name) }
                rect.bar x=(number(110.0 + begin * scale)) y=(22.0 * at as f64 + 5.0)
                    width=(number(((end - begin) * scale).max(1.5))) height="12" rx="3" {}
                text x=(number((118.0 + end * scale).min(580.0))) y=(22.0 * at as f64 + 15.0) { (when::millis(end - begin)) }
            }
        }
    }
}

/// The pieces of a line without gaps, as points.
fn runs(values: &[Option<f64>], highest: f64) -> Vec<String> {
    let step = (RIGHT - LEFT) / (values.len().max(2) - 1) as f64;
    let mut runs: Vec<Vec<String>> = vec![Vec::new()];
    for (at, value) in values.iter().enumerate() {
        match value {
            Some(value) => {
                let x = LEFT + step * at as f64;
                let point = format!("{},{}", number(x), number(y(value / highest)));
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

fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// A round number that is not less.
fn nice(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 10.0];
    steps.iter().map(|step| step * power).find(|step| value <= *step).unwrap_or(10.0 * power)
}

/// A number in a few characters.
pub(crate) fn short(value: f64) -> String {
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
            assert!((nice(value) - expected).abs() < 1e-9, "{value}");
        }
        assert_eq!(short(12_345.0), "12k");
        assert_eq!(short(0.5), "0.5");
    }

    #[test]
    fn a_gap_breaks_a_line() {
        assert_eq!(runs(&[Some(1.0), None, Some(1.0), Some(0.0)], 1.0).len(), 2);
    }
}
