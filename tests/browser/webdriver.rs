//! A client of the `WebDriver` protocol (W3C): the dozen commands that the tests need, and no crate for them.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::patience::PATIENCE;

/// The name of a reference to an element in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Ends the driver and its browsers when its standard input closes, which happens however this process ends.
const DRIVER_SCRIPT: &str = "setsid chromedriver --port=0 & read -r _; kill -- -$!";

/// Tests run as root in containers, where Chromium has no sandbox. It opens pages of this process only.
const CHROMIUM: [&str; 6] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--window-size=1280,900",
];

static DRIVER: LazyLock<Driver> = LazyLock::new(Driver::start);

/// One for all tests.
struct Driver {
    port: u16,
    /// Holds the standard input open.
    _shell: Child,
    /// Kept open, because what the driver prints must go somewhere.
    _output: Mutex<BufReader<ChildStdout>>,
}

impl Driver {
    fn start() -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", DRIVER_SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert!(
                output.read_line(&mut line).unwrap() > 0,
                "chromedriver did not start"
            );
            if let Some(rest) = line.split("started successfully on port ").nth(1) {
                break rest.trim_end_matches(['.', '\n']).parse().unwrap();
            }
        };
        Self {
            port,
            _shell: child,
            _output: Mutex::new(output),
        }
    }
}

/// A browser without a session at the service; it closes when it is dropped.
pub(crate) struct Session {
    http: reqwest::Client,
    path: String,
}

impl Session {
    pub(crate) async fn open() -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .timeout(PATIENCE)
            .build()
            .unwrap();
        let mut session = Self {
            http,
            path: "/session".to_owned(),
        };
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": CHROMIUM },
            "goog:loggingPrefs": { "browser": "ALL" },
            // A question that a page asks is answered with yes.
            "unhandledPromptBehavior": "accept",
        } } });
        let opened = session.post("", &wanted).await;
        session.path = format!("/session/{}", opened["sessionId"].as_str().unwrap());
        session
    }

    /// Sends a command and returns its value. An error ends the test with the words of the driver.
    pub(crate) async fn post(&self, command: &str, body: &Value) -> Value {
        let answer = self.send(command, body).await;
        assert_eq!(
            answer.status, 200,
            "{command}: {}",
            answer.body["value"]["message"]
        );
        answer.body["value"].clone()
    }

    /// Sends a command that fails while the page gives way to the next one; then it returns `None`.
    pub(crate) async fn attempt(&self, command: &str, body: &Value) -> Option<Value> {
        let answer = self.send(command, body).await;
        (answer.status == 200).then(|| answer.body["value"].clone())
    }

    async fn send(&self, command: &str, body: &Value) -> Answer {
        let url = format!("http://127.0.0.1:{}{}{command}", DRIVER.port, self.path);
        Answer::to(self.http.post(url).json(body)).await
    }

    /// Runs a script in the page, also where the page's own policy admits none, and returns its value.
    pub(crate) async fn script(&self, script: &str, arguments: &[&str]) -> Value {
        self.post(
            "/execute/sync",
            &json!({ "script": script, "args": arguments }),
        )
        .await
    }

    /// Sends a command of the Chrome `DevTools` Protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post(
            "/goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        )
        .await
    }

    /// Returns the first element that a script finds.
    pub(crate) async fn find(&self, script: &str, arguments: &[&str]) -> Option<Element<'_>> {
        let found = self.script(script, arguments).await;
        let id = found[ELEMENT].as_str()?.to_owned();
        Some(Element { session: self, id })
    }
}

impl Drop for Session {
    /// A destructor cannot wait for an asynchronous client.
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, DRIVER.port)) {
            let request = format!(
                "DELETE {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
                self.path
            );
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read(&mut [0; 64]);
        }
    }
}

/// An element of the page that is open.
pub(crate) struct Element<'a> {
    session: &'a Session,
    id: String,
}

impl Element<'_> {
    async fn post(&self, command: &str, body: &Value) {
        self.session
            .post(&format!("/element/{}/{command}", self.id), body)
            .await;
    }

    pub(crate) async fn click(&self) {
        self.post("click", &json!({})).await;
    }

    /// Types a text in place of what is there.
    pub(crate) async fn type_over(&self, text: &str) {
        self.post("clear", &json!({})).await;
        self.post("value", &json!({ "text": text })).await;
    }
}
