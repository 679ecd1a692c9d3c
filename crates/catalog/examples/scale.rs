//! How the index grows: `scale CORPUS.jsonl QUERIES.jsonl [LISTINGS_DIR]`.
//!
//! Builds over 100 to 100,000 documents, repeating the corpus under new names
//! where it is too small, and prints build time, size and latency. With a
//! directory of server listings it also prints how long search replies are.
#![expect(clippy::print_stdout, reason = "printing is what this is for")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use catalog::index::{Config, Document, Index, Meaning, Query};
use catalog::{Catalog, Source, eval, reply};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [corpus, queries, rest @ ..] = &*arguments else {
        return Err("usage: scale CORPUS.jsonl QUERIES.jsonl [LISTINGS_DIR]".into());
    };
    let documents = eval::documents(corpus, &std::fs::read_to_string(corpus)?)?;
    let queries = eval::queries(queries, &std::fs::read_to_string(queries)?)?;
    println!("| tools | build s | index MB | p50 µs | p99 µs |\n|---|---|---|---|---|");
    for size in [100, 500, 2_000, 16_000, 50_000, 100_000] {
        let started = Instant::now();
        let index = Index::build(&sized(&documents, size), &Config { meaning: Meaning::Compared });
        let build = started.elapsed().as_secs_f64();
        let mut times: Vec<f64> = Vec::new();
        for gold in queries.iter().cycle().take(queries.len().max(200)) {
            let query = Query::new(&gold.query);
            let started = Instant::now();
            std::hint::black_box(index.search(&query, |_| true));
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[(times.len() as f64 * share) as usize];
        let megabytes = index.bytes() as f64 / 1e6;
        println!("| {size} | {build:.2} | {megabytes:.1} | {:.0} | {:.0} |", at(0.5), at(0.99));
    }
    if let [listings] = rest {
        replies(Path::new(listings), &queries)?;
    }
    Ok(())
}

fn sized(documents: &[Document], size: usize) -> Vec<Document> {
    let numbered = |(at, document): (usize, &Document)| Document {
        id: format!("{}#{at}", document.id),
        server: match at / documents.len() {
            0 => document.server.clone(),
            round => format!("{} {round}", document.server),
        },
        ..document.clone()
    };
    // A stride, so that a small size has documents of many servers.
    let stride = (documents.len() / size).max(1);
    documents.iter().cycle().step_by(stride).take(size).enumerate().map(numbered).collect()
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
    let config = reply::Config::of(5, reply::Spelling::Apart);
    let mut sizes: Vec<usize> = queries
        .iter()
        .map(|gold| {
            catalog::tokens::count(&reply::search(&catalog, &gold.query, &config, &|_| true))
        })
        .collect();
    sizes.sort_unstable();
    let functions = catalog.functions().len();
    let (median, most) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    println!("\nreplies over {functions} functions: median {median} tokens, maximum {most}");
    Ok(())
}

fn listing(server: &serde_json::Value) -> tool::Listing {
    let tools = server["tools"].as_array().cloned().unwrap_or_default();
    let tools = tools.into_iter().filter_map(|raw| tool::Tool::read(raw.into()).ok());
    tool::Listing { tools: tools.collect(), ..tool::Listing::default() }
}
