//! A value in a document, with its path as the authority's error messages show it: `tax_total[0].tax_subtotal[0]`
//! becomes `taxtotal[0].taxsubtotal[0]`. A missing member is read as null.

use std::collections::HashSet;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::decimal;

/// The path of a value and the rule that the value breaks, as one text.
pub(crate) type Fault = String;

static NULL: Value = Value::Null;

#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    pub(crate) fn root(name: &str, value: &'a Value) -> Self {
        Self {
            value,
            path: name.to_owned(),
        }
    }

    pub(crate) fn at(&self, member: &str) -> Self {
        let value = self.value.get(member).unwrap_or(&NULL);
        Self {
            value,
            path: format!("{}.{}", self.path, member.replace('_', "")),
        }
    }

    pub(crate) fn fault(&self, rule: &str) -> Fault {
        format!("{} {rule}", self.path)
    }

    /// Returns true if the value is missing, null or an empty text. The authority does not distinguish these three.
    pub(crate) fn is_absent(&self) -> bool {
        self.value.is_null() || self.value == ""
    }

    /// Returns the result of `check`; `None` if the value is absent, which is no fault.
    pub(crate) fn check_if_present<T>(
        &self,
        check: impl FnOnce(&Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        if self.is_absent() {
            Ok(None)
        } else {
            check(self).map(Some)
        }
    }

    fn require_value(&self) -> Result<&'a Value, Fault> {
        if self.is_absent() {
            Err(self.fault("is required"))
        } else {
            Ok(self.value)
        }
    }

    pub(crate) fn check_object(&self) -> Result<(), Fault> {
        if self.require_value()?.is_object() {
            Ok(())
        } else {
            Err(self.fault("must be an object"))
        }
    }

    /// Returns the text, which must not be missing or blank.
    pub(crate) fn text(&self) -> Result<&'a str, Fault> {
        let text = self
            .require_value()?
            .as_str()
            .ok_or_else(|| self.fault("must be a string"))?;
        if text.trim().is_empty() {
            Err(self.fault("is required"))
        } else {
            Ok(text)
        }
    }

    pub(crate) fn text_if_present(&self) -> Result<Option<&'a str>, Fault> {
        self.check_if_present(Self::text)
    }

    pub(crate) fn uuid(&self) -> Result<&'a str, Fault> {
        let text = self.text()?;
        if is_uuid(text) {
            Ok(text)
        } else {
            Err(self.fault("must be a valid UUID"))
        }
    }

    pub(crate) fn date(&self) -> Result<Date, Fault> {
        let text = self.text()?;
        let date = if text.len() == 10 {
            Date::strptime("%Y-%m-%d", text).ok()
        } else {
            None
        };
        date.ok_or_else(|| self.fault("must be a date of the form YYYY-MM-DD"))
    }

    /// Returns the text, which must be one of the codes of a reference list.
    pub(crate) fn code_in(&self, codes: &HashSet<String>) -> Result<&'a str, Fault> {
        let text = self.text()?;
        if codes.contains(text) {
            Ok(text)
        } else {
            Err(self.fault("must be a known code"))
        }
    }

    pub(crate) fn word_in(&self, words: &[&str]) -> Result<&'a str, Fault> {
        let text = self.text()?;
        if words.contains(&text) {
            Ok(text)
        } else {
            Err(self.fault(&format!("must be one of {}", words.join(", "))))
        }
    }

    pub(crate) fn amount(&self) -> Result<Decimal, Fault> {
        decimal::from_value(self.require_value()?).ok_or_else(|| self.fault("must be a number"))
    }

    /// Returns the amount, which must not be negative.
    pub(crate) fn amount_from_zero(&self) -> Result<Decimal, Fault> {
        let amount = self.amount()?;
        if amount < Decimal::ZERO {
            Err(self.fault("must not be less than 0"))
        } else {
            Ok(amount)
        }
    }

    pub(crate) fn amount_above_zero(&self) -> Result<Decimal, Fault> {
        let amount = self.amount()?;
        if amount > Decimal::ZERO {
            Ok(amount)
        } else {
            Err(self.fault("must be greater than 0"))
        }
    }

    /// Returns the items of the list, which must not be empty.
    pub(crate) fn items(&self) -> Result<Vec<Self>, Fault> {
        let items = self
            .require_value()?
            .as_array()
            .ok_or_else(|| self.fault("must be an array"))?;
        if items.is_empty() {
            return Err(self.fault("must contain at least 1 item"));
        }
        Ok(self.item_nodes(items))
    }

    pub(crate) fn items_if_present(&self) -> Result<Vec<Self>, Fault> {
        let items = self.check_if_present(|node| {
            node.value
                .as_array()
                .ok_or_else(|| node.fault("must be an array"))
        })?;
        Ok(items
            .map(|items| self.item_nodes(items))
            .unwrap_or_default())
    }

    fn item_nodes(&self, items: &'a [Value]) -> Vec<Self> {
        items
            .iter()
            .enumerate()
            .map(|(index, value)| Self {
                value,
                path: format!("{}[{index}]", self.path),
            })
            .collect()
    }
}

/// Returns true if the text is a UUID: groups of 8, 4, 4, 4 and 12 hexadecimal digits, with hyphens between the groups.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups
            .into_iter()
            .all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
