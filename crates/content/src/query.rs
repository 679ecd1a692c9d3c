//! A question to the database, as plain values.
//!
//! The argument layer makes these, [`crate::sql`] renders them. Names of
//! columns are `&'static str` from fixed lists; whatever a caller wrote is a
//! value and is only ever bound.

/// Which rows of an ordered list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) limit: i64,
    pub(crate) offset: i64,
}

/// A list of documents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Documents {
    pub(crate) reach: Reach,
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

/// Which part of the tree is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Site,
    /// Nothing at all, by the contract: too many filters.
    Nowhere,
    One(i64),
    /// Everything below a document; 0 is the whole site.
    Below {
        parent: i64,
        depth: i64,
    },
    /// What is exactly so many levels below a document.
    Level {
        parent: i64,
        depth: i64,
    },
    /// Live roots and what is below them.
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
        which: Which,
    },
}

/// Which siblings, by menu index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
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
    pub(crate) test: Test,
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
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

/// The number at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cast {
    /// What follows the integer is cut off.
    Integer,
    /// Rounded half away from zero, to at most [`MAX_SCALE`] digits.
    Decimal { scale: u8 },
}

/// As many digits after the point as every engine keeps.
pub(crate) const MAX_SCALE: u8 = 30;

/// Documents that carry one of these tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tags {
    pub(crate) tv_id: i64,
    pub(crate) names: Vec<String>,
}

/// One term of an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) by: Key,
    pub(crate) direction: Direction,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    /// A column of the document.
    Column(&'static str),
    /// The publication date, or else the date of creation.
    Date,
    /// How far above the start a document is.
    Distance,
    Tv {
        tv: Tv,
        cast: Option<Cast>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// Rows of one of the listed models.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Records {
    pub(crate) model: &'static crate::models::Model,
    pub(crate) filters: Vec<FieldFilter>,
    pub(crate) order: (&'static str, Direction),
    pub(crate) page: Page,
}

/// A condition on a column of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldFilter {
    pub(crate) field: &'static str,
    pub(crate) test: Test,
}

impl Order {
    pub(crate) fn up(column: &'static str) -> Order {
        Order { by: Key::Column(column), direction: Direction::Up }
    }

    pub(crate) fn down(column: &'static str) -> Order {
        Order { by: Key::Column(column), direction: Direction::Down }
    }
}

impl Test {
    /// Whether a missing value can pass.
    pub(crate) fn takes_null(&self) -> bool {
        match self {
            Test::Null => true,
            Test::Compare { .. }
            | Test::In(_)
            | Test::NotIn(_)
            | Test::Like { .. }
            | Test::NotNull => false,
        }
    }
}
