//! The name of the table that holds the leases.

use std::fmt;
use std::str::FromStr;

use tenure_core::Invalid;

/// Names a table, and the schema (in MySQL's words: the database) that it lies in where one is given.
///
/// Both parts are 1 to 63 ASCII letters, digits and underscores, not beginning with a digit: what every supported
/// database takes, and nothing that could end a quoted identifier. They are quoted in every statement, so that case
/// counts and reserved words are allowed.
///
/// ```
/// use tenure_sql::TableName;
///
/// let table: TableName = "ops.tenure_leases".parse()?;
/// assert_eq!(table.to_string(), "ops.tenure_leases");
/// assert!("leases; drop table users".parse::<TableName>().is_err());
/// # Ok::<(), tenure_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    schema: Option<String>,
    table: String,
}

impl TableName {
    /// `tenure_leases`, in the schema that the connection is in.
    pub fn leases() -> Self {
        Self { schema: None, table: "tenure_leases".to_owned() }
    }

    /// `tenure_fence`, in the schema that the connection is in.
    pub fn fence() -> Self {
        Self { schema: None, table: "tenure_fence".to_owned() }
    }

    /// Parses `TABLE` or `SCHEMA.TABLE`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] says which characters are allowed.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        let (schema, table) = match text.split_once('.') {
            Some((schema, table)) => (Some(identifier(schema)?), table),
            None => (None, text),
        };
        Ok(Self { schema, table: identifier(table)? })
    }

    /// The schema, where one is given.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The table, without its schema.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Both parts between `quote` characters, ready for a statement.
    pub(crate) fn quoted(&self, quote: char) -> String {
        let table = format!("{quote}{}{quote}", self.table);
        match &self.schema {
            Some(schema) => format!("{quote}{schema}{quote}.{table}"),
            None => table,
        }
    }
}

fn identifier(text: &str) -> Result<String, Invalid> {
    let allowed = |at: usize, c: char| c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit());
    if (1..=63).contains(&text.len()) && text.char_indices().all(|(at, c)| allowed(at, c)) {
        return Ok(text.to_owned());
    }
    Err(Invalid::new(format!(
        "table name part {text:?} is not allowed: TABLE or SCHEMA.TABLE, each 1 to 63 ascii letters, digits and \
         underscores, not beginning with a digit"
    )))
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.table),
            None => f.write_str(&self.table),
        }
    }
}

impl FromStr for TableName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_part_by_part() {
        assert_eq!(TableName::leases().quoted('"'), "\"tenure_leases\"");
        assert_eq!(TableName::new("Ops.t1").unwrap().quoted('`'), "`Ops`.`t1`");
    }

    #[test]
    fn nothing_that_could_end_a_quoted_identifier_is_a_name() {
        for text in ["", ".", "a.", ".b", "a.b.c", "a\"b", "a`b", "a b", "1a", "a;b", "é", &"x".repeat(64)] {
            let refusal = TableName::new(text).unwrap_err().to_string();
            assert!(refusal.contains("1 to 63 ascii letters"), "{refusal}");
        }
    }
}
