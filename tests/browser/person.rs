//! A person at a browser, who finds fields by their labels, and buttons and links by their words.

use std::time::{Duration, Instant};

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorRole};
use serde_json::{Value, json};
use testkit::documents::number;
use tokio::time::sleep;

use crate::support::world::World;
use crate::webdriver::{Element, Session};

/// How long a page may take to show what must come.
const PAGE_WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

const FIELD_SCRIPT: &str = "
    const words = (label) => (label.querySelector('span') ?? label).innerText.trim();
    return [...document.querySelectorAll('label')].find((label) => words(label) === arguments[0])?.control ?? null;";

/// Words in a button that only screen readers say do not count.
const CONTROL_SCRIPT: &str = "
    const [kinds, text, row] = arguments;
    const rows = [...document.querySelectorAll('tr')];
    const root = row ? rows.find((one) => one.innerText.split(/[\\t\\n]/).some((cell) => cell.trim() === row)) : document;
    const words = (one) => one.innerText.replace(one.querySelector('.sr-only')?.innerText ?? '', '').trim();
    const found = [...(root?.querySelectorAll(kinds) ?? [])].find((one) => one.checkVisibility() && words(one) === text);
    found?.scrollIntoView({ block: 'center', behavior: 'instant' });
    return found ?? null;";

const BUTTON_SELECTOR: &str = "button, summary";

pub(crate) struct Visitor {
    pub(crate) session: Session,
    root: String,
}

impl Visitor {
    pub(crate) async fn new(world: &World) -> Self {
        Self {
            session: Session::open().await,
            root: world.root(),
        }
    }

    /// A person who signed in by the form.
    pub(crate) async fn signed_in(world: &World, email: &str, password: &str) -> Self {
        let visitor = Self::new(world).await;
        visitor.sign_in(email, password).await;
        visitor.wait_to_see("Overview").await;
        visitor
    }

    /// A new operator with this role, signed in.
    pub(crate) async fn operator(world: &World, role: OperatorRole) -> Self {
        let email = format!("operator{}@house.example", number());
        let made =
            app::create_operator(world.settings(), email.clone(), role, KeyTerms::default()).await;
        let password = made.unwrap()["password"].as_str().unwrap().to_owned();
        Self::signed_in(world, &email, &password).await
    }

    /// Begins at the address that the start of the service prints.
    pub(crate) async fn sign_in(&self, email: &str, password: &str) {
        self.open("/sign-in").await;
        self.fill("Email", email).await;
        self.fill("Password", password).await;
        self.press("Sign in").await;
    }

    pub(crate) async fn open(&self, path: &str) {
        self.session
            .post("/url", &json!({ "url": format!("{}{path}", self.root) }))
            .await;
    }

    /// Returns the text of the page; nothing while it gives way to the next one.
    pub(crate) async fn text(&self) -> String {
        let script = "return document.body.innerText.replace(/\\s+/g, ' ')";
        let text = self
            .session
            .attempt("/execute/sync", &json!({ "script": script, "args": [] }))
            .await;
        text.and_then(|text| text.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Waits until the page shows a text, without opening it again.
    pub(crate) async fn wait_to_see(&self, text: &str) {
        self.wait_for_text(text, false).await;
    }

    /// Opens the page again until it shows a text.
    pub(crate) async fn reload_until_seen(&self, text: &str) {
        self.wait_for_text(text, true).await;
    }

    async fn wait_for_text(&self, text: &str, reloads: bool) {
        let begun = Instant::now();
        loop {
            if reloads {
                self.session.attempt("/refresh", &json!({})).await;
            }
            let page = self.text().await;
            if page.contains(text) {
                return;
            }
            assert!(
                begun.elapsed() < PAGE_WAIT_MAX,
                "in vain: waited for {text:?} on this page:\n{page}"
            );
            sleep(LOOK_EVERY).await;
        }
    }

    /// Finds an element. Waits for it, because a page may still be on its way.
    async fn find_element(&self, what: &str, script: &str, arguments: &[&str]) -> Element<'_> {
        let begun = Instant::now();
        while begun.elapsed() < PAGE_WAIT_MAX {
            if let Some(found) = self.session.find(script, arguments).await {
                return found;
            }
            sleep(LOOK_EVERY).await;
        }
        panic!("no {what} on this page:\n{}", self.text().await)
    }

    /// Types into the field with this label.
    pub(crate) async fn fill(&self, label: &str, text: &str) {
        self.find_element(&format!("field {label:?}"), FIELD_SCRIPT, &[label])
            .await
            .type_over(text)
            .await;
    }

    /// Ticks the box with this label.
    pub(crate) async fn tick(&self, label: &str) {
        self.find_element(&format!("box {label:?}"), FIELD_SCRIPT, &[label])
            .await
            .click()
            .await;
    }

    /// Chooses an entry of the list with this label.
    pub(crate) async fn choose(&self, label: &str, entry: &str) {
        self.find_element(&format!("list {label:?}"), FIELD_SCRIPT, &[label])
            .await;
        let script = format!(
            "const list = (() => {{ {FIELD_SCRIPT} }})();
             const [, entry] = arguments;
             list.value = [...list.options].find((option) => option.text === entry).value;"
        );
        self.session.script(&script, &[label, entry]).await;
    }

    /// Presses the button with these words.
    pub(crate) async fn press(&self, words: &str) {
        self.find_element(
            &format!("button {words:?}"),
            CONTROL_SCRIPT,
            &[BUTTON_SELECTOR, words],
        )
        .await
        .click()
        .await;
    }

    /// Presses the button with these words in the row that has this cell.
    pub(crate) async fn press_in(&self, row: &str, words: &str) {
        let what = format!("button {words:?} in the row of {row:?}");
        self.find_element(&what, CONTROL_SCRIPT, &[BUTTON_SELECTOR, words, row])
            .await
            .click()
            .await;
    }

    /// Follows the link with these words.
    pub(crate) async fn follow(&self, words: &str) {
        self.find_element(&format!("link {words:?}"), CONTROL_SCRIPT, &["a", words])
            .await
            .click()
            .await;
    }

    /// Follows the link with these words in the row that has this cell.
    pub(crate) async fn follow_in(&self, row: &str, words: &str) {
        let what = format!("link {words:?} in the row of {row:?}");
        self.find_element(&what, CONTROL_SCRIPT, &["a", words, row])
            .await
            .click()
            .await;
    }

    /// Returns the text of the element with this id.
    pub(crate) async fn read(&self, id: &str) -> String {
        let text = self
            .session
            .script(
                "return document.getElementById(arguments[0]).textContent",
                &[id],
            )
            .await;
        text.as_str().unwrap().to_owned()
    }

    /// Returns what the browser complained about since the last call.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self
            .session
            .post("/se/log", &json!({ "type": "browser" }))
            .await;
        let is_bad = |line: &&Value| line["level"] == "SEVERE" || line["level"] == "WARNING";
        log.as_array()
            .unwrap()
            .iter()
            .filter(is_bad)
            .map(|line| line["message"].to_string())
            .collect()
    }
}
