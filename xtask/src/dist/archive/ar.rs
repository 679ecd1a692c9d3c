//! `ar`: what a Debian package is, outermost.

/// An archive of these members, last changed at `stamp`.
pub(crate) fn archive(members: &[(&str, Vec<u8>)], stamp: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let size = bytes.len();
        archive.extend(format!("{name:<16}{stamp:<12}0     0     100644  {size:<10}`\n").bytes());
        archive.extend(bytes);
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_begin_at_even_places() {
        let archive = archive(&[("a", b"1".to_vec()), ("b", b"22".to_vec())], 7);
        let head = |name, size| format!("{name:<16}7           0     0     100644  {size:<10}`\n");
        let expected = format!("!<arch>\n{}1\n{}22", head("a", 1), head("b", 2));
        assert_eq!(String::from_utf8(archive).unwrap(), expected);
    }
}
