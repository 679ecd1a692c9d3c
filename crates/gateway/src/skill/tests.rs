use super::*;

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn skill(text: &str) -> Skill {
    let (library, _) = Library::read(&[file("s/SKILL.md", text)]);
    library.skills[0].clone()
}

fn text_of(skill: &Skill) -> String {
    skill.fill(&[])
}

const PLAIN: &str =
    "---\nname: create-order\ndescription: Creates: an order. Use it.\n---\n\n1. Do it.\n";

#[test]
fn a_skill_is_its_body_under_a_title() {
    let skill = skill(PLAIN);
    assert_eq!(
        (skill.name.as_str(), skill.description.as_str()),
        ("create_order", "Creates: an order. Use it.")
    );
    assert_eq!(text_of(&skill), "# create-order\n\n1. Do it.");
}

#[test]
fn directories_above_are_namespaces() {
    let (library, _) = Library::read(&[file("orders/retail/create-order/SKILL.md", PLAIN)]);
    assert_eq!(library.skills[0].namespace, "orders.retail");
    assert!(matches!(library.look_up("Orders.Retail", "createOrder"), Lookup::Found(_)));
    assert!(matches!(library.look_up("orders", "createOrder"), Lookup::Unknown(_)));
    assert!(library.index("orders").unwrap().contains("**create_order** — Creates: an order."));
    assert!(library.index("crm").is_none());
}

#[test]
fn code_is_left_out_and_data_stays() {
    let text = "---\nname: s\ndescription: d\n---\n# S\n```bash\nrm -rf /\n```\n```json\n{\"a\":1}\n```\n\
                ```\n$ curl x\n```\n~~~python\nimport os\n~~~\nRun !`date` and [it](scripts/x.py).\n\
                <script>alert(1)</script>\n```\ncall(namespace=\"a\")\n```\n";
    let body = text_of(&skill(text));
    for code in ["rm -rf", "curl", "import os", "date", "x.py", "alert"] {
        assert!(!body.contains(code), "{code} in {body}");
    }
    for kept in ["{\"a\":1}", "call(namespace=\"a\")", "[code omitted: 1 lines of bash]"] {
        assert!(body.contains(kept), "{kept} not in {body}");
    }
}

#[test]
fn an_unclosed_block_of_code_is_left_out_to_the_end() {
    let body =
        text_of(&skill("---\nname: s\ndescription: d\n---\n# S\n```python\nimport os\nmore"));
    assert!(!body.contains("import"), "{body}");
}

#[test]
fn what_is_odd_is_a_finding_and_the_skill_is_there() {
    for (text, code) in [
        ("Just text. More.", "skill-frontmatter"),
        ("---\nname: s\n---\nBody", "skill-description"),
        ("---\nname: s\ndescription: d\nallowed-tools: Bash\n---\nBody", "skill-frontmatter"),
        ("---\nname: s\ndescription: \"open: [\nx\n---\nBody", "skill-frontmatter"),
        (PLAIN, "skill-name"),
    ] {
        let (library, findings) = Library::read(&[file("s/SKILL.md", text)]);
        assert_eq!(library.skills.len(), 1, "{text}");
        assert!(findings.iter().any(|finding| finding.code == code), "{text}: {findings:?}");
    }
}

#[test]
fn values_fill_in_and_what_is_missing_is_named() {
    let skill =
        skill("---\nname: s\ndescription: d\n---\n# S\n{{customer_id}} {{ other }} {{customerID}}");
    let value = Json::of("C-42");
    let text = skill.fill(&[("customerid", &value)]);
    assert_eq!(text, "# S\nC-42 {{ other }} C-42\n\nNot filled in (pass in kwargs): other.");
}

#[test]
fn one_name_in_two_places_is_told_apart() {
    let (library, _) = Library::read(&[
        file("a/create-order/SKILL.md", PLAIN),
        file("b/create-order/SKILL.md", PLAIN),
    ]);
    let Lookup::Ambiguous(addresses) = library.look_up("", "createorder") else { panic!() };
    assert_eq!(addresses.len(), 2);
    assert!(addresses[0].contains("namespace=\"a\""));
    assert!(matches!(library.look_up("b", "createorder"), Lookup::Found(_)));
}

#[test]
fn one_name_twice_in_one_place_gets_a_number() {
    let (library, findings) =
        Library::read(&[file("x/SKILL.md", PLAIN), file("y/SKILL.md", PLAIN)]);
    let names: Vec<&str> = library.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["create_order", "create_order_2"]);
    assert!(findings.iter().any(|f| f.message.contains("create_order_2")));
}

#[test]
fn an_unknown_skill_names_the_nearest() {
    let (library, _) = Library::read(&[file("o/create-order/SKILL.md", PLAIN)]);
    let Lookup::Unknown(near) = library.look_up("", "create_ordr") else { panic!() };
    assert_eq!(near, ["`skill(namespace=\"o\", skillname=\"create_order\")`"]);
}
