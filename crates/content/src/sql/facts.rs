//! Statements about the site as such: its tables, closure table, indexes, settings and users.

use super::writer::Writer;
use crate::indexes::{Column, Index};
use crate::site::Site;
use crate::statement::{Dialect, Statement};

/// Selects table, name and type of every column of the given tables.
pub(crate) fn columns(site: &Site, tables: &[&'static str]) -> Statement {
    let mut writer = Writer::new(site);
    match site.dialect {
        Dialect::Sqlite => writer.push(
            "select m.name, p.name, p.type from sqlite_master m join pragma_table_info(m.name) p \
             where m.type in ('table', 'view') and m.name in (",
        ),
        Dialect::MySql => writer.push(
            "select table_name, column_name, data_type from information_schema.columns \
             where table_schema = database() and table_name in (",
        ),
        Dialect::Postgres => writer.push(
            "select table_name::text, column_name::text, data_type::text \
             from information_schema.columns \
             where table_schema = any (current_schemas(false)) and table_name in (",
        ),
    };
    for (at, table) in tables.iter().enumerate() {
        writer.push(if at > 0 { ", " } else { "" });
        writer.string(&format!("{}{table}", site.prefix.as_str()));
    }
    writer.push(")");
    writer.done()
}

/// Selects the names of tables that could contain the documents of a site.
pub(crate) fn document_tables(site: &Site) -> Statement {
    let mut writer = Writer::new(site);
    writer.push(match site.dialect {
        Dialect::Sqlite => {
            "select name from sqlite_master where type in ('table', 'view') and name like "
        }
        Dialect::MySql => {
            "select table_name from information_schema.tables \
             where table_schema = database() and table_name like "
        }
        Dialect::Postgres => {
            "select table_name::text from information_schema.tables \
             where table_schema = any (current_schemas(false)) and table_name like "
        }
    });
    writer.string("%site_content").push(" order by 1 limit 20");
    writer.done()
}

/// Selects a document without the closure row that links it to itself.
pub(crate) fn closure_missing_self(site: &Site) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select c.id from ").from("site_content", "c").push(" left join ");
    writer.from("site_content_closure", "k").push(" on k.ancestor = c.id and k.descendant = c.id");
    writer.push(" where k.ancestor is null or k.depth <> 0 limit 1");
    writer.done()
}

/// Selects a document that lacks the closure row for an ancestor of its parent.
pub(crate) fn closure_gap(site: &Site) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select c.id from ").from("site_content", "c").push(" join ");
    writer.from("site_content_closure", "k").push(" on k.descendant = c.parent left join ");
    writer.from("site_content_closure", "x");
    writer.push(" on x.ancestor = k.ancestor and x.descendant = c.id");
    writer.push(" where x.ancestor is null or x.depth <> k.depth + 1 limit 1");
    writer.done()
}

/// Selects a document with a closure row for an ancestor that its parent does not have.
pub(crate) fn closure_stale(site: &Site) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select c.id from ").from("site_content", "c").push(" join ");
    writer.from("site_content_closure", "k").push(" on k.descendant = c.id left join ");
    writer.from("site_content_closure", "x");
    writer.push(" on x.ancestor = k.ancestor and x.descendant = c.parent");
    writer.push(" where k.depth > 0 and x.ancestor is null limit 1");
    writer.done()
}

/// Selects a document with two closure rows for the same ancestor.
pub(crate) fn closure_repeated(site: &Site) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select k.descendant from ").from("site_content_closure", "k");
    writer.push(" group by k.ancestor, k.descendant having count(*) > 1 limit 1");
    writer.done()
}

/// Counts the documents, up to `limit`.
pub(crate) fn count_documents(site: &Site, limit: i64) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select count(*) from (select c.id from ").from("site_content", "c");
    writer.push(" limit ").integer(limit).push(") counted");
    writer.done()
}

/// Counts the documents from the roots down to a depth, up to `limit`.
pub(crate) fn count_below_roots(site: &Site, depth: i64, limit: i64) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select count(*) from (select k.descendant from ").from("site_content", "r");
    writer.push(" join ").from("site_content_closure", "k").push(" on k.ancestor = r.id");
    writer.push(" where r.parent = 0 and k.depth <= ").integer(depth);
    writer.push(" limit ").integer(limit).push(") few");
    writer.done()
}

