//! `gatelet skill lint`, `lock` and `export`, and skills as the protocol's extension.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::{Home, Served, node, shell, upstream};

/// A server whose tools stand in a file.
const SERVER: &str = r#"
const { readFileSync } = require("fs");
const answer = (m) => {
  if (m.method === "initialize")
    return { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} },
             serverInfo: { name: "orders", version: "1" } };
  if (m.method === "tools/list") return { tools: JSON.parse(readFileSync("tools.json", "utf8")) };
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const result = answer(m);
  const rest = result ? { result } : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: m.id, ...rest }));
});
"#;

const ORDER: &str = "---\nname: create-order\ndescription: Creates an order.\nmetadata:\n  version: '2'\n---\n\
    First call(namespace=\"orders\", function=\"check\"), then \
    call(namespace=\"orders\", function=\"create\", kwargs={\"item\": \"{{ item }}\"}).\n";

/// What people write: YAML that is none, a name that is none, fields that are
/// none, and code.
const ODD: &str = "---\nname: Odd Ways_2\ndescription: Odd: but there.\nargument-hint: x\n\
    allowed-tools: [Bash]\nversion: 1\n---\nGo.\n\n```sh\nrm -rf /\n```\n";

fn tool(name: &str, properties: &Value, required: &[&str]) -> Value {
    json!({"name": name, "description": name,
           "inputSchema": {"type": "object", "properties": properties, "required": required}})
}

fn home() -> Home {
    let orders = upstream("orders", &node(), &["server.js"]);
    let home = Home::with(&format!("[skills]\ndirectories = [\"skills\"]\n{orders}"));
    home.write("server.js", SERVER);
    let text = json!({"item": {"type": "string"}});
    let tools = json!([tool("create", &text, &["item"]), tool("check", &json!({}), &[])]);
    home.write("tools.json", &tools.to_string());
    home.write("skills/shop/create-order/SKILL.md", ORDER);
    home.write("skills/odd/SKILL.md", ODD);
    home
}

/// The codes and subjects of what `skill lint` finds wrong.
fn found(home: &Home, severity: &str) -> (i32, Vec<String>) {
    let ended = shell(home, &["skill", "lint"]);
    let findings = ended.json().as_array().cloned().unwrap();
    let bad = findings.iter().filter(|finding| finding["severity"] == severity);
    let told = |finding: &Value| {
        let part = |key: &str| finding[key].as_str().unwrap().to_owned();
        format!("{} {}", part("code"), part("subject"))
    };
    (ended.code, bad.map(told).collect())
}

#[test]
fn a_skill_whose_functions_vanish_or_change_is_flagged_until_somebody_has_looked() {
    testkit::needs!(Tools);
    let home = home();
    assert_eq!(found(&home, "error"), (0, Vec::new()), "odd skills are taken all the same");
    let locked = shell(&home, &["skill", "lock"]);
    assert_eq!(locked.code, 0, "{locked:?}");
    let lock = home.read("skills/skills.lock");
    assert!(lock.contains("shop.create_order  orders.create  "), "{lock}");
    assert!(lock.contains("shop.create_order  orders.check  "), "{lock}");
    assert_eq!(found(&home, "error").0, 0);
    let listing = || shell(&home, &["skill", "--text"]).out;
    assert!(listing().contains("- create_order — Creates an order.\n"), "{}", listing());

    // Words do not matter; what is called, and how, does.
    let number = json!({"item": {"type": "integer"}, "who": {"type": "string"}});
    home.write("tools.json", &json!([tool("create", &number, &["item", "who"])]).to_string());
    let (code, errors) = found(&home, "error");
    assert_eq!(code, 1);
    let path = "shop.create_order";
    let expected =
        [format!("skill-function-missing {path}"), format!("skill-function-changed {path}")];
    assert_eq!(errors, expected);
    let listed = listing();
    assert!(listed.contains("needs orders.check, which is not available; 1 more"), "{listed}");
    let told = shell(&home, &["skill", "shop", "create_order", "--text"]).out;
    for line in [
        "needs orders.check, which is not available",
        "orders.create is called in another way since this was written",
    ] {
        assert!(told.contains(line), "{told}");
    }

    // Somebody looked: what changed is known now, what is gone is still gone.
    assert_eq!(shell(&home, &["skill", "lock"]).code, 0);
    assert_eq!(found(&home, "error"), (1, vec![format!("skill-function-missing {path}")]));
}

