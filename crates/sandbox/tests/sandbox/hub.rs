//! Access points, notices, and invoices from other suppliers.

use std::{sync::Arc, time::Duration};

use actix_web::{App, HttpResponse, HttpServer, web};
use reqwest::Method;
use sandbox::PartyEnrolment;
use serde_json::{Value, json};
use tokio::sync::{
    Mutex,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::support::{Authority, BUSINESS, CUSTOMER_TIN, IRN, SUPPLIER_TIN};

/// An access point that refuses its first notice and accepts the others.
struct AccessPoint {
    url: String,
    notices: UnboundedReceiver<Value>,
}

impl AccessPoint {
    fn listen() -> Self {
        let (sender, notices) = unbounded_channel();
        let refused = Arc::new(Mutex::new(false));
        let state = web::Data::new((sender, refused));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(state.clone())
                .route("/n", web::post().to(take))
        })
        .workers(1)
        .disable_signals()
        .bind("127.0.0.1:0")
        .expect("a free port");
        let url = format!("http://{}/n", server.addrs()[0]);
        tokio::spawn(server.run());
        Self { url, notices }
    }

    async fn next(&mut self) -> (String, String) {
        let notice = tokio::time::timeout(Duration::from_secs(5), self.notices.recv()).await;
        let notice = notice.expect("a notice in time").expect("a notice");
        (
            notice["irn"].as_str().unwrap_or_default().into(),
            notice["message"].as_str().unwrap_or_default().into(),
        )
    }
}

type Shared = (UnboundedSender<Value>, Arc<Mutex<bool>>);

async fn take(shared: web::Data<Shared>, notice: web::Bytes) -> HttpResponse {
    let notice: Value = strict_json::from_untrusted(&notice).unwrap();
    let mut refused = shared.1.lock().await;
    if !*refused {
        *refused = true;
        return HttpResponse::NotFound().finish();
    }
    drop(refused);
    shared
        .0
        .send(notice)
        .map_or_else(|_| HttpResponse::Gone(), |()| HttpResponse::Ok())
        .finish()
}

fn notice(irn: &str, message: &str) -> (String, String) {
    (irn.into(), message.into())
}

#[actix_rt::test]
async fn access_points_are_notified_in_order_and_again_when_they_refuse() {
    let authority = Authority::start().await;
    let mut access_point = AccessPoint::listen();
    authority
        .control(
            Method::POST,
            "/access-points",
            &json!({ "url": access_point.url }),
        )
        .await;
    authority.sign(IRN).await;
    authority
        .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
        .await;
    assert_eq!(access_point.next().await, notice(IRN, "TRANSMITTING"));
    assert_eq!(access_point.next().await, notice(IRN, "TRANSMITTED"));
    authority
        .patch(
            &format!("/invoice/transmit/{IRN}"),
            &json!({ "message": "ACKNOWLEDGED" }),
        )
        .await;
    assert_eq!(access_point.next().await, notice(IRN, "ACKNOWLEDGED"));
    authority
        .control(
            Method::POST,
            "/notices",
            &json!({ "irn": "X", "message": "FAILED" }),
        )
        .await;
    assert_eq!(access_point.next().await, notice("X", "FAILED"));
}

#[actix_rt::test]
async fn an_invoice_is_transmitted_once_and_acknowledged_once() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    let path = format!("/invoice/transmit/{IRN}");
    let receipt = json!({ "message": "ACKNOWLEDGED" });
    assert_eq!(
        authority.patch(&path, &receipt).await.1["message"],
        "invoice has not been transmitted"
    );
    assert_eq!(authority.post(&path, &json!({})).await.0, 200);
    assert_eq!(
        authority.post(&path, &json!({})).await.1["message"],
        "invoice already transmitted"
    );
    assert_eq!(
        authority
            .patch(&path, &json!({ "message": "SEEN" }))
            .await
            .0,
        400
    );
    assert_eq!(authority.patch(&path, &receipt).await.0, 200);
    let (status, body) = authority.patch(&path, &receipt).await;
    assert_eq!(
        (status, &body["message"]),
        (400, &json!("invoice transmission already acknowledged"))
    );
}

#[actix_rt::test]
async fn pull_lists_what_is_in_transit_until_it_is_acknowledged() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    assert_eq!(
        authority.get("/invoice/transmit/pull").await.1["data"],
        json!([])
    );
    authority
        .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
        .await;
    let row = json!([{
        "irn": IRN, "message": "TRANSMITTING", "supplier_tin": SUPPLIER_TIN, "customer_tin": CUSTOMER_TIN,
    }]);
    assert_eq!(
        authority
            .get("/invoice/transmit/pull?confirmed=false")
            .await
            .1["data"],
        row
    );
    assert_eq!(
        authority
            .get("/invoice/transmit/pull?from=2020-01-01&to=2020-12-31")
            .await
            .1["data"],
        json!([])
    );
    assert_eq!(
        authority
            .get("/invoice/transmit/pull?from=2020-01-01")
            .await
            .1["data"],
        row
    );
    assert_eq!(
        authority.get("/invoice/transmit/pull?from=soon").await.0,
        400
    );
    authority
        .patch(
            &format!("/invoice/transmit/{IRN}"),
            &json!({ "message": "ACKNOWLEDGED" }),
        )
        .await;
    assert_eq!(
        authority.get("/invoice/transmit/pull").await.1["data"],
        json!([])
    );
    assert_eq!(
        authority
            .get("/invoice/transmit/pull?confirmed=true")
            .await
            .1["data"][0]["irn"],
        IRN
    );
}

