//! Parses the arguments of the `evo.content.*` tools into document queries.

use serde_json::Value;

use super::coerce::shorten;
use super::terms::{member_values, order_dir, parse_direction};
use super::variables::{parse_tags, parse_tv_filter, parse_tv_order, parse_with_tvs};
use super::{ArgumentType, Arguments, InvalidArguments, Presence, Rule, coerce};
use crate::config::Limits;
use crate::query::{
    Direction, DocumentQuery, Order, OrderKey, Page, Range, SiblingFilter, TreeScope, Tv, TvFilter,
};

const ID: Rule = Rule {
    path: "id",
    presence: Presence::Required,
    argument_type: ArgumentType::Integer { min: 1 },
};
const FROM: Rule = Rule {
    path: "from",
    presence: Presence::Required,
    argument_type: ArgumentType::Integer { min: 0 },
};
const TO: Rule = optional("to", ArgumentType::Integer { min: 0 });
const DEPTH: Rule = optional("depth", ArgumentType::Integer { min: 1 });
const WITH_TVS: Rule = optional("with_tvs", ArgumentType::List);
const EACH_TV: Rule =
    Rule { path: "with_tvs.*", presence: Presence::NotNull, argument_type: ArgumentType::Text };
const LIMIT: Rule = Rule {
    path: "limit",
    presence: Presence::Required,
    argument_type: ArgumentType::Integer { min: 1 },
};
const OFFSET: Rule = optional("offset", ArgumentType::Integer { min: 0 });

const fn optional(path: &'static str, argument_type: ArgumentType) -> Rule {
    Rule { path, presence: Presence::Optional, argument_type }
}

const fn required(path: &'static str) -> Rule {
    Rule { path, presence: Presence::Required, argument_type: ArgumentType::Text }
}

const SEARCH: &[Rule] = &[
    optional("parent", ArgumentType::Integer { min: 0 }),
    optional("published", ArgumentType::Flag),
    optional("deleted", ArgumentType::Flag),
    optional("template", ArgumentType::Integer { min: 0 }),
    optional("hidemenu", ArgumentType::Flag),
    DEPTH,
    WITH_TVS,
    EACH_TV,
    optional("tv_filters", ArgumentType::List),
    required("tv_filters.*.tv"),
    required("tv_filters.*.op"),
    optional("tv_filters.*.cast", ArgumentType::Text),
    optional("tv_filters.*.use_default", ArgumentType::Flag),
    optional("tv_order", ArgumentType::List),
    required("tv_order.*.tv"),
    optional("tv_order.*.dir", ArgumentType::Text),
    optional("tv_order.*.cast", ArgumentType::Text),
    optional("tv_order.*.use_default", ArgumentType::Flag),
    optional("tags_data", ArgumentType::List),
    Rule {
        path: "tags_data.tv_id",
        presence: Presence::With("tags_data"),
        argument_type: ArgumentType::Integer { min: 1 },
    },
    Rule {
        path: "tags_data.tags",
        presence: Presence::With("tags_data"),
        argument_type: ArgumentType::List,
    },
    Rule {
        path: "tags_data.tags.*",
        presence: Presence::NotNull,
        argument_type: ArgumentType::Text,
    },
    optional("order_by", ArgumentType::Text),
    optional("order_dir", ArgumentType::Text),
    optional("order_by_date", ArgumentType::Text),
    LIMIT,
    OFFSET,
];

/// The columns that a search may be ordered by.
pub(crate) const ORDER_BY: [&str; 5] = ["id", "pagetitle", "menuindex", "createdon", "pub_date"];

/// A search with more filters than this matches nothing, and further sort terms are
/// ignored, as the contract says.
const MAX_TERMS: usize = 20;

const MENU_ORDER: fn() -> Vec<Order> =
    || vec![Order::ascending("menuindex"), Order::ascending("id")];

pub(crate) fn search(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, SEARCH)?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(limits.max_depth);
    let tvs = parse_with_tvs(&arguments)?;
    let filters: Vec<TvFilter> = member_values(arguments.get("tv_filters"))
        .map(parse_tv_filter)
        .collect::<Result<_, _>>()?;
    let mut order: Vec<Order> =
        member_values(arguments.get("tv_order")).map(parse_tv_order).collect::<Result<_, _>>()?;
    order.truncate(MAX_TERMS);
    let tags = parse_tags(&arguments)?;
    order.extend(column_order(&arguments)?);
    let scope = match arguments.integer("parent") {
        _ if filters.len() > MAX_TERMS => TreeScope::Nowhere,
        Some(parent) => TreeScope::Below { parent, depth },
        None => TreeScope::Site,
    };
    Ok(DocumentQuery {
        deleted: arguments.flag("deleted").unwrap_or(false),
        published: arguments.flag("published"),
        hidden: arguments.flag("hidemenu"),
        template: arguments.integer("template"),
        filters: if scope == TreeScope::Nowhere { Vec::new() } else { filters },
        tags,
        ..DocumentQuery::new(scope, order, tvs, page)
    })
}

pub(crate) fn get(arguments: &Value, _: &Limits) -> Result<DocumentQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, &[ID, WITH_TVS, EACH_TV])?;
    let scope = TreeScope::One(arguments.required_integer("id")?);
    let page = Page { limit: 1, offset: 0 };
    Ok(DocumentQuery::new(scope, vec![Order::ascending("id")], parse_with_tvs(&arguments)?, page))
}

