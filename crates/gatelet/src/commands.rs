//! The commands, one file each: its flags and what it does.

pub(crate) mod serve;

mod approval;
pub(crate) mod approvals;
mod asking;
pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod help;
mod output;
mod person;
mod plain_secrets;
pub(crate) mod recipe;
pub(crate) mod run;
pub(crate) mod skill;

pub(crate) mod connect;
pub(crate) mod console;
pub(crate) mod eval;
pub(crate) mod habits;
pub(crate) mod running;
pub(crate) mod selection;
pub(crate) mod service;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod tokens;
pub(crate) mod top;
pub(crate) mod upstreams;

pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod secret;
pub(crate) mod servers;

mod own_program;

mod host_files;
pub(crate) mod install;
mod relative_path;
pub(crate) mod undo;
pub(crate) mod uninstall;

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
pub(crate) mod man;

use crate::exit::Done;
use crate::paths::Paths;
use crate::trusted_directories;

/// Every command. To add one, add its file, a variant, an arm of [`run`], and its name to
/// a group in `cli/groups.rs`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Serve(serve::Args),
    Connect(connect::Args),
    Up(service::UpArgs),
    Down(service::DownArgs),
    Help(help::Args),
    Call(call::Args),
    Skill(skill::Args),
    Run(run::Args),
    #[command(subcommand)]
    Recipe(recipe::Action),
    Upstreams(upstreams::Args),
    Console(console::Args),
    Status(status::Args),
    Top(top::Args),
    Logs(running::LogsArgs),
    Restart(running::RestartArgs),
    Tokens(tokens::Args),
    Bench(bench::Args),
    Stats(stats::Args),
    #[command(subcommand)]
    Selection(selection::Action),
    Eval(eval::Args),
    #[command(subcommand)]
    Habits(habits::Action),
    Install(install::Args),
    Uninstall(uninstall::Args),
    Undo(undo::Args),
    Init(init::Args),
    Import(import::Args),
    Add(Box<servers::add::Args>),
    Remove(servers::remove::Args),
    Enable(servers::switch::EnableArgs),
    Disable(servers::switch::DisableArgs),
    Update(servers::update::Args),
    Search(servers::search::Args),
    #[command(subcommand)]
    Secret(secret::Action),
    Config(config::Args),
    Doctor(doctor::Args),
    Conform(Box<conform::Args>),
    #[command(subcommand)]
    Key(key::Action),
    Login(login::Args),
    Logout(login::LogoutArgs),
    Approvals(approvals::Args),
    #[command(subcommand)]
    Trust(trust::Action),
    #[command(subcommand)]
    Spec(spec::Action),
    Tools(tools::Args),
    #[command(subcommand)]
    Manifest(manifest::Action),
    Mount(mounts::MountArgs),
    Unmount(mounts::UnmountArgs),
    Mounts(mounts::MountsArgs),
    #[command(subcommand)]
    Content(content::Action),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Whether the command acts on the configuration. Then a `gatelet.toml` that merely
    /// lies in the working directory must be trusted first; `config` checks that itself.
    fn reads_configuration(&self) -> bool {
        match self {
            Command::Serve(_)
            | Command::Connect(_)
            | Command::Up(_)
            | Command::Down(_)
            | Command::Help(_)
            | Command::Call(_)
            | Command::Run(_)
            | Command::Recipe(_)
            | Command::Skill(_)
            | Command::Upstreams(_)
            | Command::Status(_)
            | Command::Top(_)
            | Command::Logs(_)
            | Command::Restart(_)
            | Command::Approvals(_)
            | Command::Console(_)
            | Command::Tokens(_)
            | Command::Bench(_)
            | Command::Stats(_)
            | Command::Habits(_)
            | Command::Install(_)
            | Command::Add(_)
            | Command::Remove(_)
            | Command::Enable(_)
            | Command::Disable(_)
            | Command::Update(_)
            | Command::Secret(_)
            | Command::Doctor(_)
            | Command::Login(_)
            | Command::Logout(_)
            | Command::Trust(_)
            | Command::Spec(_)
            | Command::Tools(_)
            | Command::Mount(_)
            | Command::Unmount(_)
            | Command::Mounts(_) => true,
            Command::Selection(_)
            | Command::Uninstall(_)
            | Command::Import(_)
            | Command::Search(_)
            | Command::Key(_)
            | Command::Content(_)
            | Command::Eval(_)
            | Command::Undo(_)
            | Command::Init(_)
            | Command::Config(_)
            | Command::Conform(_)
            | Command::Manifest(_)
            | Command::Completions(_)
            | Command::Man(_) => false,
        }
    }
}

