//! The dialects of the authority: the authority documents some shapes and words in two versions, and a client must
//! read both.
//!
//! | | short | long |
//! |---|---|---|
//! | parties of a lookup | `supplier`, `customer` | `accounting_supplier_party`, `accounting_customer_party` |
//! | a party that is online | `online: true` | no `online` |
//! | rows of a pull | `data[]` | `data.invoices[]` |
//! | a duplicate, a busy moment | "…, kindly try again later" | "temporarily unavailable, please try again" |

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::reply;
use crate::route::Operation;

const BUSY_TEXT: &str = "temporarily unavailable, please try again";

/// The version of words and shapes that the simulator uses in its answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    #[default]
    Short,
    Long,
}

impl Dialect {
    /// Returns the data of a successful answer in the shape of this dialect.
    pub(crate) fn shape_data(self, operation: Operation, data: Value) -> Value {
        match (self, operation, data) {
            (Self::Long, Operation::Pull, rows) => json!({ "invoices": rows }),
            (Self::Long, Operation::Lookup, Value::Object(fields)) => Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| rename_party(&name, value))
                    .collect(),
            ),
            (_, _, data) => data,
        }
    }

    /// Returns the message of a refusal in this dialect. Only `AMBIGUOUS` has two versions.
    pub(crate) fn reword(self, words: &str) -> &str {
        if self == Self::Long && words == reply::AMBIGUOUS {
            BUSY_TEXT
        } else {
            words
        }
    }
}

fn rename_party(name: &str, value: Value) -> (String, Value) {
    let name = match name {
        "supplier" => "accounting_supplier_party".to_owned(),
        "customer" => "accounting_customer_party".to_owned(),
        _ => return (name.to_owned(), value),
    };
    let value = match value {
        Value::Object(party) => Value::Object(remove_online_flag(party)),
        other => other,
    };
    (name, value)
}

fn remove_online_flag(mut party: Map<String, Value>) -> Map<String, Value> {
    if party.get("online") == Some(&Value::Bool(true)) {
        party.remove("online");
    }
    party
}
