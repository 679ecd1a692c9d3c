//! The Lua scripts that make operations atomic on the server.
//!
//! Each script says at its beginning what it takes and returns. They use only keys
//! that they are given, so they run on a cluster too.

use redis::{Cmd, cmd};

/// A script with its digest, by which servers know it once they have run it.
pub(crate) struct Script {
    text: &'static str,
    digest: String,
}

impl Script {
    fn new(text: &'static str) -> Script {
        Script { text, digest: redis::Script::new(text).get_hash().to_owned() }
    }

    /// Returns the command that runs it at a server that knows it.
    pub(crate) fn by_digest(&self, keys: &[String], arguments: &[&[u8]]) -> Cmd {
        command("EVALSHA", &self.digest, keys, arguments)
    }

    /// Returns the command that runs it at any server, which knows it from then on.
    pub(crate) fn by_text(&self, keys: &[String], arguments: &[&[u8]]) -> Cmd {
        command("EVAL", self.text, keys, arguments)
    }
}

fn command(name: &str, script: &str, keys: &[String], arguments: &[&[u8]]) -> Cmd {
    let mut command = cmd(name);
    command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}

/// All scripts, each with its digest.
pub(crate) struct Scripts {
    /// Documents.
    pub(crate) swap: Script,
    /// Documents of an epoch.
    pub(crate) read_epoch: Script,
    pub(crate) swap_epoch: Script,
    /// Single uses.
    pub(crate) put_once: Script,
    pub(crate) take: Script,
    /// Expiring values.
    pub(crate) append: Script,
    pub(crate) replace: Script,
    /// Expiring values of an epoch.
    pub(crate) put_epoch: Script,
    pub(crate) get_epoch: Script,
    pub(crate) append_epoch: Script,
    pub(crate) replace_epoch: Script,
    /// Counters.
    pub(crate) spend: Script,
    pub(crate) give_back: Script,
    /// Blobs.
    pub(crate) put_blob: Script,
    pub(crate) delete_blob: Script,
    pub(crate) get_blob: Script,
    /// Leases.
    pub(crate) acquire: Script,
    pub(crate) renew: Script,
    pub(crate) release: Script,
    /// Messages.
    pub(crate) send: Script,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        Scripts {
            swap: Script::new(include_str!("scripts/swap.lua")),
            read_epoch: Script::new(include_str!("scripts/read_epoch.lua")),
            swap_epoch: Script::new(include_str!("scripts/swap_epoch.lua")),
            put_once: Script::new(include_str!("scripts/put_once.lua")),
            take: Script::new(include_str!("scripts/take.lua")),
            append: Script::new(include_str!("scripts/append.lua")),
            replace: Script::new(include_str!("scripts/replace.lua")),
            put_epoch: Script::new(include_str!("scripts/put_epoch.lua")),
            get_epoch: Script::new(include_str!("scripts/get_epoch.lua")),
            append_epoch: Script::new(include_str!("scripts/append_epoch.lua")),
            replace_epoch: Script::new(include_str!("scripts/replace_epoch.lua")),
            spend: Script::new(include_str!("scripts/spend.lua")),
            give_back: Script::new(include_str!("scripts/give_back.lua")),
            put_blob: Script::new(include_str!("scripts/put_blob.lua")),
            delete_blob: Script::new(include_str!("scripts/delete_blob.lua")),
            get_blob: Script::new(include_str!("scripts/get_blob.lua")),
            acquire: Script::new(include_str!("scripts/acquire.lua")),
            renew: Script::new(include_str!("scripts/renew.lua")),
            release: Script::new(include_str!("scripts/release.lua")),
            send: Script::new(include_str!("scripts/send.lua")),
        }
    }
}
