//! Statements of the rules as PostgreSQL reads them, and those a connection has prepared.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Statement;
use tokio_postgres::types::Type;

/// Statements met on a connection.
#[derive(Default)]
pub(super) struct Statements(RefCell<HashMap<String, Known>>);

struct Known {
    text: Arc<str>,
    /// One for each combination of types its parameters came in: which of them have no value.
    prepared: Vec<(Vec<Type>, Statement)>,
}

impl Statements {
    /// A statement in PostgreSQL's words, and as it was prepared for parameters of these types.
    pub(super) fn find(&self, sql: &str, types: &[Type]) -> (Arc<str>, Option<Statement>) {
        let mut known = self.0.borrow_mut();
        if let Some(known) = known.get(sql) {
            let prepared = known.prepared.iter().find(|(found, _)| found == types);
            return (Arc::clone(&known.text), prepared.map(|(_, statement)| statement.clone()));
        }
        let text: Arc<str> = translate(sql).into();
        known.insert(sql.to_owned(), Known { text: Arc::clone(&text), prepared: Vec::new() });
        (text, None)
    }

    pub(super) fn keep(&self, sql: &str, types: Vec<Type>, statement: Statement) {
        if let Some(known) = self.0.borrow_mut().get_mut(sql) {
            known.prepared.push((types, statement));
        }
    }
}

/// `?1` as `$1`, outside of quotes.
pub(super) fn translate(sql: &str) -> String {
    let mut quoted = false;
    let sign = |c| match c {
        '\'' => {
            quoted = !quoted;
            c
        }
        '?' if !quoted => '$',
        c => c,
    };
    sql.chars().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_the_other_way() {
        assert_eq!(translate("a = ?1 AND b <> '?2' OR c > ?12"), "a = $1 AND b <> '?2' OR c > $12");
    }
}