#[test]
fn what_is_odd_is_told_and_only_strictness_makes_it_wrong() {
    testkit::needs!(Tools);
    let home = home();
    let (_, warnings) = found(&home, "warning");
    assert!(warnings.iter().any(|one| one.starts_with("skill-frontmatter odd")), "{warnings:?}");
    assert_eq!(shell(&home, &["skill", "lint", "--strict"]).code, 1);
    let told = shell(&home, &["skill", "Odd_Ways_2", "--text"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.out.contains("[code omitted: 1 lines of sh]"), "{told:?}");
    let nothing = shell(&Home::with("[builtin]\ntools = true\n"), &["skill", "lock"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert!(nothing.err.contains("no skills directories"), "{nothing:?}");
}

/// Every `SKILL.md` below a directory.
fn documents(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            all.extend(documents(&entry));
        } else {
            all.push(entry);
        }
    }
    all.sort();
    all
}

#[test]
fn what_is_written_is_strict_whatever_was_read() {
    testkit::needs!(Tools);
    let home = home();
    let exported = shell(&home, &["skill", "export", "out"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let written = documents(&home.path().join("out"));
    assert!(2 <= written.len(), "{written:?}");
    for file in &written {
        let text = std::fs::read_to_string(file).unwrap();
        let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
        let name = head.lines().find_map(|line| line.strip_prefix("name: ")).unwrap();
        let directory = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
        assert_eq!(name, directory, "{}", file.display());
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.chars().all(legal) && !name.contains("--"), "{name}");
        let fields = head.lines().filter(|line| !line.starts_with(' '));
        for field in fields.filter_map(|line| line.split(':').next()) {
            let known = ["name", "description", "license", "compatibility", "metadata"];
            assert!(known.contains(&field), "`{field}` in {}", file.display());
        }
        assert!(!body.contains("rm -rf"), "{body}");
    }
    let names: Vec<&str> =
        written.iter().filter_map(|file| file.parent()?.file_name()?.to_str()).collect();
    assert!(names.contains(&"odd-ways-2") && names.contains(&"create-order"), "{names:?}");

    // Another gate reads what was written without a word.
    let orders = upstream("orders", &node(), &["server.js"]);
    let other = Home::with(&format!("[skills]\ndirectories = [\"in\"]\n{orders}"));
    other.write("server.js", SERVER);
    other.write("tools.json", &home.read("tools.json"));
    for file in &written {
        let inside = file.strip_prefix(home.path().join("out")).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        other.write(&format!("in/{}", inside.display()), &text);
    }
    let strict = shell(&other, &["skill", "lint", "--strict"]);
    assert_eq!(strict.code, 0, "{strict:?}");
    let again = shell(&other, &["skill", "shop", "create_order", "--text"]).out;
    assert!(again.contains("function=\"create\"") && again.contains("item"), "{again}");
}

/// Runs a scenario of the official suite for the skills extension, and checks that nothing
/// fails; `unseen` are the checks that it cannot make here.
#[track_caller]
fn conforms(url: &str, scenario: &str, revision: &str, unseen: &[&str]) {
    let ended = Command::new(node())
        .arg(crate::kit::tool("npm-conf-0.2/node_modules/.bin/conformance"))
        .args(["server", "--url", url, "--scenario", scenario])
        .args(["--spec-version", revision, "--force"])
        .current_dir(tempfile::tempdir().unwrap().path())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    let told = format!("{scenario} {revision}: {report}");
    assert!(ended.status.success() && report.contains(" 0 failed"), "{told}");
    let warned = report.lines().filter(|line| line.contains("WARNING"));
    let unknown = warned.filter(|line| !unseen.iter().any(|check| line.contains(check)));
    assert_eq!(unknown.count(), 0, "{told}");
    // The suite skips everything where the extension is not declared.
    assert!(!report.contains("did not declare the io.modelcontextprotocol/skills"), "{told}");
}

#[test]
fn the_official_suite_finds_the_skills_extension_served_on_every_surface() {
    testkit::needs!(Tools);
    // Skills are listed by `skills/list`, so that resources stay what upstreams have.
    let unseen = ["sep-2640-skillmd-metadata-name", "sep-2640-skillmd-metadata-description"];
    for surface in ["cash", "gateway", "proxy", "direct"] {
        let home = Home::with(&format!(
            "[serve]\nsurface = {surface:?}\n[skills]\ndirectories = [\"skills\"]\n"
        ));
        home.write("skills/shop/create-order/SKILL.md", ORDER);
        home.write("skills/odd/SKILL.md", ODD);
        let served = Served::start(&home);
        for revision in ["2025-11-25", "2026-07-28"] {
            conforms(&served.url, "sep-2640-skills-enumeration", revision, &[]);
            conforms(&served.url, "sep-2640-skills-manifest", revision, &unseen);
        }
    }
}
