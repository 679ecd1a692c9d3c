//! Repository chores: test, check, bench, tidy.

fn main() {}