/// Selects the role of a user, whether it is blocked, until when, and from when on; 0 for
/// dates that an old site has no columns for.
pub(crate) fn user_status(site: &Site, user: i64) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select u.").name("role").push(", u.blocked");
    for date in ["blockeduntil", "blockedafter"] {
        if site.has_column("user_attributes", date) {
            writer.push(", ").column("u", date);
        } else {
            writer.push(", 0");
        }
    }
    writer.push(" from ").from("user_attributes", "u").push(" where ").column("u", "internalKey");
    writer.push(" = ").integer(user).push(" limit 1");
    writer.done()
}

pub(crate) fn has_permission(site: &Site, role: i64, permission: &str) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select 1 from ").from("role_permissions", "p").push(" where p.role_id = ");
    writer.integer(role).push(" and p.permission = ").string(permission).push(" limit 1");
    writer.done()
}

pub(crate) fn setting(site: &Site, name: &'static str) -> Statement {
    let mut writer = Writer::new(site);
    writer.push("select s.setting_value from ").from("system_settings", "s");
    writer.push(" where s.setting_name = ").string(name).push(" limit 1");
    writer.done()
}

/// Selects the engine's plan for a statement.
pub(crate) fn explain(site: &Site, statement: &Statement) -> Statement {
    let word = match site.dialect {
        Dialect::Sqlite => "explain query plan ",
        Dialect::MySql | Dialect::Postgres => "explain ",
    };
    Statement { text: format!("{word}{}", statement.text), values: statement.values.clone() }
}

/// Selects table, index, column and whether it is descending, for every column of every
/// index.
pub(crate) fn indexes(site: &Site) -> Statement {
    let mut writer = Writer::new(site);
    match site.dialect {
        Dialect::Sqlite => writer.push(
            "select m.name, l.name, i.name, i.\"desc\" from sqlite_master m \
             join pragma_index_list(m.name) l join pragma_index_xinfo(l.name) i \
             where m.type = 'table' and i.name is not null and i.key = 1 and l.partial = 0 \
             order by m.name, l.name, i.seqno",
        ),
        Dialect::MySql => writer.push(
            "select table_name, index_name, column_name, case collation when 'D' then 1 else 0 end \
             from information_schema.statistics where table_schema = database() \
             and index_type = 'BTREE' and column_name is not null and sub_part is null \
             order by table_name, index_name, seq_in_index",
        ),
        Dialect::Postgres => writer.push(
            "select t.relname::text, i.relname::text, a.attname::text, \
             (x.indoption[k.position - 1] & 1)::int from pg_index x \
             join pg_class t on t.oid = x.indrelid join pg_class i on i.oid = x.indexrelid \
             join unnest(x.indkey) with ordinality k(attnum, position) on true \
             join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum \
             where t.relnamespace::regnamespace::text = any (current_schemas(false)::text[]) \
             and x.indpred is null order by 1, 2, k.position",
        ),
    };
    writer.done()
}

/// Renders the statement that creates an index, for an operator to run.
pub(crate) fn create_index(site: &Site, index: &Index) -> String {
    let mut writer = Writer::new(site);
    let words = index.columns.iter().map(|column| match column {
        Column::Ascending(name) => (*name).to_owned(),
        Column::Descending(name) => format!("{name}_down"),
    });
    let words: Vec<String> = words.collect();
    let name = format!("{}gatelet_{}_{}", site.prefix.as_str(), index.table, words.join("_"));
    // Engines truncate or refuse longer names.
    let name: String = name.chars().take(63).collect();
    writer.push("create index ").name(&name).push(" on ").table(index.table).push(" (");
    for (at, column) in index.columns.iter().enumerate() {
        writer.push(if at > 0 { ", " } else { "" }).name(column.name());
        writer.push(if matches!(column, Column::Descending(_)) { " desc" } else { "" });
    }
    writer.push(");");
    writer.done().text
}
