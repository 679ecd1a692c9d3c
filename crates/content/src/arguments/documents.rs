//! The arguments of the `evo.content.*` tools.

use serde_json::Value;

use super::coerce::shown;
use super::terms::{direction, members, order_dir};
use super::variables::{tags, tv_filter, tv_order, with_tvs};
use super::{Arguments, Invalid, Need, Rule, Shape, coerce};
use crate::config::Limits;
use crate::query::{Direction, Documents, Key, Order, Page, Range, Reach, Tv, TvFilter, Which};

const ID: Rule = Rule { path: "id", need: Need::Required, shape: Shape::Integer { least: 1 } };
const FROM: Rule = Rule { path: "from", need: Need::Required, shape: Shape::Integer { least: 0 } };
const TO: Rule = optional("to", Shape::Integer { least: 0 });
const DEPTH: Rule = optional("depth", Shape::Integer { least: 1 });
const WITH_TVS: Rule = optional("with_tvs", Shape::List);
const EACH_TV: Rule = Rule { path: "with_tvs.*", need: Need::NotNull, shape: Shape::Text };
const LIMIT: Rule =
    Rule { path: "limit", need: Need::Required, shape: Shape::Integer { least: 1 } };
const OFFSET: Rule = optional("offset", Shape::Integer { least: 0 });

const fn optional(path: &'static str, shape: Shape) -> Rule {
    Rule { path, need: Need::Optional, shape }
}

const fn required(path: &'static str) -> Rule {
    Rule { path, need: Need::Required, shape: Shape::Text }
}

const SEARCH: &[Rule] = &[
    optional("parent", Shape::Integer { least: 0 }),
    optional("published", Shape::Flag),
    optional("deleted", Shape::Flag),
    optional("template", Shape::Integer { least: 0 }),
    optional("hidemenu", Shape::Flag),
    DEPTH,
    WITH_TVS,
    EACH_TV,
    optional("tv_filters", Shape::List),
    required("tv_filters.*.tv"),
    required("tv_filters.*.op"),
    optional("tv_filters.*.cast", Shape::Text),
    optional("tv_filters.*.use_default", Shape::Flag),
    optional("tv_order", Shape::List),
    required("tv_order.*.tv"),
    optional("tv_order.*.dir", Shape::Text),
    optional("tv_order.*.cast", Shape::Text),
    optional("tv_order.*.use_default", Shape::Flag),
    optional("tags_data", Shape::List),
    Rule {
        path: "tags_data.tv_id",
        need: Need::With("tags_data"),
        shape: Shape::Integer { least: 1 },
    },
    Rule { path: "tags_data.tags", need: Need::With("tags_data"), shape: Shape::List },
    Rule { path: "tags_data.tags.*", need: Need::NotNull, shape: Shape::Text },
    optional("order_by", Shape::Text),
    optional("order_dir", Shape::Text),
    optional("order_by_date", Shape::Text),
    LIMIT,
    OFFSET,
];

/// The columns that a search may be ordered by.
pub(crate) const ORDER_BY: [&str; 5] = ["id", "pagetitle", "menuindex", "createdon", "pub_date"];

/// More conditions than this match nothing; more order terms are ignored.
const MAX_TERMS: usize = 20;

const BY_MENU: fn() -> Vec<Order> = || vec![Order::up("menuindex"), Order::up("id")];

pub(crate) fn search(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, SEARCH)?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(limits.max_depth);
    let tvs = with_tvs(&arguments)?;
    let filters: Vec<TvFilter> =
        members(arguments.get("tv_filters")).map(tv_filter).collect::<Result<_, _>>()?;
    let mut order: Vec<Order> =
        members(arguments.get("tv_order")).map(tv_order).collect::<Result<_, _>>()?;
    order.truncate(MAX_TERMS);
    let tags = tags(&arguments)?;
    order.extend(column_order(&arguments)?);
    let reach = match arguments.integer("parent") {
        _ if filters.len() > MAX_TERMS => Reach::Nowhere,
        Some(parent) => Reach::Below { parent, depth },
        None => Reach::Site,
    };
    Ok(Documents {
        deleted: arguments.flag("deleted").unwrap_or(false),
        published: arguments.flag("published"),
        hidden: arguments.flag("hidemenu"),
        template: arguments.integer("template"),
        filters: if reach == Reach::Nowhere { Vec::new() } else { filters },
        tags,
        ..Documents::new(reach, order, tvs, page)
    })
}

