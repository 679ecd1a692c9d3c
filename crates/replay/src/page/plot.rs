//! Renders the plots as standalone SVG.

use super::measurements::Measurements;
use super::sizes::{SizeRow, Sizes};
use super::table::{all_ways, thousands};

const STYLE: &str = "<style>text{font:13px sans-serif;fill:#333}.n{fill:#666}.a{fill:#2a7}.b{fill:#999}\
                     .l{fill:none;stroke-width:2}.g{stroke:#ddd}@media(prefers-color-scheme:dark){\
                     text{fill:#ddd}.n{fill:#aaa}.g{stroke:#444}}</style>";

/// Renders the context that is sent through every gateway, as bars.
pub(super) fn contexts(measured: &Measurements<'_>) -> String {
    let rows = all_ways(measured);
    let most = rows.iter().map(|row| row.totals().context).max().unwrap_or(1).max(1);
    let mut svg = String::new();
    for (at, row) in rows.iter().enumerate() {
        let (y, context) = (at * 26 + 18, row.totals().context);
        let width = (context * 380 / most).max(1);
        let class = if row.label.starts_with("gatelet") { "a" } else { "b" };
        let name = row.label.replace('`', "");
        svg += &format!(
            "<text x=\"230\" y=\"{}\" text-anchor=\"end\">{name}</text>\
             <rect class=\"{class}\" x=\"238\" y=\"{y}\" width=\"{width}\" height=\"16\"/>\
             <text class=\"n\" x=\"{}\" y=\"{}\">{}</text>\n",
            y + 13,
            246 + width,
            y + 13,
            thousands(context),
        );
    }
    framed(740, rows.len() * 26 + 24, &svg)
}

/// Renders the context by the number of tools, on logarithmic scales.
pub(super) fn sizes(sizes: &Sizes) -> String {
    let column = |row: &SizeRow| {
        [row.listed, row.names_listed, row.servers_listed, row.cash].map(|totals| totals.context)
    };
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    let log = |n: u64| (n.max(1) as f64).log10();
    let all: Vec<f64> = sizes.rows.iter().flat_map(column).map(log).collect();
    let (low, high) =
        all.iter().fold((f64::MAX, 0.0_f64), |(low, high), n| (low.min(*n), high.max(*n)));
    let n_rows = sizes.rows.len().max(2);
    #[expect(clippy::cast_precision_loss, reason = "there are six rows")]
    let x = |at: usize| 70.0 + 480.0 * at as f64 / (n_rows - 1) as f64;
    let y = |n: u64| 250.0 - 220.0 * (log(n) - low) / (high - low).max(1e-9);
    let mut svg = String::new();
    for (at, row) in sizes.rows.iter().enumerate() {
        svg += &format!(
            "<line class=\"g\" x1=\"{0:.1}\" y1=\"20\" x2=\"{0:.1}\" y2=\"255\"/>\
             <text x=\"{0:.1}\" y=\"275\" text-anchor=\"middle\">{1}</text>\n",
            x(at),
            thousands(row.n_tools as u64),
        );
    }
    let lines = [
        ("every definition", "#c55"),
        ("names listed", "#c93"),
        ("servers listed", "#57b"),
        ("cash", "#2a7"),
    ];
    for (line, (name, colour)) in lines.iter().enumerate() {
        let points: Vec<String> = sizes
            .rows
            .iter()
            .enumerate()
            .map(|(at, row)| format!("{:.1},{:.1}", x(at), y(column(row)[line])))
            .collect();
        let last = sizes.rows.last().map_or(0, |row| column(row)[line]);
        svg += &format!(
            "<polyline class=\"l\" stroke=\"{colour}\" points=\"{}\"/>\
             <text x=\"560\" y=\"{:.1}\">{name} {}</text>\n",
            points.join(" "),
            y(last) + 4.0,
            thousands(last),
        );
    }
    svg += "<text class=\"n\" x=\"310\" y=\"297\" text-anchor=\"middle\">tools in the catalogue; tokens of context, in powers</text>\n";
    framed(760, 306, &svg)
}

fn framed(width: usize, height: usize, inner: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">{STYLE}\n{inner}</svg>\n"
    )
}
