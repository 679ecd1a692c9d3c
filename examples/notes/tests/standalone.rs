//! The `Cargo.toml` that the guide gives for a server of one's own.

use std::collections::BTreeSet;

/// The names below `[dependencies]`.
fn dependencies(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[') && !line.starts_with("```"));
    lines.filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|n| !n.is_empty()).collect()
}

#[test]
fn the_guide_names_every_crate_that_the_example_needs() {
    let guide = include_str!("../../../docs/guide/tools-in-rust.md");
    assert_eq!(dependencies(guide), dependencies(include_str!("../Cargo.toml")));
}

#[test]
fn the_guide_takes_the_versions_that_the_workspace_takes() {
    let guide = include_str!("../../../docs/guide/tools-in-rust.md");
    let workspace = include_str!("../../../Cargo.toml");
    let version = |text: &'static str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} = ")));
        let line = line.filter(|line| !line.contains("path = "))?;
        line.split('"').nth(1)
    };
    for name in dependencies(guide) {
        assert_eq!(version(guide, name), version(workspace, name), "{name}");
    }
}
