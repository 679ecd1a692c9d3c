//! Derives what functions are for from the verbs and objects in their names.

use super::line::WORDS;
use crate::index::words::{self, Shape};

/// The most verbs that are named before one object.
const VERBS_SHOWN: usize = 3;
/// The most words of an object.
const OBJECT: usize = 3;

/// Several functions that act on the same object.
struct Group {
    /// The object with its last word in the singular; marked with `=` when there is no
    /// verb, and `!verb` when there is no object.
    key: String,
    object: Vec<String>,
    verbs: Vec<String>,
    count: usize,
}

/// One line about functions with these names; the most common object comes first.
pub(crate) fn from_names<'a>(label: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<Vec<String>> = names.map(split).filter(|words| !words.is_empty()).collect();
    let common = common_prefix(&names);
    let label = split(label);
    let mut groups: Vec<Group> = Vec::new();
    for name in &names {
        let Some(group) = Group::parse(&label, &name[common..]) else { continue };
        match groups.iter_mut().find(|other| other.key == group.key) {
            Some(other) => other.join(group),
            None => groups.push(group),
        }
    }
    // Stable: of equal ones, the server's order stays.
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    render(&groups)
}

/// The words of a name, lower case.
fn split(name: &str) -> Vec<String> {
    let mut all = Vec::new();
    words::each(name, |word, shape| {
        if shape == Shape::Word {
            all.push(word.to_owned());
        }
    });
    all
}

/// The number of words that all names begin with; a verb does not count.
fn common_prefix(names: &[Vec<String>]) -> usize {
    let [first, _, ..] = names else { return 0 };
    let shared = |at: &usize| {
        let same = |name: &Vec<String>| at + 1 < name.len() && name[*at] == first[*at];
        at + 1 < first.len() && !is_verb(&first[*at]) && names.iter().all(same)
    };
    let common = (0..).take_while(shared).count();
    // `items_list`, `items_delete`: then the prefix is what the verbs act on.
    let bare = |name: &Vec<String>| matches!(&name[common..], [verb] if is_verb(verb));
    if names.iter().all(bare) { common.saturating_sub(1) } else { common }
}

impl Group {
    fn parse(label: &[String], name: &[String]) -> Option<Group> {
        let telling = |word: &&String| !label.contains(word) && !FILLERS.contains(&word.as_str());
        let mut rest: Vec<String> = name.iter().filter(telling).cloned().collect();
        if rest.is_empty() {
            rest = name.to_vec();
        }
        let first = rest.first()?;
        let at = match is_verb(first) {
            true => Some(0),
            false => rest.iter().take(3).position(|word| CORE.contains(&word.as_str())),
        };
        let at = at.or_else(|| rest.last().filter(|last| is_verb(last)).map(|_| rest.len() - 1));
        let verb = at.map(|at| rest.remove(at));
        let end = rest.iter().position(|word| LINKS.contains(&word.as_str()));
        rest.truncate(end.filter(|end| 0 < *end || verb.is_some()).unwrap_or(rest.len()));
        rest.truncate(OBJECT);
        let mut key = rest.clone();
        if let Some(last) = key.last_mut() {
            *last = singular(last);
        }
        let key = match (&verb, key.is_empty()) {
            (Some(verb), true) => format!("!{verb}"),
            (Some(_), false) => key.join(" "),
            (None, _) => format!("={}", key.join(" ")),
        };
        Some(Group { key, object: rest, verbs: verb.into_iter().collect(), count: 1 })
    }

    fn join(&mut self, other: Group) {
        self.count += 1;
        // The plural is the longer spelling.
        let length = |object: &[String]| object.iter().map(String::len).sum::<usize>();
        if length(&self.object) < length(&other.object) {
            self.object = other.object;
        }
        for verb in other.verbs {
            if !self.verbs.contains(&verb) {
                self.verbs.push(verb);
            }
        }
    }

    fn verbs(&self) -> String {
        match &self.verbs[..self.verbs.len().min(VERBS_SHOWN)] {
            [] => String::new(),
            [only] => only.clone(),
            [most @ .., last] => format!("{} and {last}", most.join(", ")),
        }
    }
}

