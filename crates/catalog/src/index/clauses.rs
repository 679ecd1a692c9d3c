//! Splits a long query into several short ones.
//!
//! A task such as "read the report, translate it and mail it to Ann" names
//! three tools; scored as one bag of words, none of them matches well. So a
//! long query is also scored clause by clause.

/// The most clauses of one query, so that a pasted page stays cheap to rank.
pub(crate) const MOST: usize = 24;
/// A clause with fewer words is joined with the next.
const SHORTEST: usize = 3;
/// The most words of one clause.
const LONGEST: usize = 30;

/// The clauses of a text; empty when there is only one.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut clauses = Vec::new();
    let mut current: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let joins = matches!(
            word.to_ascii_lowercase().as_str(),
            "and" | "then" | "after" | "also" | "but" | "finally" | "next" | "afterwards" | "plus"
        );
        if joins {
            cut(&mut current, &mut clauses);
            continue;
        }
        current.push(word);
        if word.ends_with(['.', ',', ';', ':', '!', '?', '—', '。', '，', '；', '！', '？', ')'])
            || LONGEST <= current.len()
        {
            cut(&mut current, &mut clauses);
        }
    }
    if !current.is_empty() {
        clauses.push(current.join(" "));
    }
    if clauses.len() < 2 {
        return Vec::new();
    }
    clauses.truncate(MOST);
    clauses
}

fn cut(current: &mut Vec<&str>, clauses: &mut Vec<String>) {
    if SHORTEST <= current.len() {
        clauses.push(current.join(" "));
        current.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_falls_into_its_steps() {
        let clauses = split("Read the annual report, translate it well and mail it to Ann.");
        assert_eq!(clauses, ["Read the annual report,", "translate it well", "mail it to Ann."]);
    }

    #[test]
    fn one_wish_stays_whole() {
        assert!(split("create a github issue").is_empty());
        assert!(split("").is_empty());
    }

    #[test]
    fn a_page_has_a_bounded_number_of_clauses() {
        assert_eq!(split(&"one two three, ".repeat(1000)).len(), MOST);
    }
}
