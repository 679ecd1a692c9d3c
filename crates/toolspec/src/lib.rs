//! Documents that describe tools: parse, lint, generate, diff.
