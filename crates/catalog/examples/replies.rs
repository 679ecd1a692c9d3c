//! How long replies to searches are: `replies LISTINGS_DIR QUERIES.jsonl`.
//!
//! `LISTINGS_DIR` has one JSON file per server, with its `tools`.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "printing is what this is for")]

use std::path::Path;
use std::sync::Arc;

use catalog::{Catalog, Priors, Source, eval, reply};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listings, queries] = &*arguments else {
        return Err("usage: replies LISTINGS_DIR QUERIES.jsonl".into());
    };
    let queries = eval::queries(queries, &std::fs::read_to_string(queries)?)?;
    replies(Path::new(listings), &queries)
}

fn replies(listings: &Path, queries: &[eval::Gold]) -> Result<(), Box<dyn std::error::Error>> {
    let mut files: Vec<_> = std::fs::read_dir(listings)?.collect::<Result<_, _>>()?;
    files.sort_by_key(|file| file.path());
    let mut sources = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.path())?;
        let server: serde_json::Value = serde_json::from_str(&text)?;
        let label = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        sources.push(Source::new(&label, Arc::new(listing(&server))));
    }
    let (catalog, _) = Catalog::build(sources);
    let config = reply::Config::usual(reply::Spelling::Apart);
    let mut sizes: Vec<usize> = queries
        .iter()
        .map(|gold| {
            let keep = |_| true;
            let reply = reply::search(&catalog, &gold.query, &config, &Priors::new(), &keep);
            catalog::tokens::count(&reply.text)
        })
        .collect();
    sizes.sort_unstable();
    let functions = catalog.functions().len();
    let (median, most) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    println!("replies over {functions} functions: median {median} tokens, maximum {most}");
    Ok(())
}

fn listing(server: &serde_json::Value) -> tool::Listing {
    let tools = server["tools"].as_array().cloned().unwrap_or_default();
    let tools = tools.into_iter().filter_map(|raw| tool::Tool::read(raw.into()).ok());
    tool::Listing { tools: tools.collect(), ..tool::Listing::default() }
}
