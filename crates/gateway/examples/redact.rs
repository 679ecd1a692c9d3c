//! Counts what the scrubber would mask in a directory of recorded listings.
//!
//! Listings hold no secrets, so everything it masks there is a false positive:
//! `cargo run -p gatelet-gateway --example redact -- DIRECTORY`

use std::path::Path;

use gateway::redact::Scrubber;
use serde_json::Value;

#[expect(clippy::print_stdout, reason = "printing the count is what this is for")]
fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let scrubber = Scrubber::default();
    let (mut n_texts, mut masked) = (0, Vec::new());
    for entry in std::fs::read_dir(Path::new(&directory))? {
        let text = std::fs::read_to_string(entry?.path())?;
        if let Ok(value) = serde_json::from_str(&text) {
            walk(&value, &scrubber, &mut n_texts, &mut masked);
        }
    }
    for text in &masked {
        println!("{text}");
    }
    println!("{} of {n_texts} texts masked", masked.len());
    Ok(())
}

fn walk(value: &Value, scrubber: &Scrubber, n_texts: &mut usize, masked: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            *n_texts += 1;
            let scrubbed = scrubber.scrub(text);
            if scrubbed != text.as_str() {
                let at = scrubbed.find('[').unwrap_or(0).saturating_sub(60);
                masked.push(scrubbed.chars().skip(at).take(120).collect());
            }
        }
        Value::Array(parts) => parts.iter().for_each(|p| walk(p, scrubber, n_texts, masked)),
        Value::Object(parts) => parts.values().for_each(|p| walk(p, scrubber, n_texts, masked)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