/// Renders as many groups as twelve words hold. Objects with the same verbs are joined.
fn render(groups: &[Group]) -> String {
    let mut items: Vec<(String, Vec<String>)> = Vec::new();
    let (mut left, mut complete) = (WORDS, true);
    for group in groups {
        let (verbs, object) = (group.verbs(), group.object.join(" "));
        let together = items.iter().position(|(known, objects)| {
            *known == verbs && !object.is_empty() && !objects.is_empty()
        });
        let new = if together.is_none() { verbs.split_whitespace().count() } else { 0 };
        let cost = new + group.object.len();
        if left < cost {
            complete = false;
            continue;
        }
        left -= cost;
        let object = Some(object).filter(|object| !object.is_empty());
        match together {
            Some(at) => items[at].1.extend(object),
            None => items.push((verbs, object.into_iter().collect())),
        }
    }
    let item = |(verbs, objects): &(String, Vec<String>)| {
        let space = if verbs.is_empty() || objects.is_empty() { "" } else { " " };
        format!("{verbs}{space}{}", objects.join(", "))
    };
    let mut line = items.iter().map(item).collect::<Vec<_>>().join(", ");
    if !complete && !line.is_empty() {
        line.push_str(", …");
    }
    line
}

/// The approximate singular, so that `table` and `tables` are the same.
fn singular(word: &str) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    let less = |n: usize| word[..word.len() - n].to_owned();
    match word.len() {
        5.. if word.ends_with("ies") => less(3) + "y",
        5.. if ends(&["sses", "xes", "ches", "shes"]) => less(2),
        4.. if word.ends_with('s') && !ends(&["ss", "us", "is"]) => less(1),
        _ => word.to_owned(),
    }
}

pub(super) fn is_verb(word: &str) -> bool {
    CORE.contains(&word) || VERBS.split_whitespace().any(|verb| verb == word)
}

/// Words of a name without meaning.
const FILLERS: &[&str] = &["tool", "mcp", "a", "an", "the"];

/// Words after which a name says how or where, not what.
const LINKS: &[&str] = &[
    "by", "for", "from", "with", "to", "in", "of", "on", "at", "into", "as", "via", "using",
    "within", "without", "per", "between", "and", "or", "near",
];

/// Verbs that are recognised also behind other words: `jira_get_issue`.
const CORE: &[&str] = &[
    "get", "list", "create", "update", "delete", "add", "remove", "set", "find", "read", "write",
    "send", "fetch", "execute", "run", "edit", "modify",
];

/// Verbs that are recognised as the first word only.
const VERBS: &str = "
    access activate allocate analyze annotate append apply approve archive ask assign attach
    authenticate authorize backup bind book browse build calculate call cancel capture change chat
    check checkout clean clear click clone close comment commit compare complete compress compute
    configure confirm connect convert copy count crawl deactivate debug decode decrypt deploy
    describe detach detect diff disable discover disconnect download drag draw drop embed enable
    encode encrypt end estimate evaluate expand explain explore export extract fill filter fix
    follow format forward generate geocode grant group handle hover identify import index
    initialize insert inspect install interpolate invite invoke issue join kill launch like link
    load locate lock log login lookup make manage map mark measure merge monitor mount move mute
    navigate notify open optimize parse patch pause peek perform ping plan play plot poll post
    predict preview process profile provision publish pull purge push put query rebase receive
    recommend record refresh register reject release reload rename render reopen reorder replace
    reply report request reschedule reserve reset resize resolve restart restore resume retrieve
    retry return revert review revoke rollback rotate save scan schedule scrape screenshot scroll
    search select share show sign simulate snapshot solve sort split start stop store stream submit
    subscribe suggest summarize suspend switch sync tag take test trace track trade train
    transcribe transfer transform translate trigger type unarchive unassign unlink unlock unmute
    unpublish unregister unsubscribe upgrade upload upsert validate verify view vote wait watch zip
";
