//! The queries to the content database, as plain values.
//!
//! `arguments` makes queries and `sql` renders them; this module knows neither. Names
//! of columns are `&'static str` from fixed lists. Everything that a caller wrote is
//! an [`Operand`] or a text that is bound to the statement.

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
    /// Lists the deleted documents instead of the others.
    pub(crate) deleted: bool,
    pub(crate) published: Option<bool>,
    /// Whether the document is hidden from menus.
    pub(crate) hidden: Option<bool>,
    pub(crate) template: Option<i64>,
    pub(crate) filters: Vec<TvFilter>,
    pub(crate) tags: Option<Tags>,
    pub(crate) order: Vec<Order>,
    /// Template variables to return.
    pub(crate) tvs: Vec<Tv>,
    pub(crate) page: Page,
}

/// The part of the document tree that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeScope {
    /// All documents.
    Site,
    /// No document at all, as the contract says for too many filters.
    Nowhere,
    /// The document with this id.
    One(i64),
    /// The documents at most `depth` levels below a document; 0 is the whole site.
    Below { parent: i64, depth: i64 },
    /// The documents exactly `depth` levels below a document.
    Level { parent: i64, depth: i64 },
    /// The roots that are not deleted, and the documents at most `depth` levels below.
    Roots { depth: i64 },
    /// The ancestors of a document, at most `depth` levels above it.
    Above { id: i64, depth: Option<i64> },
    /// The children of a document, perhaps only those in a range of menu indexes.
    Children { parent: i64, range: Option<Range> },
    /// The other children of a document's parent.
    Siblings { id: i64, which: SiblingFilter },
}

/// The siblings that are listed, by their menu index relative to the document's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiblingFilter {
    All,
    /// One more or one less.
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

/// A template variable: a field that the site's templates define for documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tv {
    pub(crate) name: String,
    pub(crate) fallback: Fallback,
}

/// The value of a template variable in a document that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fallback {
    Null,
    /// The default text in the variable's definition.
    Default,
}

/// A condition on a template variable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TvFilter {
    pub(crate) tv: Tv,
    pub(crate) condition: Condition,
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// Comparison with an operand, as texts or, with a cast, as numbers.
    Compare {
        op: Comparison,
        operand: Operand,
        cast: Option<Cast>,
    },
    In(Vec<Operand>),
    NotIn(Vec<Operand>),
    Like {
        position: TextPosition,
        text: String,
    },
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

/// Where in the value a text must occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPosition {
    Anywhere,
    AtEnd,
    AtStart,
}

/// A value that is bound to a statement, usually to be compared with a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Integer(i64),
    /// An exact decimal number of any length, in its decimal notation.
    Decimal(String),
    Text(String),
}

/// How a text is converted to a number: it is the number at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cast {
    /// Truncated to an integer.
    Integer,
    /// Rounded half away from zero, to at most [`MAX_SCALE`] digits.
    Decimal { scale: u8 },
}

/// The most digits after the decimal point, which every engine supports.
pub(crate) const MAX_SCALE: u8 = 30;

/// A filter for documents that have at least one of these tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tags {
    /// The template variable that holds the tags.
    pub(crate) tv_id: i64,
    pub(crate) names: Vec<String>,
}

/// One term of a sort order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) by: OrderKey,
    pub(crate) direction: Direction,
}

/// What documents are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OrderKey {
    /// A column of the document.
    Column(&'static str),
    /// The publication date, or else the date of creation.
    Date,
    /// The number of levels between an ancestor and the document of [`TreeScope::Above`].
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
    /// The field to sort by.
    pub(crate) order: (&'static str, Direction),
    pub(crate) page: Page,
}

/// A condition on a column of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldFilter {
    pub(crate) field: &'static str,
    pub(crate) condition: Condition,
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
    /// Returns whether a null value can fulfil the condition.
    pub(crate) fn matches_null(&self) -> bool {
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
