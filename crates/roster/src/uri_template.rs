//! Fills values into URI templates (RFC 6570), as far as that is needed to check whether a
//! caller may see the URI.

/// Fills the values that `value` returns for variables into a template. A variable without
/// a value stays. Values are not escaped, because URIs are compared without escapes.
pub(crate) fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut uri = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        uri.push_str(before);
        let Some((expression, after)) = after.split_once('}') else {
            rest = &rest[before.len()..];
            break;
        };
        match expand(expression, &value) {
            Some(text) => uri.push_str(&text),
            None => uri.push_str(&format!("{{{expression}}}")),
        }
        rest = after;
    }
    uri + rest
}

/// Expands an expression; `None` if none of its variables has a value.
fn expand(expression: &str, value: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let (operator, names) = match expression.chars().next() {
        Some(operator) if "+#./;?&".contains(operator) => (operator, &expression[1..]),
        Some(_) | None => ('+', expression),
    };
    let (first, between, is_named) = match operator {
        '+' => ("", ",", false),
        '#' => ("#", ",", false),
        '.' => (".", ".", false),
        '/' => ("/", "/", false),
        ';' => (";", ";", true),
        '?' => ("?", "&", true),
        _ => ("&", "&", true),
    };
    let parts: Vec<String> = names
        .split(',')
        .filter_map(|name| {
            let name = name.split([':', '*']).next().unwrap_or_default();
            let value = value(name)?;
            Some(if is_named { format!("{name}={value}") } else { value })
        })
        .collect();
    (!parts.is_empty()).then(|| format!("{first}{}", parts.join(between)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_becomes_the_uri_that_its_values_make() {
        let value = |name: &str| match name {
            "path" => Some("srv/a b".to_owned()),
            "id" => Some("7".to_owned()),
            _ => None,
        };
        for (template, expected) in [
            ("file:///{+path}", "file:///srv/a b"),
            ("file:///{path}/x", "file:///srv/a b/x"),
            ("db://{table}/{id}", "db://{table}/7"),
            ("db:{/table,id}{?id,q}{&id}{#path}", "db:/7?id=7&id=7#srv/a b"),
            ("x:{path:3}{.id*}{;id}", "x:srv/a b.7;id=7"),
            ("x:{path", "x:{path"),
            ("x:{}{é}y", "x:{}{é}y"),
            ("plain", "plain"),
        ] {
            assert_eq!(fill(template, value), expected, "{template}");
        }
    }
}
