//! Turns a Rust function into a tool.
