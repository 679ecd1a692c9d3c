//! Tasks in which most of what servers say is not needed: joined, counted, fetched one by one,
//! paged through, filtered, compared. To be done with and without `pick`, `calls` and `run`.

use std::collections::BTreeMap;

use crate::task::{Task, as_number, has_number};

/// The program of their servers, and the labels of those.
pub(crate) const SERVER: &str = include_str!("compose_server.py");
pub(crate) const LABELS: [&str; 3] = ["orders", "crm", "warehouse"];

/// Fetching one by one takes a call each.
pub(crate) const MAX_CALLS: usize = 80;

pub(crate) const TASKS: &[Task] = &[
    Task {
        id: "compose-join",
        text: "Add up the totals of the shop's open orders by the city of their customers. Which city has the highest sum? Answer with its sum in EUR, with two decimals.",
        verdict: |_, answer| has_number(answer, highest_city()),
    },
    Task {
        id: "compose-count",
        text: "How many lines of the log of card payments say `card declined`? Answer with a number.",
        verdict: |_, answer| has_number(answer, 69.0),
    },
    Task {
        id: "compose-fan-out",
        text: "How many pieces of the items of the autumn sale lie on all shelves of the warehouse together? Answer with a number.",
        verdict: |_, answer| has_number(answer, pieces()),
    },
    Task {
        id: "compose-pages",
        text: "What do all refunds with the reason `damaged` add up to? Answer in EUR, with two decimals.",
        verdict: |_, answer| has_number(answer, damaged()),
    },
    Task {
        id: "compose-filter",
        text: "How many sales of the shop's export are of the region `north` with an amount over 980? Answer with a number.",
        verdict: |_, answer| has_number(answer, northern()),
    },
    Task {
        id: "compose-compare",
        text: "For which items do the shop and the warehouse know different counts? Answer with the SKUs.",
        verdict: |_, answer| {
            answer.matches("SKU-").count() == 3
                && ["SKU-017", "SKU-203", "SKU-388"].iter().all(|sku| answer.contains(sku))
        },
    },
];

fn highest_city() -> f64 {
    let mut sums: BTreeMap<usize, usize> = BTreeMap::new();
    for n in (0..36).step_by(3) {
        let customer = 100 + n * 7 % 23;
        *sums.entry(customer * 5 % 7).or_default() += 1000 + n * 7919 % 50000;
    }
    as_number(sums.into_values().max().unwrap_or(0)) / 100.0
}

fn pieces() -> f64 {
    let shelves =
        (0..50).flat_map(|item| (0..8).map(move |shelf| (item * 8 * 17 + shelf * 29) % 60));
    as_number(shelves.sum())
}

fn damaged() -> f64 {
    let cents = (0..240).filter(|n| n * n % 11 % 4 == 0).map(|n| 500 + n * 613 % 9000);
    as_number(cents.sum()) / 100.0
}

fn northern() -> f64 {
    as_number((0..20_000).step_by(4).filter(|n| 980 < n * 7919 % 1000).count())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::{Value, json};

    use super::*;
    use crate::world::World;
    use replay::Session;

    /// The servers themselves, asked for all that there is.
    struct Servers(Vec<Session>);

    impl Servers {
        fn start() -> Option<Servers> {
            let start = |label: &&str| {
                let mut command = Command::new("python3");
                Session::start({
                    command.args(["-c", SERVER, label]);
                    command
                })
            };
            LABELS.iter().map(|label| start(label).ok()).collect::<Option<_>>().map(Servers)
        }

        fn ask(&mut self, label: &str, tool: &str, arguments: &Value) -> String {
            let at = LABELS.iter().position(|one| *one == label).unwrap();
            self.0[at].call(tool, arguments).unwrap().text
        }

        fn data(&mut self, label: &str, tool: &str, arguments: &Value) -> Value {
            serde_json::from_str(&self.ask(label, tool, arguments)).unwrap()
        }
    }

    fn rows(data: &Value) -> &[Value] {
        data.as_array().unwrap()
    }

    /// The answers, computed from what the servers say, as somebody would who reads it all.
    fn answers(servers: &mut Servers) -> Vec<String> {
        let none = json!({});
        let orders = servers.data("orders", "list_orders", &json!({"status": "open"}));
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        assert_eq!(rows(&orders["orders"]).len(), 12);
        for order in rows(&orders["orders"]) {
            let customer = json!({"customer_id": order["customer_id"]});
            let customer = servers.data("crm", "get_customer", &customer);
            *sums.entry(customer["city"].to_string()).or_default() +=
                order["total_cents"].as_u64().unwrap();
        }
        let euros = |cents: u64| format!("{}.{:02} EUR", cents / 100, cents % 100);
        let join = euros(sums.into_values().max().unwrap());
        let log = servers.ask("orders", "read_log", &none);
        let count = log.lines().filter(|line| line.contains("card declined")).count();
        let items = servers.data("warehouse", "list_items", &none);
        let mut pieces = 0;
        for sku in rows(&items["skus"]) {
            let stock = servers.data("warehouse", "get_stock", &json!({"sku": sku}));
            pieces += rows(&stock["shelves"])
                .iter()
                .map(|shelf| shelf["count"].as_u64().unwrap())
                .sum::<u64>();
        }
        let (mut page, mut damaged) = (json!(1), 0);
        while !page.is_null() {
            let told = servers.data("orders", "list_refunds", &json!({"page": page}));
            let of_reason = rows(&told["refunds"]).iter().filter(|one| one["reason"] == "damaged");
            damaged += of_reason.map(|one| one["cents"].as_u64().unwrap()).sum::<u64>();
            page = told["next_page"].clone();
        }
        let export = servers.ask("orders", "export", &none);
        assert!(5_000_000 < export.len(), "{}", export.len());
        let export: Value = serde_json::from_str(&export).unwrap();
        let northern = rows(&export).iter();
        let northern = northern
            .filter(|one| one["region"] == "north" && 980 < one["amount"].as_u64().unwrap());
        let northern = northern.count();
        let (shop, warehouse) = (
            servers.data("orders", "inventory", &none),
            servers.data("warehouse", "inventory", &none),
        );
        let other = rows(&shop).iter().zip(rows(&warehouse)).filter(|(one, two)| one != two);
        let other: Vec<&str> = other.map(|(one, _)| one["sku"].as_str().unwrap()).collect();
        vec![
            join,
            count.to_string(),
            pieces.to_string(),
            euros(damaged),
            northern.to_string(),
            other.join(", "),
        ]
    }

    #[test]
    fn whoever_reads_all_that_the_servers_say_is_right_and_nobody_else() {
        let (Some(mut servers), Ok(world)) =
            (Servers::start(), World::create(std::path::Path::new("python3")))
        else {
            return;
        };
        for (task, answer) in TASKS.iter().zip(answers(&mut servers)) {
            assert!((task.verdict)(&world, &answer), "{}: {answer}", task.id);
            assert!(!(task.verdict)(&world, "I do not know."), "{}", task.id);
            assert!(!(task.verdict)(&world, "It is 12, or SKU-017."), "{}", task.id);
        }
    }
}
