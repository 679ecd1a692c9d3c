//! A small gate to any number of MCP servers.

fn main() {}
