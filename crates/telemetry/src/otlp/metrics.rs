//! Encodes histograms as OTLP.

use super::histograms::{Histograms, Metric, Series};
use super::protobuf::Message;
use super::resource::{Attribute, Resource, attribute, write_envelope};
use crate::semantics::BUCKETS;

/// OTLP's code for counts since the start of the process, not since the last export.
const CUMULATIVE: u64 = 2;

/// Encodes an `ExportMetricsServiceRequest` with everything counted so far; `now` is in
/// nanoseconds since 1970.
pub(super) fn request(histograms: &Histograms, now: u64, resource: &Resource) -> Vec<u8> {
    let mut message = Message::default();
    write_envelope(&mut message, resource, |scope| {
        for metric in Metric::ALL {
            let mut series: Vec<_> =
                histograms.series.iter().filter(|((of, _), _)| *of == metric).collect();
            if series.is_empty() {
                continue;
            }
            series.sort_by_key(|((_, attributes), _)| format!("{attributes:?}"));
            scope.message(2, |message| {
                message.string(1, metric.name());
                message.string(3, "s");
                message.message(9, |histogram| {
                    for ((_, attributes), series) in series {
                        let times = [histograms.since, now];
                        histogram.message(1, |point| write(point, attributes, series, times));
                    }
                    histogram.varint(2, CUMULATIVE);
                });
            });
        }
    });
    message.into_bytes()
}

fn write(point: &mut Message, attributes: &[Attribute], series: &Series, [since, now]: [u64; 2]) {
    point.fixed64(2, since);
    point.fixed64(3, now);
    point.fixed64(4, series.counts.iter().sum());
    point.always_double(5, series.sum);
    point.packed(6, series.counts.map(u64::to_le_bytes));
    point.packed(7, BUCKETS.map(f64::to_le_bytes));
    for (key, value) in attributes {
        attribute(point, 9, key, value);
    }
}
