//! Notices to the registered access points about changes of an invoice: `{ irn, message }`, unsigned.
//!
//! Each access point has its own queue, so a slow one does not delay the others. A failed notice is repeated twice and
//! then dropped.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::{
    runtime::Handle,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

const ATTEMPT_DELAYS_MS: [u64; 3] = [0, 250, 1000];
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Serialize)]
struct Notice {
    irn: String,
    message: String,
}

struct AccessPoint {
    url: String,
    queue: UnboundedSender<Notice>,
}

pub(crate) struct Notices {
    access_points: Mutex<Vec<AccessPoint>>,
    /// The runtime that delivers the notices. It is stored, because threads outside any runtime call `register` too.
    runtime: Handle,
}

impl Notices {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            access_points: Mutex::default(),
            runtime,
        }
    }

    /// Registers the URL of an access point. Registering the same URL again changes nothing.
    pub(crate) fn register(&self, url: &str) -> Result<(), String> {
        let parsed = reqwest::Url::parse(url).map_err(|error| format!("url: {error}"))?;
        let mut access_points = self
            .access_points
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if access_points.iter().any(|known| known.url == url) {
            return Ok(());
        }
        let (queue, notices) = unbounded_channel();
        self.runtime.spawn(deliver_all(parsed, notices));
        access_points.push(AccessPoint {
            url: url.to_owned(),
            queue,
        });
        Ok(())
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        let access_points = self
            .access_points
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        access_points
            .iter()
            .map(|access_point| access_point.url.clone())
            .collect()
    }

    /// Removes all access points. Notices that are already queued are still delivered.
    pub(crate) fn clear(&self) {
        self.access_points
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Queues a notice for every registered access point.
    pub(crate) fn notify(&self, irn: &str, message: &str) {
        let access_points = self
            .access_points
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for access_point in access_points.iter() {
            let notice = Notice {
                irn: irn.to_owned(),
                message: message.to_owned(),
            };
            if access_point.queue.send(notice).is_err() {
                // The URL is not logged, because it may contain a secret token.
                tracing::warn!(irn, "nobody works off the notices of an access point");
            }
        }
    }
}

async fn deliver_all(url: reqwest::Url, mut notices: UnboundedReceiver<Notice>) {
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap_or_default();
    while let Some(notice) = notices.recv().await {
        deliver(&client, &url, &notice).await;
    }
}

async fn deliver(client: &reqwest::Client, url: &reqwest::Url, notice: &Notice) {
    for delay in ATTEMPT_DELAYS_MS {
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let answer = client
            .post(url.clone())
            .timeout(TIMEOUT)
            .json(notice)
            .send()
            .await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
    }
    tracing::warn!(
        irn = notice.irn,
        message = notice.message,
        "a notice was not taken"
    );
}
