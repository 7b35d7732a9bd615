//! A person who is signed in to the console.

use reqwest::header::{COOKIE, SET_COOKIE};
use reqwest::redirect::Policy;
use testkit::documents::number;
use testkit::patience::PATIENCE;

pub(crate) struct Console {
    http: reqwest::Client,
    root: String,
    cookie: String,
}

impl Console {
    pub(crate) async fn sign_in(root: String, email: &str, password: &str) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .redirect(Policy::none())
            .timeout(PATIENCE);
        let http = http.build().unwrap();
        let form = encoded(&[("email", email), ("password", password)]);
        let request = http.post(format!("{root}/sign-in")).body(form);
        let answer = request
            .header("content-type", "application/x-www-form-urlencoded")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 303, "{answer:?}");
        let cookies = answer.headers().get_all(SET_COOKIE).iter();
        let cookies = cookies.filter_map(|cookie| cookie.to_str().unwrap().split(';').next());
        let cookie = cookies.collect::<Vec<_>>().join("; ");
        Self { http, root, cookie }
    }

    /// Returns a page as text, with its quotation marks readable; `None` if it did not answer or failed.
    pub(crate) async fn page(&self, path: &str) -> Option<String> {
        let request = self.http.get(format!("{}{path}", self.root));
        let answer = request.header(COOKIE, &self.cookie).send().await.ok()?;
        if answer.status() != 200 {
            return None;
        }
        let html = answer.text().await.ok()?;
        Some(html.replace("&#39;", "'").replace("&#34;", "\""))
    }

    /// Sends a form of a page.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) {
        let page = self.page("/account/password").await.unwrap();
        let (_, rest) = page.split_once(r#"name="csrf" value=""#).unwrap();
        let csrf = rest.split('"').next().unwrap();
        let once = number().to_string();
        let mut fields = fields.to_vec();
        fields.extend([("csrf", csrf), ("once", once.as_str())]);
        let request = self.http.post(format!("{}{path}", self.root));
        let answer = request
            .header(COOKIE, &self.cookie)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(encoded(&fields))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 303, "{path}");
    }
}

fn encoded(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}
