//! Checks of `skill`.

use regex::Regex;

use super::call::{check_parameters, schema};
use super::observation::{Check, Observation, good_if, good_if_empty, not_visible};
use crate::survey::{SkillPage, Transcript};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("C040", skill_parameters),
    ("C041", empty_namespace),
    ("C042", is_text),
    ("C043", no_code),
    ("C044", self_contained),
    ("C045", references_resolve),
    ("C046", targets_resolve),
    ("C047", unknown_skill),
    ("C048", read_only),
    ("C050", no_bundled_files),
    ("C053", is_structured),
    ("C054", no_code),
    ("C125", lists_itself),
];

const NO_SKILLS: &str = "the server has no skills";

fn skill_parameters(transcript: &Transcript) -> Observation {
    let Some(schema) = schema(transcript, "skill") else {
        return Observation::Bad("no `skill`".into());
    };
    let wanted = [("namespace", "string"), ("skillname", "string"), ("kwargs", "object")];
    check_parameters(&schema, &wanted, &[&[], &["skillname"]])
}

fn empty_namespace(transcript: &Transcript) -> Observation {
    good_if(
        transcript.skills == transcript.skill_again,
        "skill(namespace=\"\") equals skill()",
        format!("they differ: {}", transcript.skill_again.excerpt()),
    )
}

/// Checks every skill. `wrong` returns the problem of a skill, if it has one.
fn each_skill(
    transcript: &Transcript,
    good: &str,
    wrong: impl Fn(&SkillPage) -> Option<String>,
) -> Observation {
    if transcript.skill_pages.is_empty() {
        return not_visible(NO_SKILLS);
    }
    let wrong: Vec<String> = transcript
        .skill_pages
        .iter()
        .filter_map(|page| wrong(page).map(|what| format!("`{}` {what}", page.name)))
        .collect();
    good_if_empty(&wrong, format!("{}: {good}", transcript.skill_pages.len()))
}

fn is_text(transcript: &Transcript) -> Observation {
    each_skill(transcript, "skills are one text each", |page| {
        let answer = &page.answer;
        let bad = answer.is_error || answer.blocks != 1 || answer.text.trim().is_empty();
        bad.then(|| format!("is not one text: {}", answer.excerpt()))
    })
}

const LANGUAGES: &[&str] = &[
    "bash",
    "c",
    "console",
    "cpp",
    "fish",
    "go",
    "java",
    "javascript",
    "js",
    "jsx",
    "perl",
    "php",
    "powershell",
    "ps1",
    "py",
    "python",
    "rb",
    "ruby",
    "rust",
    "sh",
    "shell",
    "sql",
    "ts",
    "tsx",
    "typescript",
    "zsh",
];

fn no_code(transcript: &Transcript) -> Observation {
    each_skill(transcript, "skills without executable content", |page| {
        if let Some(kind) = page.answer.other_kinds.first() {
            return Some(format!("returns {kind} content"));
        }
        let fence =
            |line: &str| line.trim_start().strip_prefix("```").map(str::trim).map(str::to_owned);
        let language = page.answer.text.lines().filter_map(fence).find(|language| {
            LANGUAGES.contains(&language.to_ascii_lowercase().split(' ').next().unwrap_or(""))
        });
        if let Some(language) = language {
            return Some(format!("holds {language} code"));
        }
        let lower = page.answer.text.to_ascii_lowercase();
        let marks = ["<script", "data:text/", "data:application/"];
        marks.iter().find(|mark| lower.contains(**mark)).map(|mark| format!("holds `{mark}`"))
    })
}

fn self_contained(transcript: &Transcript) -> Observation {
    each_skill(transcript, "skills stand alone", |page| {
        let lower = page.answer.text.to_ascii_lowercase();
        let leans = ["previous message", "as discussed above", "earlier in this conversation"];
        leans.iter().find(|words| lower.contains(**words)).map(|words| format!("says `{words}`"))
    })
}

fn references_resolve(transcript: &Transcript) -> Observation {
    let reference = Regex::new(r#"skill\([^)]*skillname="([^"]+)""#).expect("a fixed expression");
    let known: Vec<&str> = transcript.skill_pages.iter().map(|page| page.name.as_str()).collect();
    each_skill(transcript, "references to other skills resolve", |page| {
        let names = reference.captures_iter(&page.answer.text).map(|found| found[1].to_owned());
        let missing = names.into_iter().find(|name| !known.iter().any(|known| same(known, name)));
        missing.map(|name| format!("refers to the unknown skill `{name}`"))
    })
}

fn same(a: &str, b: &str) -> bool {
    let fold = |name: &str| -> String {
        name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    fold(a) == fold(b)
}

fn targets_resolve(transcript: &Transcript) -> Observation {
    let target = Regex::new(r#"(?:call|help)\(namespace="([^"]+)""#).expect("a fixed expression");
    each_skill(transcript, "namespaces that skills name exist", |page| {
        let names = target.captures_iter(&page.answer.text).map(|found| found[1].to_owned());
        let missing = names.into_iter().find(|name| {
            !name.contains('{')
                && !transcript.namespace_pages.iter().any(|page| same(&page.path, name))
        });
        missing.map(|name| format!("refers to the unknown namespace `{name}`"))
    })
}

fn unknown_skill(transcript: &Transcript) -> Observation {
    let answer = &transcript.skill_unknown;
    let named = answer.text.contains("zzznope") && answer.text.contains("skill(");
    good_if(
        answer.is_error && named,
        answer.excerpt(),
        format!("does not teach: {}", answer.excerpt()),
    )
}

fn read_only(transcript: &Transcript) -> Observation {
    let tool = transcript.tools.iter().find(|tool| tool.name == "skill");
    let hint = tool.and_then(|tool| tool.annotations.read_only);
    good_if(hint == Some(true), "annotated as read-only", "`skill` lacks readOnlyHint: true")
}

fn no_bundled_files(transcript: &Transcript) -> Observation {
    good_if(
        transcript.skill_path.is_error,
        "a path instead of a name is refused",
        format!("a path is served: {}", transcript.skill_path.excerpt()),
    )
}

fn is_structured(transcript: &Transcript) -> Observation {
    each_skill(transcript, "skills have a heading and steps", |page| {
        let lines: Vec<&str> = page.answer.text.lines().map(str::trim_start).collect();
        let heading = lines.iter().any(|line| line.starts_with('#'));
        let is_step = |line: &&str| {
            let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
            line.starts_with("- ")
                || line.starts_with("* ")
                || (digits.len() < line.len() && digits.starts_with(". "))
        };
        (!heading || !lines.iter().any(is_step)).then(|| "has no heading or no steps".to_owned())
    })
}

fn lists_itself(transcript: &Transcript) -> Observation {
    good_if(
        !transcript.skills.is_error,
        transcript.skills.excerpt(),
        format!("skill() fails: {}", transcript.skills.excerpt()),
    )
}
