//! Checks of the size gate, which holds long replies back.

use super::call::NO_TRIAL;
use super::observation::{Check, Observation, good_if, not_visible};
use crate::survey::{Transcript, TrialResult};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("C015", |t| with_trial(t, gated)),
    ("C108", |t| with_trial(t, gated)),
    ("C111", |t| with_trial(t, holds_back)),
    ("C112", |t| with_trial(t, gated)),
    ("C113", |t| with_trial(t, counts)),
    ("C114", |t| with_trial(t, suggests)),
    ("C115", |t| with_trial(t, suggestion_works)),
    ("C116", |t| with_trial(t, has_margin)),
    ("C117", |t| with_trial(t, directs)),
    ("C118", |t| with_trial(t, suggestion_works)),
    ("C119", default_threshold),
    ("C120", |t| with_trial(t, one_request_only)),
    ("C121", |t| with_trial(t, gated)),
    ("C122", advertised),
    ("C126", |t| with_trial(t, narrowing_first)),
];

/// Applies a check to the trial, if one was made.
fn with_trial(transcript: &Transcript, check: impl Fn(&TrialResult) -> Observation) -> Observation {
    transcript.tried.as_ref().map_or_else(|| not_visible(NO_TRIAL), check)
}

fn gated(tried: &TrialResult) -> Observation {
    good_if(
        tried.gated.is_gated(),
        tried.gated.excerpt(),
        format!("sizelimit=1 lets it through: {}", tried.gated.excerpt()),
    )
}

fn holds_back(tried: &TrialResult) -> Observation {
    let tail: String = tried.plain.text.chars().rev().take(24).collect();
    let tail: String = tail.chars().rev().collect();
    let leaks = 24 <= tried.plain.chars() && tried.gated.text.contains(&tail);
    let long = 2_000 < tried.gated.chars();
    good_if(
        !leaks && !long && tried.gated.is_gated(),
        format!("{} characters instead of the response", tried.gated.chars()),
        "the gated answer still holds the response",
    )
}

fn counts(tried: &TrialResult) -> Observation {
    let actual = tried.plain.chars();
    let near = |n: &usize| n.abs_diff(actual) * 20 <= actual.max(20);
    good_if(
        tried.gated.numbers().iter().any(near),
        format!("tells the size of about {actual}"),
        format!("no figure near {actual}: {}", tried.gated.excerpt()),
    )
}

fn suggests(tried: &TrialResult) -> Observation {
    match tried.gated.suggested_limit() {
        Some(limit) => Observation::Good(format!("sizelimit={limit}")),
        None => Observation::Bad(format!("suggests no sizelimit: {}", tried.gated.excerpt())),
    }
}

fn suggestion_works(tried: &TrialResult) -> Observation {
    let Some(answer) = &tried.with_suggested_limit else {
        return Observation::Bad("suggests no sizelimit".into());
    };
    good_if(
        !answer.is_gated() && !answer.is_error && !answer.text.is_empty(),
        "the suggested limit lets the response through",
        format!("with the suggested limit: {}", answer.excerpt()),
    )
}

fn has_margin(tried: &TrialResult) -> Observation {
    let Some(limit) = tried.gated.suggested_limit() else {
        return Observation::Bad("suggests no sizelimit".into());
    };
    let actual = tried.plain.chars();
    good_if(
        actual * 102 <= limit * 100,
        format!("{limit} for {actual} characters"),
        format!("{limit} for {actual} characters leaves no margin"),
    )
}

const NARROW: &[&str] = &["narrow", "filter", "fewer", "smaller page", "part"];

fn directs(tried: &TrialResult) -> Observation {
    let text = tried.gated.text.to_ascii_lowercase();
    let narrows = NARROW.iter().any(|word| text.contains(word));
    good_if(
        narrows && text.contains("sizelimit"),
        "says how to narrow and how to let it through",
        format!("does not say what to do: {}", tried.gated.excerpt()),
    )
}

fn narrowing_first(tried: &TrialResult) -> Observation {
    let text = tried.gated.text.to_ascii_lowercase();
    let narrow = NARROW.iter().filter_map(|word| text.find(word)).min();
    let limit = text.find("sizelimit");
    good_if(
        narrow.is_some() && (limit.is_none() || narrow < limit),
        "narrowing comes before raising the limit",
        "raising the limit comes before narrowing",
    )
}

fn one_request_only(tried: &TrialResult) -> Observation {
    good_if(
        !tried.afterwards.is_gated() && !tried.afterwards.is_error && tried.bad_limit.is_error,
        "the limit holds for one request, and a limit of 0 is refused",
        format!(
            "afterwards: {}; limit 0: {}",
            tried.afterwards.excerpt(),
            tried.bad_limit.excerpt()
        ),
    )
}

fn default_threshold(transcript: &Transcript) -> Observation {
    let Some((gated, full)) = &transcript.large else {
        return not_visible("needs a function with a long answer: name one with --large");
    };
    let chars = full.as_ref().map_or(0, |full| full.chars());
    good_if(
        gated.is_gated() && 10_000 < chars,
        format!("{chars} characters are gated by default"),
        format!("{chars} characters, and: {}", gated.excerpt()),
    )
}

/// Checks the default threshold indirectly: by a long answer that is gated, or by
/// `help()`.
fn advertised(transcript: &Transcript) -> Observation {
    let Some((gated, _)) = &transcript.large else {
        return not_visible("needs a function with a long answer: name one with --large");
    };
    let limit = gated.numbers().into_iter().find(|n| 10_000 < *n);
    let says = transcript.help.text.to_ascii_lowercase();
    good_if(
        gated.is_gated() || says.contains("characters"),
        "the default applies, or help() states another",
        format!("a higher threshold ({limit:?}) is not stated in help()"),
    )
}
