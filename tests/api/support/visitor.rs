//! A person with a browser: keeps the cookies of the session and of the notice, follows no redirect by itself, and sends forms.

use std::collections::BTreeMap;
use std::sync::Mutex;

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorRole};
use reqwest::header::{COOKIE, LOCATION, RETRY_AFTER, SET_COOKIE};
use reqwest::redirect::Policy;
use testkit::documents::number;
use testkit::patience::PATIENCE;

use super::world::World;

/// A browser without a session, or with one.
pub(crate) struct Visitor {
    http: reqwest::Client,
    root: String,
    cookie: Mutex<Option<String>>,
    notice: Mutex<Option<String>>,
    /// The token of a session, and the cookie from which it is made.
    token: Mutex<Option<(String, String)>>,
    /// The cookies by which the browser is known to people who signed in with it.
    devices: Mutex<BTreeMap<String, String>>,
}

/// What a page answered.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    /// Where a redirect leads; empty if the answer is none.
    pub(crate) location: String,
    pub(crate) html: String,
    /// The seconds after which to try again, if the answer says so.
    pub(crate) retry_after: Option<u64>,
}

impl Seen {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {}", self.location, self.html);
        self
    }

    #[track_caller]
    pub(crate) fn shows(self, text: &str) -> Self {
        assert!(self.html.contains(text), "{text:?} is not in {}", self.html);
        self
    }

    #[track_caller]
    pub(crate) fn hides(self, text: &str) -> Self {
        assert!(!self.html.contains(text), "{text:?} is in {}", self.html);
        self
    }

    /// Expects a page that shows each of these texts.
    #[track_caller]
    pub(crate) fn shows_all(self, texts: &[&str]) -> Self {
        texts
            .iter()
            .fold(self.expect(200), |page, text| page.shows(text))
    }

    #[track_caller]
    pub(crate) fn hides_all(self, texts: &[&str]) -> Self {
        texts.iter().fold(self, |page, text| page.hides(text))
    }

    #[track_caller]
    pub(crate) fn leads_to(self, path: &str) -> Self {
        assert_eq!(
            (self.status, self.location.as_str()),
            (303, path),
            "{}",
            self.html
        );
        self
    }

    /// Returns the token that the forms of this page carry.
    #[track_caller]
    pub(crate) fn csrf(&self) -> String {
        self.hidden("csrf")
    }

    /// Returns the value of the first hidden field with this name.
    #[track_caller]
    pub(crate) fn hidden(&self, name: &str) -> String {
        let start = format!(r#"name="{name}" value=""#);
        let (_, rest) = self.html.split_once(&start).unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Visitor {
    pub(crate) fn new(world: &World) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .timeout(PATIENCE);
        let http = http.redirect(Policy::none()).build().unwrap();
        Self {
            http,
            root: world.root(),
            cookie: Mutex::default(),
            notice: Mutex::default(),
            token: Mutex::default(),
            devices: Mutex::default(),
        }
    }

    /// A browser on the operators' listener, where they have one of their own.
    pub(crate) fn on_operators_listener(world: &World) -> Self {
        let visitor = Self::new(world);
        Self {
            root: world.ops_root().unwrap_or_else(|| world.root()),
            ..visitor
        }
    }

    /// The same browser on another address.
    pub(crate) fn at(self, root: String) -> Self {
        Self { root, ..self }
    }

    /// A new operator with this role, signed in.
    pub(crate) async fn operator(world: &World, role: OperatorRole) -> Self {
        Self::new_operator(world, role).await.0
    }

    /// The same, with the operator's email and password.
    pub(crate) async fn new_operator(world: &World, role: OperatorRole) -> (Self, String, String) {
        let email = format!("operator{}@house.example", number());
        let made =
            app::create_operator(world.settings(), email.clone(), role, KeyTerms::default()).await;
        let visitor = Self::new(world);
        let password = made.unwrap()["password"].as_str().unwrap().to_owned();
        visitor
            .sign_in(&email, &password)
            .await
            .leads_to("/console");
        (visitor, email, password)
    }

    /// A thief with the cookie that this browser has now.
    pub(crate) fn copy(&self, world: &World) -> Self {
        Self {
            cookie: Mutex::new(Some(self.cookie())),
            ..Self::new(world)
        }
    }

    pub(crate) async fn sign_in(&self, email: &str, password: &str) -> Seen {
        self.send("/sign-in", &[("email", email), ("password", password)])
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Seen {
        self.answer(self.http.get(format!("{}{path}", self.root)))
            .await
    }

    /// Opens an address as a browser does, or a program that accepts these types.
    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Seen {
        let request = self.http.get(format!("{}{path}", self.root));
        self.answer(request.header("accept", accept)).await
    }

    /// Returns the first event of a stream.
    pub(crate) async fn first_event(&self, path: &str) -> String {
        let mut stream = self.open_stream(path).await;
        String::from_utf8(stream.chunk().await.unwrap().unwrap().to_vec()).unwrap()
    }

    /// Opens a stream.
    pub(crate) async fn open_stream(&self, path: &str) -> reqwest::Response {
        let request = self
            .http
            .get(format!("{}{path}", self.root))
            .header(COOKIE, self.cookie());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer
    }

    /// Sends a form as the page of the sign-in does: without a token.
    pub(crate) async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
        self.send_text(
            path,
            url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(fields)
                .finish(),
        )
        .await
    }

    async fn send_text(&self, path: &str, body: String) -> Seen {
        let request = self.http.post(format!("{}{path}", self.root)).body(body);
        self.answer(request.header("content-type", "application/x-www-form-urlencoded"))
            .await
    }

    /// Sends a file as the script of a page does, with this token.
    pub(crate) async fn upload(&self, path: &str, kind: &str, token: &str, file: String) -> Seen {
        let request = self.http.post(format!("{}{path}", self.root)).body(file);
        let request = request.header("content-type", kind);
        self.answer(request.header("x-csrf-token", token)).await
    }

    /// Sends a form with the tokens that pages of this session carry.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
        self.send_text(path, self.form(fields).await).await
    }

    /// Returns the body of a form with the token that pages of this session carry.
    pub(crate) async fn form(&self, fields: &[(&str, &str)]) -> String {
        let csrf = self.csrf_token().await;
        let once = number().to_string();
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields)
            .append_pair("csrf", &csrf)
            .append_pair("once", &once)
            .finish()
    }

    /// Returns the token that pages of this session carry. A page is read for it once.
    async fn csrf_token(&self) -> String {
        let cookie = self.cookie();
        let known = self.token.lock().unwrap().clone();
        if let Some((token, made_from)) = known
            && made_from == cookie
        {
            // Like the page, which shows the notice and ends it.
            *self.notice.lock().unwrap() = None;
            return token;
        }
        let token = self.get("/account/password").await.expect(200).csrf();
        *self.token.lock().unwrap() = Some((token.clone(), self.cookie()));
        token
    }

    /// Returns the cookie of the session.
    pub(crate) fn cookie(&self) -> String {
        self.cookie.lock().unwrap().clone().unwrap_or_default()
    }

    /// Returns the cookies by which the browser is known to people, by name.
    pub(crate) fn devices(&self) -> BTreeMap<String, String> {
        self.devices.lock().unwrap().clone()
    }

    /// The cookies as a request carries them.
    fn cookies(&self) -> String {
        let session = self.cookie.lock().unwrap().clone();
        let notice = self.notice.lock().unwrap().clone();
        let devices = self.devices.lock().unwrap();
        let devices = devices
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        session
            .into_iter()
            .chain(notice)
            .chain(devices)
            .collect::<Vec<_>>()
            .join("; ")
    }

    async fn answer(&self, mut request: reqwest::RequestBuilder) -> Seen {
        let cookies = self.cookies();
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies);
        }
        let answer = request.send().await.unwrap();
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            for (name, jar) in [("session=", &self.cookie), ("notice=", &self.notice)] {
                if pair.starts_with(name) {
                    *jar.lock().unwrap() = (pair != name).then(|| pair.to_owned());
                }
            }
            let device = pair
                .strip_prefix("device-")
                .and_then(|_| pair.split_once('='));
            if let Some((name, value)) = device {
                self.devices
                    .lock()
                    .unwrap()
                    .insert(name.to_owned(), value.to_owned());
            }
        }
        let location = answer
            .headers()
            .get(LOCATION)
            .map(|value| value.to_str().unwrap().to_owned());
        let retry_after = answer
            .headers()
            .get(RETRY_AFTER)
            .map(|value| value.to_str().unwrap());
        let retry_after = retry_after.map(|seconds| seconds.parse().unwrap());
        Seen {
            retry_after,
            status: answer.status().as_u16(),
            location: location.unwrap_or_default(),
            html: answer.text().await.unwrap(),
        }
    }
}
