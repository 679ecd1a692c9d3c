//! Views show a bounded part of a stored result.
//!
//! A [`Selector`] names the part; [`view`] extracts it from the bytes and adds how
//! large the whole is and how to continue. Every view has a size limit, whatever
//! the selector asks for. This module knows bytes and a media type; it does not
//! know where they are stored, who may read them or how the view is sent.

mod error;
mod grep;
mod jq;
mod json;
mod lines;
mod piece;
mod select;
mod span;
mod table;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use offload::StopFlag;
use serde_json::json;

pub use error::{USAGE, ViewError};
pub use jq::{Outputs, check_filter, jq};
pub use piece::{Body, Budget, View};
pub use select::Selector;
pub use span::Span;
pub use table::delimiter;

/// Extracts the part of `bytes` that `selector` names. Ends early when `stop` is
/// set.
///
/// Blocking: do not call on an async worker thread.
pub fn view(
    bytes: &[u8],
    media_type: &str,
    selector: &Selector,
    budget: &Budget,
    stop: &StopFlag,
) -> Result<View, ViewError> {
    let text = || String::from_utf8_lossy(bytes);
    match selector {
        Selector::Head { start, chars } => Ok(head(&text(), *start, *chars, budget)),
        Selector::Tail { chars } => Ok(tail(&text(), *chars, budget)),
        Selector::Lines(span) => Ok(lines::lines(&text(), *span, budget)),
        Selector::Rows(span) => Ok(lines::rows(&text(), media_type, *span, budget)),
        Selector::JsonKeys { keys } => Ok(json::keys(&text(), keys, budget)),
        Selector::Slice { path, span } => json::slice(bytes, media_type, path, *span, budget),
        Selector::Grep(grep) => grep::grep(&text(), grep, budget, stop),
        Selector::Jq { filter } => jq::view(bytes, media_type, filter, budget, stop),
        Selector::Bytes { start, length } => Ok(raw(bytes, *start, *length, budget)),
        Selector::Image => media(bytes, media_type, budget),
    }
}

fn head(text: &str, start: usize, chars: i64, budget: &Budget) -> View {
    let total = text.chars().count();
    let wanted = match usize::try_from(chars) {
        Ok(chars) => chars,
        // A negative number means all characters but that many, as in Python slices.
        Err(_) => total.saturating_sub(usize::try_from(chars.unsigned_abs()).unwrap_or(total)),
    };
    let count = wanted.min(budget.chars);
    let body: String = text.chars().skip(start).take(count).collect();
    let end = start.saturating_add(count).min(total);
    let note = format!("chars {}-{end} of {total}", start.min(total));
    let next = json!({"type": "head", "start": end, "chars": count.max(1)});
    View::text(body, note, (end < total).then_some(next))
}

fn tail(text: &str, chars: usize, budget: &Budget) -> View {
    let total = text.chars().count();
    let start = total - chars.min(budget.chars).min(total);
    let body: String = text.chars().skip(start).collect();
    let note = format!("chars {start}-{total} of {total}");
    let before = start.saturating_sub(chars);
    let next = json!({"type": "head", "start": before, "chars": start - before});
    View::text(body, note, (0 < start && before < start).then_some(next))
}

fn raw(bytes: &[u8], start: usize, length: usize, budget: &Budget) -> View {
    let total = bytes.len();
    let start = start.min(total);
    let end = start + length.min(budget.chars / 4 * 3).min(total - start);
    let note = format!("base64 of bytes {start}-{end} of {total}");
    let next = json!({"type": "bytes", "start": end, "length": length});
    View::text(BASE64.encode(&bytes[start..end]), note, (end < total).then_some(next))
}

fn media(bytes: &[u8], media_type: &str, budget: &Budget) -> Result<View, ViewError> {
    let limit = budget.image_bytes;
    let refused = || ViewError::NoImage { media_type: media_type.to_owned(), limit };
    if limit < bytes.len() {
        return Err(refused());
    }
    let (media_type, base64) = (media_type.to_owned(), BASE64.encode(bytes));
    let note = format!("{media_type}, {} bytes", bytes.len());
    let body = match media_type.split('/').next() {
        Some("image") => Body::Image { media_type, base64 },
        Some("audio") => Body::Audio { media_type, base64 },
        _ => return Err(refused()),
    };
    Ok(View { body, note, next: None })
}

#[cfg(test)]
mod tests;
