//! The page of the configuration file: an editor, and a review of changes before they
//! are saved.

use maud::{Markup, html};

use crate::backend::{AuthedRequest, Backend, PageError};
use crate::control::{ConfigCheck, SettingRow, SettingSource};
use crate::diff::{Line, diff};
use crate::form::normalize_newlines;
use crate::layout::{Page, Section, badge, empty, hidden};

/// Renders the editor with the current file.
pub(crate) fn page(backend: &Backend, authed: &AuthedRequest<'_>) -> Page {
    let content = match backend.control.config() {
        None => html! {
            (empty("No file", "This gate runs with what is built in. `gatelet init` writes a file."))
            (in_force(&backend.control.settings()))
        },
        Some(config) => {
            let check = backend.control.check_config(&config.text);
            html! {
                h1 { "Configuration" }
                p.lead { code { (config.file) } ". Changes to the file are taken up at once, except where a restart is named." }
                (check_result(&check))
                section.panel { (editor(&config.text, authed)) }
                (in_force(&backend.control.settings()))
            }
        }
    };
    Page { title: "Configuration".to_owned(), section: Some(Section::Config), topics: "", content }
}

/// Renders the differences and problems of a changed file, before it is saved.
pub(crate) fn review(backend: &Backend, authed: &AuthedRequest<'_>) -> Result<Page, PageError> {
    let config = backend.control.config().ok_or(PageError::NotFound)?;
    let text = normalize_newlines(authed.request.form.get("text"));
    let check = backend.control.check_config(&text);
    let changes = diff(&config.text, &text);
    let content = html! {
        h1 { "What would change" }
        p.lead { code { (config.file) } }
        (check_result(&check))
        section.panel {
            @if changes.iter().all(|line| matches!(line, Line::Same(_) | Line::Skipped(_))) { p { "Nothing." } }
            @else { pre.diff tabindex="0" { @for line in &changes { (diff_line(line)) } } }
            div.actions {
                @if check.is_valid {
                    form.inline method="post" action="/console/config/save" {
                        (hidden(&authed.session.form_token))
                        input type="hidden" name="text" value=(text);
                        input type="hidden" name="before" value=(config.text);
                        button.primary { "Save" }
                    }
                }
                a.button href="/console/config" { "Throw it away" }
            }
        }
        section.panel { h2 { "Go on editing" } (editor(&text, authed)) }
    };
    Ok(Page {
        title: "What would change".to_owned(),
        section: Some(Section::Config),
        topics: "",
        content,
    })
}

/// Saves the reviewed file, unless it changed meanwhile; returns the path to go to and a
/// notice.
pub(crate) async fn save(
    backend: &Backend,
    authed: &AuthedRequest<'_>,
) -> Result<(String, String), PageError> {
    let form = &authed.request.form;
    let (text, before) =
        (normalize_newlines(form.get("text")), normalize_newlines(form.get("before")));
    let saved = backend.control.save_config(&text, &before).await;
    backend.audit(&authed.session.who, "config.save", "", &saved).await;
    let notice = match saved {
        Ok(()) => "The configuration was saved.".to_owned(),
        Err(why) => format!("It was not saved: {why}"),
    };
    Ok(("/config".to_owned(), notice))
}

fn editor(text: &str, authed: &AuthedRequest<'_>) -> Markup {
    html! {
        form method="post" action="/console/config/review" {
            (hidden(&authed.session.form_token))
            div.field.wide {
                label for="text" { "The file" }
                textarea id="text" name="text" rows="24" spellcheck="false" { "\n" (text) }
            }
            button { "Show what would change" }
        }
    }
}

/// Renders what is in force, where it comes from, and what waits for a restart.
fn in_force(settings: &[SettingRow]) -> Markup {
    html! {
        section.panel {
            h2 { "In force" }
            div.scroll { table {
                caption { "Every setting with its value at this moment. Secrets are not shown." }
                thead { tr { th { "Setting" } th { "Value" } th { "From" } th { "A change" } } }
                tbody { @for setting in settings { (setting_row(setting)) } }
            } }
        }
    }
}

fn setting_row(setting: &SettingRow) -> Markup {
    let source = match setting.source {
        SettingSource::Default => html! { span.soft { "default" } },
        SettingSource::File => html! { "the file" },
        SettingSource::CommandLine => html! { "the command line" },
    };
    html! {
        tr {
            td.nowrap { code { (setting.key) } }
            td { (setting.value) }
            td.nowrap { (source) }
            td {
                @if let Some(next) = &setting.after_restart {
                    (badge("info", "restart")) " the file says " code { (next) }
                } @else if setting.needs_restart { span.soft { "needs a restart" } }
                @else { span.soft { "applies at once" } }
            }
        }
    }
}

fn check_result(check: &ConfigCheck) -> Markup {
    html! {
        @if !check.problems.is_empty() {
            section.panel { h2 { @if check.is_valid { "Odd" } @else { "Wrong" } } pre tabindex="0" { (check.problems) } }
        }
        @if !check.restart_for.is_empty() {
            p.notice { "A restart is needed for: " (check.restart_for.join(", ")) "." }
        }
    }
}

fn diff_line(line: &Line<'_>) -> Markup {
    match line {
        Line::Same(text) => html! { "  " (text) "\n" },
        Line::Added(text) => html! { span.plus { "+ " (text) } "\n" },
        Line::Removed(text) => html! { span.minus { "- " (text) } "\n" },
        Line::Skipped(n_lines) => html! { span.soft { "… " (n_lines) " lines" } "\n" },
    }
}
