//! Server-side request forgery against the running service, with nothing allowed as in production: what the API does
//! not take, and what is not called although it stands in the database.

use std::net::TcpListener;

use serde_json::{Value, json};
use testkit::documents;
use testkit::on_sqlite;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::webhook;

use super::{CREATED, subscribed};
use crate::support::world::World;

const PUBLIC: &str = "https://hooks.example.com/";

/// The forms that are never taken, `PORT` being the canary's, with either scheme.
fn refused(port: u16) -> Vec<String> {
    let forms: Value = strict_json::from_trusted(include_str!("../../forgery/urls.json")).unwrap();
    let groups = forms["refused"].as_array().unwrap().iter();
    let urls = groups.flat_map(|group| group["urls"].as_array().unwrap());
    let with = |scheme: &str, url: &Value| {
        format!(
            "{scheme}://{}",
            url.as_str().unwrap().replace("PORT", &port.to_string())
        )
    };
    urls.flat_map(|url| ["http", "https"].map(|scheme| with(scheme, url)))
        .collect()
}

/// Listens on every address of this machine, and answers nothing.
fn canary() -> TcpListener {
    let listener = TcpListener::bind("[::]:0")
        .or_else(|_| TcpListener::bind("0.0.0.0:0"))
        .unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

#[on_sqlite(&[("WEBHOOKS__ALLOWED_NETWORKS", "[]"), ("WEBHOOKS__RETRY_SCHEDULE_S", "[0, 0]")])]
async fn no_private_address_is_taken_and_none_is_called(world: &World) {
    let canary = canary();
    let urls = refused(canary.local_addr().unwrap().port());
    assert!(urls.len() > 120);
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let path = webhook(taxpayer.id);
    for url in &urls {
        let answer = integrator
            .send("PUT", &path, &json!({ "webhook_url": url }))
            .await;
        assert_eq!(
            answer.faulty_paths(),
            ["webhook_url"],
            "{url:?}: {}",
            answer.text
        );
        answer.expect_faults(&["webhook_url"]);
    }
    integrator
        .set_webhook(taxpayer.id, PUBLIC, &[CREATED])
        .await
        .expect_status(200);
    // Either scheme in turn: the client has a connector for each.
    for url in urls
        .iter()
        .enumerate()
        .filter(|(at, _)| matches!(at % 4, 0 | 3))
        .map(|(_, url)| url)
    {
        world.plant_webhook_url(taxpayer.id, url).await;
        integrator
            .test_webhook(taxpayer.id)
            .await
            .expect_refusal(502, "WEBHOOK_UNREACHABLE");
    }
    taxpayer.invoice(&documents::invoice()).await;
    let dead = async || {
        let dead = integrator
            .deliveries(taxpayer.id, "?state=dead")
            .await
            .expect_status(200);
        dead.data()["data"].as_array().unwrap().first().cloned()
    };
    let dead = eventually("a dead letter", dead).await;
    for attempt in dead["attempts"].as_array().unwrap() {
        assert_eq!(
            (&attempt["failure"], &attempt["status"]),
            (&json!("forbidden"), &Value::Null)
        );
        let phases =
            json!({ "dns_ms": null, "connect_ms": null, "wait_ms": null, "read_ms": null });
        assert_eq!(attempt["phases"], phases);
    }
    assert_eq!(
        canary.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[on_sqlite]
async fn no_redirect_is_followed(world: &World) {
    let receiver = Receiver::start();
    let canary = canary();
    let port = canary.local_addr().unwrap().port();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    let redirects = [301, 302, 303, 307, 308].map(|status| Reply::Redirect(status, port));
    receiver.answer_next(&redirects);
    for status in [301, 302, 303, 307, 308] {
        let answer = world
            .integrator()
            .test_webhook(taxpayer.id)
            .await
            .expect_status(200);
        assert!(
            answer.message().ends_with(&status.to_string()),
            "{}",
            answer.message()
        );
    }
    receiver.answer_next(&redirects[..3]);
    taxpayer.invoice(&documents::invoice()).await;
    assert_eq!(receiver.wait_for(9).await[8].answered, Reply::Status(204));
    assert_eq!(
        canary.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}
