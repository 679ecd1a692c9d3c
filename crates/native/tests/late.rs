//! State that comes after the tools that need it.

use native::{Registry, State, tool};

struct Greeting(&'static str);

/// Greets.
#[tool]
fn greet(greeting: State<Greeting>) -> String {
    greeting.0.to_owned()
}

#[test]
fn state_may_come_after_discovery() {
    let early = Registry::new("t", "1").discover().discover();
    assert_eq!(early.list_registered_tools().count(), 0);
    assert!(early.report().failed[0].error.contains("needs `State<"), "{:?}", early.report());
    let registry = early.state(1_u8).state(Greeting("hello"));
    assert_eq!(registry.list_registered_tools().collect::<Vec<_>>(), ["greet"]);
    assert_eq!(registry.report().failed, []);
    assert_eq!(registry.report().found.len(), 1);
}
