//! Translates the integration settings of an ERP into the types of the webhook client, which knows nothing about ERPs.

use webhook_client::auth::AccessTokenRequest;
use webhook_client::format::BodyFormat;

use crate::domain::integration::{Auth, ClientAuthentication, Format, SecretText};

/// The properties of an OData entity, each with the JSON pointer of its value in the notification.
const ODATA_PROPERTIES: [(&str, &str); 6] = [
    ("Id", "/id"),
    ("Type", "/type"),
    ("Timestamp", "/timestamp"),
    ("Sequence", "/sequence"),
    ("TaxpayerId", "/taxpayer_id"),
    ("Irn", "/data/irn"),
];

/// Returns the format of a notification for the ERP.
pub(super) fn body_format(format: &Format) -> BodyFormat<'_> {
    match format {
        Format::Rest => BodyFormat::Rest,
        Format::Soap {
            action,
            namespace,
            method,
        } => BodyFormat::Soap {
            action,
            namespace,
            method,
        },
        Format::GraphQl { mutation } => BodyFormat::GraphQl { mutation },
        Format::OData => BodyFormat::OData {
            properties: &ODATA_PROPERTIES,
        },
        Format::JsonRpc { method } => BodyFormat::JsonRpc { method },
    }
}

/// Returns the request for an access token; `None` if this type of authentication needs no tokens.
pub(super) fn access_token_request(auth: &Auth) -> Option<AccessTokenRequest<'_>> {
    let client = auth.token_client()?;
    Some(AccessTokenRequest {
        token_url: &client.token_url,
        client_id: &client.client_id,
        client_secret: client.client_secret.as_secret(),
        has_secret_in_body: client.authentication == ClientAuthentication::Body,
        scope: client.scope.as_deref(),
        refresh_token: auth.refresh_token().map(SecretText::as_secret),
    })
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::{Value, json};
    use webhook_client::format::FormattedRequest;

    use super::*;
    use crate::domain::integration::TokenClient;

    fn odata_entity(notification: &str) -> Value {
        let request = FormattedRequest::new(body_format(&Format::OData), "e1", notification);
        strict_json::from_trusted(&request.body).unwrap()
    }

    #[test]
    fn an_event_is_a_flat_entity() {
        let entity = odata_entity(
            r#"{"id":"e1","type":"invoice.created","timestamp":"2026-01-15T08:00:00.000000Z",
            "sequence":7,"taxpayer_id":3,"data":{"irn":"I1","invoice":{"payable_amount":1.50}}}"#,
        );
        let expected = json!({
            "Id": "e1", "Type": "invoice.created", "Timestamp": "2026-01-15T08:00:00.000000Z", "Sequence": 7,
            "TaxpayerId": 3, "Irn": "I1", "Data": r#"{"invoice":{"payable_amount":1.50},"irn":"I1"}"#,
        });
        assert_eq!(entity, expected);
    }

    #[test]
    fn an_event_without_an_invoice_has_no_irn() {
        let entity = odata_entity(r#"{"id":"e1","data":{}}"#);
        assert_eq!(
            (&entity["Irn"], &entity["Data"]),
            (&Value::Null, &json!("{}"))
        );
    }

    #[test]
    fn only_what_asks_for_tokens_has_a_request_for_one() {
        assert!(access_token_request(&Auth::None).is_none());
        let client = |authentication| TokenClient {
            token_url: "https://erp.example/token".into(),
            client_id: "c".into(),
            client_secret: SecretText::from("s".to_owned()),
            scope: None,
            authentication,
        };
        let auth = Auth::ClientCredentials {
            client: client(ClientAuthentication::Basic),
        };
        let request = access_token_request(&auth).unwrap();
        assert!(!request.has_secret_in_body && request.refresh_token.is_none());
        let auth = Auth::OAuth2 {
            client: client(ClientAuthentication::Body),
            refresh_token: SecretText::from("r".to_owned()),
        };
        let request = access_token_request(&auth).unwrap();
        assert!(request.has_secret_in_body);
        assert_eq!(request.client_secret.expose_secret(), "s");
        assert_eq!(request.refresh_token.unwrap().expose_secret(), "r");
    }
}
