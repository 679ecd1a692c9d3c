//! A query to the database, as plain values.
//!
//! A query is made from a tool's arguments and rendered as SQL later; this module
//! knows neither. Names of columns are `&'static str` from fixed lists. What a
//! caller wrote is a value, and values are only ever bound to a statement.

/// A page of an ordered list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) limit: i64,
    pub(crate) offset: i64,
}

/// A query for a list of documents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DocumentQuery {
    pub(crate) scope: TreeScope,
    pub(crate) deleted: bool,
    pub(crate) published: Option<bool>,
    pub(crate) hidden: Option<bool>,
    pub(crate) template: Option<i64>,
    pub(crate) filters: Vec<TvFilter>,
    pub(crate) tags: Option<Tags>,
    pub(crate) order: Vec<Order>,
    /// Template variables to return, by name.
    pub(crate) tvs: Vec<Tv>,
    pub(crate) page: Page,
}

/// The part of the document tree that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeScope {
    Site,
    /// No document at all: the contract says so for too many filters.
    Nowhere,
    One(i64),
    /// Everything below a document; 0 is the whole site.
    Below {
        parent: i64,
        depth: i64,
    },
    /// The documents exactly `depth` levels below a document.
    Level {
        parent: i64,
        depth: i64,
    },
    /// The roots that are not deleted, and what is below them.
    Roots {
        depth: i64,
    },
    Above {
        id: i64,
        depth: Option<i64>,
    },
    Children {
        parent: i64,
        range: Option<Range>,
    },
    Siblings {
        id: i64,
        which: SiblingFilter,
    },
}

/// The siblings that are listed, by menu index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiblingFilter {
    All,
    Adjacent,
    Before,
    After,
    Within(Range),
}

/// A range of menu indexes, open at the end when there is no `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: i64,
    pub(crate) to: Option<i64>,
}

/// A template variable that is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tv {
    pub(crate) name: String,
    pub(crate) fallback: Fallback,
}

/// What stands for a value that a document does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fallback {
    Null,
    /// The variable's own default text.
    Default,
}

/// A condition on a template variable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TvFilter {
    pub(crate) tv: Tv,
    pub(crate) test: Condition,
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Compare { op: Comparison, with: Operand, cast: Option<Cast> },
    In(Vec<Operand>),
    NotIn(Vec<Operand>),
    Like { place: TextPosition, text: String },
    Null,
    NotNull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// Where a text must stand in the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPosition {
    Anywhere,
    AtEnd,
    AtStart,
}

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Integer(i64),
    /// An exact number as it is written, of any length.
    Decimal(String),
    Text(String),
}

/// How a text is turned into a number: by the number at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cast {
    /// What follows the integer is cut off.
    Integer,
    /// Rounded half away from zero, to at most [`MAX_SCALE`] digits.
    Decimal { scale: u8 },
}

/// The most digits after the point; every engine stores as many.
pub(crate) const MAX_SCALE: u8 = 30;

/// Documents that carry one of these tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tags {
    pub(crate) tv_id: i64,
    pub(crate) names: Vec<String>,
}

/// One term of a sort order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) by: OrderKey,
    pub(crate) direction: Direction,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OrderKey {
    /// A column of the document.
    Column(&'static str),
    /// The publication date, or else the date of creation.
    Date,
    /// How many levels above the first document it is.
    Distance,
    Tv {
        tv: Tv,
        cast: Option<Cast>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

/// A query for rows of one of the listed models.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordQuery {
    pub(crate) model: &'static crate::models::Model,
    pub(crate) filters: Vec<FieldFilter>,
    pub(crate) order: (&'static str, Direction),
    pub(crate) page: Page,
}

/// A condition on a column of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldFilter {
    pub(crate) field: &'static str,
    pub(crate) test: Condition,
}

impl Order {
    pub(crate) fn ascending(column: &'static str) -> Order {
        Order { by: OrderKey::Column(column), direction: Direction::Ascending }
    }

    pub(crate) fn descending(column: &'static str) -> Order {
        Order { by: OrderKey::Column(column), direction: Direction::Descending }
    }
}

impl Condition {
    /// Returns whether a missing value can match.
    pub(crate) fn takes_null(&self) -> bool {
        match self {
            Condition::Null => true,
            Condition::Compare { .. }
            | Condition::In(_)
            | Condition::NotIn(_)
            | Condition::Like { .. }
            | Condition::NotNull => false,
        }
    }
}