/// Runs a command. `line` describes the whole command line, for completions
/// and the manual.
pub(crate) fn run(
    command: Command,
    paths: &Paths,
    line: fn() -> clap::Command,
) -> anyhow::Result<Done> {
    if command.reads_configuration() {
        trusted_directories::check(paths)?;
    }
    match command {
        Command::Serve(args) => serve::run(&args, paths),
        Command::Connect(args) => connect::run(&args, paths),
        Command::Up(args) => service::up(&args, paths),
        Command::Down(args) => service::down(&args, paths),
        Command::Help(args) => help::run(&args, paths),
        Command::Call(args) => call::run(&args, paths),
        Command::Skill(args) => skill::run(&args, paths),
        Command::Run(args) => run::run(&args, paths),
        Command::Recipe(action) => recipe::run(&action, paths),
        Command::Upstreams(args) => upstreams::run(&args, paths),
        Command::Console(args) => console::run(&args, paths),
        Command::Top(args) => top::run(&args, paths),
        Command::Status(args) => status::run(&args, paths),
        Command::Logs(args) => running::logs(&args, paths),
        Command::Restart(args) => running::restart(&args, paths),
        Command::Tokens(args) => tokens::run(&args, paths),
        Command::Bench(args) => bench::run(&args, paths),
        Command::Stats(args) => stats::run(&args, paths),
        Command::Selection(action) => selection::run(&action),
        Command::Eval(args) => eval::run(&args),
        Command::Habits(action) => habits::run(&action, paths),
        Command::Install(args) => install::run(&args, paths),
        Command::Uninstall(args) => uninstall::run(&args, paths),
        Command::Undo(args) => undo::run(&args, paths),
        Command::Init(args) => init::run(&args, paths),
        Command::Import(args) => import::run(&args, paths),
        Command::Add(args) => servers::add::run(&args, paths),
        Command::Remove(args) => servers::remove::run(&args, paths),
        Command::Enable(args) => servers::switch::enable(&args, paths),
        Command::Disable(args) => servers::switch::disable(&args, paths),
        Command::Update(args) => servers::update::run(&args, paths),
        Command::Search(args) => servers::search::run(&args, paths),
        Command::Secret(action) => secret::run(&action, paths),
        Command::Config(args) => config::run(&args, paths),
        Command::Doctor(args) => doctor::run(&args, paths),
        Command::Conform(args) => conform::run(&args),
        Command::Key(action) => key::run(&action, paths),
        Command::Login(args) => login::run(&args, paths),
        Command::Logout(args) => login::logout(&args, paths),
        Command::Approvals(args) => approvals::run(&args, paths),
        Command::Trust(action) => trust::run(&action, paths),
        Command::Spec(action) => spec::run(&action, paths),
        Command::Tools(args) => tools::run(&args, paths),
        Command::Manifest(action) => manifest::run(&action),
        Command::Mount(args) => mounts::mount(&args, paths),
        Command::Unmount(args) => mounts::unmount(&args, paths),
        Command::Mounts(args) => mounts::list(&args, paths),
        Command::Content(action) => content::run(&action, paths),
        Command::Completions(args) => completions::run(&args, line()),
        Command::Man(args) => man::run(&args, line()),
    }
}
