//! The calls to the authority. A method makes its call once and never retries.

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::Authority;
use crate::crypto::download::EncryptedDocument;
use crate::operation::{Operation, ResourceList};
use crate::path_segment::encode_path_segment;
use crate::transport::answer::AuthorityAnswer;
use crate::transport::classify::{says_not_ok, says_ok};
use crate::transport::failure::AuthorityFailure;
use crate::transport::request::AuthorityRequest;
use crate::wire::{
    Acknowledgement, Confirmation, Entity, InvoiceInTransit, IrnCheck, Parties, PullQuery,
    ResourceItems, SearchPage, SearchQuery,
};

impl Authority {
    /// `POST /invoice/irn/validate`: checks that this IRN may be used. `Unknown` may mean that an invoice with this IRN
    /// is already signed.
    pub async fn validate_irn(&self, check: &IrnCheck) -> Result<(), AuthorityFailure> {
        let body = json!(check);
        self.send(
            AuthorityRequest::new(
                Operation::ValidateIrn,
                Method::POST,
                "/invoice/irn/validate",
            )
            .with_body(&body),
            expect_ok,
        )
        .await
    }

    /// `POST /invoice/validate`: checks a document. The authority reports only one fault at a time.
    pub async fn validate(&self, document: &Value) -> Result<(), AuthorityFailure> {
        self.send(
            AuthorityRequest::new(Operation::Validate, Method::POST, "/invoice/validate")
                .with_body(document),
            expect_ok,
        )
        .await
    }

    /// `POST /invoice/sign`: signs a document. After `Unknown` the document may already be signed: ask `confirm`.
    pub async fn sign(&self, document: &Value) -> Result<(), AuthorityFailure> {
        self.send(
            AuthorityRequest::new(Operation::Sign, Method::POST, "/invoice/sign")
                .with_body(document),
            expect_ok,
        )
        .await
    }

    /// `GET /invoice/confirm/{irn}`: returns the state of a signed invoice. `NotFound` if the IRN is not signed.
    pub async fn confirm(&self, irn: &str) -> Result<Confirmation, AuthorityFailure> {
        let path = format!("/invoice/confirm/{}", encode_path_part(irn)?);
        self.send(
            AuthorityRequest::new(Operation::Confirm, Method::GET, &path).for_irn(irn),
            parse_data,
        )
        .await
    }

    /// `PATCH /invoice/update/{irn}`: reports a payment. `payment_status` is PARTIAL, PAID or REJECTED.
    pub async fn update_payment(
        &self,
        irn: &str,
        payment_status: &str,
        reference: Option<&str>,
    ) -> Result<(), AuthorityFailure> {
        let path = format!("/invoice/update/{}", encode_path_part(irn)?);
        let body = match reference {
            Some(reference) => json!({ "payment_status": payment_status, "reference": reference }),
            None => json!({ "payment_status": payment_status }),
        };
        let request = AuthorityRequest::new(Operation::UpdatePayment, Method::PATCH, &path)
            .for_irn(irn)
            .with_body(&body);
        self.send(request, expect_ok).await
    }

    /// `GET /invoice/transmit/self-health-check`: true if the answer says `ok: true`, else false, also after a 5xx.
    pub async fn is_system_healthy(&self) -> Result<bool, AuthorityFailure> {
        let request = AuthorityRequest::new(
            Operation::SystemHealth,
            Method::GET,
            "/invoice/transmit/self-health-check",
        );
        self.send(request, |answer| Some(says_ok(&answer))).await
    }

    /// `GET /invoice/transmit/lookup/{irn}`: returns both parties, and whether their access points are online.
    pub async fn look_up_parties(&self, irn: &str) -> Result<Parties, AuthorityFailure> {
        let path = format!("/invoice/transmit/lookup/{}", encode_path_part(irn)?);
        let request = AuthorityRequest::new(Operation::Lookup, Method::GET, &path).for_irn(irn);
        self.send(request, |answer| Parties::read(&answer.data))
            .await
    }

