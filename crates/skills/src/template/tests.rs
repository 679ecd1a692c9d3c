use super::*;

#[track_caller]
fn check(text: &str, values: &str, expected: &str) {
    let values: serde_json::Map<String, serde_json::Value> = serde_json::from_str(values).unwrap();
    let values: Vec<(String, Json)> =
        values.into_iter().map(|(key, value)| (key, Json::from(value))).collect();
    let values: Vec<(&str, &Json)> =
        values.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let told = match fill(text, &values) {
        Ok((text, missing)) if missing.is_empty() => text,
        Ok((text, missing)) => format!("{text} (missing {})", missing.join(", ")),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(told, expected);
}

#[test]
fn values_are_found_in_any_spelling() {
    check("{{customer_id}} {{ customerID }}", r#"{"customerid":"C-42"}"#, "C-42 C-42");
    check("{{ n }} {{ f }} {{ l }}", r#"{"n":3,"f":true,"l":[1,"a"]}"#, "3 true [1, 'a']");
}

#[test]
fn what_is_missing_stays_and_is_named() {
    check("{{ a }} {{ b.c }}", "{}", "{{ a }} {{ b.c }} (missing a, b)");
    check("{% if a %}yes{% else %}no{% endif %}", "{}", "no (missing a)");
    check("{{ a | default(\"x\") }}", "{}", "x");
    check("{{ a | default(\"x\") }} {{ a }}", "{}", "x {{ a }} (missing a)");
    check("${{ secrets.TOKEN }}", "{}", "${{ secrets.TOKEN }} (missing secrets)");
}

#[test]
fn lists_are_walked_and_choices_made() {
    let text = "{% for item in items %}- {{ item.name | upper }}\n{% endfor %}";
    check(text, r#"{"items":[{"name":"a"},{"name":"b"}]}"#, "- A\n- B\n");
    check("{% if n > 2 %}many{% endif %}", r#"{"n":3}"#, "many");
}

#[test]
fn what_a_value_does_not_have_is_an_error() {
    check("{{ a.b }}", r#"{"a":null}"#, "error: line 1: undefined value");
    check("a\n{{ order.id }}", r#"{"order":{}}"#, "error: line 2: undefined value");
}

#[test]
fn anchors_and_single_braces_are_text() {
    check("# Title {#title} {x} 100%", "{}", "# Title {#title} {x} 100%");
    check("{% raw %}{{ a * b }}{% endraw %}", "{}", "{{ a * b }}");
}

#[test]
fn what_could_reach_out_or_grow_is_no_template() {
    for text in [
        "{% include \"/etc/passwd\" %}",
        "{% set x = 1 %}",
        "{% macro m() %}{% endmacro %}",
        "{% extends \"x\" %}",
        "{{ \"x\" * 100000 }}",
        "{{ open",
        "{% if %}",
    ] {
        let error = fill(text, &[]).unwrap_err();
        assert!(matches!(&error, TemplateError::Malformed(_)), "{text}: {error}");
    }
    let long = format!("{{{{ {} }}}}", "x ~ ".repeat(200));
    assert!(matches!(fill(&long, &[]), Err(TemplateError::Malformed(_))));
}

#[test]
fn what_asks_for_what_is_not_here_is_no_template() {
    for (text, what) in [
        ("{{ x | nothing }}", "the filter `nothing`"),
        ("{{ config | to_nice_yaml }}", "the filter `to_nice_yaml`"),
        ("{{ value|upper|json }}", "the filter `json`"),
        ("${{ fromJSON(x) }}", "`fromJSON(…)`"),
        ("{{ x.items() }}", "`items(…)`"),
        ("{% for n in range(3) %}{{ n }}{% endfor %}", "`range(…)`"),
        ("{% if x is defined %}x{% endif %}", "the test `defined`"),
        ("{% if a and x is not none %}x{% endif %}", "the test `none`"),
        ("{% if false %}{{ x | json }}{% endif %}", "the filter `json`"),
    ] {
        let told = placeholders(text).unwrap_err().to_string();
        assert_eq!(told, format!("is not a template: {what} is not known"), "{text}");
    }
    check("{{ \"a | b is c(d)\" }}", "{}", "a | b is c(d)");
    check("{% if (a) and not (b) %}x{% endif %}", r#"{"a":1,"b":0}"#, "x");
    check("{{ a.is }}", r#"{"a":{"is":2}}"#, "2");
    check("{% raw %}{{ x | json }}{% endraw %}", "{}", "{{ x | json }}");
}

#[test]
fn a_filtered_hole_that_nobody_fills_stays_as_it_was_written() {
    for text in [
        "{{ name|upper }}",
        "{{name | title}}",
        "{{ list|length }}",
        "{{ items|last }}",
        "{{- items | first | upper -}}",
        "{{ list | join(\", \") }}",
        "{{ a.b|trim }}",
        "{{ \"Dear \" ~ name|capitalize }}",
    ] {
        let name = placeholders(text).unwrap().into_iter().next().unwrap();
        let said = text.contains("Dear").then_some("Dear {{ name | capitalize }}");
        check(text, "{}", &format!("{} (missing {name})", said.unwrap_or(text)));
    }
    check("{{ a|upper }} {{ b|upper }}", r#"{"b":"x"}"#, "{{ a|upper }} X (missing a)");
    check(
        "{% if l|length > 1 %}many{% else %}few{% endif %} {{ n|upper }}",
        r#"{"n":"x"}"#,
        "few X (missing l)",
    );
    check("{{ a|upper|default(\"x\") }}", "{}", "x");
    check("{{ a|default(\"x\") }} {{ a|upper }}", "{}", "x {{ a|upper }} (missing a)");
    check("{{ {\"a\":{\"b\":1}}|length }} {{ a|upper }}", r#"{"a":"x"}"#, "1 X");
}

#[test]
fn work_and_output_are_bounded() {
    let list: Vec<u32> = (0..2_000).collect();
    let list = Json::encode(&list);
    let nested = "{% for a in l %}{% for b in l %}x{% endfor %}{% endfor %}";
    let error = fill(nested, &[("l", &list)]).unwrap_err();
    assert_eq!(error.to_string(), "it takes too many steps");
    let wide = format!("{{% for a in l %}}{}{{% endfor %}}", "x".repeat(4_000));
    let error = fill(&wide, &[("l", &list)]).unwrap_err();
    assert_eq!(error.to_string(), "it grows over 2 MiB");
    let huge = Json::encode(&"x".repeat(MAX_VALUES + 1));
    assert!(fill("{{ a }}", &[("a", &huge)]).is_err());
}
