//! `skill`: what there is, then one.

use tool::{Json, Reply};

use super::View;
use super::arguments::Loose;
use crate::skill::Lookup;

impl View<'_> {
    pub(super) fn skill(&self, arguments: Option<&Json>) -> Reply {
        let asked = Loose::read(arguments);
        let library = self.shared.skills.load();
        let namespace = asked.text("namespace").unwrap_or_default();
        // The author's own server says `name`.
        let wanted = ["skillname", "name", "skill"].iter().find_map(|key| asked.text(key));
        let wanted = wanted.filter(|name| !name.is_empty());
        if let Some(path) = asked.text("path") {
            return Reply::error_text(&format!(
                "**Error:** Skills are text only: no file `{}` is given out.",
                catalog::summary::cut(&path, 80)
            ));
        }
        let Some(wanted) = wanted else {
            return match library.index(&namespace) {
                Some(text) => Reply::text(&text),
                None => Reply::error_text(&format!(
                    "**Error:** No skills in namespace `{}`. Use `skill()` to list all.",
                    catalog::summary::cut(&namespace, 80)
                )),
            };
        };
        match library.look_up(&namespace, &wanted) {
            Lookup::Found(skill) => Reply::text(&skill.fill(&asked.iter().collect::<Vec<_>>())),
            Lookup::Ambiguous(addresses) => Reply::error_text(&format!(
                "**Error:** `{wanted}` is the name of several: {}.",
                addresses.join(", ")
            )),
            Lookup::Unknown(nearest) => {
                let near = match nearest.as_slice() {
                    [] => String::new(),
                    near => format!(" Nearest: {}.", near.join(", ")),
                };
                Reply::error_text(&format!(
                    "**Error:** No skill `{}`.{near} Use `skill()` to list all.",
                    catalog::summary::cut(&wanted, 80)
                ))
            }
        }
    }
}
