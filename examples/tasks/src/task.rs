//! The tasks, each with a verdict that looks at the world or at the value of the
//! answer, never at its words.

use crate::world::{BRASS_LANTERN, World, price};

/// One task.
pub(crate) struct Task {
    pub(crate) id: &'static str,
    pub(crate) text: &'static str,
    /// Whether it was done.
    pub(crate) verdict: fn(&World, &str) -> bool,
}

/// Every task. `@FILES@` and `@SITE@` stand for places of the world.
pub(crate) const TASKS: &[Task] = &[
    Task {
        id: "time-convert",
        text: "When it is 14:30 in Berlin on a day in December, what time is it in Tokyo? Answer with HH:MM.",
        verdict: |_, a| a.contains("22:30"),
    },
    Task {
        id: "time-zones",
        text: "By how many hours is Tokyo ahead of Kathmandu? Answer with a number, such as 2.5.",
        verdict: |_, a| has_number(a, 3.25),
    },
    Task {
        id: "log-count",
        text: "How many lines of @FILES@/logs/app.log say `payment declined`? Answer with a number.",
        verdict: |w, a| has_number(a, count(w, "payment declined")),
    },
    Task {
        id: "log-slowest",
        text: "What is the highest value of `ms=` in @FILES@/logs/app.log? Answer with a number.",
        verdict: |w, a| has_number(a, slowest(w)),
    },
    Task {
        id: "log-last",
        text: "Which order number stands in the last line of @FILES@/logs/app.log? Answer with a number.",
        verdict: |w, a| {
            w.read("files/logs/app.log")
                .lines()
                .last()
                .and_then(|l| field(l, "order="))
                .is_some_and(|n| has_number(a, n))
        },
    },
    Task {
        id: "doc-date",
        text: "Somewhere below @FILES@/docs it says when Project Halcyon is due. Answer with the date as YYYY-MM-DD.",
        verdict: |_, a| a.contains("2027-03-19"),
    },
    Task {
        id: "move-files",
        text: "Move every `.tmp` file in @FILES@/inbox into the empty folder @FILES@/archive; leave the others where they are.",
        verdict: |w, _| {
            ["scan-1.tmp", "scan-2.tmp", "scan-7.tmp"].iter().all(|n| {
                w.path("files/archive").join(n).is_file() && !w.path("files/inbox").join(n).exists()
            }) && w.path("files/inbox/letter.txt").is_file()
        },
    },
    Task {
        id: "write-file",
        text: "Write a file @FILES@/reports/hello.txt with exactly one line: `ready`.",
        verdict: |w, _| w.read("files/reports/hello.txt").trim_end() == "ready",
    },
    Task {
        id: "edit-json",
        text: "In @FILES@/settings.json set `retries` to 5 and leave everything else as it is.",
        verdict: |w, _| {
            serde_json::from_str::<serde_json::Value>(&w.read("files/settings.json"))
                .is_ok_and(|v| v == serde_json::json!({"theme": "dark", "retries": 5}))
        },
    },
    Task {
        id: "list-docs",
        text: "How many `.md` files are there below @FILES@/docs? Answer with a number.",
        verdict: |_, a| has_number(a, 8.0),
    },
    Task {
        id: "git-author",
        text: "How many commits of the repository @FILES@/repo are by Mira Olsen? Answer with a number.",
        verdict: |w, a| has_number(a, by_author(w, "Mira Olsen")),
    },
    Task {
        id: "git-file",
        text: "Which file did the commit \"Switch to the new parser\" of the repository @FILES@/repo change? Answer with its path in the repository.",
        verdict: |_, a| a.contains("src/parser.rs"),
    },
    Task {
        id: "git-commit",
        text: "In the repository @FILES@/repo, mend the misspelt word `teh` in docs/guide.md and commit just that file with the message `Fix typo in guide`.",
        verdict: |w, _| {
            w.repository(&["log", "-1", "--format=%s"]).trim() == "Fix typo in guide"
                && !w.repository(&["show", "HEAD:docs/guide.md"]).contains("teh")
                && w.repository(&["show", "--name-only", "--format=", "HEAD"]).trim()
                    == "docs/guide.md"
        },
    },
    Task {
        id: "git-branch",
        text: "Create a branch `release-2` in the repository @FILES@/repo, at the present commit of main.",
        verdict: |w, _| {
            !w.repository(&["rev-parse", "release-2"]).is_empty()
                && w.repository(&["branch", "--list", "release-2"]).contains("release-2")
        },
    },
    Task {
        id: "sql-revenue",
        text: "In the shop's database: revenue (quantity × price) in EUR of paid orders placed in 2025 by customers in Germany (country DE). Answer with a number with two decimals.",
        verdict: |w, a| {
            sql_number(
                w,
                a,
                "select sum(quantity*price_cents)/100.0 from orders o join customers c on c.id=customer_id join products p on p.id=product_id where status='paid' and country='DE' and placed_on like '2025%'",
            )
        },
    },
    Task {
        id: "sql-best",
        text: "Which customer of the shop's database has the highest revenue of paid orders over all years? Answer with the name.",
        verdict: |w, a| {
            let name = w.query("select c.name from orders o join customers c on c.id=customer_id join products p on p.id=product_id where status='paid' group by c.id order by sum(quantity*price_cents) desc limit 1");
            ends_with_name(a, &name)
        },
    },
    Task {
        id: "sql-count",
        text: "How many orders in the shop's database are open? Answer with a number.",
        verdict: |w, a| sql_number(w, a, "select count(*) from orders where status='open'"),
    },
    Task {
        id: "sql-update",
        text: "In the shop's database, set the price of `Item 7` to 12.50 EUR.",
        verdict: |w, _| w.query("select price_cents from products where title='Item 7'") == "1250",
    },
    Task {
        id: "sql-insert",
        text: "Add a customer `Harbour & Co` from Norway (NO) to the shop's database.",
        verdict: |w, _| w.query("select country from customers where name='Harbour & Co'") == "NO",
    },
    Task {
        id: "sql-report",
        text: "Write a CSV file @FILES@/reports/countries.csv with the header `country,customers` and the number of customers per country of the shop's database, by country from A to Z.",
        verdict: |w, _| {
            let want = w
                .query("select country, count(*) from customers group by country order by country")
                .replace('|', ",");
            let got = w.read("files/reports/countries.csv").replace("\r\n", "\n");
            let mut lines = got.trim().lines();
            lines.next() == Some("country,customers")
                && lines.filter(|l| !l.contains("Harbour")).collect::<Vec<_>>().join("\n") == want
        },
    },
    Task {
        id: "memory-who",
        text: "Who works at Norderland, by the knowledge graph? Answer with the names.",
        verdict: |_, a| {
            ["Person 04", "Person 13", "Person 37"].iter().all(|n| a.contains(n))
                && a.matches("Person ").count() == 3
        },
    },
    Task {
        id: "memory-add",
        text: "In the knowledge graph, add the person `Ada Reyes` with the observation `leads the pilots`, and the relation `works_at` from her to `Tidewater`.",
        verdict: |w, _| {
            let m = w.read("memory.jsonl");
            m.contains("Ada Reyes")
                && m.contains("leads the pilots")
                && m.lines().any(|l| {
                    l.contains("\"Ada Reyes\"")
                        && l.contains("\"Tidewater\"")
                        && l.contains("works_at")
                })
        },
    },
    Task {
        id: "memory-count",
        text: "How many persons does the knowledge graph know? Answer with a number.",
        verdict: |w, a| {
            has_number(
                a,
                as_number(
                    w.read("memory.jsonl").lines().filter(|l| l.contains("\"person\"")).count(),
                ),
            )
        },
    },
    Task {
        id: "web-price",
        text: "What does the Brass lantern cost on @SITE@/prices.html? Answer with a number.",
        verdict: |_, a| has_number(a, as_number(price(BRASS_LANTERN.0, BRASS_LANTERN.1)) / 100.0),
    },
    Task {
        id: "web-cheapest",
        text: "What is the lowest price on @SITE@/prices.html? Answer with a number.",
        verdict: |_, a| has_number(a, cheapest()),
    },
    Task {
        id: "sum",
        text: "Let the test server add 1234567 and 7654321 with its own tool. Answer with the sum.",
        verdict: |_, a| has_number(a, 8_888_888.0),
    },
    Task {
        id: "join",
        text: "Take the order number in the first line of @FILES@/logs/app.log modulo 600 plus 1: which customer placed the order with that id in the shop's database? Answer with the name.",
        verdict: |w, a| {
            let n = w
                .read("files/logs/app.log")
                .lines()
                .next()
                .and_then(|l| field(l, "order="))
                .unwrap_or(0.0)
                % 600.0
                + 1.0;
            let name = w.query(&format!(
                "select name from customers where id=(select customer_id from orders where id={n})"
            ));
            ends_with_name(a, &name)
        },
    },
];

