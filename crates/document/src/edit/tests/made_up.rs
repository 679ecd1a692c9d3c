//! Documents that nobody wrote: every kind of value, comment, indentation and
//! line end, as a list of choices says.

use proptest::prelude::*;

/// Returns what decides, one number for each choice; when they are used up, 0.
pub(super) fn choices() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..160)
}

pub(super) struct Writer {
    choices: std::vec::IntoIter<u8>,
    newline: &'static str,
    unit: &'static str,
    n_keys: usize,
}

const WORDS: &[&str] =
    &["alpha", "b c", "Ünïcode", "x//y", "# no", "a\\\"b", "{", "", "servers.x", "'q'"];

impl Writer {
    pub(super) fn new(choices: Vec<u8>) -> Writer {
        let mut writer =
            Writer { choices: choices.into_iter(), newline: "\n", unit: "  ", n_keys: 0 };
        writer.newline = ["\n", "\n", "\r\n"][writer.pick(3)];
        writer.unit = ["  ", "    ", "\t", " "][writer.pick(4)];
        writer
    }

    fn pick(&mut self, n: usize) -> usize {
        usize::from(self.choices.next().unwrap_or(0)) % n
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.pick(one_in) == one_in - 1
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.pick(WORDS.len())]
    }

    /// A key that no other has; now and then the one that is looked for.
    fn key(&mut self, servers: &mut bool) -> String {
        self.n_keys += 1;
        if *servers && self.chance(3) {
            *servers = false;
            return "servers".to_owned();
        }
        format!("{}{}", ["key", "gatelet", "mcp-"][self.pick(3)], self.n_keys)
    }

    pub(super) fn json(&mut self) -> String {
        let mark = if self.chance(8) { "\u{feff}" } else { "" };
        let head = if self.chance(4) { format!("// top{}", self.newline) } else { String::new() };
        let mut servers = true;
        let body = self.json_table(0, &mut servers);
        let tail = if self.chance(2) { self.newline } else { "" };
        format!("{mark}{head}{body}{tail}")
    }

    fn json_table(&mut self, depth: usize, servers: &mut bool) -> String {
        let n = if depth > 3 { 0 } else { self.pick(4) };
        if n == 0 {
            let inner = self.newline.to_owned() + &self.unit.repeat(depth + 1);
            return match self.pick(6) {
                4 => "{ /* none */ }".to_owned(),
                5 => format!("{{{inner}// none{}}}", self.newline),
                _ => "{}".to_owned(),
            };
        }
        let in_lines = !self.chance(4);
        let trailing = self.chance(5);
        let mut text = "{".to_owned();
        for at in 0..n {
            let key = self.key(&mut (depth == 0 && *servers));
            let is_servers = key == "servers";
            *servers &= !is_servers;
            if in_lines {
                if self.chance(6) {
                    text += &format!("{}{}// above", self.newline, self.unit.repeat(depth + 1));
                }
                text += &format!("{}{}", self.newline, self.unit.repeat(depth + 1));
            } else if at > 0 {
                text += " ";
            }
            let value = if is_servers {
                self.json_table(depth + 1, &mut false)
            } else {
                self.json_value(depth + 1)
            };
            text += &format!("\"{key}\": {value}");
            let comma = if at + 1 < n || trailing { "," } else { "" };
            let note = match self.pick(8) {
                6 => " /* note, */",
                7 if in_lines => " // note, }",
                _ => "",
            };
            text += &match note {
                " /* note, */" if self.chance(2) => format!("{note}{comma}"),
                _ => format!("{comma}{note}"),
            };
        }
        if in_lines {
            text += &format!("{}{}", self.newline, self.unit.repeat(depth));
        }
        text + "}"
    }

    fn json_value(&mut self, depth: usize) -> String {
        match self.pick(7) {
            0 => "1.50".to_owned(),
            1 => "true".to_owned(),
            2 => "null".to_owned(),
            3 | 4 => self.json_table(depth, &mut false),
            5 => format!("[{}, [] ]", self.pick(9)),
            _ => serde_json::Value::from(self.word()).to_string(),
        }
    }

    pub(super) fn toml(&mut self) -> String {
        let mut lines: Vec<String> = Vec::new();
        let inline = self.chance(5);
        for _ in 0..self.pick(4) {
            lines.extend(self.toml_lines());
        }
        if inline {
            let inner = ["{}", "{ a = { b = 1 } }", "{a = 1, 'b c' = [1, 2]}"][self.pick(3)];
            lines.push(format!("servers = {inner} # all"));
        } else if self.chance(6) {
            lines.push("servers.dotted.url = 'x'".to_owned());
        } else if self.chance(6) {
            lines.push("[servers]".to_owned());
        }
        for _ in 0..self.pick(5) {
            self.n_keys += 1;
            let n = self.n_keys;
            let header = match self.pick(4) {
                0 if !inline => format!("[servers.s{n}]"),
                1 if !inline => format!("[ servers . 's{n}' . env ] # note"),
                2 => format!("[[list{n}]]"),
                _ => format!("[table{n}]"),
            };
            lines.push(header);
            for _ in 0..self.pick(3) {
                lines.extend(self.toml_lines());
            }
        }
        let text = lines.join(self.newline);
        let tail = ["", "\n", "\n\n", "\n# end"][self.pick(4)].replace('\n', self.newline);
        if text.is_empty() { text } else { text + &tail }
    }

    fn toml_lines(&mut self) -> Vec<String> {
        self.n_keys += 1;
        let n = self.n_keys;
        let line = match self.pick(9) {
            0 => return vec![String::new()],
            1 => return vec!["# [servers.gate] in a comment".to_owned()],
            2 => {
                return vec![
                    format!("text{n} = \"\"\""),
                    "[servers.gate]".to_owned(),
                    "\"\"\"".to_owned(),
                ];
            }
            3 => {
                return vec![format!("list{n} = [ # all"), "  1, # one".to_owned(), "]".to_owned()];
            }
            4 => format!("a{n}.b = {{ c = [1, 2] }}"),
            5 => format!("day{n} = 2026-11-17"),
            6 => format!("'quoted {n}' = '#' # note"),
            _ => format!("k{n} = {}", serde_json::Value::from(self.word())),
        };
        vec![line]
    }

    pub(super) fn yaml(&mut self) -> String {
        let unit = if self.unit == "\t" { "   " } else { self.unit };
        self.unit = unit;
        let head = if self.chance(4) { format!("# top{}", self.newline) } else { String::new() };
        let mut servers = true;
        let lines = self.yaml_block(0, &mut servers);
        let body = lines.join(self.newline);
        let tail = if self.chance(3) { "" } else { self.newline };
        if body.is_empty() { head } else { format!("{head}{body}{tail}") }
    }

    fn yaml_block(&mut self, depth: usize, servers: &mut bool) -> Vec<String> {
        let mut lines = Vec::new();
        let indent = self.unit.repeat(depth);
        let n = if depth == 0 { self.pick(5) } else { 1 + self.pick(3) };
        for _ in 0..n {
            match self.pick(8) {
                6 => lines.push(format!("{indent}# above: x")),
                7 => lines.push(String::new()),
                _ => {}
            }
            let key = self.key(&mut (depth == 0 && *servers));
            let is_servers = key == "servers";
            *servers &= !is_servers;
            let kind = if is_servers { [0, 0, 1][self.pick(3)] } else { self.pick(9) };
            let note = if self.chance(6) { " # note: x" } else { "" };
            match kind {
                0 if depth < 3 => {
                    lines.push(format!("{indent}{key}:{note}"));
                    lines.extend(self.yaml_block(depth + 1, &mut false));
                }
                1 => {
                    let flow = ["{}", "{a: 1, b: 'x, y'}", "{ \"q\": [1, {z: 2}] }"][self.pick(3)];
                    lines.push(format!("{indent}{key}: {flow}{note}"));
                }
                2 => {
                    lines.push(format!("{indent}{key}: |"));
                    lines.push(format!("{indent} {}servers:", self.unit));
                    lines.push(String::new());
                    lines.push(format!("{indent} {}  # text", self.unit));
                }
                3 => {
                    lines.push(format!("{indent}{key}:"));
                    lines.push(format!("{indent}- one{note}"));
                    lines.push(format!("{indent}- k: v"));
                    lines.push(format!("{indent}  l: w"));
                }
                4 => lines.push(format!("{indent}\"{key}\": 'it''s'{note}")),
                5 => lines.push(format!("{indent}{key}: plain words{note}")),
                6 => lines.push(format!("{indent}{key}: 12.5{note}")),
                _ => lines
                    .push(format!("{indent}{key}: {}{note}", serde_json::Value::from(self.word()))),
            }
        }
        lines
    }
}
