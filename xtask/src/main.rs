//! Repository chores, run as `cargo xtask <chore>`.
//!
//! Nothing runs in CI that cannot be run here by the same name.

#![expect(clippy::print_stdout, reason = "a chore reports on the terminal")]
#![expect(clippy::print_stderr, reason = "a chore reports on the terminal")]
#![expect(clippy::disallowed_methods, reason = "a chore reads its environment")]

mod run;

mod bench;
mod changelog;
mod chaos;
mod check;
mod debian;
mod dist;
mod fuzz;
mod soak;
mod stopwatch;
mod test;
mod tidy;
mod tools;
mod watched;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <chore>

  test [nextest arguments]   install what the tests need, then run them all
  test --quick               only the tests that need nothing beside Rust; says how long it took
  test cluster [minutes] [seed]  several replicas; then replicas, store and links fail for so long, and it is counted
  check                      formatting, clippy, licences and dependency rules, tidy
  bench [name…]              measure: call, content, find, gate, native, scale (all without a name)
  bench start [arguments]    from nothing to the first answer, by every way to install
  bench console [minutes]    the console in a browser under a hundred calls a second
  bench context [directory]  recorded agents through every surface and other gateways; tables and plots
  fuzz [seconds] [target…]   made-up inputs for every parser and evaluator (30 s each without)
  chaos [calls] [seed]       the program in front of upstreams with every fault; fails on what is lost or runs twice
  soak [minutes]             the program under steady work: slopes of memory, descriptors, threads
  changelog VERSION          move the fragments of changelog.d into CHANGELOG.md
  dist                       the program as people install it: archive, deb, npm, wheel, checksums
  tidy                       dependency edges, modules in cycles, shares of the code, sizes
  tools                      only install what the tests need, and say where";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match arguments.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("", &[][..]),
    };
    let done = match chore {
        "test" => test::run(rest),
        "check" => check::run(),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "chaos" => chaos::run(rest),
        "soak" => soak::run(rest),
        "changelog" => changelog::run(rest),
        "dist" => dist::run(rest),
        // An upstream with a fault, for `chaos` and `soak`.
        "__upstream" => chaos::stdio::serve(rest),
        "tidy" => tidy::run(),
        "tools" => tools::install().map(|dir| println!("{}", dir.display())),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {chore}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