/// Whether an answer has a number, whatever stands around it.
pub(crate) fn has_number(answer: &str, number: f64) -> bool {
    numbers(answer).any(|found| (found - number).abs() < 0.005)
}

fn numbers(text: &str) -> impl Iterator<Item = f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let words = text.split(move |c: char| !is_part(c));
    words.filter_map(|word| word.trim_matches(['.', ',']).replace(',', "").parse().ok())
}

/// Whether an answer names somebody, and not one whose name begins alike.
fn ends_with_name(answer: &str, name: &str) -> bool {
    let follows = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
    !name.is_empty()
        && answer.match_indices(name).any(|(at, _)| follows(&answer[at + name.len()..]))
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
pub(crate) fn as_number(n: usize) -> f64 {
    n as f64
}

fn count(world: &World, words: &str) -> f64 {
    as_number(world.read("files/logs/app.log").lines().filter(|line| line.contains(words)).count())
}

fn field(line: &str, key: &str) -> Option<f64> {
    line.split(' ').find_map(|word| word.strip_prefix(key))?.parse().ok()
}

fn slowest(world: &World) -> f64 {
    let log = world.read("files/logs/app.log");
    log.lines().filter_map(|line| field(line, "ms=")).fold(0.0, f64::max)
}

fn by_author(world: &World, name: &str) -> f64 {
    as_number(
        world
            .repository(&["log", "--format=%an", "main"])
            .lines()
            .filter(|line| *line == name)
            .count(),
    )
}

fn sql_number(world: &World, answer: &str, sql: &str) -> bool {
    world.query(sql).parse().is_ok_and(|number| has_number(answer, number))
}

fn cheapest() -> f64 {
    let prices = (0..8).flat_map(|metal| (0..6).map(move |good| price(metal, good)));
    as_number(prices.min().unwrap_or(0)) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_any_words_and_others_are_not() {
        assert!(has_number("It is 1,234.50 EUR.", 1234.5));
        assert!(has_number("**71**", 71.0));
        assert!(!has_number("171 or 7", 71.0));
        assert!(!has_number("", 0.0));
    }

    #[test]
    fn a_name_is_not_found_in_a_longer_one() {
        assert!(ends_with_name("It was Customer 4.", "Customer 4"));
        assert!(!ends_with_name("It was Customer 40.", "Customer 4"));
        assert!(!ends_with_name("nobody", ""));
    }

    #[test]
    fn nothing_is_done_in_a_world_in_which_nobody_did_anything() {
        let Ok(world) = World::create(std::path::Path::new("python3")) else { return };
        for task in TASKS {
            assert!(!(task.verdict)(&world, "I do not know."), "{}", task.id);
        }
    }

    #[test]
    fn there_are_at_least_twenty_five_tasks_of_different_names() {
        let mut ids: Vec<&str> = TASKS.iter().map(|task| task.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert!(25 <= ids.len() && ids.len() == TASKS.len());
    }
}