    /// `POST /invoice/transmit/{irn}`: sends the invoice to the customer's access point.
    pub async fn transmit(&self, irn: &str) -> Result<(), AuthorityFailure> {
        let path = format!("/invoice/transmit/{}", encode_path_part(irn)?);
        let body = json!({});
        self.send(
            AuthorityRequest::new(Operation::Transmit, Method::POST, &path)
                .for_irn(irn)
                .with_body(&body),
            expect_ok,
        )
        .await
    }

    /// `PATCH /invoice/transmit/{irn}`: confirms the receipt of the invoice. May be repeated.
    pub async fn acknowledge(&self, irn: &str) -> Result<Acknowledgement, AuthorityFailure> {
        let path = format!("/invoice/transmit/{}", encode_path_part(irn)?);
        let body = json!({ "message": "ACKNOWLEDGED" });
        let request = AuthorityRequest::new(Operation::Acknowledge, Method::PATCH, &path)
            .for_irn(irn)
            .with_body(&body);
        let result = self
            .send(request, |answer| {
                (!says_not_ok(&answer)).then(|| acknowledgement_message(&answer))
            })
            .await;
        match result {
            Ok(message) => Ok(Acknowledgement {
                was_already_acknowledged: says_already_acknowledged(&message),
                message,
            }),
            Err(AuthorityFailure::Refused { message, .. })
                if says_already_acknowledged(&message) =>
            {
                Ok(Acknowledgement {
                    message,
                    was_already_acknowledged: true,
                })
            }
            Err(failure) => Err(failure),
        }
    }

    /// `GET /invoice/transmit/pull`: lists the invoices in transit to this access point.
    pub async fn list_in_transit(
        &self,
        query: &PullQuery,
    ) -> Result<Vec<InvoiceInTransit>, AuthorityFailure> {
        let request = AuthorityRequest::new(Operation::Pull, Method::GET, "/invoice/transmit/pull")
            .with_query("confirmed", query.confirmed)
            .with_query("from", query.from.as_deref())
            .with_query("to", query.to.as_deref());
        self.send(request, |answer| InvoiceInTransit::read_list(&answer.data))
            .await
    }

    /// `GET /invoice/{business_id}`: returns one page of this taxpayer's invoices at the authority.
    pub async fn search_invoices(
        &self,
        business_id: &str,
        query: &SearchQuery,
    ) -> Result<SearchPage, AuthorityFailure> {
        let request = AuthorityRequest::new(
            Operation::Search,
            Method::GET,
            &format!("/invoice/{}", encode_path_part(business_id)?),
        )
        .with_query("irn", query.irn.as_deref())
        .with_query("payment_status", query.payment_status.as_deref())
        .with_query("entry_status", query.entry_status.as_deref())
        .with_query("size", query.size)
        .with_query("page", query.page);
        self.send(request, parse_data).await
    }

    /// `GET /invoice/download/{irn}`: returns the encrypted document. `NotFound` if the IRN is not signed.
    pub async fn download(&self, irn: &str) -> Result<EncryptedDocument, AuthorityFailure> {
        let path = format!("/invoice/download/{}", encode_path_part(irn)?);
        self.send(
            AuthorityRequest::new(Operation::Download, Method::GET, &path).for_irn(irn),
            parse_data,
        )
        .await
    }

    /// `POST /vat/postpayment`: sends a VAT report. A 2xx is a success unless the body says `ok: false`.
    pub async fn report(&self, report: &Value) -> Result<(), AuthorityFailure> {
        let request = AuthorityRequest::new(Operation::Report, Method::POST, "/vat/postpayment")
            .with_body(report);
        self.send(request, |answer| (!says_not_ok(&answer)).then_some(()))
            .await
    }

    /// `GET /entity/{entity_id}`: returns the businesses of an entity. `NotFound` if no entity has this id.
    pub async fn fetch_entity(&self, id: &str) -> Result<Entity, AuthorityFailure> {
        let path = format!("/entity/{}", encode_path_part(id)?);
        self.send(
            AuthorityRequest::new(Operation::Entity, Method::GET, &path),
            parse_data,
        )
        .await
    }

