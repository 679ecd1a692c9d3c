//! A process that has a child and waits to be killed.

use std::process::ExitCode;

use mcp::connect::{Launcher, Options, Program, Target, connect};
use tool::Client;

/// Connects to a stubborn server on a launcher and says when it is up.
pub(crate) fn run() -> ExitCode {
    let Ok(program) = std::env::current_exe() else { return ExitCode::FAILURE };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    runtime.block_on(async {
        let target = Target::Stdio(Program {
            command: "/bin/sh".into(),
            // A shell that waits for its children, one of them deaf to all.
            args: vec!["-c".to_owned(), format!("sleep 1000 & {} stubborn", program.display())],
            ..Program::default()
        });
        let options = Options { launcher: Some(Launcher::Ourselves), ..Options::default() };
        match connect(&target, &options, &Client::named("parent", "")).await {
            Ok(upstream) => {
                println!("up");
                std::future::pending::<()>().await;
                drop(upstream);
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        }
    })
}
