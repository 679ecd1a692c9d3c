//! The commands, one file each: its flags and what it does.

pub(crate) mod serve;

pub(crate) mod call;
pub(crate) mod help;
pub(crate) mod skill;
mod verb;

pub(crate) mod eval;
pub(crate) mod habits;
pub(crate) mod selection;
pub(crate) mod stats;
pub(crate) mod tokens;
pub(crate) mod upstreams;

pub(crate) mod config;
pub(crate) mod import;
pub(crate) mod init;

pub(crate) mod conform;
pub(crate) mod key;
pub(crate) mod login;
pub(crate) mod manifest;
pub(crate) mod mounts;

pub(crate) mod spec;
pub(crate) mod tools;
pub(crate) mod trust;

pub(crate) mod content;

pub(crate) mod completions;

use crate::cli::{Cli, Command};
use crate::exit::Done;

pub(crate) fn run(cli: Cli) -> anyhow::Result<Done> {
    match cli.command {
        Command::Serve(args) => serve::run(&args, &cli.place),
        Command::Help(args) => help::run(&args, &cli.place),
        Command::Call(args) => call::run(&args, &cli.place),
        Command::Skill(args) => skill::run(&args, &cli.place),
        Command::Upstreams(args) => upstreams::run(&args, &cli.place),
        Command::Tokens(args) => tokens::run(&args, &cli.place),
        Command::Stats(args) => stats::run(&args, &cli.place),
        Command::Selection(action) => selection::run(&action),
        Command::Eval(args) => eval::run(&args),
        Command::Habits(action) => habits::run(&action, &cli.place),
        Command::Init(args) => init::run(&args, &cli.place),
        Command::Import(args) => import::run(&args),
        Command::Config(args) => config::run(&args, &cli.place),
        Command::Conform(args) => conform::run(&args),
        Command::Key(action) => key::run(&action, &cli.place),
        Command::Login(args) => login::run(&args, &cli.place),
        Command::Logout(args) => login::forget(&args, &cli.place),
        Command::Trust(action) => trust::run(&action, &cli.place),
        Command::Spec(action) => spec::run(&action, &cli.place),
        Command::Tools(args) => tools::run(&args, &cli.place),
        Command::Manifest(action) => manifest::run(&action),
        Command::Mount(args) => mounts::mount(&args, &cli.place),
        Command::Unmount(args) => mounts::unmount(&args, &cli.place),
        Command::Mounts(args) => mounts::list(&args, &cli.place),
        Command::Content(action) => content::run(&action, &cli.place),
        Command::Completions(args) => completions::run(&args),
    }
}
