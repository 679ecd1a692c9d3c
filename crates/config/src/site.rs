//! `[upstream.content]`: what an upstream of `kind = "content"` shows of its CMS site, and
//! to whom.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules of one site, for `kind = "content"`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Content")]
pub struct Rules {
    /// Whose eyes callers see the site with. `honoured` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ownership: Option<Ownership>,
    /// Whether an owner needs the permission `emcp` of the CMS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub need_permission: bool,
    /// The most items of one page. 100 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_items: Option<u32>,
    /// How many levels of the tree one call may go down. 6 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_depth: Option<u32>,
    /// How far into a list a page may begin. 5000 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_offset: Option<u32>,
    /// The most bytes of one result. 1048576 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_result_bytes: Option<usize>,
    /// Report bad arguments as tool results with `isError` instead of as errors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errors_as_results: bool,
    /// Tools that are neither listed nor answered; `*` stands for anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_tools: Vec<String>,
    /// Callers by their name, such as `key:ann`, and the id of the CMS user that each acts for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owners: BTreeMap<String, i64>,
}

/// Whose eyes callers see a site with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ownership {
    /// Everybody sees everything that is not deleted
    Ignored,
    /// A caller with an owner sees what that user may see
    Honoured,
    /// As honoured, and everybody else sees what a visitor sees
    Required,
}

impl Ownership {
    pub const ALL: [Ownership; 3] = [Ownership::Ignored, Ownership::Honoured, Ownership::Required];

    /// Returns its name in flags and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Ownership::Ignored => "ignored",
            Ownership::Honoured => "honoured",
            Ownership::Required => "required",
        }
    }

    /// Returns one line for the help of a flag.
    pub fn description(self) -> &'static str {
        match self {
            Ownership::Ignored => "Everybody sees everything that is not deleted",
            Ownership::Honoured => "A caller with an owner sees what that user may see",
            Ownership::Required => "As honoured, and everybody else sees what a visitor sees",
        }
    }
}

impl From<Ownership> for content::Ownership {
    fn from(ownership: Ownership) -> content::Ownership {
        match ownership {
            Ownership::Ignored => content::Ownership::Ignored,
            Ownership::Honoured => content::Ownership::Honoured,
            Ownership::Required => content::Ownership::Required,
        }
    }
}

impl Rules {
    /// Returns the settings to open a site with these rules; the sample site when
    /// `database` is `None`. `prefix` stands before every table name.
    pub fn config(&self, database: Option<&str>, prefix: Option<&str>) -> content::Config {
        let config = database.map_or_else(content::Config::sample, content::Config::new);
        let own = content::Overrides {
            max_result_items: self.max_items.map(i64::from),
            max_result_bytes: self.max_result_bytes,
            max_depth: self.max_depth.map(i64::from),
            max_offset: self.max_offset.map(i64::from),
        };
        content::Config {
            prefix: prefix.map(str::to_owned),
            limits: config.limits.with(&own),
            errors: if self.errors_as_results {
                content::ErrorForm::Result
            } else {
                content::ErrorForm::Rpc
            },
            ownership: self.ownership.unwrap_or(Ownership::Honoured).into(),
            owners: self.owners.clone(),
            need_permission: self.need_permission,
            deny_tools: self.deny_tools.clone(),
            ..config
        }
    }
}
