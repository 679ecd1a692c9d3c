//! Starts a real S3 server (`moto_server`) for a test, with one bucket. It ends when
//! dropped.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// The bucket that every server has.
pub const BUCKET: &str = "answers";

/// A running S3 server.
pub struct ObjectStore {
    port: u16,
    process: Mutex<Option<Child>>,
}

impl ObjectStore {
    pub fn start() -> ObjectStore {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("there is a free port").port();
        let server = ObjectStore { port, process: Mutex::default() };
        server.resume();
        server
    }

    /// Returns its URL.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts it, or restarts it empty, and waits until it answers.
    pub fn resume(&self) {
        let program = crate::needs::tool(crate::needs::OBJECT_STORE);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command.args(["--host", "127.0.0.1", "--port", &self.port.to_string()]);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = quiet.spawn().expect("moto_server starts");
        *self.process.lock().expect("no test panicked here") = Some(child);
        let is_up = (0..1200).any(|_| {
            let is_up = self.make_bucket();
            if !is_up {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_up
        });
        assert!(is_up, "moto_server answers within a minute");
    }

    /// Kills it.
    pub fn kill(&self) {
        if let Some(mut child) = self.process.lock().expect("no test panicked here").take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns how many objects are in the bucket.
    pub fn n_objects(&self) -> usize {
        let listed = self.request("GET", "/answers?list-type=2").unwrap_or_default();
        listed.matches("<Key>").count()
    }

    fn make_bucket(&self) -> bool {
        self.request("PUT", "/answers").is_some_and(|said| said.starts_with("HTTP/1.1 200"))
    }

    fn request(&self, method: &str, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        // The server only uses the credential to find out which service is meant.
        let identity = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                        SignedHeaders=host, Signature=0";
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\
             Authorization: {identity}\r\nContent-Length: 0\r\n\r\n",
            self.port
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        self.kill();
    }
}
