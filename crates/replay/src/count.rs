//! Counts tokens, so that two replays give the same numbers.

/// Counts the tokens of a call as a model writes it.
pub(crate) fn call_tokens(tool: &str, arguments: &serde_json::Value) -> u64 {
    let call = serde_json::json!({"name": tool, "arguments": arguments});
    tokens(&call.to_string())
}

pub(crate) fn tokens(text: &str) -> u64 {
    catalog::tokens::count(&normalize_handles(text)) as u64
}

/// Every artifact handle is counted as this one: handles are random, and do not all have
/// the same number of tokens.
const HANDLE: &str = "fedeba43dc9b";

fn normalize_handles(text: &str) -> String {
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    // Also one of which the lot made nothing but digits: one handle in three hundred.
    let is_handle = |word: &str| word.len() == HANDLE.len() && word.chars().all(is_digit);
    let mut steady = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len();
        match is_handle(&word[..end]) {
            true => steady.extend([HANDLE, &word[end..]]),
            false => steady.push_str(word),
        }
    }
    steady
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handle_counts_the_same_and_everything_else_stays() {
        let text = |handles: [&str; 3]| {
            let [a, b, c] = handles;
            format!("kept as `{a}`, {{\"handle\": \"{b}\"}} {c} of 1234567890123 and é abc")
        };
        // The third is what one lot in three hundred gives.
        let (drawn, steady) =
            (text(["0123456789ab", "a00000000001", "012345678901"]), text([HANDLE; 3]));
        assert_eq!(normalize_handles(&drawn), steady);
    }
}
