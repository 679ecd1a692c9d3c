//! Which skills are found, and what is said about the others.

use std::os::unix::fs::symlink;

use super::*;

/// A directory of skills.
struct Shelf(tempfile::TempDir);

impl Shelf {
    fn new() -> Shelf {
        Shelf(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn skill(&self, directory: &str) {
        std::fs::create_dir_all(self.at(directory)).unwrap();
        let text = "---\ndescription: Does it.\n---\nDo it.\n";
        std::fs::write(self.at(directory).join("SKILL.md"), text).unwrap();
    }

    /// The paths of the skills in `skills`, then what is wrong.
    #[track_caller]
    fn check(&self, skills: &[&str], findings: &[&str]) {
        let mut search = Search::new(&[self.at("skills")]);
        search.visit_root(&self.at("skills"));
        let found: Vec<&str> = search.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(found, skills);
        let found: Vec<String> =
            search.findings.iter().map(|f| format!("{} {}", f.code, f.subject)).collect();
        assert_eq!(found, findings);
    }
}

#[test]
fn what_is_no_regular_file_is_left_out_and_holds_nothing_up() {
    let listings = Shelf::new();
    listings.skill("skills/good");
    std::fs::create_dir_all(listings.at("skills/pipe")).unwrap();
    let pipe =
        std::process::Command::new("mkfifo").arg(listings.at("skills/pipe/SKILL.md")).status();
    assert!(pipe.unwrap().success());
    listings.check(&["good/SKILL.md"], &["skill-file pipe/SKILL.md"]);
}

#[test]
fn a_link_leads_nowhere_but_into_the_skills_directories() {
    let listings = Shelf::new();
    listings.skill("skills/good");
    listings.skill("elsewhere/more");
    std::fs::write(listings.at("secret"), "s3cret").unwrap();
    std::fs::create_dir_all(listings.at("skills/alias")).unwrap();
    symlink("../good/SKILL.md", listings.at("skills/alias/SKILL.md")).unwrap();
    std::fs::create_dir_all(listings.at("skills/theft")).unwrap();
    symlink("../../secret", listings.at("skills/theft/SKILL.md")).unwrap();
    symlink("../elsewhere", listings.at("skills/out")).unwrap();
    listings.check(
        &["alias/SKILL.md", "good/SKILL.md"],
        &["skill-link theft/SKILL.md", "skill-link out"],
    );
}

#[test]
fn links_in_a_circle_show_no_skill_twice() {
    let listings = Shelf::new();
    listings.skill("skills/a/good");
    symlink("..", listings.at("skills/a/again")).unwrap();
    symlink("a", listings.at("skills/Z")).unwrap();
    listings.check(&["a/good/SKILL.md"], &[]);
}

#[test]
fn what_lies_too_deep_or_is_not_there_is_said() {
    let listings = Shelf::new();
    listings.skill("skills/1/2/3/4/5/6");
    listings.skill("skills/1/2/3/4/5/6/7");
    listings.check(&["1/2/3/4/5/6/SKILL.md"], &["skill-depth 1/2/3/4/5/6/7/SKILL.md"]);
    let empty = Shelf::new();
    let missing = format!("skill-directory {}", empty.at("skills").display());
    empty.check(&[], &[&missing]);
}
