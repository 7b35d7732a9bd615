//! The order of the list of invoices. Invoices with the same key are ordered by `created_at` and then by id, in the
//! same direction. So each invoice has a unique place, and an index contains the whole order.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use sea_orm::DbBackend;
use sea_orm::sea_query::{Expr, ExprTrait};

use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

words! {
    /// The sort key of the list.
    SortBy {
        CreatedAt = "created_at",
        InvoiceDate = "invoice_date",
        DueDate = "due_date",
        Payable = "payable",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvoiceSort {
    pub by: SortBy,
    pub is_descending: bool,
}

impl InvoiceSort {
    /// Newest first: the default order.
    pub const NEWEST_FIRST: Self = Self {
        by: SortBy::CreatedAt,
        is_descending: true,
    };
    /// By invoice date, earliest first.
    pub const BY_INVOICE_DATE: Self = Self {
        by: SortBy::InvoiceDate,
        is_descending: false,
    };

    /// Parses a word of `SortBy`, with a minus sign before it for the descending order.
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.strip_prefix('-');
        Some(Self {
            by: SortBy::parse(word.unwrap_or(text))?,
            is_descending: word.is_some(),
        })
    }

    /// Returns the words that a caller may send, separated by commas.
    pub fn allowed_words() -> String {
        let words = SortBy::ALL
            .iter()
            .flat_map(|by| [by.to_string(), format!("-{by}")]);
        words.collect::<Vec<_>>().join(", ")
    }

    /// Returns the place of an invoice in this order.
    pub fn place(self, invoice: &Invoice) -> SortPlace {
        let key = match self.by {
            SortBy::CreatedAt => SortKey::CreatedAt,
            SortBy::InvoiceDate => SortKey::Date(invoice.invoice_date),
            SortBy::DueDate => SortKey::Date(invoice.due_date.unwrap_or(NO_DUE_DATE)),
            SortBy::Payable => SortKey::Amount(invoice.payment.payable),
        };
        SortPlace {
            key,
            created_at: invoice.created_at,
            id: invoice.id,
        }
    }

    /// Parses the sort key of a place in this order, as `SortKey` is written; `None` if it is no key of this order.
    pub fn parse_key(self, text: &str) -> Option<SortKey> {
        match self.by {
            SortBy::CreatedAt => text.is_empty().then_some(SortKey::CreatedAt),
            SortBy::InvoiceDate | SortBy::DueDate => text.parse().ok().map(SortKey::Date),
            SortBy::Payable => Amount::parse(text).ok().map(SortKey::Amount),
        }
    }
}

impl Default for InvoiceSort {
    fn default() -> Self {
        Self::NEWEST_FIRST
    }
}

impl fmt::Display for InvoiceSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_descending { "-" } else { "" };
        write!(f, "{sign}{}", self.by)
    }
}

/// The place of an invoice in the order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortPlace {
    pub key: SortKey,
    pub created_at: Timestamp,
    pub id: InvoiceId,
}

/// The value of the sort key. All places of one list have the same kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// The time of creation, which is not repeated here because every place has it.
    CreatedAt,
    Date(Date),
    Amount(Amount),
}

impl fmt::Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreatedAt => Ok(()),
            Self::Date(date) => date.fmt(f),
            Self::Amount(amount) => amount.fmt(f),
        }
    }
}

/// The due date by which an invoice without a due date is ordered, so that it comes after all others.
const NO_DUE_DATE: Date = Date::MAX;
/// This text and the date in it (`NO_DUE_DATE`) must be the same as in the index (migration m0028).
pub(super) const DUE_DATE_SQL: &str = "COALESCE(due_date, '9999-12-31')";
const PAYABLE_POSTGRES_SQL: &str = "CAST(payable AS numeric)";
/// SQLite has no exact numbers of this size. So the digits before the decimal point are padded to `WHOLE_DIGITS` and
/// zeros at the end are removed. The order of these texts is then that of the amounts, which are never negative.
const PAYABLE_SQLITE_SQL: &str = "(substr('000000000000000000000000', 1, 25 - instr(payable || '.', '.')) || \
    rtrim(payable || CASE WHEN instr(payable, '.') > 0 THEN '' ELSE '.' END, '0'))";
const WHOLE_DIGITS: usize = 24;

impl SortBy {
    /// Returns the SQL expression of the key.
    pub(super) fn sql(self, backend: DbBackend) -> &'static str {
        match (self, backend) {
            (Self::CreatedAt, _) => "created_at",
            (Self::InvoiceDate, _) => "invoice_date",
            (Self::DueDate, _) => DUE_DATE_SQL,
            (Self::Payable, DbBackend::Postgres) => PAYABLE_POSTGRES_SQL,
            (Self::Payable, _) => PAYABLE_SQLITE_SQL,
        }
    }
}

/// Returns a date in the form in which the databases compare it.
pub(super) fn date_value(date: Date) -> Expr {
    Expr::val(date.to_string())
}

/// Returns the SQL value of an amount for comparisons with the expression of `SortBy::Payable`. The amount must not be
/// negative, because SQLite compares amounts as padded texts.
pub(super) fn payable_value(amount: Amount, backend: DbBackend) -> Expr {
    if backend == DbBackend::Postgres {
        return Expr::val(amount.to_string()).cast_as("numeric");
    }
    let text = amount.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    Expr::val(format!("{whole:0>WHOLE_DIGITS$}.{fraction}"))
}

impl SortPlace {
    /// Returns the values of the place in the order in which the list is sorted: key, time of creation and id.
    pub(super) fn sort_values(&self, backend: DbBackend) -> Vec<Expr> {
        let key = match self.key {
            SortKey::CreatedAt => None,
            SortKey::Date(date) => Some(date_value(date)),
            SortKey::Amount(amount) => Some(payable_value(amount, backend)),
        };
        let rest = [self.created_at.as_microsecond(), self.id.0].map(Expr::val);
        key.into_iter().chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_word_with_or_without_a_minus_sign() {
        for (text, by, is_descending) in [
            ("created_at", SortBy::CreatedAt, false),
            ("-Due_Date", SortBy::DueDate, true),
            ("-payable", SortBy::Payable, true),
        ] {
            let sort = InvoiceSort::parse(text).unwrap();
            assert_eq!((sort.by, sort.is_descending), (by, is_descending), "{text}");
            assert_eq!(sort.to_string(), text.to_ascii_lowercase());
        }
        for odd in ["", "-", "--payable", "+payable", "id", "payable,due_date"] {
            assert_eq!(InvoiceSort::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_texts_of_amounts_are_in_the_order_of_the_amounts() {
        let amounts = [
            "0",
            "0.000001",
            "0.01",
            "0.5",
            "9",
            "9.99",
            "10",
            "10.1",
            "999999999999999.999999",
        ];
        let texts = amounts.map(|text| {
            let amount = Amount::parse(text).unwrap();
            format!("{:?}", payable_value(amount, DbBackend::Sqlite))
        });
        assert!(texts.is_sorted(), "{texts:#?}");
        let value = |text| payable_value(Amount::parse(text).unwrap(), DbBackend::Sqlite);
        assert_eq!(value("100"), value("100.00"));
        assert_eq!(value("100.5"), value("100.500"));
    }

    #[test]
    fn no_due_date_is_the_last_day_of_the_calendar() {
        assert!(DUE_DATE_SQL.contains(&NO_DUE_DATE.to_string()));
    }
}