#[actix_rt::test]
async fn a_party_is_online_until_it_is_taken_offline() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    let online = |body: &Value| body["data"]["online"].clone();
    let lookup = format!("/invoice/transmit/lookup/tin/{CUSTOMER_TIN}");
    assert_eq!(online(&authority.get(&lookup).await.1), true);
    authority
        .control(
            Method::POST,
            "/businesses",
            &json!({ "tin": CUSTOMER_TIN, "online": false }),
        )
        .await;
    assert_eq!(online(&authority.get(&lookup).await.1), false);
    assert_eq!(
        authority
            .post(&format!("/invoice/transmit/{IRN}"), &json!({}))
            .await
            .0,
        400
    );
    // The simulator knows the supplier's tax number from its first invoice, so the business id is enough here.
    authority
        .control(
            Method::POST,
            "/businesses",
            &json!({ "business_id": BUSINESS, "online": false }),
        )
        .await;
    let (_, body) = authority
        .get(&format!("/invoice/transmit/lookup/{IRN}"))
        .await;
    assert_eq!(body["data"]["supplier"]["online"], false);
}

#[actix_rt::test]
async fn a_business_enrolled_with_a_service_id_has_its_numbers_held_against_it() {
    let authority = Authority::start().await;
    let enrolment = PartyEnrolment {
        business_id: Some(BUSINESS.into()),
        tin: Some(SUPPLIER_TIN.into()),
        name: Some("Dangoyaro Mills".into()),
        service_id: Some("94ad90fb".into()),
        online: None,
    };
    authority.sandbox.state().enrol(&enrolment).unwrap();
    assert_eq!(authority.sign("INV1-00000000-20260115").await.0, 400);
    assert_eq!(authority.sign(IRN).await.0, 201);
    let (_, body) = authority
        .get("/entity/0b7a1f4e-0000-4000-8000-000000000001")
        .await;
    let business = json!([{
        "id": BUSINESS, "name": "Dangoyaro Mills", "tin": SUPPLIER_TIN,
        "irn_template": "{{invoice_id}}-94ad90fb-{{YYYYMMDD}}",
    }]);
    assert_eq!(body["data"]["businesses"], business);
}

#[actix_rt::test]
async fn a_business_id_may_be_typed_so_that_its_entity_does_not_confirm_it() {
    let authority = Authority::start().await;
    let business = "-1111-4111-8111-111111111111";
    let entity = async |group: &str| authority.get(&format!("/entity/{group}{business}")).await;
    assert_eq!(entity("00000404").await.0, 404);
    assert_eq!(entity("00000503").await.0, 503);
    let (status, body) = entity("00000409").await;
    let listed = &body["data"]["businesses"][0];
    assert_eq!(
        (status, &listed["id"]),
        (200, &json!(format!("00000409{business}")))
    );
    assert_eq!(listed["tin"], "00000000-0409");
}

#[actix_rt::test]
async fn an_entity_is_the_business_with_its_id_in_either_case_and_otherwise_all() {
    let authority = Authority::start().await;
    let one = "0b7a1f4e-0000-4000-8000-00000000000a";
    let other = "0b7a1f4e-0000-4000-8000-00000000000b";
    for id in [one, other] {
        let enrolment = PartyEnrolment {
            business_id: Some(id.into()),
            ..PartyEnrolment::default()
        };
        authority.sandbox.state().enrol(&enrolment).unwrap();
    }
    for (id, expected) in [
        (one.to_owned(), vec![one]),
        (one.to_uppercase(), vec![one]),
        ("another".to_owned(), vec![one, other]),
    ] {
        let (_, body) = authority.get(&format!("/entity/{id}")).await;
        let listed = body["data"]["businesses"].as_array().unwrap().iter();
        let ids: Vec<_> = listed
            .map(|business| business["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected, "{id}");
    }
}

#[actix_rt::test]
async fn an_invoice_from_elsewhere_is_told_downloaded_and_acknowledged() {
    let authority = Authority::start().await;
    let mut access_point = AccessPoint::listen();
    authority
        .sandbox
        .state()
        .register_access_point(&access_point.url)
        .unwrap();
    let (status, body) = authority
        .control(Method::POST, "/inbound", &json!({ "tin": CUSTOMER_TIN }))
        .await;
    let irn = body["irn"].as_str().unwrap();
    assert_eq!(
        (status, access_point.next().await),
        (200, notice(irn, "TRANSMITTING"))
    );
    assert_eq!(
        authority.get(&format!("/invoice/download/{irn}")).await.0,
        200
    );
    let (_, body) = authority
        .get(&format!("/invoice/transmit/lookup/{irn}"))
        .await;
    assert_eq!(body["data"]["customer"]["tin"], CUSTOMER_TIN);
    let receipt = json!({ "message": "ACKNOWLEDGED" });
    assert_eq!(
        authority
            .patch(&format!("/invoice/transmit/{irn}"), &receipt)
            .await
            .0,
        200
    );
    let (_, again) = authority
        .control(
            Method::POST,
            "/inbound",
            &json!({ "tin": CUSTOMER_TIN, "irn": irn }),
        )
        .await;
    assert_eq!(again["error"], format!("{irn} is signed already"));
}
