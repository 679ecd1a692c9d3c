//! The arguments of the `evo.content.*` tools.

use serde_json::Value;

use super::{Arguments, Invalid, MAX_TEXT, Need, Rule, Shape, coerce, shown};
use crate::config::Limits;
use crate::models::is_sensitive;
use crate::query::{
    Cast, Comparison, Direction, Documents, Fallback, Key, Operand, Order, Page, Place, Range,
    Reach, Tags, Test, Tv, TvFilter, Which,
};

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

/// More template variables than this in one call are refused.
const MAX_TVS: usize = 100;

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
        ..Documents::of(reach, order, tvs, page)
    })
}

pub(crate) fn get(arguments: &Value, _: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[ID, WITH_TVS, EACH_TV])?;
    let reach = Reach::One(arguments.required("id")?);
    let page = Page { limit: 1, offset: 0 };
    Ok(Documents::of(reach, vec![Order::up("id")], with_tvs(&arguments)?, page))
}

pub(crate) fn root_tree(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(1);
    let tvs = with_tvs(&arguments)?;
    Ok(Documents::of(Reach::Roots { depth }, vec![Order::up("id")], tvs, page))
}

pub(crate) fn descendants(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[ID, DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let depth = arguments.depth(limits)?.unwrap_or(1);
    let reach = Reach::Below { parent: arguments.required("id")?, depth };
    let order = vec![Order::up("parent"), Order::up("menuindex"), Order::up("id")];
    Ok(Documents::of(reach, order, with_tvs(&arguments)?, page))
}

pub(crate) fn ancestors(arguments: &Value, limits: &Limits) -> Result<Documents, Invalid> {
    let arguments = Arguments::read(arguments, &[ID, DEPTH, WITH_TVS, EACH_TV, LIMIT, OFFSET])?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let reach = Reach::Above { depth: arguments.depth(limits)?, id: arguments.required("id")? };
    let order = vec![Order { by: Key::Distance, direction: Direction::Down }, Order::up("id")];
    Ok(Documents::of(reach, order, with_tvs(&arguments)?, page))
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
    Ok(Documents::of(reach(arguments.required("id")?), BY_MENU(), tvs, page))
}

/// A tool that takes a document, a range of menu indexes and a page.
fn ranged(
    arguments: &Value,
    limits: &Limits,
    reach: impl Fn(i64, Range) -> Reach,
) -> Result<Documents, Invalid> {
    let rules = [ID, FROM, TO, WITH_TVS, EACH_TV, LIMIT, OFFSET];
    let arguments = Arguments::read(arguments, &rules)?;
    let page = arguments.page(limits.content_items(), limits.content_offset)?;
    let range = Range { from: arguments.required("from")?, to: arguments.integer("to") };
    if range.to.is_some_and(|to| to < range.from) {
        return Err(Invalid("to must be greater than or equal to from.".to_owned()));
    }
    let tvs = with_tvs(&arguments)?;
    Ok(Documents::of(reach(arguments.required("id")?, range), BY_MENU(), tvs, page))
}

impl Documents {
    /// Live documents, without further conditions.
    fn of(reach: Reach, order: Vec<Order>, tvs: Vec<Tv>, page: Page) -> Documents {
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

/// The variables to return: blanks skipped, each name once, and with its
/// default as soon as one mention asks for it.
fn with_tvs(arguments: &Arguments<'_>) -> Result<Vec<Tv>, Invalid> {
    let mut tvs: Vec<Tv> = Vec::new();
    for entry in members(arguments.get("with_tvs")).filter_map(Value::as_str) {
        let entry = entry.trim_matches(coerce::BLANKS);
        if entry.is_empty() {
            continue;
        }
        let (name, fallback) = match entry.strip_suffix(":d") {
            Some(name) => (name, Fallback::Default),
            None => (entry, Fallback::Null),
        };
        if !is_name(name) {
            return Err(Invalid(format!("Invalid with_tvs entry [{}].", shown(entry))));
        }
        match tvs.iter_mut().find(|tv| tv.name == name) {
            Some(tv) if fallback == Fallback::Default => tv.fallback = fallback,
            Some(_) => {}
            None => tvs.push(Tv { name: name.to_owned(), fallback }),
        }
    }
    if tvs.len() > MAX_TVS {
        return Err(Invalid(format!("with_tvs must not name more than {MAX_TVS} variables.")));
    }
    Ok(tvs)
}

fn tv_filter(filter: &Value) -> Result<TvFilter, Invalid> {
    let tv = tv(filter)?;
    let op = filter["op"].as_str().unwrap_or_default();
    let cast = cast(filter)?;
    let test = match op {
        "null" => Test::Null,
        "!null" => Test::NotNull,
        "in" => Test::In(list(op, &filter["value"])?),
        "not_in" => Test::NotIn(list(op, &filter["value"])?),
        "like" | "like-l" | "like-r" => {
            if cast.is_some() {
                let message = "Numeric casts are allowed only for comparison operators.";
                return Err(Invalid(message.to_owned()));
            }
            Test::Like { place: place(op), text: scalar(op, &filter["value"])? }
        }
        _ => {
            let Some(comparison) = comparison(op) else {
                return Err(Invalid(format!("Invalid tv operator [{}].", shown(op))));
            };
            let text = scalar(op, &filter["value"])?;
            let with = match &cast {
                Some((name, _)) => number(name, &text)?,
                None => Operand::Text(text),
            };
            Test::Compare { op: comparison, with, cast: cast.map(|(_, cast)| cast) }
        }
    };
    Ok(TvFilter { tv, test })
}

fn tv_order(term: &Value) -> Result<Order, Invalid> {
    let tv = tv(term)?;
    let direction = match term["dir"].as_str().map(|dir| dir.trim_matches(coerce::BLANKS)) {
        None | Some("") => Direction::Up,
        Some(dir) => direction(dir)
            .ok_or_else(|| Invalid(format!("Invalid tv_order dir [{}].", shown(dir))))?,
    };
    let cast = match cast(term)? {
        Some((_, Cast::Decimal { .. })) => {
            let message = "DECIMAL cast is not supported for tv_order; use SIGNED or UNSIGNED.";
            return Err(Invalid(message.to_owned()));
        }
        Some((_, cast)) => Some(cast),
        None => None,
    };
    Ok(Order { by: Key::Tv { tv, cast }, direction })
}

/// The variable that a filter or an order term names.
fn tv(term: &Value) -> Result<Tv, Invalid> {
    let name = term["tv"].as_str().unwrap_or_default().trim_matches(coerce::BLANKS);
    if !is_name(name) {
        return Err(Invalid(format!("Invalid tv name [{}].", shown(name))));
    }
    let default = term.get("use_default").and_then(coerce::flag).unwrap_or(false);
    let fallback = if default { Fallback::Default } else { Fallback::Null };
    Ok(Tv { name: name.to_owned(), fallback })
}

fn tags(arguments: &Arguments<'_>) -> Result<Option<Tags>, Invalid> {
    let Some(data) = arguments.get("tags_data").filter(|data| coerce::members(data) != Some(0))
    else {
        return Ok(None);
    };
    let mut names = Vec::new();
    for tag in members(data.get("tags")) {
        let tag = tag.as_str().unwrap_or_default().trim_matches(coerce::BLANKS);
        if tag.is_empty() || tag.contains([':', ';', '\0']) || tag.len() > MAX_TEXT {
            return Err(Invalid(format!("Invalid tag value [{}].", shown(tag))));
        }
        names.push(tag.to_owned());
    }
    too_many("tags_data.tags", names.len())?;
    let tv_id = data.get("tv_id").and_then(coerce::integer).unwrap_or_default();
    Ok(Some(Tags { tv_id, names }))
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

pub(super) fn order_dir(arguments: &Arguments<'_>) -> Result<Direction, Invalid> {
    let Some(dir) = arguments.text("order_dir") else { return Ok(Direction::Up) };
    let dir = dir.trim_matches(coerce::BLANKS);
    direction(dir).ok_or_else(|| Invalid(format!("Invalid order_dir [{}].", shown(dir))))
}

fn direction(text: &str) -> Option<Direction> {
    match text.to_ascii_lowercase().as_str() {
        "asc" => Some(Direction::Up),
        "desc" => Some(Direction::Down),
        _ => None,
    }
}

/// The values of a list, or of an object that is used as one.
pub(super) fn members(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (items, object) = match value {
        Some(Value::Array(items)) => (Some(items.iter()), None),
        Some(Value::Object(object)) => (None, Some(object.values())),
        _ => (None, None),
    };
    items.into_iter().flatten().chain(object.into_iter().flatten())
}

pub(super) fn comparison(op: &str) -> Option<Comparison> {
    Some(match op {
        "=" => Comparison::Equal,
        "!=" => Comparison::Unequal,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        _ => return None,
    })
}

/// Where the text of a `like` operator stands.
pub(super) fn place(op: &str) -> Place {
    match op {
        "like-l" => Place::AtEnd,
        "like-r" => Place::AtStart,
        _ => Place::Anywhere,
    }
}

/// A cast and its name in capitals.
fn cast(term: &Value) -> Result<Option<(String, Cast)>, Invalid> {
    let text = term["cast"].as_str().unwrap_or_default().trim_matches(coerce::BLANKS);
    if text.is_empty() {
        return Ok(None);
    }
    let name = text.to_uppercase();
    let cast = match name.as_str() {
        "UNSIGNED" | "SIGNED" => Some(Cast::Integer),
        _ => decimal(&name),
    };
    match cast {
        Some(cast) => Ok(Some((name, cast))),
        None => Err(Invalid(format!("Invalid tv cast [{}].", shown(&name)))),
    }
}

/// `DECIMAL(p,s)` with one or two digits each.
fn decimal(name: &str) -> Option<Cast> {
    let (precision, scale) = name.strip_prefix("DECIMAL(")?.strip_suffix(')')?.split_once(',')?;
    let digits =
        |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(precision) || !digits(scale) {
        return None;
    }
    Some(Cast::Decimal { scale: scale.parse().ok()? })
}

/// The values of `in`: a list, or text with commas.
fn list(op: &str, value: &Value) -> Result<Vec<Operand>, Invalid> {
    let bad = || Invalid(format!("Invalid value for operator [{op}]."));
    let texts: Vec<String> = match coerce::members(value) {
        Some(_) => members(Some(value))
            .map(|item| coerce::text(item).ok_or_else(bad))
            .collect::<Result<_, _>>()?,
        None => {
            let text = coerce::text(value)
                .ok_or_else(|| Invalid(format!("Operator [{op}] requires at least one value.")))?;
            text.split(',').map(str::to_owned).collect()
        }
    };
    if texts.is_empty() {
        return Err(Invalid(format!("Operator [{op}] requires at least one value.")));
    }
    too_many("value", texts.len())?;
    let operand = |text: String| {
        let text = text.trim_matches(coerce::BLANKS);
        let odd = text.is_empty() || text.contains([':', ';', '\0']) || text.len() > MAX_TEXT;
        if odd { Err(bad()) } else { Ok(Operand::Text(text.to_owned())) }
    };
    texts.into_iter().map(operand).collect()
}

/// Engines limit how many values one statement may bind.
pub(super) const MAX_LIST: usize = 1000;

pub(super) fn too_many(name: &str, n_values: usize) -> Result<(), Invalid> {
    if n_values <= MAX_LIST {
        return Ok(());
    }
    Err(Invalid(format!("{name} must not have more than {MAX_LIST} entries.")))
}

/// The value of a comparison. The characters of the CMS's own filter language
/// are refused, as the contract's suite expects.
fn scalar(op: &str, value: &Value) -> Result<String, Invalid> {
    let text = coerce::text(value).unwrap_or_default();
    let text = text.trim_matches(coerce::BLANKS);
    if text.is_empty() {
        return Err(Invalid(format!("Operator [{op}] requires a value.")));
    }
    if text.contains([':', ';', '\0']) || text.len() > MAX_TEXT {
        return Err(Invalid(format!("Invalid value [{}].", shown(text))));
    }
    Ok(text.to_owned())
}

/// A number for a cast: digits, perhaps a minus, perhaps a fraction.
fn number(cast: &str, text: &str) -> Result<Operand, Invalid> {
    let bare = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match bare.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (bare, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !fraction.is_none_or(digits) {
        return Err(Invalid(format!("Cast [{cast}] requires a numeric value.")));
    }
    if let Ok(integer) = text.parse() {
        return Ok(Operand::Integer(integer));
    }
    let real: f64 = text.parse().unwrap_or(f64::INFINITY);
    if real.is_finite() {
        return Ok(Operand::Real(real));
    }
    Err(Invalid(format!("Cast [{cast}] requires a numeric value.")))
}

/// A variable's name as the contract allows it. A variable that is called like
/// a sensitive field is as sensitive as that field.
fn is_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= 255 && name.bytes().all(legal) && !is_sensitive(name)
}
