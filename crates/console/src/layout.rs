//! The HTML around the content of every page: head, navigation, notice, and small
//! elements that pages share.

use maud::{DOCTYPE, Markup, html};

/// An entry of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Approvals,
    Calls,
    Upstreams,
    Tools,
    Artifacts,
    Callers,
    Findings,
    Config,
}

impl Section {
    pub(crate) const ALL: [Section; 9] = [
        Section::Overview,
        Section::Approvals,
        Section::Calls,
        Section::Upstreams,
        Section::Tools,
        Section::Artifacts,
        Section::Callers,
        Section::Findings,
        Section::Config,
    ];

    fn title(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Approvals => "Approvals",
            Section::Calls => "Calls",
            Section::Upstreams => "Upstreams",
            Section::Tools => "Tools",
            Section::Artifacts => "Artifacts",
            Section::Callers => "Callers",
            Section::Findings => "Findings",
            Section::Config => "Configuration",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Section::Overview => "/console",
            Section::Approvals => "/console/approvals",
            Section::Calls => "/console/calls",
            Section::Upstreams => "/console/upstreams",
            Section::Tools => "/console/tools",
            Section::Artifacts => "/console/artifacts",
            Section::Callers => "/console/callers",
            Section::Findings => "/console/findings",
            Section::Config => "/console/config",
        }
    }
}

/// The content of one page, before the frame is rendered around it.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) section: Option<Section>,
    /// The event topics on which the page reloads, separated by spaces.
    pub(crate) topics: &'static str,
    pub(crate) content: Markup,
}

/// What is rendered around the page of a session.
pub(crate) struct Frame<'a> {
    /// The name of who is logged in.
    pub(crate) who: &'a str,
    pub(crate) form_token: &'a str,
    pub(crate) notice: Option<String>,
    /// How many requests for approval are waiting.
    pub(crate) n_waiting: usize,
}

impl Frame<'_> {
    /// Renders the whole page.
    pub(crate) fn around(&self, page: &Page) -> Markup {
        let title = match self.n_waiting {
            0 => format!("{} · gatelet", page.title),
            n => format!("({n}) {} · gatelet", page.title),
        };
        let content = html! {
            a.skip href="#content" { "Skip to the content" }
            header.side {
                a.brand href="/console" { img src="/console/assets/icon.svg" alt=""; "gatelet" }
                nav aria-label="Pages" id="pages" data-live { ul {
                    @for section in Section::ALL {
                        li { a href=(section.path()) aria-current=[(page.section == Some(section)).then_some("page")] {
                            (section.title())
                            @if section == Section::Approvals && self.n_waiting != 0 {
                                span.count { (self.n_waiting) span.skip { " waiting" } }
                            }
                        } }
                    }
                } }
                div.who {
                    (self.who)
                    form method="post" action="/console/logout" {
                        (hidden(self.form_token))
                        button.quiet { "Log out" }
                    }
                }
            }
            main id="content" tabindex="-1" {
                @if let Some(notice) = &self.notice { p.notice role="status" { (notice) } }
                (page.content)
            }
        };
        document(&title, "", page.topics, &content)
    }
}

/// Renders a page for somebody who is not logged in.
pub(crate) fn bare(title: &str, content: &Markup) -> Markup {
    document(&format!("{title} · gatelet"), "login", "", &html! { main id="content" { (content) } })
}

fn document(title: &str, class: &str, topics: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/console/assets/console.css";
                script type="module" src="/console/assets/console.js" {}
            }
            body class=(class) data-topics=(topics) { (content) }
        }
    }
}

/// Renders the hidden field that protects every form against forgery.
pub(crate) fn hidden(form_token: &str) -> Markup {
    html! { input type="hidden" name="form_token" value=(form_token); }
}

/// Renders a placeholder for an empty list.
pub(crate) fn empty(title: &str, text: &str) -> Markup {
    html! { div.panel.empty { strong { (title) } (text) } }
}

/// Renders a word in the colour of a CSS class.
pub(crate) fn badge(class: &str, word: &str) -> Markup {
    html! { span class={ "badge " (class) } { (word) } }
}
