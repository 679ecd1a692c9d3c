//! The real program, driven over stdio, over HTTP and from the shell, with
//! real servers behind it and real clients before it.

#![expect(clippy::unwrap_used, reason = "what fails here is a failed test")]

mod kit;

mod add;
mod approvals;
mod artifacts;
mod clients;
mod cluster;
mod console;
mod context;
mod controls;
mod deployment;
mod doctor;
mod documents;
mod edge;
mod faults;
mod finding;
mod first_minute;
mod guide_scripts;
mod install;
mod limits;
mod logins;
mod loops;
mod manner;
mod meanwhile;
mod mounts;
mod nested;
mod newcomer;
mod observability;
mod pictures;
mod primitives;
mod reload;
mod running;
mod sandbox;
mod script_calls;
mod script_questions;
mod script_stops;
mod scripts;
mod secrets;
mod selection;
mod servers;
mod service;
mod shell;
mod site;
mod skills;
mod strange_directory;
mod system;
mod taxonomy;
mod tls;
mod tokens;
mod visibility;
