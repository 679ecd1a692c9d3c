//! Every target, for a moment. A test each, so that one that ends its process is
//! known by its name.

macro_rules! targets {
    ($($name:ident)+) => {
        const TESTED: &[&str] = &[$(stringify!($name)),+];

        mod fuzz_targets {
            $(
                #[test]
                fn $name() {
                    fuzz::run(stringify!($name));
                }
            )+
        }
    };
}

targets! {
    json json_scan message serve
    redact view skill skill_listing
    script pick journal
    schema tool name tokens
    tool_document manifest
    token certificate
}

#[test]
fn every_target_is_tested() {
    let named = fuzz::TARGETS.iter().flat_map(|targets| targets.iter());
    let named: Vec<&str> = named.map(|target| target.name).collect();
    assert_eq!(named, TESTED);
}
