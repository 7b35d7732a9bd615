//! The authority's data, with the authority's field names. An answer without a required field is unreadable.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The body of `POST /invoice/irn/validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IrnCheck {
    pub invoice_reference: String,
    /// The UUID of the taxpayer.
    pub business_id: String,
    pub irn: String,
}

/// The data of `GET /invoice/confirm/{irn}`. Dates are as the authority writes them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Confirmation {
    pub issue_date: Option<String>,
    pub due_date: Option<String>,
    pub sync_date: Option<String>,
    /// PENDING, PARTIAL, PAID or REJECTED.
    pub payment_status: String,
    pub transmitted: bool,
    pub delivered: bool,
}

/// The data of `GET /invoice/transmit/lookup/{irn}`: the supplier and the customer of an invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parties {
    pub supplier: Party,
    /// `None` if the invoice names no buyer.
    pub customer: Option<Party>,
}

/// The supplier or the customer of an invoice, and the access point of that party.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    pub tin: Option<String>,
    pub name: Option<String>,
    /// The authority's description of the access point, unchanged.
    pub access_point: Value,
    /// False if the access point accepts no invoices at present; true also if the authority does not say.
    pub is_online: bool,
}

/// The authority's answer to an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The message of the authority's answer.
    pub message: String,
    /// True if the invoice was already acknowledged; the call counts as a success even so.
    pub was_already_acknowledged: bool,
}

/// The data of `GET /invoice/resources/{list}`: the entries of a reference list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceItems {
    /// An array.
    pub values: Value,
    /// The same as JSON text, as the authority wrote it.
    pub text: String,
}

/// Filters of `GET /invoice/transmit/pull`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullQuery {
    pub confirmed: Option<bool>,
    /// A date in the form YYYY-MM-DD.
    pub from: Option<String>,
    /// A date in the form YYYY-MM-DD.
    pub to: Option<String>,
}

/// One invoice in transit to this access point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceInTransit {
    pub irn: String,
    /// TRANSMITTING, ACKNOWLEDGED, TRANSMITTED or FAILED; `None` if the authority does not say.
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

/// The data of `GET /invoice/{business_id}`. `items` and `page` are unchanged parts of the answer.
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

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Business {
    /// The UUID of the business. Our taxpayers store it as their `business_id`.
    pub id: String,
    pub tin: Option<String>,
}

impl Parties {
    /// Reads the members `supplier` and `customer`, or the members with the authority's other names for them.
    pub(crate) fn read(data: &Value) -> Option<Self> {
        Some(Self {
            supplier: Party::read_first(data, ["supplier", "accounting_supplier_party"])?,
            customer: Party::read_first(data, ["customer", "accounting_customer_party"]),
        })
    }
}

impl Party {
    fn read_first(data: &Value, names: [&str; 2]) -> Option<Self> {
        names
            .into_iter()
            .find_map(|name| Self::read(data.get(name)?))
    }

    fn read(party: &Value) -> Option<Self> {
        let party = party.as_object()?;
        let name = party.get("name").and_then(to_text);
        Some(Self {
            tin: party.get("tin").and_then(to_text),
            name: name.or_else(|| party.get("party_name").and_then(to_text)),
            access_point: party.get("access_point").cloned().unwrap_or_default(),
            is_online: party.get("online").and_then(Value::as_bool).unwrap_or(true),
        })
    }
}

impl InvoiceInTransit {
    /// Reads a list of IRNs or of objects with `irn`. The list is `data` itself, its `items` or its `invoices`.
    pub(crate) fn read_list(data: &Value) -> Option<Vec<Self>> {
        let below = |name: &str| data.get(name)?.as_array();
        let entries = data
            .as_array()
            .or_else(|| below("items"))
            .or_else(|| below("invoices"))?;
        entries.iter().map(Self::read).collect()
    }

    fn read(entry: &Value) -> Option<Self> {
        let irn = to_text(entry).or_else(|| to_text(entry.get("irn")?))?;
        Some(Self {
            irn,
            message: entry.get("message").and_then(to_text),
        })
    }
}

fn to_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn irns_in_transit_are_read_bare_and_as_objects() {
        let bare = InvoiceInTransit {
            irn: "A".into(),
            message: None,
        };
        let with_message = InvoiceInTransit {
            irn: "A".into(),
            message: Some("TRANSMITTING".into()),
        };
        assert_eq!(InvoiceInTransit::read_list(&json!(["A"])), Some(vec![bare]));
        let entry = json!({"irn": "A", "message": "TRANSMITTING"});
        assert_eq!(
            InvoiceInTransit::read_list(&json!([entry])),
            Some(vec![with_message.clone()])
        );
        assert_eq!(
            InvoiceInTransit::read_list(&json!({"items": [entry]})),
            Some(vec![with_message.clone()])
        );
        assert_eq!(
            InvoiceInTransit::read_list(&json!({"invoices": [entry]})),
            Some(vec![with_message])
        );
        assert_eq!(InvoiceInTransit::read_list(&json!([])), Some(vec![]));
        for unreadable in [json!(null), json!({}), json!([1]), json!([{}]), json!("A")] {
            assert_eq!(
                InvoiceInTransit::read_list(&unreadable),
                None,
                "{unreadable}"
            );
        }
    }

    #[test]
    fn parties_are_read_under_either_name() {
        let offline = json!({"tin": "1", "name": "S", "online": false});
        let silent = json!({"tin": "2", "party_name": "C"});
        for (supplier, customer) in [
            ("supplier", "customer"),
            ("accounting_supplier_party", "accounting_customer_party"),
        ] {
            let parties =
                Parties::read(&json!({"irn": "I", supplier: offline, customer: silent})).unwrap();
            assert_eq!(
                (parties.supplier.is_online, parties.supplier.name.as_deref()),
                (false, Some("S"))
            );
            let customer = parties.customer.unwrap();
            assert_eq!(
                (customer.is_online, customer.tin.as_deref()),
                (true, Some("2")),
                "nothing says that it is not"
            );
            assert_eq!(customer.name.as_deref(), Some("C"));
        }
        let both = json!({"supplier": null, "accounting_supplier_party": silent, "customer": null});
        let parties = Parties::read(&both).unwrap();
        assert_eq!(
            (parties.supplier.tin.as_deref(), parties.customer),
            (Some("2"), None)
        );
        for unreadable in [
            json!(null),
            json!({}),
            json!({"customer": silent}),
            json!({"supplier": "S"}),
        ] {
            assert_eq!(Parties::read(&unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn a_confirmation_without_its_flags_is_not_guessed() {
        let read = |value: Value| serde_json::from_value::<Confirmation>(value);
        assert!(read(json!({"payment_status": "PENDING", "transmitted": true})).is_err());
        assert!(
            read(json!({"payment_status": "PENDING", "transmitted": true, "delivered": false}))
                .is_ok()
        );
    }
}
