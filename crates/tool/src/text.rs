//! Text made short.

/// `text` cut at a word to at most `limit` characters; what is cut ends with
/// `…`.
pub fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    let at_word = kept.rfind(' ').filter(|at| kept.len() / 2 < *at).unwrap_or(kept.len());
    format!("{}…", kept[..at_word].trim_end_matches([' ', ',', ';', ':']))
}
