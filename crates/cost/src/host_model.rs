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
    /// Where this is known from, and when that was read.
    pub source: &'static str,
}

/// Which definitions a host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// All of them, with every request.
    Everything,
    /// A list of what there is; each search adds `n_results` definitions to the conversation,
    /// without those that it has already.
    OnSearch { listed: Listed, n_results: usize },
}

/// What a host that loads definitions on search sends with every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The names of all tools. One of them can be loaded by its name.
    Tools,
    /// The names of all servers, and what they say of themselves. A tool whose name the
    /// model knows is searched for like any other.
    Servers,
}

/// The tokens in which a server says what it is for, where nobody knows its words: a
/// sentence. Hosts take up to 4 KiB of it.
pub const SERVER_DESCRIPTION: u64 = 20;

/// All kinds of hosts that are compared.
pub const HOST_MODELS: &[HostModel] = &[
    HostModel {
        id: "sends-all",
        about: "sends every definition with every request",
        loading: Loading::Everything,
        cap: None,
        source: "what hosts without a search of their own do",
    },
    HostModel {
        id: "defers",
        about: "lists names, and loads five definitions per search, as Claude Code does",
        loading: Loading::OnSearch { listed: Listed::Tools, n_results: 5 },
        cap: None,
        source: "code.claude.com/docs on MCP (three to five results, or `select:` by name), anthropics/claude-code#87650; 2026-11-17",
    },
    HostModel {
        id: "defers-servers",
        about: "lists servers, and loads eight definitions per search, as Codex does",
        loading: Loading::OnSearch { listed: Listed::Servers, n_results: 8 },
        cap: None,
        source: "openai/codex#17287, #27942, and the default of its `tool_search`; 2026-11-17",
    },
    HostModel {
        id: "caps-128",
        about: "sends every definition, of the first 128 tools, as VS Code does",
        loading: Loading::Everything,
        cap: Some(128),
        source: "code.visualstudio.com/docs on MCP; 2026-11-17",
    },
    HostModel {
        id: "caps-40",
        about: "sends every definition, of the first 40 tools, as Cursor did",
        loading: Loading::Everything,
        cap: Some(40),
        source: "cursor.com/docs on MCP of 2025; 2026-11-17",
    },
];