pub(crate) fn get(arguments: &Value, _: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[ID, WITH_TVS, EACH_TV])?;
    let reach = Reach::One(arguments.required("id")?);
    let page = Page { limit: 1, offset: 0 };
    Ok(Documents::new(reach, vec![Order::up("id")], with_tvs(&arguments)?, page))
}

pub(crate) fn root_tree(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(1);
    let tvs = with_tvs(&arguments)?;
    Ok(Documents::new(Reach::Roots { depth }, vec![Order::up("id")], tvs, page))
}

pub(crate) fn descendants(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[ID, DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(1);
    let reach = Reach::Below { parent: arguments.required("id")?, depth };
    let order = vec![Order::up("parent"), Order::up("menuindex"), Order::up("id")];
    Ok(Documents::new(reach, order, with_tvs(&arguments)?, page))
}

pub(crate) fn ancestors(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[ID, DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let reach = Reach::Above { depth: arguments.depth(limits)?, id: arguments.required("id")? };
    let order = vec![Order { by: Key::Distance, direction: Direction::Down }, Order::up("id")];
    Ok(Documents::new(reach, order, with_tvs(&arguments)?, page))
}

pub(crate) fn children(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    near(arguments, limits, |parent| Reach::Children { parent, range: None })
}

pub(crate) fn siblings(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    near(arguments, limits, |id| Reach::Siblings { id, which: Which::All })
}

pub(crate) fn neighbors(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    near(arguments, limits, |id| Reach::Siblings { id, which: Which::Adjacent })
}

pub(crate) fn prev_siblings(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let query = near(arguments, limits, |id| Reach::Siblings { id, which: Which::Before })?;
    Ok(Documents { order: vec![Order::down("menuindex"), Order::down("id")], ..query })
}

pub(crate) fn next_siblings(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    near(arguments, limits, |id| Reach::Siblings { id, which: Which::After })
}

pub(crate) fn children_range(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    ranged(arguments, limits, |parent, range| Reach::Children { parent, range: Some(range) })
}

pub(crate) fn siblings_range(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    ranged(arguments, limits, |id, range| Reach::Siblings { id, which: Which::Within(range) })
}

/// A tool that takes a document and a page.
fn near(
    arguments: &Value,
    limits: &Limits,
    reach: impl Fn(i64) -> Reach,
) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[ID, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let tvs = with_tvs(&arguments)?;
    Ok(Documents::new(reach(arguments.required("id")?), BY_MENU(), tvs, page))
}

/// A tool that takes a document, a range of menu indexes and a page.
fn ranged(
    arguments: &Value,
    limits: &Limits,
    reach: impl Fn(i64, Range) -> Reach,
) -> Result<Documents, Invalid> {
    let rules = [ID, FROM, TO, WITH_TVS, EACH_TV, LIMIT, OFFSET];
    let arguments = Arguments::read(arguments, &rules)?;
    let range = Range { from: arguments.required("from")?, to: arguments.integer("to") };
    if range.to.is_some_and(|to| to < range.from) {
        return Err(Invalid("to must be greater than or equal to from.".to_owned()));
    }
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let tvs = with_tvs(&arguments)?;
    Ok(Documents::new(reach(arguments.required("id")?, range), BY_MENU(), tvs, page))
}

impl Documents {
    /// Live documents, without further conditions.
    fn new(reach: Reach, order: Vec<Order>, tvs: Vec<Tv>, page: Page) -> Documents {
        Documents {
            reach,
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

/// The order by column, always ended by the id so that pages never overlap.
fn column_order(arguments: &Arguments<'_>) -> Result<Vec<Order>, Invalid> {
    let by_id = || Order::up("id");
    if let Some(dir) = arguments.text("order_by_date") {
        let dir = dir.trim_matches(coerce::BLANKS);
        let direction = direction(dir)
            .ok_or_else(|| Invalid(format!("Invalid order_by_date [{}].", shown(dir))))?;
        return Ok(vec![Order { by: Key::Date, direction }, by_id()]);
    }
    let Some(name) = arguments.text("order_by") else { return Ok(vec![by_id()]) };
    let name = name.trim_matches(coerce::BLANKS);
    let Some(column) = ORDER_BY.into_iter().find(|column| *column == name) else {
        let list = ORDER_BY.join(", ");
        return Err(Invalid(format!("order_by must be one of: {list}.")));
    };
    let direction = order_dir(arguments)?;
    let first = Order { by: Key::Column(column), direction };
    Ok(if column == "id" { vec![first] } else { vec![first, by_id()] })
}
