//! The world of a run: files, a repository, a database, a memory, a web site. It is the
//! same every time, so that a verdict can be computed.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A world in a directory of its own.
pub(crate) struct World {
    root: tempfile::TempDir,
    site: u16,
    /// A Python with the module `sqlite3`.
    python: PathBuf,
}

const AUTHORS: [&str; 4] = ["Mira Olsen", "Tariq Haddad", "Lena Vogt", "Sam Ito"];
const COUNTRIES: [&str; 4] = ["DE", "FR", "NO", "PL"];
const STATUS: [&str; 3] = ["paid", "paid", "open"];
const GOODS: [&str; 6] = ["kettle", "lantern", "bell", "compass", "whistle", "clock"];
const METALS: [&str; 8] = ["Tin", "Copper", "Brass", "Iron", "Oak", "Paper", "Silver", "Bamboo"];

impl World {
    pub(crate) fn create(python: &Path) -> Result<World> {
        let root = tempfile::tempdir()?;
        let world = World { site: serve_site()?, root, python: python.to_owned() };
        world.make_files()?;
        world.make_repository()?;
        world.make_database()?;
        world.make_memory()?;
        Ok(world)
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A task's text with the places of this world.
    pub(crate) fn filled_in(&self, text: &str) -> String {
        let files = self.path("files").display().to_string();
        text.replace("@FILES@", &files)
            .replace("@SITE@", &format!("http://127.0.0.1:{}", self.site))
    }

    fn put(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().context("a file is in a directory")?)?;
        Ok(std::fs::write(path, text)?)
    }

    fn make_files(&self) -> Result<()> {
        let kinds =
            ["INFO request served", "WARN slow query", "INFO cache refreshed", "DEBUG heartbeat"];
        let mut log = String::new();
        for n in 0_usize..2600 {
            let kind = if n % 37 == 5 { "ERROR payment declined" } else { kinds[n % kinds.len()] };
            let (day, hour, minute) = (1 + n / 200, (n * 7) % 24, (n * 13) % 60);
            log += &format!(
                "2026-11-{day:02}T{hour:02}:{minute:02}:00Z {kind} order={} ms={} node=web-{}\n",
                1000 + (n * 7919) % 9000,
                3 + (n * 31) % 900,
                1 + n % 6
            );
        }
        self.put("files/logs/app.log", &log)?;
        let filler =
            "The team wrote down what it learnt, so that others need not ask twice.\n".repeat(20);
        for (n, name) in
            ["arrivals", "boats", "budget", "crew", "freight", "pilots", "ropes", "tides"]
                .iter()
                .enumerate()
        {
            let extra = if *name == "pilots" {
                "Project Halcyon is due on 2027-03-19, not earlier.\n"
            } else {
                ""
            };
            self.put(
                &format!("files/docs/{}/{name}.md", 2025 + n % 2),
                &format!("# {name}\n\n{filler}{extra}{filler}"),
            )?;
        }
        for name in ["scan-1.tmp", "scan-2.tmp", "scan-7.tmp", "letter.txt"] {
            self.put(&format!("files/inbox/{name}"), &format!("contents of {name}\n"))?;
        }
        self.put("files/settings.json", "{\n  \"theme\": \"dark\",\n  \"retries\": 3\n}\n")?;
        std::fs::create_dir_all(self.path("files/archive"))?;
        Ok(std::fs::create_dir_all(self.path("files/reports"))?)
    }

    fn make_repository(&self) -> Result<()> {
        let mut stream = String::new();
        let mut guide = "# Guide\n\nRun teh program with a file.\n".to_owned();
        for n in 0_usize..90 {
            let author = AUTHORS[(n * n + n / 7) % AUTHORS.len()];
            let (file, message) = match n {
                57 => ("src/parser.rs", "Switch to the new parser".to_owned()),
                n if n % 5 == 0 => ("docs/guide.md", format!("Extend the guide ({n})")),
                n => ("src/main.rs", format!("Tidy main ({n})")),
            };
            let data = match file {
                "docs/guide.md" => {
                    guide += &format!("Step {n}.\n");
                    guide.clone()
                }
                _ => format!("// state {n}\n"),
            };
            let email = author.split(' ').next().unwrap_or(author).to_lowercase();
            let who = format!("{author} <{email}@example.org> {} +0000", 1_761_000_000 + n * 7200);
            stream += &format!(
                "commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {}\n{message}\nM 100644 inline {file}\ndata {}\n{data}\n",
                message.len(),
                data.len()
            );
        }
        let repository = self.path("files/repo");
        self.git(&["init", "-q", "-b", "main", &repository.display().to_string()], "")?;
        let here = repository.display().to_string();
        self.git(&["-C", &here, "fast-import", "--quiet"], &stream)?;
        self.git(&["-C", &here, "reset", "-q", "--hard"], "")?;
        self.git(&["-C", &here, "config", "user.name", "Tester"], "")?;
        self.git(&["-C", &here, "config", "user.email", "tester@example.org"], "").map(drop)
    }

