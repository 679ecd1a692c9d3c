//! Models of how hosts send tool definitions to a model.

/// A kind of host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostModel {
    pub id: &'static str,
    /// A description for tables.
    pub about: &'static str,
    pub loading: Loading,
    /// How many tools it sends at most; the others cannot be called.
    pub cap: Option<usize>,
}

/// Which definitions a host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// All of them, with every request.
    Everything,
    /// The names of all tools; each search adds `n_results` definitions to the
    /// conversation.
    OnSearch { n_results: usize },
}

/// All kinds of hosts that are compared.
pub const HOST_MODELS: &[HostModel] = &[
    HostModel {
        id: "sends-all",
        about: "sends every definition with every request",
        loading: Loading::Everything,
        cap: None,
    },
    HostModel {
        id: "defers",
        about: "lists names, and loads five definitions per search, as Claude Code does",
        loading: Loading::OnSearch { n_results: 5 },
        cap: None,
    },
    HostModel {
        id: "caps-128",
        about: "sends every definition, of the first 128 tools, as VS Code does",
        loading: Loading::Everything,
        cap: Some(128),
    },
    HostModel {
        id: "caps-40",
        about: "sends every definition, of the first 40 tools, as Cursor did",
        loading: Loading::Everything,
        cap: Some(40),
    },
];