    /// `GET /invoice/resources/{list}`: returns the list's entries, unmodified.
    pub async fn fetch_resource_list(
        &self,
        list: ResourceList,
    ) -> Result<ResourceItems, AuthorityFailure> {
        let path = format!("/invoice/resources/{}", list.upstream_name());
        let request = AuthorityRequest::new(Operation::Resource, Method::GET, &path).without_keys();
        self.send(request, |answer| {
            let text = strict_json::member_text(&answer.text, "data").ok()??;
            let values = answer.data;
            values.is_array().then_some(ResourceItems { values, text })
        })
        .await
    }
}

/// Encodes text as one segment of a path. Text such as `..` cannot be a segment: `NotFound`, and no call is made.
fn encode_path_part(text: &str) -> Result<String, AuthorityFailure> {
    encode_path_segment(text).ok_or_else(|| AuthorityFailure::NotFound {
        message: "this is no invoice reference number".to_owned(),
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "readers take the answer, and this one needs none of it"
)]
fn expect_ok(answer: AuthorityAnswer) -> Option<()> {
    says_ok(&answer).then_some(())
}

fn parse_data<T: DeserializeOwned>(answer: AuthorityAnswer) -> Option<T> {
    serde_json::from_value(answer.data).ok()
}

fn acknowledgement_message(answer: &AuthorityAnswer) -> String {
    let words = answer
        .message
        .as_str()
        .or_else(|| answer.data.get("message")?.as_str());
    words.unwrap_or("ACKNOWLEDGED").to_owned()
}

fn says_already_acknowledged(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("already") && message.contains("acknowledg")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Server;
    use crate::transport::failure::Cause;
    use crate::wire::Business;

    const IRN: &str = "INV/1-1A2B3C4D-20260101";
    const OK: &str = r#"{"code":200,"data":{"ok":true}}"#;

    fn list_requests(server: &Server) -> Vec<(String, String)> {
        let split = |request: &String| {
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            (
                head.lines().next().unwrap().replace(" HTTP/1.1", ""),
                body.to_owned(),
            )
        };
        server.received_requests().iter().map(split).collect()
    }

    fn lines(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected
            .iter()
            .map(|(line, body)| ((*line).to_owned(), (*body).to_owned()))
            .collect()
    }

    #[tokio::test]
    async fn each_call_goes_to_its_path() {
        let server = Server::json(201, OK).await;
        let authority = server.authority();
        let check = IrnCheck {
            invoice_reference: "1".into(),
            business_id: "b".into(),
            irn: "i".into(),
        };
        let document = strict_json::from_trusted(r#"{"irn":"i","payable_amount":100.10}"#).unwrap();
        authority.validate_irn(&check).await.unwrap();
        authority.validate(&document).await.unwrap();
        authority.sign(&document).await.unwrap();
        authority
            .update_payment(IRN, "PAID", Some("r"))
            .await
            .unwrap();
        authority
            .update_payment(IRN, "REJECTED", None)
            .await
            .unwrap();
        authority.transmit(IRN).await.unwrap();
        authority.report(&document).await.unwrap();
        assert!(authority.is_system_healthy().await.unwrap());
        let text = r#"{"irn":"i","payable_amount":100.10}"#;
        let expected = [
            (
                "POST /api/v1/invoice/irn/validate",
                r#"{"business_id":"b","invoice_reference":"1","irn":"i"}"#,
            ),
            ("POST /api/v1/invoice/validate", text),
            ("POST /api/v1/invoice/sign", text),
            (
                "PATCH /api/v1/invoice/update/INV%2F1-1A2B3C4D-20260101",
                r#"{"payment_status":"PAID","reference":"r"}"#,
            ),
            (
                "PATCH /api/v1/invoice/update/INV%2F1-1A2B3C4D-20260101",
                r#"{"payment_status":"REJECTED"}"#,
            ),
            (
                "POST /api/v1/invoice/transmit/INV%2F1-1A2B3C4D-20260101",
                "{}",
            ),
            ("POST /api/v1/vat/postpayment", text),
            ("GET /api/v1/invoice/transmit/self-health-check", ""),
        ];
        assert_eq!(list_requests(&server), lines(&expected));
    }

    #[tokio::test]
    async fn a_confirmation_is_read() {
        let body = r#"{"code":200,"data":{"issue_date":"2026-01-01","due_date":null,"sync_date":"2026-01-02",
            "payment_status":"PENDING","transmitted":true,"delivered":false}}"#;
        let server = Server::json(200, body).await;
        let confirmation = server.authority().confirm(IRN).await.unwrap();
        let expected = Confirmation {
            issue_date: Some("2026-01-01".into()),
            due_date: None,
            sync_date: Some("2026-01-02".into()),
            payment_status: "PENDING".into(),
            transmitted: true,
            delivered: false,
        };
        assert_eq!(confirmation, expected);
        assert_eq!(
            list_requests(&server),
            lines(&[("GET /api/v1/invoice/confirm/INV%2F1-1A2B3C4D-20260101", "")])
        );
    }

    #[tokio::test]
    async fn both_parties_are_read() {
        let body = r#"{"code":200,"data":{"supplier":{"tin":"1","name":"S","online":true,"access_point":"ap"},
            "customer":{"tin":"2","party_name":"C","online":false}}}"#;
        let server = Server::json(200, body).await;
        let parties = server.authority().look_up_parties("I").await.unwrap();
        assert_eq!(
            (parties.supplier.is_online, parties.supplier.access_point),
            (true, json!("ap"))
        );
        let customer = parties.customer.unwrap();
        assert_eq!(
            (customer.is_online, customer.name.as_deref()),
            (false, Some("C"))
        );
        assert_eq!(
            list_requests(&server),
            lines(&[("GET /api/v1/invoice/transmit/lookup/I", "")])
        );
    }

    #[tokio::test]
    async fn queries_are_encoded() {
        let server = Server::json(200, r#"{"data":{"items":["A"],"page":{"total":1.50}}}"#).await;
        let authority = server.authority();
        let from = PullQuery {
            confirmed: Some(false),
            from: Some("2026-01-01".into()),
            to: None,
        };
        assert_eq!(authority.list_in_transit(&from).await.unwrap()[0].irn, "A");
        assert_eq!(
            authority
                .list_in_transit(&PullQuery::default())
                .await
                .unwrap()
                .len(),
            1
        );
        let query = SearchQuery {
            irn: Some("a&b=c/d".into()),
            size: Some(5),
            ..SearchQuery::default()
        };
        let page = authority.search_invoices("b/c", &query).await.unwrap();
        assert_eq!(
            (page.items, page.page.to_string()),
            (vec![json!("A")], r#"{"total":1.50}"#.to_owned())
        );
        let expected = [
            (
                "GET /api/v1/invoice/transmit/pull?confirmed=false&from=2026-01-01",
                "",
            ),
            ("GET /api/v1/invoice/transmit/pull", ""),
            ("GET /api/v1/invoice/b%2Fc?irn=a%26b%3Dc%2Fd&size=5", ""),
        ];
        assert_eq!(list_requests(&server), lines(&expected));
    }

    #[tokio::test]
    async fn a_download_is_read() {
        let server = Server::json(200, r#"{"data":{"iv_hex":"00","pub":"p","data":"d"}}"#).await;
        let document = server.authority().download("I").await.unwrap();
        assert_eq!(
            (document.iv_hex.as_str(), document.public_part.as_str()),
            ("00", "p")
        );
        assert_eq!(
            list_requests(&server),
            lines(&[("GET /api/v1/invoice/download/I", "")])
        );
    }

    #[tokio::test]
    async fn the_businesses_of_an_entity_are_read() {
        let body = r#"{"code":200,"data":{"id":"e","businesses":[{"id":"b","tin":"1","name":"B"},{"id":"c"}]}}"#;
        let server = Server::json(200, body).await;
        let business = |id: &str, tin: Option<&str>| Business {
            id: id.into(),
            tin: tin.map(str::to_owned),
        };
        let expected = Entity {
            businesses: vec![business("b", Some("1")), business("c", None)],
        };
        assert_eq!(
            server.authority().fetch_entity("e/1").await.unwrap(),
            expected
        );
        assert_eq!(
            list_requests(&server),
            lines(&[("GET /api/v1/entity/e%2F1", "")])
        );
        let server = Server::json(404, r#"{"code":404,"message":"entity not found"}"#).await;
        assert!(matches!(
            server.authority().fetch_entity("e").await,
            Err(AuthorityFailure::NotFound { .. })
        ));
    }

    #[tokio::test]
    async fn a_reference_list_comes_unmodified_and_without_keys() {
        let rows =
            r#"[{"value":"Standard VAT ","percent":7.50,"code":"STANDARD_VAT", "limit":1e3}]"#;
        let server = Server::json(200, &format!(r#"{{"code":200,"data":{rows}}}"#)).await;
        let list = server
            .authority()
            .fetch_resource_list(ResourceList::ProductCodes)
            .await
            .unwrap();
        assert_eq!(list.text, rows);
        assert_eq!(list.values[0]["code"], "STANDARD_VAT");
        assert_eq!(
            list_requests(&server),
            lines(&[("GET /api/v1/invoice/resources/hs-codes", "")])
        );
        assert!(!server.received_requests()[0].contains("x-api-"));
    }

    #[tokio::test]
    async fn a_second_acknowledgement_is_reported_as_such() {
        let server = Server::json(
            200,
            r#"{"code":200,"data":{"ok":true},"message":"thank you"}"#,
        )
        .await;
        let first = server.authority().acknowledge("I").await.unwrap();
        assert_eq!(
            first,
            Acknowledgement {
                message: "thank you".into(),
                was_already_acknowledged: false
            }
        );
        let body = r#"{"message":"ACKNOWLEDGED"}"#;
        assert_eq!(
            list_requests(&server),
            lines(&[("PATCH /api/v1/invoice/transmit/I", body)])
        );
        let server = Server::json(
            400,
            r#"{"code":400,"message":"invoice already acknowledged"}"#,
        )
        .await;
        let second = server.authority().acknowledge("I").await.unwrap();
        assert_eq!(
            second,
            Acknowledgement {
                message: "invoice already acknowledged".into(),
                was_already_acknowledged: true
            }
        );
        let server = Server::json(400, r#"{"code":400,"message":"not for you"}"#).await;
        assert!(matches!(
            server.authority().acknowledge("I").await,
            Err(AuthorityFailure::Refused { status: 400, .. })
        ));
    }

    #[tokio::test]
    async fn an_irn_that_is_no_path_segment_is_not_sent() {
        let server = Server::json(200, OK).await;
        for irn in ["", ".", ".."] {
            assert!(matches!(
                server.authority().confirm(irn).await,
                Err(AuthorityFailure::NotFound { .. })
            ));
        }
        assert!(server.received_requests().is_empty());
    }

    #[tokio::test]
    async fn a_system_that_is_not_ok_or_fails_is_unhealthy() {
        for (status, body) in [
            (200, r#"{"data":{"ok":false}}"#),
            (200, "{}"),
            (503, ""),
            (500, "<html>"),
        ] {
            let server = Server::json(status, body).await;
            assert_eq!(
                server.authority().is_system_healthy().await,
                Ok(false),
                "{status} {body}"
            );
        }
        let server = Server::json(200, "<html>").await;
        let malformed = AuthorityFailure::Retryable {
            reason: Cause::Malformed { status: 200 },
        };
        assert_eq!(server.authority().is_system_healthy().await, Err(malformed));
    }
}