    /// Runs git without anybody's configuration, and returns what it says.
    pub(crate) fn git(&self, words: &[&str], input: &str) -> Result<String> {
        let mut command = Command::new("git");
        command
            .args(words)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        run(&mut command, input)
    }

    /// What git says about the repository of the world.
    pub(crate) fn repository(&self, words: &[&str]) -> String {
        let here = self.path("files/repo").display().to_string();
        self.git(&[&["-C", here.as_str()], words].concat(), "").unwrap_or_default()
    }

    fn make_database(&self) -> Result<()> {
        let mut sql = "create table customers(id integer primary key, name text, country text);\n\
             create table products(id integer primary key, title text, price_cents integer);\n\
             create table orders(id integer primary key, customer_id integer, product_id integer, quantity integer, placed_on text, status text);\n"
            .to_owned();
        for n in 1_usize..=40 {
            sql += &format!(
                "insert into customers values({n}, 'Customer {n}', '{}');\n",
                COUNTRIES[n % 4]
            );
        }
        for n in 1_usize..=20 {
            sql += &format!(
                "insert into products values({n}, 'Item {n}', {});\n",
                150 + (n * 977) % 4000
            );
        }
        for n in 1_usize..=600 {
            sql += &format!(
                "insert into orders values({n}, {}, {}, {}, '{}-{:02}-11', '{}');\n",
                1 + (n * 17) % 40,
                1 + (n * 7) % 20,
                1 + n % 5,
                2024 + n % 3,
                1 + n % 12,
                STATUS[n % 3]
            );
        }
        // Without it two customers have the same revenue, and a task has two answers.
        sql += "insert into orders values(601, 14, 1, 1, '2026-12-11', 'paid');\n";
        self.python("import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.executescript(sys.stdin.read()); d.commit()", &sql)
            .map(drop)
    }

    /// What a query of the database gives: its rows, a line each, columns with `|`.
    pub(crate) fn query(&self, sql: &str) -> String {
        let script = "import sqlite3,sys\nfor r in sqlite3.connect(sys.argv[1]).execute(sys.stdin.read()): print('|'.join(str(c) for c in r))";
        self.python(script, sql).unwrap_or_default().trim().to_owned()
    }

    fn python(&self, script: &str, input: &str) -> Result<String> {
        run(Command::new(&self.python).args(["-c", script]).arg(self.path("shop.db")), input)
    }

    fn make_memory(&self) -> Result<()> {
        let mut lines = String::new();
        for company in ["Norderland", "Klippfisk", "Tidewater"] {
            lines += &format!(
                "{{\"type\":\"entity\",\"name\":\"{company}\",\"entityType\":\"company\",\"observations\":[\"has an office at the quay\"]}}\n"
            );
        }
        for n in 0_usize..45 {
            let name = format!("Person {n:02}");
            let company = if [4, 13, 37].contains(&n) {
                "Norderland"
            } else {
                ["Klippfisk", "Tidewater"][n % 2]
            };
            lines += &format!(
                "{{\"type\":\"entity\",\"name\":\"{name}\",\"entityType\":\"person\",\"observations\":[\"joined in {}\"]}}\n",
                2010 + n % 15
            );
            lines += &format!(
                "{{\"type\":\"relation\",\"from\":\"{name}\",\"to\":\"{company}\",\"relationType\":\"works_at\"}}\n"
            );
        }
        self.put("memory.jsonl", &lines)
    }
}

/// The price of a thing on the web site, in cents.
pub(crate) fn price(metal: usize, good: usize) -> usize {
    400 + (metal * 631 + good * 977) % 8600
}

/// Where `Brass lantern` stands.
pub(crate) const BRASS_LANTERN: (usize, usize) = (2, 1);

fn price_list() -> String {
    let mut rows = String::new();
    for (m, metal) in METALS.iter().enumerate() {
        for (g, good) in GOODS.iter().enumerate() {
            let cents = price(m, g);
            rows += &format!(
                "<h3>{metal} {good}</h3><p>Well made. Price: {}.{:02} EUR.</p>",
                cents / 100,
                cents % 100
            );
        }
    }
    format!(
        "<html><head><title>Price list</title></head><body><h1>Price list</h1><article>{rows}</article></body></html>"
    )
}

/// Serves the web site on loopback as long as the program runs.
fn serve_site() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(&stream));
        }
    });
    Ok(port)
}

fn answer(mut stream: &TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    lines.find(String::is_empty)?;
    let (status, body) = match first.split(' ').nth(1)? {
        "/prices.html" => ("200 OK", price_list()),
        _ => ("404 Not Found", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()
}

fn run(command: &mut Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{:?}", command.get_program()))?;
    child.stdin.take().context("piped")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "{:?}: {}",
        command.get_program(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
