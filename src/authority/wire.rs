//! Shapes of what the authority takes and returns, by its own field names. A missing field that is not an
//! `Option` makes the whole answer unreadable, because a guess would be told to a caller as the authority's
//! word.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The body of `POST /invoice/irn/validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IrnCheck {
    pub invoice_reference: String,
    /// The taxpayer, a UUID.
    pub business_id: String,
    pub irn: String,
}

/// The data of `GET /invoice/confirm/{irn}`. Dates are as the authority writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Confirmation {
    pub issue_date: Option<String>,
    pub due_date: Option<String>,
    pub sync_date: Option<String>,
    /// PENDING, PARTIAL, PAID or REJECTED.
    pub payment_status: String,
    pub transmitted: bool,
    pub delivered: bool,
}

/// The data of `GET /invoice/transmit/lookup/{irn}`: both sides of an invoice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parties {
    pub supplier: Party,
    /// Absent where an invoice has no named buyer.
    pub customer: Option<Party>,
}

/// One side and its access point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    pub tin: Option<String>,
    #[serde(alias = "party_name")]
    pub name: Option<String>,
    /// The access point as the authority describes it.
    #[serde(default)]
    pub access_point: Value,
    /// Whether its access point takes invoices at present.
    pub online: bool,
}

/// What the authority said to an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The authority's own words.
    pub message: String,
    /// Whether it had been acknowledged before; the authority then refuses, harmlessly.
    pub already: bool,
}

/// Filters of `GET /invoice/transmit/pull`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullQuery {
    pub confirmed: Option<bool>,
    /// YYYY-MM-DD.
    pub from: Option<String>,
    /// YYYY-MM-DD.
    pub to: Option<String>,
}

/// One invoice on its way to this access point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTransit {
    pub irn: String,
    /// TRANSMITTING, ACKNOWLEDGED, TRANSMITTED or FAILED, where the authority says so.
    pub message: Option<String>,
}

/// Filters of `GET /invoice/{business_id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    pub irn: Option<String>,
    pub payment_status: Option<String>,
    pub entry_status: Option<String>,
    pub size: Option<u32>,
    pub page: Option<u32>,
}

/// The data of `GET /invoice/{business_id}`, items and page as they came.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SearchPage {
    pub items: Vec<Value>,
    #[serde(default)]
    pub page: Value,
}

/// The data of `GET /entity/{entity_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Entity {
    pub businesses: Vec<Business>,
}

/// One business of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Business {
    /// What we call the business id.
    pub id: String,
    pub tin: Option<String>,
}

impl InTransit {
    /// Reads a list of IRNs, bare or as objects with `irn`, in an array or below `items`.
    pub(super) fn list(data: &Value) -> Option<Vec<Self>> {
        let entries = data.as_array().or_else(|| data.get("items")?.as_array())?;
        entries.iter().map(Self::read).collect()
    }

    fn read(entry: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let irn = text(entry).or_else(|| text(entry.get("irn")?))?;
        Some(Self { irn, message: entry.get("message").and_then(text) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn irns_in_transit_are_read_bare_and_as_objects() {
        let bare = InTransit { irn: "A".into(), message: None };
        let told = InTransit { irn: "A".into(), message: Some("TRANSMITTING".into()) };
        assert_eq!(InTransit::list(&json!(["A"])), Some(vec![bare]));
        let entry = json!({"irn": "A", "message": "TRANSMITTING"});
        assert_eq!(InTransit::list(&json!([entry])), Some(vec![told.clone()]));
        assert_eq!(InTransit::list(&json!({"items": [entry]})), Some(vec![told]));
        assert_eq!(InTransit::list(&json!([])), Some(vec![]));
        for unreadable in [json!(null), json!({}), json!([1]), json!([{}]), json!("A")] {
            assert_eq!(InTransit::list(&unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn a_confirmation_without_its_flags_is_not_guessed() {
        let read = |value: Value| serde_json::from_value::<Confirmation>(value);
        assert!(read(json!({"payment_status": "PENDING", "transmitted": true})).is_err());
        assert!(read(json!({"payment_status": "PENDING", "transmitted": true, "delivered": false})).is_ok());
    }
}