pub(crate) fn root_tree(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, &[DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(1);
    let tvs = parse_with_tvs(&arguments)?;
    Ok(DocumentQuery::new(TreeScope::Roots { depth }, vec![Order::ascending("id")], tvs, page))
}

pub(crate) fn descendants(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, &[ID, DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(1);
    let scope = TreeScope::Below { parent: arguments.required_integer("id")?, depth };
    let order =
        vec![Order::ascending("parent"), Order::ascending("menuindex"), Order::ascending("id")];
    Ok(DocumentQuery::new(scope, order, parse_with_tvs(&arguments)?, page))
}

pub(crate) fn ancestors(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, &[ID, DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let scope =
        TreeScope::Above { depth: arguments.depth(limits)?, id: arguments.required_integer("id")? };
    let order = vec![
        Order { by: OrderKey::Distance, direction: Direction::Descending },
        Order::ascending("id"),
    ];
    Ok(DocumentQuery::new(scope, order, parse_with_tvs(&arguments)?, page))
}

pub(crate) fn children(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    by_id(arguments, limits, |parent| TreeScope::Children { parent, range: None })
}

pub(crate) fn siblings(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    by_id(arguments, limits, |id| TreeScope::Siblings { id, which: SiblingFilter::All })
}

pub(crate) fn neighbors(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    by_id(arguments, limits, |id| TreeScope::Siblings { id, which: SiblingFilter::Adjacent })
}

pub(crate) fn prev_siblings(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    let query =
        by_id(arguments, limits, |id| TreeScope::Siblings { id, which: SiblingFilter::Before })?;
    Ok(DocumentQuery {
        order: vec![Order::descending("menuindex"), Order::descending("id")],
        ..query
    })
}

pub(crate) fn next_siblings(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    by_id(arguments, limits, |id| TreeScope::Siblings { id, which: SiblingFilter::After })
}

pub(crate) fn children_range(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    by_id_and_range(arguments, limits, |parent, range| TreeScope::Children {
        parent,
        range: Some(range),
    })
}

pub(crate) fn siblings_range(
    arguments: &Value,
    limits: &Limits,
) -> Result<DocumentQuery, InvalidArguments> {
    by_id_and_range(arguments, limits, |id, range| TreeScope::Siblings {
        id,
        which: SiblingFilter::Within(range),
    })
}

/// Parses the arguments of a tool that takes a document and a page.
fn by_id(
    arguments: &Value,
    limits: &Limits,
    scope: impl Fn(i64) -> TreeScope,
) -> Result<DocumentQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, &[ID, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let tvs = parse_with_tvs(&arguments)?;
    Ok(DocumentQuery::new(scope(arguments.required_integer("id")?), MENU_ORDER(), tvs, page))
}

/// Parses the arguments of a tool that takes a document, a range of menu indexes and a page.
fn by_id_and_range(
    arguments: &Value,
    limits: &Limits,
    scope: impl Fn(i64, Range) -> TreeScope,
) -> Result<DocumentQuery, InvalidArguments> {
    let rules = [ID, FROM, TO, WITH_TVS, EACH_TV, LIMIT, OFFSET];
    let arguments = Arguments::parse(arguments, &rules)?;
    let range = Range { from: arguments.required_integer("from")?, to: arguments.integer("to") };
    if range.to.is_some_and(|to| to < range.from) {
        return Err(InvalidArguments("to must be greater than or equal to from.".to_owned()));
    }
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let tvs = parse_with_tvs(&arguments)?;
    Ok(DocumentQuery::new(scope(arguments.required_integer("id")?, range), MENU_ORDER(), tvs, page))
}

impl DocumentQuery {
    /// A query for documents that are not deleted, without further conditions.
    fn new(scope: TreeScope, order: Vec<Order>, tvs: Vec<Tv>, page: Page) -> DocumentQuery {
        DocumentQuery {
            scope,
            deleted: false,
            published: None,
            hidden: None,
            template: None,
            filters: Vec::new(),
            tags: None,
            order,
            tvs,
            page,
        }
    }
}

/// Parses the sort order by column; the id always comes last, so that pages never overlap.
fn column_order(arguments: &Arguments<'_>) -> Result<Vec<Order>, InvalidArguments> {
    let by_id = || Order::ascending("id");
    if let Some(dir) = arguments.text("order_by_date") {
        let dir = dir.trim_matches(coerce::BLANKS);
        let direction = parse_direction(dir).ok_or_else(|| {
            InvalidArguments(format!("Invalid order_by_date [{}].", shorten(dir)))
        })?;
        return Ok(vec![Order { by: OrderKey::Date, direction }, by_id()]);
    }
    let Some(name) = arguments.text("order_by") else { return Ok(vec![by_id()]) };
    let name = name.trim_matches(coerce::BLANKS);
    let Some(column) = ORDER_BY.into_iter().find(|column| *column == name) else {
        let list = ORDER_BY.join(", ");
        return Err(InvalidArguments(format!("order_by must be one of: {list}.")));
    };
    let direction = order_dir(arguments)?;
    let first = Order { by: OrderKey::Column(column), direction };
    Ok(if column == "id" { vec![first] } else { vec![first, by_id()] })
}
