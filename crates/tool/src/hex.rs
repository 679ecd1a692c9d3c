//! Encodes bytes as hexadecimal digits, and decodes them.

/// Encodes each byte as two digits in lower case.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Decodes pairs of digits in either case; `None` if the text is anything else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        assert_eq!(encode(&[0, 1, 0x9f, 0xff]), "00019fff");
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all.clone()));
        assert_eq!(decode(&encode(&all).to_uppercase()), Some(all));
        assert_eq!(decode(""), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_pair_of_digits_is_nothing() {
        for text in ["0", "000", "+f", " 0", "0x", "g0", "ß", "００"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
