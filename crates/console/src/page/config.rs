//! The configuration: what is in force, what needs a restart, and a change that is
//! looked at before it is saved.

use maud::{Markup, html};

use crate::backend::{Asked, Backend, NoPage};
use crate::diff::{Line, diff};
use crate::form::lines;
use crate::layout::{Page, Section, empty, hidden};
use crate::operator::ConfigCheck;

/// The file, to be read and changed.
pub(crate) fn page(backend: &Backend, asked: &Asked<'_>) -> Page {
    let content = match backend.operator.config() {
        None => {
            empty("No file", "This gate runs with what is built in. `gatelet init` writes a file.")
        }
        Some(config) => {
            let check = backend.operator.check_config(&config.text);
            html! {
                h1 { "Configuration" }
                p.lead { code { (config.file) } ". Changes to the file are taken up at once, except where a restart is named." }
                (judged(&check))
                section.panel { (editor(&config.text, asked)) }
            }
        }
    };
    Page { title: "Configuration".to_owned(), section: Some(Section::Config), topics: "", content }
}

/// What a change would do, before it is saved.
pub(crate) fn review(backend: &Backend, asked: &Asked<'_>) -> Result<Page, NoPage> {
    let config = backend.operator.config().ok_or(NoPage::NotFound)?;
    let text = lines(asked.request.form.get("text"));
    let check = backend.operator.check_config(&text);
    let changes = diff(&config.text, &text);
    let content = html! {
        h1 { "What would change" }
        p.lead { code { (config.file) } }
        (judged(&check))
        section.panel {
            @if changes.iter().all(|line| matches!(line, Line::Same(_) | Line::Skipped(_))) { p { "Nothing." } }
            @else { pre.diff tabindex="0" { @for line in &changes { (marked(line)) } } }
            div.actions {
                @if check.is_valid {
                    form.inline method="post" action="/console/config/save" {
                        (hidden(&asked.session.form_token))
                        input type="hidden" name="text" value=(text);
                        input type="hidden" name="before" value=(config.text);
                        button.primary { "Save" }
                    }
                }
                a.button href="/console/config" { "Throw it away" }
            }
        }
        section.panel { h2 { "Go on editing" } (editor(&text, asked)) }
    };
    Ok(Page {
        title: "What would change".to_owned(),
        section: Some(Section::Config),
        topics: "",
        content,
    })
}

/// Saves what was looked at, unless the file changed since.
pub(crate) async fn save(backend: &Backend, asked: &Asked<'_>) -> Result<(String, String), NoPage> {
    let form = &asked.request.form;
    let (text, before) = (lines(form.get("text")), lines(form.get("before")));
    let saved = backend.operator.save_config(&text, &before).await;
    backend.audit(&asked.session.who, "config.save", "", &saved).await;
    let notice = match saved {
        Ok(()) => "The configuration was saved.".to_owned(),
        Err(why) => format!("It was not saved: {why}"),
    };
    Ok(("/config".to_owned(), notice))
}

fn editor(text: &str, asked: &Asked<'_>) -> Markup {
    html! {
        form method="post" action="/console/config/review" {
            (hidden(&asked.session.form_token))
            div.field.wide {
                label for="text" { "The file" }
                textarea id="text" name="text" rows="24" spellcheck="false" { "\n" (text) }
            }
            button { "Show what would change" }
        }
    }
}

fn judged(check: &ConfigCheck) -> Markup {
    html! {
        @if !check.problems.is_empty() {
            section.panel { h2 { @if check.is_valid { "Odd" } @else { "Wrong" } } pre tabindex="0" { (check.problems) } }
        }
        @if !check.restart_for.is_empty() {
            p.notice { "A restart is needed for: " (check.restart_for.join(", ")) "." }
        }
    }
}

fn marked(line: &Line<'_>) -> Markup {
    match line {
        Line::Same(text) => html! { "  " (text) "\n" },
        Line::Added(text) => html! { span.plus { "+ " (text) } "\n" },
        Line::Removed(text) => html! { span.minus { "- " (text) } "\n" },
        Line::Skipped(n_lines) => html! { span.soft { "… " (n_lines) " lines" } "\n" },
    }
}
